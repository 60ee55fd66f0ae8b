#!/usr/bin/env python3
"""
A browser looks into a core by the page of heapcore serve: each view shows what the commands say, its
links lead on, Back and reload find it again, nothing complains, and nothing is asked of other hosts.
"""

import time
import unittest

from browser import Browser
from harness import TIMEOUT, number, snap, tables
from looked_into import NARROW, VIEWS, WIDE, LookingTest

# Names that would be elements if they were markup
MARKED_UP = """
#include <cstdio>
#include <unistd.h>
struct script {}; struct img {};
template <class T> struct tag { virtual ~tag() = default; tag *next; };
tag<script> *volatile scripts; tag<img> *volatile images;
int main()
{
	for (int i = 0; i < 40; i++) {
		tag<script> *one = new tag<script>; one->next = scripts; scripts = one;
		tag<img> *two = new tag<img>; two->next = images; images = two;
	}
	puts("ready"); fflush(stdout);
	pause();
}
"""
# What a browser logs of an answer 400, which is a command that cannot be: a search tries several.
WRONG_COMMAND = "status of 400"


class ServeViewersTest(LookingTest):
    def core_of_text(self, text, name="core"):
        program = self.compile("marked_up", text=text, compiler="g++", flags=("-g", "-O1"))
        return snap(self.start([program]), self.path(name))

    def test_views_at_both_widths(self):
        self.serve_owners()
        address = tables("-q", self.core, "list", "used", "struct conn", "--limit", "1")["allocation"][0]["address"]
        views = {**VIEWS, f"allocation/{address}": "Referred to by"}
        for width in (WIDE, NARROW):
            self.browse(width)
            for view, expected in views.items():
                self.visit(view)
                self.assertIn(expected, self.text(), view)
                self.check_fits()
            self.check_quiet()
            # The token is in no address that stays.
            self.assertNotIn("token", self.browser.run("location.href"))

    def test_numbers_are_those_of_the_commands(self):
        self.serve_owners()
        self.browse()
        self.visit("kinds")
        shown = self.browser.run("[...document.querySelectorAll('main tbody tr')].map((row) => [...row.cells].map((one) => one.textContent))")
        used = tables("-q", self.core, "count", "used")["total"][0]["count"]
        self.assertEqual(sum(number(row[1]) for row in shown), used)
        self.visit("overview")
        self.assertIn(f"19.1 KiB\n{used} allocations", self.text(".sets"))

    def test_links_lead_to_what_they_name_and_back(self):
        self.serve_owners()
        self.browse()
        self.click(".suspects a", "conns")
        self.assertIn("conns (owners)", self.text())
        first = self.browser.run("location.hash")
        self.assertRegex(first, "^#/allocation/0x")
        self.click("section[aria-label='Refers to'] td a", "0x")
        second = self.browser.run("location.hash")
        self.assertNotEqual(first, second)
        self.browser.run("history.back()")
        self.wait(f"location.hash === {first!r}")
        self.assertIn("struct conn *[]", self.text("h2"))
        self.browser.run("history.forward()")
        self.wait(f"location.hash === {second!r}")
        shown = self.text()
        self.browser.call("Page.reload")
        self.wait("document.querySelector('h2') !== null && document.querySelector('main dl') !== null")
        self.assertEqual(self.text(), shown)
        self.check_quiet()

    def test_map_flames_and_tree_zoom_together(self):
        self.serve_owners()
        self.browse()
        self.visit("tree")
        crumbs = "[...document.querySelectorAll('.crumbs a[aria-current], .crumbs a')].map((one) => one.textContent)"
        self.click(".map:not(.flames) button", "conns (owners)")
        self.wait(f"{crumbs}.includes('conns (owners)')")
        self.assertEqual(self.text(".flames button").split(":")[0], "conns (owners)")
        self.assertEqual(self.text(".tree tbody td.text").strip("▾▸ \n"), "conns (owners)")
        self.assertEqual(self.browser.run("document.activeElement.className"), "map")
        self.browser.key("Backspace")
        self.wait(f"!{crumbs}.includes('conns (owners)')")
        self.check_quiet()

    def test_tables_page_sort_and_filter(self):
        self.serve(self.core_of_text(MARKED_UP))
        self.browse()
        self.visit("objects?filter=--max-size 64")
        self.assertIn("allocations", self.text())
        self.visit("kinds")
        rows = "[...document.querySelectorAll('main tbody tr')].map((row) => row.cells[0].textContent)"
        by_bytes = self.browser.run(rows)
        self.click("main th a", "kind")
        self.wait("document.querySelector('[aria-sort]').textContent === 'kind'")
        self.assertEqual(self.browser.run(rows), sorted(by_bytes))
        self.browser.run("{ const one = document.querySelector('main input'); one.value = 'tag<'; one.form.requestSubmit(); }")
        self.wait("location.hash.includes('filter')")
        self.assertEqual(sorted(self.browser.run(rows)), ["tag<img>", "tag<script>"])
        self.check_quiet()

    def test_names_are_no_markup(self):
        self.serve(self.core_of_text(MARKED_UP))
        self.browse()
        address = self.server.run("list used tag<img> --limit 1")["tables"][0]["rows"][0]["address"]
        for view in ("overview", "tree", "kinds", "classes", "objects", "class/tag<script>", "class/tag<img>",
                     f"allocation/{address}", "command/summarize used", "command/summarize used?as=text", "find/tag<i"):
            self.visit(view)
            self.assertEqual(self.browser.run("document.querySelectorAll('main script, main img').length"), 0)
        self.assertIn("tag<img>", self.text())
        self.visit("class/tag<script>")
        self.assertEqual(self.text("h2"), "tag<script>")
        self.assertIn("40 allocations", self.text())
        self.check_quiet(WRONG_COMMAND)

    def test_what_has_no_kind_has_no_links_that_fail(self):
        """A kind that is known by its size alone is no word of a command."""
        self.serve(self.core_of_text("""
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
void *volatile kept[50];
int main()
{
	for (int i = 0; i < 50; i++)
		kept[i] = calloc(1, 200);
	puts("ready"); fflush(stdout);
	pause();
}"""))
        self.browse()
        kind = next(row["kind"] for row in self.server.run("sql SELECT kind FROM kind WHERE count = 50")["tables"][0]["rows"])
        self.visit(f"class/{kind}")
        self.assertIn("50 allocations", self.text())
        links = self.browser.run("[...document.querySelectorAll('main p a')].map((one) => one.getAttribute('href'))")
        for link in links:
            self.browser.run(f"location.hash = {link!r}")
            self.settle()
            self.assertEqual(self.browser.run("[...document.querySelectorAll('[role=alert]')].map((one) => one.textContent)"), [], link)
        self.check_quiet(WRONG_COMMAND)

    def test_search(self):
        self.serve_owners()
        self.browse()
        address = tables("-q", self.core, "list", "used", "struct conn", "--limit", "1")["allocation"][0]["address"]
        for wanted, place, shown in ((address, "#/allocation/", address), ("struct conn", "#/class/", "150 allocations"),
                                     ("conns[3]", "#/allocation/", "struct conn"),
                                     ("with number 7", "#/find/", "In memory")):
            self.browser.run(f"{{ document.getElementById('wanted').value = {wanted!r}; document.getElementById('search').requestSubmit(); }}")
            self.wait(f"location.hash.startsWith({place!r})")
            self.assertIn(shown, self.text())
        self.check_quiet(WRONG_COMMAND)

    def test_console_completes_and_says_what_is_wrong(self):
        self.serve_owners()
        self.browse()
        self.visit("command")
        self.browser.run("document.querySelector('.console input').focus()")
        self.browser.call("Input.insertText", text="summarize leakr")
        self.wait("document.querySelector('#words li') !== null")
        self.browser.key("Tab")
        self.assertEqual(self.browser.run("document.querySelector('.console input').value"), "summarize leakroots ")
        self.browser.run("document.querySelector('.console').requestSubmit()")
        self.wait("document.querySelector('main table') !== null")
        self.assertIn("probably struct conn", self.text())
        self.visit("command/SELECT kind FROM kind")
        self.visit("command/count nonsense")
        self.assertIn("nonsense", self.text("[role=alert]"))
        self.check_quiet(WRONG_COMMAND)

    def test_growth_between_cores(self):
        older = self.core_of_text(MARKED_UP, "older.core")
        self.serve(self.core_of_text(MARKED_UP.replace("40", "400")), older)
        self.browse(NARROW)
        self.click("nav a", "Growth")
        self.assertIn("tag<script>", self.text())
        self.assertIn("older.core", self.text())
        self.check_fits()
        self.check_quiet()

    def test_keys(self):
        self.serve_owners()
        self.browse()
        self.browser.key("Tab")
        self.assertEqual(self.browser.run("document.activeElement.id"), "skip")
        self.browser.key("Enter")
        self.browser.run("document.activeElement.blur()")
        self.browser.call("Input.dispatchKeyEvent", type="keyDown", key="/", code="Slash", text="/")
        self.assertEqual(self.browser.run("document.activeElement.id"), "wanted")
        self.assertEqual(self.browser.run("document.activeElement.value"), "")
        # What a link leads to has the focus, so that it does not fall to the body.
        self.browser.run("document.querySelector('#views a').focus()")
        self.click("#views a", "Kinds")
        self.assertEqual(self.browser.run("document.activeElement.textContent"), "Kinds")
        self.check_quiet()

    def test_a_view_that_is_left_ends_its_work(self):
        self.serve_owners()
        self.browse()
        long = "sql SELECT count(*) FROM allocation AS a, allocation AS b, allocation AS c, allocation AS d, allocation AS e"
        self.browser.run(f"location.hash = '#/command/' + encodeURIComponent({long!r})")
        self.wait_for_work(True)
        self.browser.run("location.hash = '#/kinds'")
        self.wait("document.querySelector('main table') !== null")
        self.assertIn("struct conn", self.text())
        self.check_quiet()

    def test_the_first_rows_of_a_long_answer(self):
        self.serve_owners()
        self.browse()
        long = "sql SELECT a.address, b.size FROM allocation AS a, allocation AS b, allocation AS c, allocation AS d"
        self.browser.run(f"location.hash = '#/command/' + encodeURIComponent({long!r})")
        end = time.monotonic() + TIMEOUT
        while not self.browser.run("document.querySelectorAll('[aria-label=\"The first rows\"] tbody tr').length === 200"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertIn("the command still runs", self.text())
        self.visit("kinds")
        self.assertNotIn("still runs", self.text())
        self.check_quiet()

    def wait_for_work(self, working):
        end = time.monotonic() + TIMEOUT
        while self.server.get("/api/state")["working"] != working:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_without_the_printed_link(self):
        self.serve_owners()
        self.browser = Browser()
        self.addCleanup(self.browser.close)
        self.browser.go(self.host + "/")
        self.assertNotIn("conns", self.browser.run("document.body.innerText"))
        self.assertEqual(self.server.stop()[0], 0)

if __name__ == "__main__":
    unittest.main()
