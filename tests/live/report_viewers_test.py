#!/usr/bin/env python3
"""
A browser opens the page of a report: each view is there, its clicks and keys
work, nothing complains, and nothing is asked of the network.
"""

import unittest

from browser import PROGRAM, Browser
from harness import LiveTest, ask, number, snap, tables


@unittest.skipUnless(PROGRAM, "there is no chromium")
class ReportViewersTest(LiveTest):
    def open(self, **size):
        process = self.start([self.compile("owners", "owners.c",
                                           flags=("-g", "-O2"))])
        core = snap(process, self.path("core"))
        self.page = self.path("report.html")
        self.assertEqual(ask("-q", "report", core, "-o",
                             self.page).returncode, 0)
        browser = Browser(**size)
        self.addCleanup(browser.close)
        browser.open(self.page)
        return browser

    def check_quiet(self, browser):
        self.assertEqual(browser.complaints(), [])
        self.assertEqual([url for url in browser.requests()
                          if not url.startswith("about:")][:1],
                         ["file://" + self.page])
        self.assertEqual({url for url in browser.requests() if not url.startswith("about:")},
                         {"file://" + self.page})

    def test_sections(self):
        browser = self.open()
        self.assertEqual(
            browser.run("[...document.querySelectorAll('h2')]"
                        ".map((one) => one.textContent)"),
            ["Overview", "What leaked",
             "Who holds the memory", "What the memory is",
             "What each byte is used for", "Free memory", "Waste", "Threads", "The largest"])
        self.assertIn("19.1 KiB", browser.run(
            "document.querySelector('.sets').textContent"))
        self.assertEqual(
            browser.run("[...document.querySelectorAll('section')].filter("
                        "(one) => one.children.length < 2).length"), 0)
        self.check_quiet(browser)

    def test_each_allocation_is_in_one_row_of_the_kinds(self):
        browser = self.open()
        kinds = browser.run("[...document.querySelectorAll('[aria-label=kinds] tbody tr')].map((row) => "
                            "[...row.cells].map((cell) => cell.textContent))")
        used = tables("-q", self.path("core"), "count", "used")["total"][0]["count"]
        self.assertEqual(sum(number(row[1]) for row in kinds), used)
        self.assertFalse([row[0] for row in kinds if row[0].endswith("?")])

    def test_map(self):
        browser = self.open()

        def path():
            return browser.run("[...document.querySelectorAll("
                               "'.crumbs button:not(.copy)')].map((one) => "
                               "one.textContent)")

        def click(text):
            browser.run("[...document.querySelectorAll('.map button')].find("
                        f"(one) => one.title.startsWith({text!r})).click()")

        self.assertEqual(path(), ["the heap"])
        click("conns (owners)")
        self.assertEqual(path(), ["the heap", "conns (owners)"])
        click("struct conn: ")
        self.assertEqual(path(), ["the heap", "conns (owners)",
                                  "struct conn *[]", "struct conn"])
        browser.key("Backspace")  # right after the click
        self.assertEqual(path()[-1], "struct conn *[]")
        browser.key("Escape")
        self.assertEqual(path(), ["the heap", "conns (owners)"])
        # The place is in the address: Back goes to where the map was before.
        self.assertRegex(browser.run("location.hash"), r"^#map-\d+$")
        browser.run("new Promise((done) => { addEventListener('popstate', done, {once: true});"
                    " history.back(); }).then(() => null)")
        self.assertEqual(path()[-1], "struct conn *[]")
        place = browser.run("location.hash")
        browser.run("document.querySelector('.crumbs button').click()")
        self.assertEqual(path(), ["the heap"])
        browser.go("about:blank")
        browser.go(f"file://{self.page}{place}")
        self.assertEqual(path(), ["the heap", "conns (owners)", "struct conn *[]"])
        # Without a gesture of a person, a browser lets nothing be copied.
        self.assertEqual(browser.run(
            "(() => { let text; document.execCommand = () => { text = getSelection().toString();"
            " return true; }; document.querySelector('.crumbs .copy').click(); return text; })()"),
            "conns (owners) -> struct conn *[]")
        self.check_quiet(browser)

    def test_tree(self):
        browser = self.open()

        def shown():
            return browser.run("[...document.querySelectorAll('.tree tbody "
                               "td.text')].map((one) => one.textContent"
                               ".slice(one.querySelector('button') ? 1 : 0))")

        before = shown()
        self.assertEqual(before[:3], ["the heap", "conns (owners)",
                                      "struct conn *[]"])
        browser.run("document.querySelectorAll('.tree tbody tr')[2]"
                    ".querySelector('button').click()")
        self.assertEqual(shown()[3], "struct conn")
        browser.key("ArrowLeft")
        self.assertEqual(shown(), before)
        browser.key("ArrowUp")
        browser.key("ArrowLeft")
        self.assertEqual(shown()[1:3], ["conns (owners)", before[3]])
        self.check_quiet(browser)

    def test_tree_is_searched(self):
        browser = self.open()
        rows = "document.querySelectorAll('.tree tbody tr')"
        before = browser.run(f"{rows}.length")
        browser.key("/")
        self.assertEqual(browser.run("document.activeElement.className"), "find")
        browser.call("Input.insertText", text="JOBS")
        shown = browser.run(f"[...{rows}].map((row) => row.cells[0].textContent)")
        self.assertEqual([text.strip("▾▸") for text in shown], ["the heap", "jobs (owners)"])
        self.assertEqual("1 found", browser.run("document.querySelector('.tools [role=status]').textContent"))
        browser.run("{ const one = document.querySelector('.find'); one.value = ''; one.dispatchEvent(new Event('input')); }")
        self.assertGreaterEqual(browser.run(f"{rows}.length"), before)
        self.check_quiet(browser)

    def lead(self, browser, action):
        """Do what leads to another place of the page."""
        browser.run("new Promise((done) => { addEventListener('hashchange', () => done(null), {once: true});"
                    f" {action}; }})")

    def test_an_allocation_has_its_surroundings(self):
        browser = self.open()
        around = "document.querySelector('.around').innerText"
        row = tables("-q", self.path("core"), "sql", "SELECT address FROM allocation WHERE kind = 'struct conn'"
                     " AND path(address) LIKE 'conns%'")["result"][0]
        self.lead(browser, f"location.hash = {'#' + row['address']!r}")
        shown = browser.run(around)
        for expected in (f"struct conn at {row['address']}", "conns (owners) -> struct conn *[] -> struct conn",
                         "the connection with number", "Referred to by", "struct conn *[]"):
            self.assertIn(expected, shown)
        self.assertEqual(browser.run("document.activeElement.tagName"), "H3")
        # What refers to it is a link, and Back and the address lead back.
        self.lead(browser, "document.querySelector('.around [aria-label=\"Referred to by\"] a').click()")
        self.assertIn("struct conn *[] at", browser.run(around))
        self.assertIn("… and 94 more.", browser.run(around))
        self.lead(browser, "history.back()")
        self.assertIn("struct conn at", browser.run(around))
        browser.go("about:blank")
        browser.go(f"file://{self.page}#{row['address']}")
        self.assertIn(f"struct conn at {row['address']}", browser.run(around))
        self.lead(browser, "location.hash = '#0x10'")
        self.assertIn("explain 0x10", browser.run(around))
        self.check_quiet(browser)

    def test_keys_in_the_map(self):
        browser = self.open()
        browser.run("document.querySelector('.map').focus()")
        browser.key("ArrowRight")
        first = browser.run("document.activeElement.title")
        browser.key("ArrowRight")
        self.assertNotEqual(browser.run("document.activeElement.title"), first)
        browser.key("ArrowLeft")
        self.assertEqual(browser.run("document.activeElement.title"), first)
        self.check_quiet(browser)

    def test_tables(self):
        browser = self.open()
        table = "document.querySelector('#what-the-memory-is')"

        def first():
            return browser.run(f"{table}.querySelector('tbody td')"
                               ".textContent")

        def click(name):
            browser.run(f"[...{table}.querySelectorAll('th button')].find("
                        f"(one) => one.textContent === {name!r}).click()")

        click("count")
        most = first()
        click("count")
        self.assertNotEqual(first(), most)
        self.assertEqual(browser.run(
            f"{table}.querySelector('th[aria-sort]').getAttribute("
            "'aria-sort')"), "ascending")
        bill = "document.querySelector('#what-each-byte-is-used-for')"
        browser.run(f"{{ const one = {bill}.querySelector('input'); one.value"
                    " = 'VDSO'; one.dispatchEvent(new Event('input')); }")
        self.assertEqual(browser.run(
            f"{bill}.querySelector('.tools + .table tbody').rows.length"), 1)
        self.check_quiet(browser)

    def test_a_telephone(self):
        """No part of the page is wider than the window."""
        browser = self.open(width=500, height=900)
        self.assertLessEqual(
            browser.run("document.documentElement.scrollWidth"),
            browser.run("window.innerWidth"))
        self.check_quiet(browser)


if __name__ == "__main__":
    unittest.main()
