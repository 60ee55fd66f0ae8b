"use strict";
/* The first screen, as cards */
(function () {
	const { make, grouped, inUnits, cards, barOf } = parts;
	const { link, toAddress, toKind, linked, whole } = page.tables;
	const SETS = { used: ["objects"], leaked: ["leaks"], free: ["fragmentation"], garbage: ["objects", null, { set: "garbage" }] };

	function setCard(row) {
		return make("div", { class: "card" }, SETS[row.set] ? link(page.href(...SETS[row.set]), row.set) : row.set,
			make("b", null, inUnits(row.bytes)), `${grouped(row.allocations)} ${row.allocations === 1 ? "allocation" : "allocations"}`);
	}
	function holderCard(row) {
		return make("div", { class: "card" }, make("b", null, inUnits(row.retained)),
			make("div", null, row.example ? toAddress(row.example, row.owner) : link(page.href("find", row.owner), row.owner),
				` holds ${row.percent} % of what is used.`),
			row.kind === null ? null : make("div", null, `In ${grouped(row.count)} `, toKind(row.kind), "."));
	}
	function residentBar(row) {
		const uses = ["used", "leaked", "garbage", "free", "other"].map((use) => [use, row[use] || 0]).filter(([, bytes]) => bytes > 0);
		return [make("p", { class: "legend" }, `RSS ${inUnits(row.resident)}: `,
			uses.map(([use, bytes]) => `${inUnits(bytes)} ${use}`).join(", ")), barOf(uses, 1)];
	}
	function processLine(row) {
		return make("p", null, [row.command, `process ${row.process}`, row.taken, `${grouped(row.threads)} ${row.threads === 1 ? "thread" : "threads"}`,
			row.signal === null ? null : `ended by ${[row.signal, row.reason, row.message, row.in].filter((text) => text).join(" ")}`]
			.filter((text) => text).join(" · "));
	}
	function findings(list) {
		return list.length ? [make("ul", null, ...list.map((one) =>
			make("li", { class: one.incomplete ? "bad" : "" }, linked(one.message))))] : [];
	}

	page.views.overview = { title: "Overview", show: async (view) => {
		const answer = await view.work.run("info");
		const rows = (name) => page.rowsOf(answer, name);
		await view.part("", () => [...rows("core").map(processLine),
			cards(rows("set").filter((row) => row.set !== "leakroots").map(setCard), "sets"),
			...rows("resident").filter((row) => row.resident).flatMap(residentBar)]);
		await view.part("Who holds most", () => rows("suspect").length ? [cards(rows("suspect").map(holderCard), "suspects")] : []);
		await view.part("What leaked", () => whole(page.tableOf(answer, "leaked kind")));
		const shown = new Set(["core", "set", "resident", "suspect", "leaked kind"]);
		for (const table of answer.tables.filter((one) => !shown.has(one.name)))
			await view.part(table.name, () => page.tables.any(view, table));
		await view.part("How far to trust this", () => findings(answer.findings));
	} };
}());
