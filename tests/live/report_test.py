#!/usr/bin/env python3
"""
A report, as text and as a page in HTML, says what the commands say that it is
made of, and nothing that a core says is markup in it. A browser opens the page
in report_viewers_test.py.
"""

import html.parser
import json
import os
import subprocess
import unittest

from harness import LiveTest, ask, snap, tables

EVIL = "</script><script>x<!--"


class Page(html.parser.HTMLParser):
    """The elements of a page, and its data."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.elements, self.attributes = [], [], []
        self.feed(text)
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        if self.elements and self.elements[-1] == "script":
            if data.strip():
                self.scripts.append(data)

    def rows(self, name):
        """The rows of all tables of that name."""
        return [dict(zip([column.replace(" ", "_") for column, _ in table["columns"]], row))
                for table in self.data["tables"] if table["name"] == name
                for row in table["rows"]]


class ReportTest(LiveTest):
    def core(self, name="core"):
        process = self.start([self.compile("owners", "owners.c",
                                           flags=("-g", "-O2"))])
        return snap(process, self.path(name))

    def page(self, core, *words):
        path = self.path("report.html")
        answer = ask("-q", "report", core, "-o", path, *words)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        with open(path, encoding="utf-8") as file:
            return Page(file.read())

    def test_numbers_are_those_of_the_commands(self):
        core = self.core()
        page = self.page(core)
        self.assertEqual(
            {row["set"]: row["bytes"] for row in page.rows("set")},
            {name: tables("-q", core, "count", name)["total"][0]["bytes"]
             for name in ("used", "leaked", "leakroots", "free")})
        for name, words in {
                "owner": ("tree", "--depth", "12", "--top", "25",
                          "--min-retained", "9"),
                "use": ("bill",),
                "waste": ("waste",)}.items():
            rows = tables("-q", core, *words)[name]
            for row in rows:  # which people read with what the owner is
                row.pop("path", None)
            self.assertEqual(page.rows(name), rows, name)
        # People read the kind of roots as one text, programs as columns.
        rows = tables("-q", core, "summarize", "leakroots")["leak roots"]
        self.assertEqual(
            [{name: row[name] for name in row if name in rows[0]}
             for row in page.rows("leak roots")],
            [{name: row[name] for name in row if name.endswith(("roots", "lost"))}
             for row in rows])
        self.assertEqual(
            [row["kind"] for row in page.rows("leak roots")],
            ["type " + row["type"] for row in rows])
        counted = {row["type"]: row["count"] for row in page.rows("group")
                   if row["type"]}
        self.assertEqual(counted, {
            row["type"]: row["count"]
            for row in tables("-q", core, "summarize", "used")["group"]
            if row["type"]})

    def test_where_memory_accumulates(self):
        rows = self.page(self.core()).rows("suspect")
        self.assertEqual(
            [(row["owner"], row["count"], row["kind"]) for row in rows[:3:2]],
            [("conns (owners)", 100, "struct conn"),
             ("jobs (owners)", 50, "struct conn")])

    def test_as_text(self):
        core = self.core()
        text = ask("-q", "report", core).stdout
        self.assertNotIn("more than their holders", text)
        self.assertRegex(text, r"\n7,208   36 %  conns \(owners\) +100 struct conn\n")
        for line in ask("-q", core, "tree", "--depth", "3", "--top", "4",
                        "--min-retained", "195").stdout.splitlines():
            self.assertIn(line + "\n", text)
        screen = ask("-q", core, stdin=subprocess.DEVNULL).stdout
        self.assertEqual(screen, text[:len(screen)], "it begins with what no command gets")

    def test_what_grew(self):
        older = self.core("older")
        newer = self.core("newer")
        page = self.page(newer, older)
        self.assertEqual(page.rows("section")[1]["title"], "What grew")
        self.assertIn("\nWhat grew (diff)\n",
                      ask("-q", "report", older, newer).stdout)

    def test_nothing_is_markup_or_fetched(self):
        os.mkdir(self.path("<script>"))
        core = self.core("<script>/a<b onload=x>&core")
        page = self.page(core)
        self.assertEqual(page.data["core"], core)
        self.assertEqual(page.elements.count("script"), 3)
        self.assertNotIn("b", page.elements)
        self.assertFalse([name for name, _ in page.attributes
                          if name in ("src", "href", "onload")])

    def test_contents_are_no_markup(self):
        process = self.start(["python3", "-c", f"""
import time
kept = [({EVIL!r} * 40 + str(i)).encode() for i in range(50)]
same = [bytearray({EVIL!r}.encode() * 40) for i in range(50)]
print('ready', flush=True)
time.sleep(1000)"""])
        core = snap(process, self.path("core"))
        page = self.page(core)
        self.assertEqual(page.elements.count("script"), 3)
        self.assertIn(EVIL, json.dumps(page.rows("content")))
        for switch in ("--no-content", "--share"):
            page = self.page(core, switch)
            self.assertNotIn(EVIL, json.dumps(page.data))

    def test_what_is_around_the_largest(self):
        core = self.core()
        page = self.page(core)
        rows = {row["address"]: row for row in page.rows("largest")}
        self.assertEqual(len(rows), len(page.rows("largest")))
        for row in tables("-q", core, "sql", "SELECT address, kind, size, retained, state, path(address) AS path"
                          " FROM allocation WHERE retained > 1000")["result"]:
            self.assertEqual(rows[row["address"]], row)
        array = next(row for row in rows.values() if row["kind"] == "struct conn *[]")
        referred = [row for row in page.rows("referrer") if row["address"] == array["address"]]
        self.assertEqual({row["kind"] for row in referred}, {"struct conn *[]"})
        self.assertEqual(len(referred), 100)
        members = [row["member"] for row in page.rows("member")]
        self.assertGreaterEqual(members.count("name"), 150)
        self.assertIn("the connection with number 7", json.dumps(page.data))
        shared = self.page(core, "--share")
        self.assertNotIn("the connection with number", json.dumps(shared.data))
        self.assertEqual([row["member"] for row in shared.rows("member")], members)

    def test_a_page_stays_small(self):
        """However much stands in and around what is large."""
        fields = " ".join(f"char *field_{i};" for i in range(12))
        program = self.compile("wide", flags=("-g", "-O1"), text=f"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct with_a_name_that_is_{'very_' * 12}long {{ {fields} struct with_a_name_that_is_{'very_' * 12}long *next; }};
struct with_a_name_that_is_{'very_' * 12}long *volatile first;
int main(void)
{{
	for (int i = 0; i < 1500; i++) {{
		struct with_a_name_that_is_{'very_' * 12}long *one = malloc(sizeof(*one));
		char **fields = (char **)one, text[300];
		memset(text, 'x', sizeof(text)); text[299] = 0;
		for (int j = 0; j < 12; j++)
			fields[j] = strdup(text);
		one->next = first;
		first = one;
	}}
	puts("ready"); fflush(stdout);
	pause();
}}""")
        core = snap(self.start([program]), self.path("core"))
        page = self.page(core)
        self.assertLess(os.path.getsize(self.path("report.html")), 2000000)
        self.assertGreater(len(page.rows("largest")), 900)
        self.assertGreater(len(page.rows("fields of")), 50)

    def test_wrong_usage(self):
        core = self.core()
        self.assertIn("needs a core", ask("report", expected=(2,)).stderr)
        answer = ask("-q", "--format", "html", core, "count", "used",
                     expected=(2,))
        self.assertIn("'html' is for 'report' only", answer.stderr)


if __name__ == "__main__":
    unittest.main()
