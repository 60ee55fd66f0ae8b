"use strict";
/* One address: what is there, what holds it, what it refers to and retains. */
(function () {
	const { make, grouped, inUnits } = parts;
	const { linked, toAddress, toKind, whole, withKinds, any, contents, only } = page.tables;
	const CONTENTS = 256, MOST_CONTENTS = 4096;
	const FACTS = [["what", "It is"], ["class", "Class"], ["type", "Type"], ["pattern", "Pattern"], ["identity", "Identity"],
		["part", "Part of"], ["name", "Name"], ["values", "Values"], ["held_by", "Held by"], ["thread", "Thread"],
		["path", "File"], ["allocator", "Allocator"], ["allocated_by", "Allocated by"], ["source", "Source"]];

	function facts(row, retained) {
		const content = (key) => key === "class" || key === "type" ? toKind(row[key])
			: key === "pattern" ? toKind(`%${row[key]}`, row[key]) : linked(String(row[key]));
		const pairs = FACTS.filter(([key]) => row[key] !== null && row[key] !== undefined && row[key] !== "")
			.map(([key, text]) => [text, content(key)]);
		if (row.size) pairs.push(["Size", `${grouped(row.size)} bytes`]);
		if (retained) pairs.push(["Retains", `${inUnits(retained)}, with itself`]);
		return make("dl", null, ...pairs.flatMap(([text, value]) => [make("dt", null, text), make("dd", null, value)]));
	}

	/* The steps of explain, from each kind of root: [[row of "anchored", [rows of anchors], [rows of links]]] */
	function waysOf(answer) {
		const ways = [];
		for (const table of answer.tables) {
			if (table.name === "anchored") ways.push(...table.rows.map((row) => ({ row, anchors: [], links: [] })));
			else if (!ways.length) continue;
			else if (table.name === "anchor") ways[ways.length - 1].anchors.push(...table.rows);
			else if (table.name === "link") ways[ways.length - 1].links.push(...table.rows);
		}
		return ways;
	}
	const kindOf = (row) => row.name || row.type || (row.pattern ? `%${row.pattern}` : null);
	function step(row, address) {
		const kind = kindOf(row);
		return make("li", null, toAddress(address), kind ? " " : "", kind ? toKind(kind) : "",
			row.field ? ` by ${row.field}` : "", row.size ? `, ${grouped(row.size)} bytes` : "");
	}
	function way(one) {
		const anchors = one.anchors.map((row) => make("li", null,
			[row.kind, row.register, row.name, row.holder, row.frame, row.path].filter((text) => text).join(", "),
			row.address ? " at " : "", row.address ? toAddress(row.address) : ""));
		return make("details", { open: one.isFirst ? "" : null }, make("summary", null, `${one.row.how} anchored: ${one.row.kind}`),
			make("ol", { class: "mono" }, ...anchors, one.row.point ? step(one.row, one.row.point) : null, ...one.links.map((row) => step(row, row.address))));
	}
	function pathSection(path, answer) {
		const ways = waysOf(answer);
		const told = path ? page.rowsOf(path, "result").map((row) => row.path).filter((text) => text) : [];
		if (ways.length) ways[0].isFirst = true;
		return [...told.map((text) => make("p", null, make("code", { class: "path" }, text))), ...ways.map(way),
			...answer.tables.filter((table) => ["leak root", "leaked by", "leaked through", "disguised"].includes(table.name)).flatMap((table) => whole(table))];
	}

	async function retainedBy(work, start) {
		const [row] = page.rowsOf(await work.run(`list allocation ${start} --sort-by retained`), "allocation");
		return row ? row.retained : null;
	}
	const dominated = (start) => "sql SELECT d.address, a.kind, d.size, d.retained, d.retained_count FROM dominator AS d JOIN allocation AS a USING (id) " +
		`WHERE d.parent = (SELECT id FROM allocation WHERE address = ${start}) ORDER BY d.retained DESC`;
	/* What an object of a language has by name, key or number */
	const items = (start) => "sql SELECT i.name, i.class, i.value, i.length, a.address FROM item AS i LEFT JOIN allocation AS a ON a.id = i.target " +
		`WHERE i.id = (SELECT id FROM allocation WHERE address = ${start})`;
	async function neighbours(view, work, words) {
		const answer = await work.run(words);
		const table = await withKinds(work, page.tableOf(answer, "allocation"));
		return table.rows.length ? any(view, table) : [make("p", null, "None.")];
	}
	async function memory(view, work, start, size) {
		const length = Math.min(size || CONTENTS, Number(view.values.bytes) || CONTENTS, MOST_CONTENTS);
		if (!view.state.content) return [make("p", null, "heapcore runs with --no-content.")];
		const answer = await work.run(`dump ${start} ${length}`);
		const more = !size || length < Math.min(size, MOST_CONTENTS);
		return [...contents(page.tableOf(answer, "memory")),
			more ? make("p", null, make("a", { href: view.with({ bytes: String(MOST_CONTENTS) }), "data-focus": "more" }, "More of it")) : null];
	}

	page.views.allocation = { title: "Allocation", show: async (view) => {
		const wanted = page.quoted(view.argument);
		const described = page.rowsOf(await view.work.run(`describe ${wanted}`), "address")[0];
		if (!described) throw new Error(`Nothing is known of ${view.argument}.`);
		const start = described.start || described.address, isAllocation = described.size && /allocation/.test(described.what || "");
		const isUsed = isAllocation && !/free/.test(described.what);
		view.setHeading(`${described.class || described.type || (described.pattern ? `%${described.pattern}` : "Address")} ${start}`);
		await view.part("", async (work) => [facts(described, isUsed ? await retainedBy(work, start) : null)]);
		if (isUsed) {
			await view.part("Path from a root", async (work) => pathSection(await work.run(`path ${start}`), await work.run(`explain ${start}`)));
			await view.part("Fields", async (work) => {
				const members = only(page.tableOf(await work.run(`show ${start}`), "member"), ["offset", "type", "member", "value"]);
				return any(view, members.rows.length ? members : page.tableOf(await work.run(items(start), Number(view.values.from) || 0), "result"));
			});
		}
		await view.part("Contents", (work) => memory(view, work, start, isAllocation ? described.size : 0));
		if (!isAllocation) return;
		await view.part("Referred to by", (work) => neighbours(view, work, `list incoming ${start}`));
		await view.part("Refers to", (work) => neighbours(view, work, `list outgoing ${start}`));
		if (isUsed) await view.part("Retains", async (work) => any(view, page.tableOf(await work.run(dominated(start)), "result")));
	} };
}());
