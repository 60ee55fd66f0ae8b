"""A browser that looks into a core by the page of heapcore serve."""

import time
import unittest

from browser import PROGRAM, Browser
from harness import TIMEOUT, LiveTest, snap
from served import Server

WIDE, NARROW = 1280, 390  # a desktop, a telephone
# The view, and a text that it must show of the core of owners.c
VIEWS = {
    "overview": "conns (owners)", "tree": "conns (owners)", "kinds": "struct conn", "classes": "kinds",
    "objects": "320 allocations", "leaks": "probably struct conn", "threads": "main", "bill": "glibc",
    "fragmentation": "Arenas", "dangling": "No reference", "command": "help", "command/count used": "320", "class/struct conn": "150 allocations",
    "find/conns": "conns", "nothing": "No such view",
}
SETTLED = ("new Promise((done) => { const check = () => document.getElementById('main')"
           ".getAttribute('aria-busy') === 'false' ? done(null) : setTimeout(check, 20); setTimeout(check, 50); })")


@unittest.skipUnless(PROGRAM, "there is no chromium")
class LookingTest(LiveTest):
    def serve(self, *cores):
        self.server = Server("--no-open", *cores)
        self.addCleanup(self.server.stop)
        self.server.wait_until_ready()
        self.host = f"http://{self.server.host}"

    def serve_owners(self):
        process = self.start([self.compile("owners", "owners.c", flags=("-g", "-O2"))])
        self.core = snap(process, self.path("core"))
        self.serve(self.core)

    def browse(self, width=WIDE):
        self.browser = Browser(width=max(width, 500))
        self.addCleanup(self.browser.close)
        self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                          deviceScaleFactor=1, mobile=False)
        self.browser.go(self.server.line.strip())
        self.settle()

    def settle(self):
        self.browser.run(SETTLED)

    def wait(self, expression):
        end = time.monotonic() + TIMEOUT
        while not self.browser.run(expression):
            self.assertLess(time.monotonic(), end, expression)
            time.sleep(0.05)
        self.settle()

    def visit(self, place):
        self.browser.run(f"location.hash = {'#/' + place!r}")
        self.settle()

    def text(self, selector="main"):
        return self.browser.run(f"document.querySelector({selector!r}).innerText")

    def click(self, selector, text):
        """Click the element whose text begins so, and wait for what it leads to."""
        self.wait(f"[...document.querySelectorAll({selector!r})].some((one) => one.textContent.startsWith({text!r}))")
        self.browser.run(f"[...document.querySelectorAll({selector!r})].find((one) => "
                         f"one.textContent.startsWith({text!r})).click()")
        self.settle()

    def check_quiet(self, *expected):
        self.assertEqual([one for one in self.browser.complaints() if not any(text in str(one) for text in expected)], [])
        self.assertEqual([url for url in self.browser.requests()
                          if not url.startswith((self.host, "about:", "data:"))], [])

    def check_fits(self):
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"),
                             self.browser.run("window.innerWidth"), self.browser.run("location.hash"))
        self.assertEqual(self.browser.run("[...document.querySelectorAll('[role=alert]')].map((one) => one.textContent)"),
                         [], self.browser.run("location.hash"))
