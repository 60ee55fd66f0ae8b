"use strict";
/* Tables of kinds, classes and allocations, leaks, and what a search finds. */
(function () {
	const { make, grouped, inUnits } = parts;
	const { link, linked, whole, paged, withKinds, any, only, totals, form } = page.tables;
	const SETS = ["used", "leaked", "garbage", "anchored", "threadonlyanchored", "free"];
	const { sqlText } = page;

	const like = (column, text) => `${column} LIKE ${sqlText(`%${text.replace(/[\\%_]/g, "\\$&")}%`)} ESCAPE '\\'`;
	function sorted(view, sorts, first) {
		return Object.values(sorts).includes(view.values.sort) ? view.values.sort : first;
	}
	const from = (view) => Number(view.values.from) || 0;

	const BY_KIND = { kind: "kind", count: "count DESC", bytes: "bytes DESC" };
	const KINDS_ASIDE = "kinds of what is used";
	page.views.kinds = { title: "Kinds", show: async (view) => {
		const sort = sorted(view, BY_KIND, BY_KIND.bytes);
		view.element.append(form(view, [["filter", "Filter"]]));
		const where = view.values.filter ? ` WHERE ${like("kind", view.values.filter)}` : "";
		const answer = await view.work.run(`sql SELECT kind, count, bytes, known_by FROM kind${where} ORDER BY ${sort}`, from(view));
		await view.part("", () => paged(view, { ...page.tableOf(answer, "result"), label: KINDS_ASIDE }, BY_KIND, sort));
	} };

	const BY_CLASS = { class: "class", objects: "objects DESC", bytes: "bytes DESC" };
	page.views.classes = { title: "Classes", show: async (view) => {
		const sort = sorted(view, BY_CLASS, BY_CLASS.bytes);
		view.element.append(form(view, [["filter", "Filter"]]));
		const where = view.values.filter ? ` AND ${like("class", view.values.filter)}` : "";
		const answer = await view.work.run("sql SELECT class, count(*) AS objects, sum(size) AS bytes FROM allocation " +
			`WHERE class IS NOT NULL${where} GROUP BY class ORDER BY ${sort}`, from(view));
		const table = page.tableOf(answer, "result");
		await view.part("", () => table.rows.length ? paged(view, { ...table, label: "classes" }, BY_CLASS, sort)
			: [make("p", null, "No object here names its class; "), link(page.href("kinds"), "kinds"), " have the rest."]);
	} };

	/* The orders of `list` */
	const BY_ALLOCATION = { address: "address", size: "bytes", retained: "retained" };
	async function allocations(view, words, sort) {
		const answer = await view.work.run(`list ${words} --sort-by ${sort}`, from(view));
		const table = page.tableOf(answer, "allocation");
		return [...totals(answer), ...paged(view, await withKinds(view.work, table), BY_ALLOCATION, sort)];
	}
	page.views.objects = { title: "Allocations", show: async (view) => {
		const sort = sorted(view, BY_ALLOCATION, "bytes");
		view.element.append(form(view, [["set", "Set", SETS], ["filter", "Kind or switches"]]));
		const words = [view.values.set || "used", view.values.filter || ""].join(" ").trim();
		await view.part("", () => allocations(view, words, sort));
	} };

	/* All of one kind, exactly as the table of kinds counts them */
	const BY_MEMBER = { address: "address", size: "size DESC", retained: "retained DESC" };
	page.views.class = { title: "Kind", show: async (view) => {
		const kind = sqlText(view.argument), sort = sorted(view, BY_MEMBER, BY_MEMBER.size);
		view.setHeading(view.argument);
		const counts = page.rowsOf(await view.work.run(`sql SELECT count, bytes FROM kind WHERE kind = ${kind}`), "result");
		const column = counts.length ? "kind" : view.argument.startsWith("%") ? "'%' || pattern" : "coalesce(class, type)";
		/* What is known by its size alone is no word of a command. */
		const isWord = await works(view, `count used ${page.quoted(view.argument)}`);
		await view.part("", () => [...counts.map((row) => make("p", null, `${grouped(row.count)} allocations, ${inUnits(row.bytes)}`)),
			!isWord ? null : make("p", null, link(page.href("tree", null, { set: `used ${page.quoted(view.argument)}` }), "Who holds them"), " · ",
				link(page.href("command", `summarize used ${page.quoted(view.argument)} --extend ->`), "What they lead to"))]);
		await view.part("Allocations", async (work) => {
			const answer = await work.run("sql SELECT address, size, state" + (sort === BY_MEMBER.retained ? ", retained" : "") +
				` FROM allocation WHERE ${column} = ${kind} ORDER BY ${sort}`, from(view));
			const table = page.tableOf(answer, "result");
			return table.rows.length ? [make("p", null, link(view.with({ sort: BY_MEMBER.retained, from: "" }), "Those that retain most first")),
				...paged(view, table, BY_MEMBER, sort)] : [make("p", null, "None.")];
		});
		await view.part("Referred to by", async (work) => whole(page.tableOf(await work.run("sql SELECT b.kind, count(*) AS references_ FROM allocation AS a " +
			`CROSS JOIN reference AS r ON r.target = a.id CROSS JOIN allocation AS b ON b.id = r.source WHERE a.${column === "kind" ? "kind" : "class"} = ${kind} GROUP BY 1 ORDER BY 2 DESC LIMIT 20`), "result")));
	} };

	page.views.leaks = { title: "What leaked", show: async (view) => {
		const answer = await view.work.run("summarize leakroots", from(view));
		const roots = page.tableOf(answer, "leak roots");
		if (!roots.rows.length) {
			view.element.append(make("p", null, "Nothing leaked."));
			return;
		}
		await view.part("By kind of leak root", () => any(view, only(roots, ["name", "type", "pattern", "size", "shape", "leak_roots", "allocations_lost", "bytes_lost", "allocated_by"])));
		await view.part("Who allocated them", async (work) => {
			const leaks = page.rowsOf(await work.run("gate"), "leak").filter((row) => row.allocated_by);
			return leaks.map((row) => make("details", null, make("summary", null, `${inUnits(row.bytes)}, ${grouped(row.roots)} roots: ${row.label}`),
				...String(row.calls || row.allocated_by).split("\n").map((line) => make("p", { class: "mono" }, linked(line)))));
		});
		await view.part("The largest roots", async (work) => {
			const list = await work.run("sql SELECT l.address, a.kind, l.allocations, l.bytes FROM leak_root AS l JOIN allocation AS a USING (id) ORDER BY l.bytes DESC");
			return any(view, { ...page.tableOf(list, "result"), label: "leak roots" });
		});
		await view.part("What else was lost with them", () => [link(page.href("tree", null, { set: "leaked" }), "As a tree")]);
	} };

	/* ---- A search: an address, a path or variable, a class, a command, a text */

	async function works(view, words) {
		try {
			return await view.work.run(words, 0, 1);
		} catch (error) {
			if (view.work.signal.aborted) throw error;
			return null;
		}
	}
	async function readingOf(view, wanted) {
		const word = page.quoted(wanted);
		if (/^(0x)?[0-9a-f]{4,16}$/i.test(wanted) && await works(view, `describe ${wanted}`)) return page.href("allocation", wanted);
		const kinds = await works(view, `sql SELECT kind FROM kind WHERE kind = ${sqlText(wanted)}`);
		if (kinds && page.rowsOf(kinds, "result").length) return page.href("class", wanted);
		const described = await works(view, `describe ${word}`);
		if (described) {
			const [row] = page.rowsOf(described, "address");
			if (row) return page.href("allocation", row.start || row.address);
		}
		const classes = await works(view, `list used ${word} --limit 1`);
		const [one] = classes ? page.rowsOf(classes, "allocation") : [];
		return one ? page.href("objects", null, { filter: word }) : null;
	}
	page.views.find = { title: "Search", show: async (view) => {
		const wanted = view.argument, reading = await readingOf(view, wanted);
		view.setHeading(`Search: ${wanted}`);
		if (reading) {
			page.replace(reading);
			return;
		}
		const kinds = await view.work.run(`sql SELECT kind, count, bytes FROM kind WHERE ${like("kind", wanted)} ORDER BY bytes DESC LIMIT 20`);
		await view.part("Kinds", () => whole(page.tableOf(kinds, "result")));
		await view.part("In memory", async (work) => {
			const found = await work.run(`findbytes --text ${page.quoted(wanted)} --limit 200`);
			return found.tables.flatMap((table) => any(view, table));
		});
		await view.part("", () => [make("p", null, "As a command: ", link(page.href("command", wanted), wanted))]);
	} };
}());
