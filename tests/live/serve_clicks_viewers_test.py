#!/usr/bin/env python3
"""
The page of heapcore serve, clicked at random and judged by axe-core: no click leads to an error, and
nothing serious is in the way of those who use keys or screen readers, or like it dark.
"""

import os
import random
import unittest

from engines import node_modules
from harness import ALL_VARIANTS
from looked_into import NARROW, VIEWS, WIDE, LookingTest

CLICKS = 300 if ALL_VARIANTS else 100


class ServeClicksViewersTest(LookingTest):
    def test_random_clicks(self):
        """What a person may click on never leads to an error."""
        self.serve_owners()
        self.browse(NARROW)
        draw = random.Random(4711)
        for i in range(CLICKS):
            count = self.browser.run("(window.targets = [...document.querySelectorAll('a[href], main button, main summary, main select')]"
                                     ".filter((one) => one.offsetParent !== null && one.id !== 'skip')).length")
            self.browser.run(f"{{ const one = window.targets[{draw.randrange(count)}]; one.focus(); one.click(); }}")
            self.settle()
            # Who uses keys goes on from there, not from the beginning of the page.
            self.assertNotEqual(self.browser.run("document.activeElement.tagName"), "BODY", self.browser.run("location.hash"))
            if i % 10 == 0:
                self.check_fits()
            if draw.random() < 0.1:
                self.browser.run("history.back()")
                self.settle()
        self.check_quiet()

    def test_axe_finds_nothing_serious(self):
        with open(os.path.join(node_modules("axe-core"), "axe-core", "axe.min.js"), encoding="utf-8") as file:
            axe = file.read()
        self.serve_owners()
        self.browse()
        for scheme, width in (("light", WIDE), ("dark", NARROW)):
            self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
            self.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            self.browser.run(axe + "; null")
            for view in VIEWS:
                self.visit(view)
                found = self.browser.run("axe.run(document, {resultTypes: ['violations']}).then((result) => result.violations.filter("
                                         "(one) => ['serious', 'critical'].includes(one.impact)).map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html)]))")
                self.assertEqual(found, [], f"{view}, {scheme}, {width}")

if __name__ == "__main__":
    unittest.main()
