"use strict";
/* Commands and SQL, with completion; their results are tables that link. */
(function () {
	const { make } = parts;
	const { any, output } = page.tables;
	const MOST_WORDS = 12, WAIT_MS = 120;
	const typed = [];

	/* Where the word that is being typed begins */
	const wordStart = (line) => /(?:^|\s)(\S*)$/.exec(line).index + (/\s\S*$/.test(line) ? 1 : 0);

	function prompt(view) {
		const list = make("ul", { role: "listbox", id: "words", "aria-label": "What may follow", hidden: "" });
		const input = make("input", { type: "text", role: "combobox", "aria-label": "Command or SQL", "aria-autocomplete": "list",
			"aria-controls": "words", "aria-expanded": "false", autocomplete: "off", spellcheck: "false", "data-focus": "line",
			placeholder: "summarize leaked, or SELECT …" });
		let words = [], chosen = -1, timer = null, at = typed.length;
		input.value = view.argument;

		function offer(found) {
			words = found.slice(0, MOST_WORDS);
			chosen = -1;
			list.replaceChildren(...words.map((word, i) => make("li", { role: "option", id: `word${i}`, "aria-selected": "false",
				onmousedown: (event) => { event.preventDefault(); take(word); } }, word)));
			list.hidden = !words.length;
			input.setAttribute("aria-expanded", String(!list.hidden));
			input.removeAttribute("aria-activedescendant");
		}
		function choose(i) {
			chosen = (i + words.length) % words.length;
			[...list.children].forEach((one, j) => one.setAttribute("aria-selected", String(j === chosen)));
			input.setAttribute("aria-activedescendant", `word${chosen}`);
		}
		function take(word) {
			input.value = `${input.value.slice(0, wordStart(input.value))}${word} `;
			offer([]);
			input.focus();
		}
		async function complete() {
			const line = input.value;
			try {
				const { words: found } = await page.ask("complete", { line }, view.work.signal);
				if (line === input.value && document.activeElement === input) offer(found);
			} catch (error) {
				offer([]); /* the line may be wrong in any way: there is nothing to offer then */
			}
		}
		function enter() {
			const line = input.value.trim();
			if (!line) return;
			typed.push(line);
			page.go(page.href("command", /^(select|with|values|explain +(query|select))\b/i.test(line) ? `sql ${line}` : line));
		}
		function history(step) {
			at = Math.max(0, Math.min(typed.length, at + step));
			input.value = typed[at] || "";
		}
		function key(event) {
			const open = !list.hidden;
			if (event.key === "Tab" && open && !event.shiftKey) take(words[Math.max(0, chosen)]);
			else if (event.key === "Enter" && open && chosen >= 0) take(words[chosen]);
			else if (event.key === "Escape" && open) offer([]);
			else if (event.key === "ArrowDown" && open) choose(chosen + 1);
			else if (event.key === "ArrowUp" && open) choose(chosen < 0 ? words.length - 1 : chosen - 1);
			else if (event.key === "ArrowUp" && typed.length) history(-1);
			else if (event.key === "ArrowDown" && typed.length) history(1);
			else return;
			event.preventDefault();
		}
		input.addEventListener("keydown", key);
		input.addEventListener("blur", () => offer([]));
		input.addEventListener("input", () => {
			clearTimeout(timer);
			timer = setTimeout(complete, WAIT_MS);
		});
		return make("form", { class: "console", onsubmit: (event) => { event.preventDefault(); enter(); } }, input,
			make("button", { type: "submit" }, "Run"), list);
	}

	async function asText(view) {
		const answer = await view.work.text(view.argument);
		return [output(answer.text),
			answer.truncated ? make("p", null, "The rest is left out.") : null];
	}
	async function asTables(view) {
		const answer = await view.work.run(view.argument, Number(view.values.from) || 0);
		if (answer.text !== undefined) return [output(answer.text)];
		const found = answer.tables.flatMap((table) => any(view, table));
		return found.length ? found : [make("p", null, "No rows.")];
	}
	page.views.command = { title: "Console", show: async (view) => {
		const isText = view.values.as === "text";
		view.element.append(prompt(view));
		if (!view.argument) {
			view.element.append(make("p", null, "Any command of the prompt that reads; ", make("a", { href: page.href("command", "help", { as: "text" }) }, "help"), " lists them."));
			return;
		}
		view.element.append(make("p", null, make("a", { href: view.with({ as: isText ? "" : "text", from: "" }), "data-focus": "as" }, isText ? "As tables" : "As text")));
		await view.part("", () => isText ? asText(view) : asTables(view));
	} };
}());
