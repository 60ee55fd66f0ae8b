"use strict";
/*
 * Shows the data of the page: sections of tables. Texts come from the dump, so they are only ever
 * set as text. What a table looks like depends on its name; one without a view of its own is a table
 * to sort and to search.
 */
(function () {
	const data = JSON.parse(document.getElementById("data").textContent);
	const main = document.getElementById("main");
	const used = data.tables.filter((table) => table.name === "set").flatMap((table) => table.rows)
		.filter((row) => row[0] === "used").map((row) => row[2])[0];

	const { make, grouped, inUnits, percent, written, objects, plainTable, cards } = parts;
	const column = (table, name) => table.columns.findIndex((one) => one[0] === name);

	/* One row, as a line */
	function line(table) {
		return table.rows.map((row) => make("p", null, table.columns.map((one, i) => [one, row[i]])
			.filter(([, value]) => value !== null)
			.map(([[name, kind], value]) => kind === "text" ? value : `${name}: ${written(kind, value)}`)
			.join(" · ")));
	}

	/*
	 * What is known of the largest allocations, by address; #0x55d0c0ffee10 shows it. Their tables follow
	 * each other: allocations, what refers to them and what they refer to, and of each its fields.
	 */
	const around = new Map();
	(function () {
		const neighbours = (key) => (row, one) => one[key].push(row);
		const add = { referrer: neighbours("referrers"), referred: neighbours("referred") };
		let of = null;
		for (const table of data.tables) {
			if (table.name === "largest") for (const row of objects(table)) around.set(row.address, { row, referrers: [], referred: [], fields: null });
			if (add[table.name]) for (const row of objects(table)) add[table.name](row, around.get(row.of));
			if (table.name === "member" && of) of.fields = table;
			if (table.name === "left out" && of && of.fields) of.more = table.rows[0][0];
			of = table.name === "fields of" ? around.get(table.rows[0][0]) : table.name === "member" ? of : null;
			table.isOfLargest = table.name === "fields of" || Boolean(of) || Boolean(add[table.name]);
		}
	}());
	const toAddress = (address, text) => around.has(address) ? make("a", { href: `#${address}` }, text || address) : null;
	const linkCell = (name, kind, value) => kind === "address" && value ? toAddress(value)
		: typeof value === "string" && value.includes("0x") ? parts.linked(value, toAddress) : null;

	function neighbourTable(name, rows) {
		if (!rows.length) return [];
		const more = rows[0].total - rows.length;
		return [make("h4", null, name), ...plainTable({ name, columns: [["address", "address"], ["kind", "text"], ["offset", "count"]],
			rows: rows.map((row) => [row.address, row.kind, row.offset]), show: linkCell }),
		more > 0 ? make("p", null, `… and ${grouped(more)} more.`) : null];
	}
	function fieldTable(one) {
		if (!one.fields) return [];
		const table = { name: "Fields", columns: one.fields.columns, rows: one.fields.rows, show: linkCell };
		return [make("h4", null, "Fields"), ...plainTable(table), one.more ? make("p", null, `… and ${grouped(one.more)} more.`) : null];
	}
	/* The box that shows the allocation of the page's address. */
	function aroundBox() {
		const box = make("div", { class: "around", role: "region", "aria-label": "An allocation", hidden: "" });
		function show() {
			const found = /^#(0x[0-9a-f]+)$/.exec(location.hash);
			if (!found) return;
			const one = around.get(found[1]);
			const heading = make("h3", { tabindex: "-1" }, one ? `${one.row.kind || "Allocation"} at ${found[1]}` : found[1]);
			box.hidden = false;
			box.replaceChildren(...[heading, ...(one ? [
				make("p", null, `${grouped(one.row.size)} bytes, retains ${inUnits(one.row.retained)}, ${one.row.state}`),
				one.row.path ? make("p", null, "By ", make("code", null, one.row.path)) : null,
				...fieldTable(one), ...neighbourTable("Referred to by", one.referrers), ...neighbourTable("Refers to", one.referred),
			] : [make("p", null, "This page has nothing of it. heapcore shows it: ", make("code", null, `explain ${found[1]}`))])]
				.filter((element) => element !== null));
			box.scrollIntoView({ block: "start" });
			heading.focus({ preventScroll: true });
		}
		addEventListener("hashchange", show);
		requestAnimationFrame(show); /* once all sections are there */
		return box;
	}
	function largestTable() {
		const rows = [...around.values()].map(({ row }) => [row.address, row.kind, row.size, row.retained, row.path])
			.sort((a, b) => b[3] - a[3]);
		return plainTable({ name: "largest", columns: [["address", "address"], ["kind", "text"], ["size", "bytes"], ["retained", "bytes"], ["path", "text"]],
			rows, show: linkCell });
	}

	function mapOf(whole) {
		const map = make("div", { class: "map", role: "group", tabindex: "0", "aria-label": "Map of who holds the memory" });
		const crumbs = make("div", { class: "tools crumbs", "aria-label": "Where the map stands" });
		/* Where the map stands is in the address of the page: #map-1-0 is the first child of the second. */
		const PLACE = "#map";
		let here = at(location.hash) || whole;

		function at(hash) {
			if (hash !== PLACE && !hash.startsWith(`${PLACE}-`)) return null;
			return parts.nodeAt(whole, hash.slice(PLACE.length + 1)) || whole;
		}
		function addressOf(node) {
			return node.parent ? `${PLACE}-${parts.placeOf(node)}` : PLACE;
		}
		function go(node) {
			here = node;
			if (location.hash !== addressOf(node)) history.pushState(null, "", addressOf(node));
			draw();
			map.focus({ preventScroll: true }); /* what was clicked is gone, and keys are for the map */
		}
		addEventListener("popstate", () => {
			here = at(location.hash) || (location.hash ? here : whole);
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
			const path = parts.pathTo(here);
			crumbs.replaceChildren(...path.flatMap((node, i) => [i ? "›" : null,
				make("button", { type: "button", onclick: () => go(node) }, node.name)])
				.filter((one) => one !== null),
			make("button", { type: "button", class: "copy", title: "Copy the path",
				onclick: (event) => copy(path, event.target) }, "Copy"),
			make("span", null, `${inUnits(here.retained)}, ${percent(whole.retained ? here.retained / whole.retained : 0)}`),
			...[toAddress(here.row.example)].filter((link) => link));
			parts.drawMap(map, here, go);
		}
		map.addEventListener("keydown", (event) => {
			if ((event.key === "Backspace" || event.key === "Escape") && here.parent) {
				event.preventDefault();
				go(here.parent);
			}
		});
		parts.drawnToFit(map, draw);
		return [crumbs, map];
	}

	/* Kinds: what tells each is in a column of its own */
	function kindOf(row) {
		if (row.pattern) return `%${row.pattern}`;
		const name = row.type || row.class || row["known as"] || row["several named"] || row.identity || row["known by"] || row.group;
		if (name) return name;
		if (row["blocks of"]) return `blocks of ${row["blocks of"]}`;
		if (row.part) return `allocations ${row.part}`;
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
				make("summary", null, `Thread ${calls[0].thread}: ${calls[0].function || calls[0].address}`), parts.calls(calls))];
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
			row.example === null ? null : toAddress(row.example) || make("code", null, `explain ${row.example}`))), "suspects")],
		owner: (table) => {
			const whole = parts.treeOf(objects(table));
			return whole ? [...mapOf(whole), parts.treeTable(whole, table.columns,
				(name, kind, value, node) => name === "owner" ? toAddress(node.row.example, node.name) : linkCell(name, kind, value))] : [];
		},
		use: (table) => {
			const [mapped, ...first] = parts.stackOf(objects(table), "mapped", 0);
			const [, ...second] = parts.stackOf(objects(table), "resident", mapped);
			return [...first, ...second, ...plainTable(table)];
		},
	};

	let hasLargest = false;
	function showLargest() {
		if (hasLargest) return [];
		hasLargest = true;
		return [aroundBox(), ...largestTable()];
	}
	function show(table) {
		if (!table.rows.length || table.isOfLargest) return [];
		if (table.name === "largest") return showLargest();
		table.show = linkCell;
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
	addEventListener("keydown", (event) => {
		if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
		const search = document.querySelector(".find");
		if (!search) return;
		event.preventDefault();
		search.focus();
	});
}());
