"use strict";
/* Threads, the bill of memory, free memory, and what grew. */
(function () {
	const { make, grouped, inUnits, percent, stackOf } = parts;
	const { link, toAddress, whole, any } = page.tables;

	/* ---- Threads */

	/* The calls of each thread, with the tables between them, such as locals, where they stand */
	function frames(view, answer) {
		const found = [];
		let of = [];
		const flush = () => {
			if (of.length) found.push(parts.calls(of));
			of = [];
		};
		for (const table of answer.tables) {
			if (table.name === "call") of.push(...table.rows);
			else if (table.name !== "thread") {
				flush();
				found.push(...any(view, table));
			}
		}
		flush();
		return found;
	}
	page.views.threads = { title: "Threads", show: async (view) => {
		const wanted = view.values.thread;
		if (!wanted) {
			await view.part("", async (work) => any(view, page.tableOf(await work.run("list threads", Number(view.values.from) || 0), "thread")));
			await view.part("What only stacks hold", async (work) => whole({ ...page.tableOf(await work.run(
				"sql SELECT name, retained_count, retained FROM variable WHERE kind = 'stack' ORDER BY retained DESC LIMIT 200"), "result"), label: "held by stacks" }));
			return;
		}
		view.setHeading(`Thread ${wanted}`);
		await view.part("Calls", async (work) => frames(view, await work.run(`backtrace ${page.quoted(wanted)} --locals`)));
		await view.part("What its stack refers to", async (work) => any(view, page.tableOf(await work.run(
			"sql SELECT a.address, a.kind, a.size, a.retained, n.name FROM anchor AS n JOIN allocation AS a ON a.id = n.target " +
			`WHERE n.thread = ${Number(wanted) || 0} ORDER BY a.retained DESC`), "result")));
		view.element.append(make("p", null, link(page.href("threads"), "All threads")));
	} };

	/* ---- Memory */

	page.views.bill = { title: "What each byte is used for", show: async (view) => {
		const answer = await view.work.run("bill"), table = page.tableOf(answer, "use");
		const [mapped, ...first] = stackOf(table.rows, "mapped", 0);
		const [, ...second] = stackOf(table.rows, "resident", mapped);
		await view.part("", () => [...first, ...second, ...whole({ ...table, label: "uses of memory" })]);
		for (const other of answer.tables.filter((one) => one.name !== "use"))
			await view.part(other.name, () => any(view, other));
		view.element.append(make("p", null, link(page.href("fragmentation"), "Free memory, and what pins it"), " · ",
			link(page.href("command", "waste"), "Waste")));
	} };

	/* How full a part of an arena is: the signs of `fragmentation`, from empty to full */
	const SIGNS = ".:-=+*%#";
	function arenaMap(row) {
		const cells = [...row.occupancy].map((sign) => make("span", { class: `fill${Math.max(0, SIGNS.indexOf(sign))}` }));
		return make("div", { class: "arena" }, make("p", { class: "legend" }, `${row.arena} `, row.address ? toAddress(row.address) : ""),
			make("div", { class: "pages", role: "img", "aria-label": `How full ${row.arena} is: ${row.occupancy}` }, ...cells));
	}
	page.views.fragmentation = { title: "Free memory", show: async (view) => {
		const answer = await view.work.run("fragmentation");
		await view.part("", () => page.rowsOf(answer, "total free").map((row) => make("p", null,
			`${inUnits(row.free)} are free beside ${inUnits(row.used)} in use; ${inUnits(row.given_back)} can be given back.`)));
		await view.part("Arenas, from empty to full", () => page.rowsOf(answer, "map").map(arenaMap));
		for (const table of answer.tables.filter((one) => one.name !== "total free" && one.name !== "map"))
			await view.part(table.name, () => any(view, table));
	} };

	/* ---- References to freed memory */

	page.views.dangling = { title: "References to freed memory", show: async (view) => {
		const answer = await view.work.run("dangling", Number(view.values.from) || 0);
		const [total] = page.rowsOf(answer, "total dangling");
		if (total && !total.references) view.element.append(make("p", null, "No reference of a member leads to freed memory."));
		for (const table of answer.tables.filter((one) => one.name !== "total dangling"))
			await view.part(table.name === "dangling" ? "" : table.name, () => any(view, table));
		if (total && total.references) view.element.append(make("p", null, `${grouped(total.references)} references of ${grouped(total.members)} members lead to freed memory.`));
	} };

	/* ---- Growth */

	function grew(row, most) {
		return make("div", { class: "card" }, make("b", null, `${row.growth < 0 ? "−" : "+"}${inUnits(Math.abs(row.growth))}`),
			make("div", null, link(page.href("find", row.holder), row.holder), `: ${grouped(row.growth_count)} allocations`),
			row.kind ? make("div", null, `In ${grouped(row.kind_count)} `, link(page.href("class", row.kind), row.kind)) : null,
			make("span", { class: "bar", title: percent(row.growth / most), style: { width: `${Math.max(0, 100 * row.growth / most)}%` } }));
	}
	page.views.diff = { title: "What grew", show: async (view) => {
		const old = view.state.old || [], wanted = old.includes(view.values.old) ? [view.values.old] : old;
		if (!old.length) throw new Error("Start `heapcore serve CORE OLD`, with older cores, to compare them.");
		view.element.append(make("p", null, "Since ", ...[["", "all of them"], ...old.map((name) => [name, name.replace(/.*\//, "")])]
			.flatMap(([name, text], i) => [i ? " · " : "", link(view.with({ old: name }), text)])));
		const answer = await view.work.run(`diff ${wanted.map(page.quoted).join(" ")} --limit 0`);
		const holders = page.rowsOf(answer, "holder growth");
		await view.part("Who holds what grew", () => holders.length ? [parts.cards(holders.map((row) => grew(row, holders[0].growth || 1)), "suspects")] : []);
		for (const table of answer.tables.filter((one) => one.name !== "holder growth"))
			await view.part(table.name, () => any(view, table));
	} };
}());
