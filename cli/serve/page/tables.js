"use strict";
/*
 * Tables of rows as commands write them, with links: each address leads to what is there, each class,
 * kind and holder to those of its name. Long ones are paged, sorted and filtered by the server.
 */
page.tables = (function () {
	const { make, grouped, written } = parts;
	const KINDS = new Set(["kind", "class", "type", "label"]);
	/* Tables in which these are other than kinds of allocations */
	const OTHER_KINDS = new Set(["anchor", "symbol", "root", "variable", "mapping", "stack", "member"]);
	/* Tables in which the column `name` is a class, and in which it is a holder */
	const OF_CLASSES = new Set(["allocation", "leak roots", "leak root makers", "link", "anchored", "group"]);
	const HOLDERS = new Set(["holder", "owner", "path"]);

	const link = (address, text) => make("a", { href: address }, text);
	const toAddress = (address, text) => link(page.href("allocation", address), text || address);
	const toKind = (kind, text) => link(page.href("class", kind), text || kind);

	/* Text, in which each address is a link */
	const linked = (text) => parts.linked(text, (address) => toAddress(address));
	/* What stands in a cell instead of plain text, or null */
	function contentOf(table, name, kind, value, row) {
		if (value === null || value === undefined || value === "" || kind === "share") return null;
		if (kind === "address") return toAddress(value);
		if (kind === "number" && name === "thread") return link(page.href("threads", null, { thread: value }), String(value));
		if (typeof value !== "string") return null;
		if (KINDS.has(name) && !OTHER_KINDS.has(table.name)) return toKind(value);
		if (name === "pattern") return toKind(`%${value}`, value);
		if (name === "name" && OF_CLASSES.has(table.name)) return toKind(value);
		if (HOLDERS.has(name) && row.example) return toAddress(row.example, value);
		if (name === "holder") return link(page.href("find", value), value);
		return linked(value);
	}
	/* As parts.plainTable() takes it: headings for keys, arrays for rows. */
	function forParts(table) {
		const columns = table.columns.map(([name, kind]) => [name.replace(/_/g, " "), kind]);
		return { name: table.label || table.name, columns,
			rows: table.rows.map((row) => Object.assign(table.columns.map(([name]) => row[name] === undefined ? null : row[name]), { row })),
			show: (heading, kind, value, row) => contentOf(table, heading.replace(/ /g, "_"), kind, value, row.row) };
	}
	const only = (table, names) => ({ ...table, columns: names.map((name) => table.columns.find((one) => one[0] === name)).filter((one) => one) });

	/* A table that is all there */
	function whole(table) {
		return table.rows.length ? parts.plainTable(forParts(table)) : [];
	}
	/* Which rows are shown, and the way to others */
	function pager(view, table) {
		const from = table.from || 0, total = table.total === undefined ? table.rows.length : table.total;
		const step = (text, to, is) => is ? make("a", { href: view.with({ from: to }), "data-focus": text }, text) : make("span", { class: "dim" }, text);
		if (total <= table.rows.length) return null;
		return make("nav", { class: "tools", "aria-label": "Pages" }, step("Previous", Math.max(0, from - page.ROWS), from > 0),
			make("span", null, `${grouped(from + 1)} to ${grouped(from + table.rows.length)} of ${grouped(total)}`),
			step("Next", from + page.ROWS, from + table.rows.length < total));
	}
	/*
	 * One page of a table. Heads of columns in `sorts`, {column: key}, sort on the server: they lead to
	 * this view with another `sort`.
	 */
	function paged(view, table, sorts, sorted) {
		const prepared = forParts(table), shown = parts.shownColumns(prepared);
		const heads = shown.map((i) => {
			const [name, kind] = prepared.columns[i], key = sorts && sorts[table.columns[i][0]];
			const one = parts.head(name, kind, null, key && key === sorted ? "descending" : null);
			if (key) one.replaceChildren(make("a", { href: view.with({ sort: key, from: "" }), "data-focus": `sort ${key}` }, name));
			return one;
		});
		return [pager(view, table), parts.framed(prepared, heads,
			make("tbody", null, ...prepared.rows.map((row) => parts.rowOf(prepared, shown, row))))];
	}
	/* Allocations as `list` has them, with their kinds, which are asked for those that are shown */
	async function withKinds(work, table) {
		const list = table.rows.map((row) => row.address).join(", ");
		if (!list) return table;
		const known = page.rowsOf(await work.run(`sql SELECT address, kind, state FROM allocation WHERE address IN (${list})`), "result");
		const byAddress = new Map(known.map((row) => [row.address, row]));
		return { ...table, rows: table.rows.map((row) => ({ ...row, ...byAddress.get(row.address) })),
			columns: [["address", "address"], ["size", "bytes"], ["retained", "bytes"], ["kind", "text"], ["state", "text"]] };
	}
	/* Any table of an answer: as a line, as what can be sorted here, or as one page of many. */
	function any(view, table) {
		if (!table.rows.length) return [];
		if (table.name === "line") return [output(table.rows.map((row) => row.line).join("\n"))];
		if (table.name === "note" || table.name === "end") return lines(table).map((text) => make("p", null, linked(text)));
		if (table.name === "memory" || table.name === "string") return [...whole({ ...table, columns: table.columns.filter(([, kind]) => kind !== "contents") }), ...contents(table)];
		if (table.total > table.rows.length || table.from) return paged(view, table).filter((one) => one);
		return whole(table);
	}
	const lines = (table) => table.rows.map((row) => row.text).filter((text) => text);

	/* Text of a command */
	const output = (text) => make("pre", { tabindex: "0", "aria-label": "Output" }, linked(text));
	/* Bytes as text has them: offset, 16 bytes, characters. */
	function hexLines(hex) {
		const text = [];
		for (let at = 0; at < hex.length; at += 32) {
			const bytes = hex.slice(at, at + 32).match(/../g) || [];
			const characters = bytes.map((byte) => parseInt(byte, 16))
				.map((byte) => byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".").join("");
			text.push(`${(at / 2).toString(16).padStart(6)}  ${bytes.join(" ").padEnd(47)}  ${characters}`);
		}
		return text.join("\n");
	}
	function contents(table) {
		return table.rows.filter((row) => row.contents).map((row) => make("pre", { tabindex: "0", "aria-label": "Contents" },
			/^[0-9a-f]+$/.test(row.contents) ? hexLines(row.contents) : row.contents));
	}
	/* "1,880 allocations, 162.9 KiB" */
	function totals(answer) {
		return page.rowsOf(answer, "total").filter((row) => row.what).map((row) =>
			make("p", null, `${grouped(row.count)} ${row.what}, ${written("bytes", row.bytes)}`));
	}

	/* A form whose fields are values of the view's address: [name, label, choices or null] each */
	function form(view, fields) {
		const inputs = fields.map(([name, label, choices]) => {
			const value = view.values[name] || "";
			const input = choices ? make("select", { name, "data-focus": `field ${name}`, onchange: submit },
				...choices.map((choice) => make("option", { value: choice, selected: choice === value ? "" : null }, choice || "any")))
				: make("input", { type: "search", name, "data-focus": `field ${name}`, autocomplete: "off", spellcheck: "false" });
			if (!choices) input.value = value;
			return make("label", null, `${label} `, input);
		});
		function submit() {
			const values = Object.fromEntries([...element.elements].filter((one) => one.name).map((one) => [one.name, one.value.trim()]));
			page.go(view.with({ ...values, from: "" }));
		}
		const element = make("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); submit(); } }, ...inputs);
		return element;
	}

	return { link, toAddress, toKind, linked, contentOf, only, whole, paged, withKinds, any, contents, output, totals, form };
}());
