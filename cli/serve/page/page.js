"use strict";
/*
 * The frame of the page of `heapcore serve`: asks the server, and shows the view that the address
 * names. Each view is in `page.views`, by its name:
 *
 *	page.views.NAME = { title, show: async (view) => ... }
 *
 * #/NAME/ARGUMENT?KEY=VALUE is the address; `view` has the argument, the values, the element to fill
 * and what to ask the server by. A view that is left is cancelled: its requests end, here and there.
 */
const page = (function () {
	const { make } = parts;
	const ROWS = 200, MOST_ROWS = 1000, POLL_MS = 250, FIRST_ROWS_MS = 500, KEPT = 16;
	const byId = (id) => document.getElementById(id);
	const main = byId("main"), status = byId("status");
	const session = Math.random().toString(36).slice(2);
	const kept = new Map(); /* the last answers, for Back */
	const views = {};
	const tabs = [["overview", "Overview"], ["tree", "Holders"], ["kinds", "Kinds"], ["classes", "Classes"],
		["objects", "Allocations"], ["leaks", "Leaks"], ["threads", "Threads"], ["bill", "Memory"],
		["fragmentation", "Fragmentation"], ["dangling", "Dangling"], ["diff", "Growth"], ["command", "Console"]];
	let state = null, current = null, requests = 0;

	/* ---- Addresses of views */

	function href(name, argument, values) {
		const query = new URLSearchParams(Object.entries(values || {}).filter(([, value]) => value)).toString();
		return `#/${name}${argument ? `/${encodeURIComponent(argument)}` : ""}${query ? `?${query}` : ""}`;
	}
	function decoded(text) {
		try {
			return decodeURIComponent(text);
		} catch {
			return text;
		}
	}
	function placeOf(hash) {
		const [, name, argument, query] = /^#?\/?([^/?]*)\/?([^?]*)\??(.*)$/.exec(hash);
		return { name: name || "overview", argument: decoded(argument), values: Object.fromEntries(new URLSearchParams(query)) };
	}
	const go = (address) => { location.hash = address; };
	const replace = (address) => location.replace(address);

	/* A word of a command: quoted, as the prompt reads it. */
	function quoted(word) {
		return word && !/[\s"'#|<>;\\]/.test(word) ? word : `"${word.replace(/"/g, "\"'\"'\"")}"`;
	}
	const sqlText = (text) => `'${text.replace(/'/g, "''")}'`;

	/* ---- The server */

	async function ask(path, values, signal) {
		const response = await fetch(`api/${path}?${new URLSearchParams(values)}`, { signal, cache: "no-store" });
		if (response.status === 403) throw new Error("Open the link that heapcore printed: this browser has not used it yet.");
		const answer = await response.json();
		if (answer.error) throw new Error(answer.error);
		for (const table of answer.tables || []) table.columns = columnsOf(table);
		return answer;
	}

	/* The work of one view, which ends when it is left: one request after the other. showFirst(tables) shows what a long one has so far. */
	function workOf(showFirst) {
		const controller = new AbortController(), { signal } = controller;
		let last = Promise.resolve(), running = null;

		async function send(path, values) {
			const id = `${session}-${++requests}`;
			running = id;
			const timer = path === "run" && !values.from ? setInterval(() => first(id), FIRST_ROWS_MS) : null;
			try {
				return await ask(path, { ...values, id }, signal);
			} finally {
				clearInterval(timer);
				running = null;
				showFirst([]);
			}
		}
		async function first(id) {
			const answer = await ask("first", { id }, signal).catch(() => ({ tables: [] }));
			if (running === id && !signal.aborted && answer.tables.length) showFirst(answer.tables);
		}
		function inTurn(path, values) {
			const key = JSON.stringify([path, values]);
			const answer = last.then(async () => {
				signal.throwIfAborted();
				const found = kept.get(key) || await send(path, values);
				kept.delete(key);
				kept.set(key, found);
				if (kept.size > KEPT) kept.delete(kept.keys().next().value);
				return found;
			});
			last = answer.catch(() => null);
			return answer;
		}
		function cancel() {
			controller.abort();
			if (running) fetch(`api/cancel?${new URLSearchParams({ id: running })}`, { keepalive: true }).catch(() => null);
		}
		return {
			signal, cancel,
			/* The document of a command; rows from `from` on. */
			run: (command, from, rows) => inTurn("run", { command, from: from || 0, rows: rows || ROWS }),
			/* All rows of a table, at most so many */
			async table(command, name, most) {
				const rows = [];
				for (;;) {
					const found = tableOf(await this.run(command, rows.length, MOST_ROWS), name);
					rows.push(...found.rows);
					if (!found.rows.length || rows.length >= Math.min(most, found.total || 0)) return { ...found, rows };
				}
			},
			text: (command) => inTurn("text", { command }),
		};
	}
	/* Columns of SQL have any kind: those of its tables that are bytes are so here; other numbers are counts. */
	const BYTES_OF_SQL = new Set(["size", "bytes", "retained", "with_blocks", "mapped", "resident", "used_bytes", "free_bytes", "in_core", "in_file", "live"]);
	const NAMES_OF_SQL = new Set(["id", "thread", "number", "process", "arena", "parent", "source", "target"]);
	function columnsOf(table) {
		const ofSql = ([name, kind]) => {
			const isNumber = kind === "text" && table.rows.some((row) => typeof row[name] === "number");
			return [name, !isNumber ? kind : BYTES_OF_SQL.has(name) ? "bytes" : NAMES_OF_SQL.has(name) ? "number" : "count"];
		};
		const columns = Object.entries(table.kinds);
		return table.name === "result" ? columns.map(ofSql) : columns;
	}
	/* All rows of the tables of a document that have this name, and one of its tables. */
	const rowsOf = (answer, name) => answer.tables.filter((table) => table.name === name).flatMap((table) => table.rows);
	const tableOf = (answer, name) => answer.tables.find((table) => table.name === name) || { name, columns: [], rows: [] };

	/* ---- Views */

	/* Whether something failed because its view was left. */
	const wasLeft = (view, error) => view.work.signal.aborted || error.name === "AbortError";
	function failure(error) {
		return make("p", { role: "alert", class: "bad" }, error.message);
	}
	function heading(view, text) {
		view.heading.textContent = text;
		document.title = `${text} · ${state ? state.core.replace(/.*\//, "") : ""} · heapcore`;
	}
	/* A part of a view: its heading, and once they are there, its elements. What fails says so here. */
	async function part(view, title, fill) {
		const box = make("section", { "aria-label": title || null }, title ? make("h3", null, title) : null);
		view.element.append(box);
		try {
			const found = await fill(view.work);
			if (view.work.signal.aborted) return;
			if (found && found.length) box.append(...found.filter((one) => one !== null));
			else box.remove();
		} catch (error) {
			if (wasLeft(view, error)) throw error;
			box.append(failure(error));
		}
	}
	function focusAfter(view, key) {
		const again = key && [...view.element.querySelectorAll("[data-focus]")].find((one) => one.dataset.focus === key);
		if (again) again.focus({ preventScroll: true });
		else if (!view.isFirst && (document.activeElement === document.body || document.activeElement.id === "wanted" ||
			document.activeElement.tagName === "A"))
			view.heading.focus({ preventScroll: true });
	}
	function begin(place) {
		const heading_ = make("h2", { tabindex: "-1" }), element = make("div", { class: "view" });
		if (current) current.work.cancel();
		const soFar = make("section", { "aria-label": "The first rows" });
		const showFirst = (tables) => {
			if (!tables.length) soFar.replaceChildren();
			else if (!soFar.children.length) { /* once: rows do not change, and reading is not disturbed */
				soFar.replaceChildren(make("p", { class: "dim" }, "The first rows; the command still runs."), ...tables.flatMap((table) => page.tables.any(view, { ...table, total: undefined })));
				element.append(soFar);
			}
		};
		const view = { ...place, work: workOf(showFirst), element, heading: heading_, isFirst: !current, state };
		view.part = (title, fill) => part(view, title, fill);
		view.setHeading = (text) => heading(view, text);
		/* The address of this view with other values. */
		view.with = (values) => href(place.name, place.argument, { ...place.values, ...values });
		return view;
	}
	async function show() {
		const place = placeOf(location.hash);
		const known = Object.hasOwn(views, place.name) ? views[place.name] : null;
		const focus = document.activeElement && document.activeElement.dataset.focus;
		const sameView = current && current.name === place.name;
		const view = begin(place);
		current = view;
		for (const link of byId("views").children)
			if (link.dataset.view === place.name) link.setAttribute("aria-current", "page");
			else link.removeAttribute("aria-current");
		main.setAttribute("aria-busy", "true");
		status.textContent = "Working …";
		main.replaceChildren(view.heading, view.element);
		if (!sameView) scrollTo(0, 0);
		view.setHeading(known ? known.title : "No such view");
		try {
			if (known) await known.show(view);
		} catch (error) {
			if (!wasLeft(view, error)) view.element.append(failure(error));
		}
		if (current !== view) return;
		main.setAttribute("aria-busy", "false");
		status.textContent = "";
		focusAfter(view, focus);
	}

	/* ---- The start */

	function showProgress(now) {
		const { text, share } = now.stage || { text: "The core is read", share: 0 };
		const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches; /* without a value it moves */
		const bar = make("progress", { max: "100", value: share || isStill ? String(Math.round(100 * share)) : null, "aria-label": "Analysis" });
		main.replaceChildren(make("p", null, `${text} …`), bar);
	}
	async function start() {
		const { signal } = new AbortController();
		try {
			state = await ask("state", {}, signal);
			while (!state.ready) {
				showProgress(state);
				await new Promise((done) => setTimeout(done, POLL_MS));
				state = await ask("state", {}, signal);
			}
		} catch (error) {
			main.setAttribute("aria-busy", "false");
			main.replaceChildren(failure(error));
			return;
		}
		byId("core").textContent = state.core;
		byId("views").append(...tabs.filter(([name]) => name !== "diff" || (state.old || []).length)
			.map(([name, text]) => make("a", { href: href(name), "data-view": name }, text)));
		addEventListener("hashchange", show);
		show();
	}
	byId("skip").addEventListener("click", (event) => {
		event.preventDefault();
		main.focus();
	});
	byId("search").addEventListener("submit", (event) => {
		const wanted = byId("wanted").value.trim();
		event.preventDefault();
		if (wanted) go(href("find", wanted));
	});
	addEventListener("keydown", (event) => {
		if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
		event.preventDefault();
		byId("wanted").focus();
	});
	addEventListener("DOMContentLoaded", start);

	return { views, href, go, replace, quoted, sqlText, ask, rowsOf, tableOf, failure, ROWS };
}());
