"use strict";
/*
 * What pages in HTML are made of: texts of numbers, tables to sort and to search, the map, the flame
 * graph and the tree of who holds memory. The report and the page of `heapcore serve` share it.
 *
 * Texts come from the dump, so they are only ever set as text.
 *
 * A table is {name, columns: [[name, kind]], rows: [[value]]}; what its show(name, kind, value, row)
 * returns, if anything, stands in a cell instead of the value's text.
 */
const parts = (function () {
	const SEARCHED_FROM = 12;
	const LEVELS_OF_MAP = 2, LEVELS_OF_FLAMES = 12, HEIGHT_OF_FLAME = 20, LEAST_WIDTH = 3;

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
		if (kind === "bytes" && typeof value === "number") return inUnits(value);
		if (kind === "change") return (value > 0 ? "+" : "") + grouped(value);
		if (kind === "count" && typeof value === "number") return grouped(value);
		if (kind === "share") return percent(value);
		return String(value);
	}

	/* Rows as objects */
	function objects(table) {
		return table.rows.map((row) =>
			Object.fromEntries(table.columns.map(([name], i) => [name, row[i]])));
	}

	/* One cell of any table; content, if any, stands instead of the value's text. */
	function cell(kind, value, content) {
		if (kind === "share")
			return make("td", { class: "share", title: value === null ? null : percent(value) },
				make("span", { class: "bar", style: { width: `${Math.max(0, Math.min(1, value || 0)) * 6}rem` } }));
		const title = kind === "bytes" && typeof value === "number" ? grouped(value) + " bytes" : null;
		return make("td", { class: isNumber(kind) ? "number" : kind, title }, content || written(kind, value));
	}
	function head(name, kind, onclick, sorted) {
		return make("th", { scope: "col", class: isNumber(kind) ? "number" : "", "aria-sort": sorted || null },
			onclick ? make("button", { type: "button", onclick }, name) : name);
	}
	const shownColumns = (table) => table.columns.map((_, i) => i)
		.filter((i) => table.rows.some((row) => row[i] !== null && row[i] !== undefined));
	function rowOf(table, shown, row) {
		return make("tr", null, ...shown.map((i) => {
			const [name, kind] = table.columns[i];
			return cell(kind, row[i], table.show ? table.show(name, kind, row[i], row) : null);
		}));
	}
	function framed(table, heads, body) {
		return make("div", { class: "table", tabindex: "0", role: "region", "aria-label": table.name },
			make("table", null, make("thead", null, make("tr", null, ...heads)), body));
	}

	/* Text, in which each address is what link(address) makes of it, or stays as it is for null. */
	function linked(text, link) {
		const pieces = [];
		let end = 0;
		for (const found of text.matchAll(/\b0x[0-9a-f]{4,16}\b/g)) {
			pieces.push(text.slice(end, found.index), link(found[0]) || found[0]);
			end = found.index + found[0].length;
		}
		return make("span", null, ...pieces, text.slice(end));
	}

	/* A table to sort and to search */
	function plainTable(table) {
		const shown = shownColumns(table);
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
			body.replaceChildren(...rows.map((row) => rowOf(table, shown, row)));
		}
		const heads = shown.map((i) => {
			const [name, kind] = table.columns[i];
			const one = head(name, kind, () => {
				descending = order === i ? !descending : kind !== "text" && kind !== "address";
				order = i;
				for (const other of heads) other.removeAttribute("aria-sort");
				one.setAttribute("aria-sort", descending ? "descending" : "ascending");
				fill();
			});
			return one;
		});
		const result = framed(table, heads, body);
		fill();
		if (table.rows.length < SEARCHED_FROM) return [result];
		const search = make("input", { type: "search", placeholder: "Search", "aria-label": `Search ${table.name}`,
			oninput: () => { wanted = search.value.toLowerCase(); fill(); } });
		return [make("div", { class: "tools" }, search), result];
	}

	/* Rows of calls, the innermost first */
	function calls(rows) {
		return make("ol", { class: "mono", start: "0" }, ...rows.map((call) => make("li", null,
			[call.function || call.address, call.inlined, call.source ? `at ${call.source}` : null,
				call.module ? `(${call.module})` : null].filter((part) => part).join(" "))));
	}

	function cards(items, className) {
		return make("div", { class: `cards ${className}` }, ...items);
	}

	/* Who holds the memory: nodes of rows, which stand in the order of a tree; the first is the whole. */
	function treeOf(rows) {
		const above = [];
		let whole = null;
		for (const row of rows) {
			const node = { name: row.owner, retained: row.retained, bytes: row.bytes || 0, row,
				children: [], parent: above[row.depth - 1] || null, depth: row.depth };
			if (node.parent) node.parent.children.push(node);
			else whole = whole || node;
			above[row.depth] = node;
			above.length = row.depth + 1;
		}
		return whole;
	}
	function pathTo(node) {
		return node ? [...pathTo(node.parent), node] : [];
	}
	/* A node's place: "1-0" is the first child of the second of the whole; and the way back, or null. */
	function placeOf(node) {
		return pathTo(node).slice(1).map((one) => one.parent.children.indexOf(one)).join("-");
	}
	function nodeAt(whole, place) {
		return (place ? place.split("-") : []).reduce((node, i) => node && node.children[i], whole) || null;
	}

	function hue(text) {
		let hash = 0;
		for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) % 3600;
		return hash / 10;
	}

	/* The node and what it holds, some levels deep; its own bytes are a part as well. */
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
	function hierarchyOf(node, levels) {
		return d3.hierarchy(partsOf(node, levels)).sum((part) => part.value || 0)
			.sort((a, b) => b.value - a.value);
	}
	/* Buttons for what was laid out; a click goes to the node. */
	function fillBox(box, laidOut, lightness, go) {
		box.replaceChildren(...laidOut.filter((one) => one.x1 - one.x0 > LEAST_WIDTH && one.y1 - one.y0 > LEAST_WIDTH)
			.map((one) => {
				const text = `${one.data.name}: ${inUnits(one.value)}`;
				return make("button", { type: "button", title: text, "aria-label": text,
					class: one.children ? "inner" : "", style: {
						left: `${one.x0}px`, top: `${one.y0}px`,
						width: `${one.x1 - one.x0}px`, height: `${one.y1 - one.y0}px`,
						background: `hsl(${hue(one.data.name)}, 45%, ${lightness(one)}%)`,
					}, onclick: () => {
						if (!one.data.own) go(one.data.node);
					} }, text);
			}));
	}
	function drawMap(box, here, go) {
		const root = hierarchyOf(here, LEVELS_OF_MAP);
		d3.treemap().size([box.clientWidth, box.clientHeight]).paddingInner(1)
			.paddingTop((one) => one.depth === 1 ? 17 : 0).round(true)(root);
		fillBox(box, root.descendants().filter((one) => one.depth > 0), (one) => one.children ? 78 : 70,
			(node) => node === here ? null : go(node));
	}
	/* The node, and below it what it holds: widths are bytes. */
	function drawFlames(box, here, go) {
		const root = hierarchyOf(here, LEVELS_OF_FLAMES);
		box.style.height = `${HEIGHT_OF_FLAME * (root.height + 1)}px`;
		d3.partition().size([box.clientWidth, HEIGHT_OF_FLAME * (root.height + 1)]).round(true)(root);
		fillBox(box, root.descendants().filter((one) => !one.data.own), (one) => one.depth ? 74 : 82,
			(node) => go(node === here && node.parent ? node.parent : node));
	}
	/*
	 * Have it drawn now that it stands in the page, and whenever its width changes. Arrow keys go from
	 * one of its buttons to the next.
	 */
	function drawnToFit(box, draw) {
		const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
		let width = 0;
		box.addEventListener("keydown", (event) => {
			const buttons = [...box.children], step = steps[event.key];
			if (!step || !buttons.length) return;
			const at = buttons.indexOf(document.activeElement);
			buttons[at < 0 ? 0 : (at + step + buttons.length) % buttons.length].focus();
			event.preventDefault();
		});
		new ResizeObserver(() => {
			if (box.clientWidth === width) return;
			width = box.clientWidth;
			draw();
		}).observe(box);
		return box;
	}

	/* The nodes as rows that open and close, with a search; show is as that of a table. */
	function treeTable(whole, columns, show) {
		const ordered = columns.filter(([, kind]) => kind !== "depth")
			.sort((a, b) => (b[0] === "owner") - (a[0] === "owner"));
		const body = make("tbody");
		const open = new Set([whole]);
		let focused = whole, matching = null; /* what is searched for, and what is above it; or null */

		function visible(node, found) {
			found.push(node);
			if (open.has(node))
				for (const child of node.children) if (!matching || matching.has(child)) visible(child, found);
			return found;
		}
		function match(node, wanted, found) {
			const below = node.children.filter((child) => match(child, wanted, found)).length > 0;
			const is = below || node.name.toLowerCase().includes(wanted);
			if (is) found.add(node);
			if (below) open.add(node);
			return is;
		}
		function find(wanted) {
			matching = wanted ? new Set([whole]) : null;
			if (wanted) match(whole, wanted.toLowerCase(), matching);
			if (!matching || !matching.has(focused)) focused = whole;
			open.add(whole);
			fill(null);
			told.textContent = wanted ? `${grouped(visible(whole, []).filter((node) => node.name.toLowerCase().includes(wanted.toLowerCase())).length)} found` : "";
		}
		function toggle(node) {
			if (open.has(node)) open.delete(node);
			else open.add(node);
			fill(node);
		}
		function treeRow(node) {
			const cells = ordered.map(([name, kind]) => {
				const content = show ? show(name, kind, node.row[name], node) : null;
				if (name !== "owner") return cell(kind, node.row[name], content);
				const button = node.children.length
					? make("button", { type: "button", tabindex: "-1", "aria-hidden": "true", onclick: () => toggle(node) }, open.has(node) ? "▾" : "▸")
					: make("span", { class: "leaf" });
				return make("td", { class: "text" }, button, content || node.name);
			});
			const row = make("tr", { role: "row", "aria-level": node.depth + 1, tabindex: node === focused ? "0" : "-1",
				"aria-expanded": node.children.length ? String(open.has(node)) : null,
				onkeydown: (event) => move(event, node), onfocus: () => { focused = node; } }, ...cells);
			row.style.setProperty("--depth", node.depth);
			return row;
		}
		function fill(focus) {
			const nodes = visible(whole, []);
			if (focus) focused = focus;
			body.replaceChildren(...nodes.map(treeRow));
			if (focus) body.children[nodes.indexOf(focus)].focus();
		}
		function move(event, node) {
			if (event.target.tagName === "A") return;
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
		const told = make("span", { role: "status" });
		const search = make("input", { type: "search", class: "find", placeholder: "Search", "aria-label": "Search who holds the memory",
			oninput: () => find(search.value) });
		return make("div", null, make("div", { class: "tools" }, search, told),
			make("div", { class: "table tree" }, make("table", { role: "treegrid", "aria-label": "Who holds the memory" },
				make("thead", null, make("tr", null, ...ordered.map(([name, kind]) => head(name, kind)))), body)));
	}

	/* What uses of memory take, of objects with memory and amounts by name: a bar, as wide as its share of whole. */
	function stackOf(rows, name, whole) {
		const sums = new Map();
		for (const row of rows.filter((one) => one.memory !== "total")) sums.set(row.memory, (sums.get(row.memory) || 0) + (row[name] || 0));
		const total = [...sums.values()].reduce((sum, one) => sum + one, 0);
		const uses = [...sums].map(([use, bytes], i) => [use, bytes, i]).filter(([, bytes]) => bytes > 0).sort((a, b) => b[1] - a[1]);
		return [total, make("p", { class: "legend" }, `${name}: ${inUnits(total)}`), barOf(uses, whole ? total / whole : 1)];
	}
	/* Colours of a bar, of which any two look different: of several bars, one use has one number. */
	const BAR_COLOURS = ["#8fbfd4", "#f0c27a", "#a8cf94", "#e39b93", "#bcb0dd", "#e6e08a", "#83c9bb", "#e5a9cc", "#c9b79a", "#b3bcc6", "#9fb6f0", "#d2e6a6"];

	/* A bar of parts, [name, bytes] each, or [name, bytes, number of the colour] */
	function barOf(uses, share) {
		return make("div", { class: "stack", style: { width: `${100 * share}%` } },
			...uses.map(([text, bytes, number], i) => make("span", { title: `${text}: ${inUnits(bytes)}`,
				style: { flex: `${bytes} 0 0`, background: BAR_COLOURS[(number === undefined ? i : number) % BAR_COLOURS.length] } }, text)));
	}

	return { make, grouped, inUnits, percent, isNumber, written, objects, cell, head, shownColumns, rowOf, framed,
		linked, plainTable, calls, cards, treeOf, pathTo, placeOf, nodeAt, drawMap, drawFlames, drawnToFit, treeTable, stackOf, barOf };
}());
