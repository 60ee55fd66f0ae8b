"use strict";
/* Who holds the memory: a map, a flame graph and a tree that show the same part of it. */
(function () {
	const { make, inUnits, percent } = parts;
	const { toAddress, toKind, linked, form } = page.tables;
	const COMMAND = "--depth 8 --top 12", ROWS = 3000;

	function crumbs(view, whole, here) {
		return make("nav", { class: "tools crumbs", "aria-label": "Where the map stands" },
			...parts.pathTo(here).flatMap((node, i) => [i ? "›" : "",
				make("a", { href: view.with({ at: parts.placeOf(node) }), "aria-current": node === here ? "location" : null }, node.name)]),
			make("span", null, `${inUnits(here.retained)}, ${percent(whole.retained ? here.retained / whole.retained : 0)}`),
			here.row.example ? toAddress(here.row.example) : "");
	}
	function show(name, kind, value, node) {
		if (name === "owner") return make("span", null, node.row.example && (node.row.allocations || 0) <= 2 ? toAddress(node.row.example, node.name)
			: node.row.example ? toKind(node.row.kind, node.name) : node.name);
		if (kind === "address" && value) return toAddress(value);
		return typeof value === "string" ? linked(value) : null;
	}
	function box(view, className, label, here, draw) {
		const go = (node) => page.go(view.with({ at: parts.placeOf(node) }));
		const element = make("div", { class: className, role: "group", tabindex: "0", "aria-label": label, "data-focus": className,
			onkeydown: (event) => {
				if ((event.key !== "Backspace" && event.key !== "Escape") || !here.parent) return;
				event.preventDefault();
				go(here.parent);
			} });
		return parts.drawnToFit(element, () => draw(element, here, (node) => {
			element.focus({ preventScroll: true }); /* what was clicked goes, and keys are for the map */
			go(node);
		}));
	}

	/* A holder's name: what the program calls it, where it is one */
	const named = (row) => ({ ...row, owner: row.path && row.allocations <= 2 ? `${row.path} (${row.owner})` : row.owner, kind: row.owner });

	page.views.tree = { title: "Who holds the memory", show: async (view) => {
		const set = view.values.set || "used";
		view.element.append(form(view, [["set", "Set"]]));
		const table = await view.work.table(`tree ${set} ${COMMAND}`, "owner", ROWS);
		const whole = parts.treeOf(table.rows.map(named));
		if (!whole) throw new Error("Nothing is held.");
		const here = parts.nodeAt(whole, view.values.at) || whole;
		view.element.append(crumbs(view, whole, here), box(view, "map", "Map of who holds the memory", here, parts.drawMap),
			make("h3", null, "As a flame graph"), box(view, "map flames", "Flame graph of who holds the memory", here, parts.drawFlames),
			make("h3", null, "As a tree"), parts.treeTable(here, table.columns.filter(([name]) => name !== "path"), show));
	} };
}());
