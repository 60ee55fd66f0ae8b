"use strict";
/*
 * Shows the data of the page: sections of tables. Texts come from the dump, so they are only ever
 * set as text. What a table looks like depends on its name; one without a view of its own is a table
 * to sort and to search.
 */
(function () {
	const data = JSON.parse(document.getElementById("data").textContent);
	const main = document.getElementById("main");
	const SEARCHED_FROM = 12;
	const used = data.tables.filter((table) => table.name === "set").flatMap((table) => table.rows)
		.filter((row) => row[0] === "used").map((row) => row[2])[0];

	function make(tag, properties, ...children) {
		const element = document.createElement(tag);
		for (const [name, value] of Object.entries(properties || {})) {
			if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
			else if (name === "style") Object.assign(element.style, value);
			else if (value !== null && value !== undefined) element.setAttribute(name, value);
		}
		for (const child of children) if (child !== null) element.append(child);
		return element;
	}

	/* Numbers */
	const grouped = (number) => number.toLocaleString("en");
	function inUnits(bytes) {
		const units = "KMGTPE";
		let unit = 0, value = bytes / 1024;
		if (bytes < 1024) return grouped(bytes) + " bytes";
		/* As text has it: what would be rounded to 1024.0 is 1.0 of the next. */
		for (; value >= 1023.95 && unit + 1 < units.length; unit++) value /= 1024;
		return value.toFixed(1) + " " + units[unit] + "iB";
	}
	function percent(share) {
		const value = 100 * share;
		return (value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1)) + " %";
	}
	const isNumber = (kind) => ["count", "bytes", "number", "change", "seconds"].includes(kind);
	function written(kind, value) {
		if (value === null || value === undefined) return "";
		if (kind === "bytes") return inUnits(value);
		if (kind === "change") return (value > 0 ? "+" : "") + grouped(value);
		if (kind === "count") return grouped(value);
		if (kind === "share") return percent(value);
		return String(value);
	}

	/* Rows as objects */
	const nameOf = (column) => column[0];
	function objects(table) {
		return table.rows.map((row) =>
			Object.fromEntries(table.columns.map((column, i) => [nameOf(column), row[i]])));
	}
	function column(table, name) {
		return table.columns.findIndex((one) => nameOf(one) === name);
	}

	/* One cell of any table */
	function cell(kind, value) {
		if (kind === "share")
			return make("td", { class: "share", title: value === null ? null : percent(value) },
				make("span", { class: "bar", style: { width: `${Math.max(0, Math.min(1, value || 0)) * 6}rem` } }));
		const title = kind === "bytes" && value !== null ? grouped(value) + " bytes" : null;
		return make("td", { class: isNumber(kind) ? "number" : kind, title }, written(kind, value));
	}

	/* A table to sort and to search */
	function plainTable(table) {
		const shown = table.columns.map((_, i) => i)
			.filter((i) => table.rows.some((row) => row[i] !== null));
		const body = make("tbody");
		let order = null, descending = false, wanted = "";

		function fill() {
			const rows = table.rows.filter((row) => !wanted || shown.some((i) =>
				row[i] !== null && String(row[i]).toLowerCase().includes(wanted)));
			if (order !== null) rows.sort((a, b) => {
				const [x, y] = [a[order], b[order]];
				if (x === null || y === null) return (x === null) - (y === null);
				const sign = typeof x === "number" && typeof y === "number" ? x - y
					: String(x).localeCompare(String(y));
				return descending ? -sign : sign;
			});
			body.replaceChildren(...rows.map((row) =>
				make("tr", null, ...shown.map((i) => cell(table.columns[i][1], row[i])))));
		}
		const heads = shown.map((i) => {
			const [name, kind] = table.columns[i];
			const head = make("th", { scope: "col", class: isNumber(kind) ? "number" : "" },
				make("button", { type: "button", onclick: () => {
					descending = order === i ? !descending : kind !== "text" && kind !== "address";
					order = i;
					for (const other of heads) other.removeAttribute("aria-sort");
					head.setAttribute("aria-sort", descending ? "descending" : "ascending");
					fill();
				} }, name));
			return head;
		});
		const result = make("div", { class: "table", tabindex: "0", role: "region", "aria-label": table.name },
			make("table", null, make("thead", null, make("tr", null, ...heads)), body));
		fill();
		if (table.rows.length < SEARCHED_FROM) return [result];
		const search = make("input", { type: "search", placeholder: "Search", "aria-label": `Search ${table.name}`,
			oninput: () => { wanted = search.value.toLowerCase(); fill(); } });
		return [make("div", { class: "tools" }, search), result];
	}

	/* One row, as a line */
	function line(table) {
		return table.rows.map((row) => make("p", null, table.columns.map((one, i) => [one, row[i]])
			.filter(([, value]) => value !== null)
			.map(([[name, kind], value]) => kind === "text" ? value : `${name}: ${written(kind, value)}`)
			.join(" · ")));
	}

	function cards(items, className) {
		return make("div", { class: `cards ${className}` }, ...items);
	}

	/* Who holds the memory: nodes of the rows, which stand in the order of a tree */
	function treeOf(table) {
		const above = [];
		let whole = null;
		for (const row of objects(table)) {
			const node = { name: row.owner, retained: row.retained, bytes: row.bytes || 0, row,
				children: [], parent: above[row.depth - 1] || null, depth: row.depth };
			if (node.parent) node.parent.children.push(node);
			else whole = whole || node;
			above[row.depth] = node;
			above.length = row.depth + 1;
		}
		return whole;
	}

	function hue(text) {
		let hash = 0;
		for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) % 3600;
		return hash / 10;
	}

	/* The node and what it holds, two levels deep; its own bytes are a part as well. */
	function partsOf(node, levels) {
		const part = { name: node.name, node, own: false };
		if (levels > 0 && node.children.length) {
			part.children = node.children.map((child) => partsOf(child, levels - 1));
			const rest = node.retained - node.children.reduce((sum, child) => sum + child.retained, 0);
			if (rest > 0) part.children.push({ name: `${node.name} itself`, node, own: true, value: rest });
		} else {
			part.value = node.retained;
		}
		return part;
	}

	function mapOf(whole) {
		const map = make("div", { class: "map", role: "group", tabindex: "-1", "aria-label": "Map of who holds the memory" });
		const crumbs = make("div", { class: "tools crumbs", "aria-label": "Where the map stands" });
		/* Where the map stands is in the address of the page: #map-1-0 is the first child of the second. */
		const PLACE = "#map";
		let here = at(location.hash) || whole;

		function at(hash) {
			if (hash !== PLACE && !hash.startsWith(`${PLACE}-`)) return null;
			return hash.split("-").slice(1).reduce((node, i) => node && node.children[i], whole) || whole;
		}
		function placeOf(node) {
			return node.parent ? `${placeOf(node.parent)}-${node.parent.children.indexOf(node)}` : PLACE;
		}
		function go(node) {
			here = node;
			if (location.hash !== placeOf(node)) history.pushState(null, "", placeOf(node));
			draw();
			map.focus({ preventScroll: true }); /* what was clicked is gone, and keys are for the map */
		}
		addEventListener("popstate", () => {
			here = at(location.hash) || whole;
			draw();
		});
		function copy(path, button) {
			const text = path.slice(1).map((node) => node.name).join(" -> ") || whole.name;
			const area = make("textarea", { "aria-hidden": "true" });
			area.value = text;
			document.body.append(area);
			area.select();
			if (document.execCommand("copy")) button.textContent = "Copied";
			area.remove();
		}
		function draw() {
			const path = [];
			for (let node = here; node; node = node.parent) path.unshift(node);
			crumbs.replaceChildren(...path.flatMap((node, i) => [i ? "›" : null,
				make("button", { type: "button", onclick: () => go(node) }, node.name)])
				.filter((one) => one !== null),
			make("button", { type: "button", class: "copy", title: "Copy the path",
				onclick: (event) => copy(path, event.target) }, "Copy"),
			make("span", null, `${inUnits(here.retained)}, ${percent(whole.retained ? here.retained / whole.retained : 0)}`));
			const root = d3.hierarchy(partsOf(here, 2)).sum((part) => part.value || 0)
				.sort((a, b) => b.value - a.value);
			d3.treemap().size([map.clientWidth, map.clientHeight]).paddingInner(1)
				.paddingTop((one) => one.depth === 1 ? 17 : 0).round(true)(root);
			map.replaceChildren(...root.descendants().filter((one) => one.depth > 0)
				.filter((one) => one.x1 - one.x0 > 3 && one.y1 - one.y0 > 3).map((one) => {
					const text = `${one.data.name}: ${inUnits(one.value)}`;
					return make("button", { type: "button", title: text, "aria-label": text,
						class: one.children ? "inner" : "", style: {
							left: `${one.x0}px`, top: `${one.y0}px`,
							width: `${one.x1 - one.x0}px`, height: `${one.y1 - one.y0}px`,
							background: `hsl(${hue(one.data.name)}, 45%, ${one.children ? 78 : 70}%)`,
						}, onclick: () => {
							if (!one.data.own && one.data.node !== here) go(one.data.node);
						} }, text);
				}));
		}
		map.addEventListener("keydown", (event) => {
			if ((event.key === "Backspace" || event.key === "Escape") && here.parent) {
				event.preventDefault();
				go(here.parent);
			}
		});
		let width = 0;
		new ResizeObserver(() => {
			if (map.clientWidth !== width) {
				width = map.clientWidth;
				draw();
			}
		}).observe(map);
		return [crumbs, map];
	}

	function treeTable(whole, table) {
		const columns = table.columns.filter(([, kind]) => kind !== "depth")
			.sort((a, b) => (b[0] === "owner") - (a[0] === "owner"));
		const body = make("tbody");
		const open = new Set([whole]);
		let focused = whole;

		function visible(node, found) {
			found.push(node);
			if (open.has(node)) for (const child of node.children) visible(child, found);
			return found;
		}
		function toggle(node) {
			if (open.has(node)) open.delete(node);
			else open.add(node);
			fill(node);
		}
		function rowOf(node) {
			const cells = columns.map(([name, kind]) => {
				if (name !== "owner") return cell(kind, node.row[name]);
				const button = node.children.length
					? make("button", { type: "button", tabindex: "-1", "aria-hidden": "true", onclick: () => toggle(node) }, open.has(node) ? "▾" : "▸")
					: make("span", { style: { display: "inline-block", width: "1.5rem" } });
				return make("td", { class: "text" }, button, node.name);
			});
			const row = make("tr", { role: "row", "aria-level": node.depth + 1, tabindex: node === focused ? "0" : "-1",
				"aria-expanded": node.children.length ? String(open.has(node)) : null,
				style: {}, onkeydown: (event) => move(event, node), onfocus: () => { focused = node; } }, ...cells);
			row.style.setProperty("--depth", node.depth);
			return row;
		}
		function fill(focus) {
			const nodes = visible(whole, []);
			if (focus) focused = focus;
			body.replaceChildren(...nodes.map(rowOf));
			if (focus) body.children[nodes.indexOf(focus)].focus();
		}
		function move(event, node) {
			const nodes = visible(whole, []), at = nodes.indexOf(node);
			const next = { ArrowDown: nodes[at + 1], ArrowUp: nodes[at - 1], Home: nodes[0], End: nodes[nodes.length - 1] }[event.key];
			if (next) fill(next);
			else if (event.key === "ArrowRight" && node.children.length) {
				if (open.has(node)) fill(node.children[0]);
				else toggle(node);
			} else if (event.key === "ArrowLeft") {
				if (open.has(node)) toggle(node);
				else if (node.parent) fill(node.parent);
			} else if (event.key === "Enter" && node.children.length) toggle(node);
			else return;
			event.preventDefault();
		}
		for (const child of whole.children.slice(0, 3)) open.add(child);
		fill(null);
		return make("div", { class: "table tree" }, make("table", { role: "treegrid", "aria-label": "Who holds the memory" },
			make("thead", null, make("tr", null, ...columns.map(([name, kind]) =>
				make("th", { scope: "col", class: isNumber(kind) ? "number" : "" }, name)))), body));
	}

	/* What is mapped, and of that resident: a bar each, in one scale */
	function stackOf(table, name, whole) {
		const [what, amount] = [column(table, "memory"), column(table, name)];
		const sums = new Map();
		for (const row of table.rows.filter((one) => one[what] !== "total")) sums.set(row[what], (sums.get(row[what]) || 0) + (row[amount] || 0));
		const total = [...sums.values()].reduce((sum, one) => sum + one, 0);
		const parts = [...sums].filter(([, bytes]) => bytes > 0).sort((a, b) => b[1] - a[1]);
		const stack = make("div", { class: "stack", style: { width: `${whole ? 100 * total / whole : 100}%` } },
			...parts.map(([text, bytes]) => make("span", { title: `${text}: ${inUnits(bytes)}`,
				style: { flex: `${bytes} 0 0`, background: `hsl(${hue(text)}, 45%, 70%)` } }, text)));
		return [total, make("p", { class: "legend" }, `${name}: ${inUnits(total)}`), stack];
	}

	/* Kinds: what tells each is in a column of its own */
	function kindOf(row) {
		if (row.pattern) return `%${row.pattern}`;
		const name = row.type || row.name || row["several named"] || row.identity || row.signature || row.group;
		if (name) return name;
		if (row["blocks of"]) return `blocks of ${row["blocks of"]}`;
		return `unrecognized of size ${grouped(row.size)}${row.shape ? `, ${row.shape}` : ""}`;
	}
	/* Text has sums and their parts below each other; here each allocation is in one row, so that they can be sorted. */
	function isCountedElsewhere(row) {
		return row.match !== null || row["string size"] !== null || row["block size"] !== null || row["one of several"] !== null ||
			row.group === "Unrecognized allocations";
	}
	function kindTable(table) {
		return plainTable({ name: "kinds", columns: [["kind", "text"], ["count", "count"], ["bytes", "bytes"],
			["share", "share"], ["held by", "text"], ["such as", "text"]],
		rows: objects(table).filter((row) => !isCountedElsewhere(row)).map((row) => [kindOf(row), row.count, row.bytes, used ? row.bytes / used : null,
			row["held by"], row.path || row["such as"]]) });
	}

	const views = {
		core: (table) => {
			document.getElementById("core").textContent = table.rows.map((row) => row[0]).join(" ");
			document.title = `heapcore: ${table.rows.map((row) => String(row[0]).replace(/.*\//, "")).join(" ")}`;
			return [];
		},
		set: (table) => [cards(objects(table).filter((row) => row.set !== "leakroots").map((row) => make("div", { class: "card" },
			row.set, make("b", null, inUnits(row.bytes)),
			`${grouped(row.allocations)} ${row.allocations === 1 ? "allocation" : "allocations"}`)), "sets")],
		group: kindTable,
		thread: (table) => table.columns.length > 1 ? plainTable(table) : [],
		call: (table) => {
			const calls = objects(table);
			return [make("details", null,
				make("summary", null, `Thread ${calls[0].thread}: ${calls[0].function || calls[0].address}`),
				make("ol", { class: "mono", start: "0" }, ...calls.map((call) => make("li", null,
					[call.function || call.address, call.inlined, call.source ? `at ${call.source}` : null,
						call.module ? `(${call.module})` : null].filter((part) => part).join(" ")))))];
		},
		total: (table) => objects(table).filter((row) => row.what).map((row) =>
			make("p", null, `${grouped(row.count)} ${row.what}, ${inUnits(row.bytes)}`)).concat(
			column(table, "what") >= 0 ? [] : table.rows[0][0] ? line(table) : [make("p", null, "Nothing leaked.")]),
		"left out": (table) => objects(table).map((row) => make("p", null, `… and ${grouped(row.count)} more ${row.what}`)),
		resident: (table) => objects(table).map((row) => make("p", null, `RSS ${inUnits(row.resident)}: ` +
			["used", "leaked", "garbage", "free", "other"].filter((part) => row[part] || part !== "garbage")
				.map((part) => `${inUnits(row[part])} ${part}`).join(", "))),
		suspect: (table) => [cards(objects(table).map((row) => make("div", { class: "card" },
			make("b", null, inUnits(row.retained)), make("div", null, `${row.owner} holds ${row.percent} % of what is used.`),
			row.kind === null ? null : make("div", null, `In ${grouped(row.count)} ${row.kind}.`),
			row.example === null ? null : make("code", null, `explain ${row.example}`))), "suspects")],
		owner: (table) => {
			const whole = treeOf(table);
			return whole ? [...mapOf(whole), treeTable(whole, table)] : [];
		},
		use: (table) => {
			const [mapped, ...first] = stackOf(table, "mapped", 0);
			const [, ...second] = stackOf(table, "resident", mapped);
			return [...first, ...second, ...plainTable(table)];
		},
	};

	function show(table) {
		if (!table.rows.length) return [];
		if (views[table.name]) return views[table.name](table);
		return table.rows.length === 1 && table.columns.length <= 4 ? line(table) : plainTable(table);
	}

	/* Sections */
	const contents = document.getElementById("contents");
	let section = null;
	function begin(title, command, text) {
		const id = title.toLowerCase().replace(/[^a-z]+/g, "-");
		section = make("section", { id, "aria-labelledby": `${id}-title` },
			make("h2", { id: `${id}-title` }, title),
			text ? make("p", null, text) : null,
			command ? make("code", null, `> ${command}`) : null);
		main.append(section);
		contents.append(make("a", { href: `#${id}` }, title));
	}
	for (const table of data.tables) {
		if (table.name === "section") for (const row of objects(table)) begin(row.title, row.command, row.text);
		else if (section) section.append(...show(table));
	}
	if (data.findings.length) {
		begin("How far to trust this", null, data.findings.some(([incomplete]) => incomplete)
			? "Some answers may be wrong, because of what is marked." : "Nothing that makes answers wrong was found.");
		section.append(make("ul", null, ...data.findings.map(([incomplete, message]) =>
			make("li", { class: incomplete ? "bad" : "" }, message))));
	}
}());
