#!/usr/bin/env python3
"""
What C++ counts references to (testdata/programs/counted.cpp): exceptions have
the name of what was thrown, destroyed objects are not counted as living ones,
and describe says the counts; with debug information, stripped, and static.
"""

import unittest

import harness

VARIANTS = {
    "debug": ["-O0", "-g"],
    "stripped": ["-O2", "-s", "-pthread"],
    "static": ["-O1", "-static", "-no-pie"],
}


class Counted(harness.LiveTest):
    def check(self, flags):
        process = self.start([self.compile("counted", "counted.cpp", flags=flags,
                                           compiler="g++")])
        said = {}
        for line in process.said:
            count, name = line.strip().split(" ", 1)
            said[name] = int(count)
        core = harness.snap(process, self.path("core"))
        found = {row["name"]: row["count"]
                 for row in harness.rows("group", "-q", core, "summarize", "used")
                 if row["name"] in said}
        self.assertEqual(found, said)
        return core

    def describe(self, core, name):
        address = min(harness.addresses("-q", core, "enumerate", "used", name))
        return harness.ask("-q", core, "describe", f"{address:x}").stdout

    def test_each_kind_has_its_name_and_counts(self):
        for name, flags in VARIANTS.items():
            with self.subTest(variant=name):
                core = self.check(flags)
                self.assertIn("which is an exception: use count 1\n",
                              self.describe(core, "exception app::Plain"))
                self.assertIn("which is counted by std::shared_ptr: "
                              "use count 0, weak count 1\n",
                              self.describe(core, "app::Tablet (destroyed, "
                                                  "held by weak_ptr)"))
                self.assertIn("use count 1, weak count 1\n",
                              self.describe(core, "app::Tablet"))

    def test_a_block_of_counts_alone_says_so_too(self):
        core = self.check(VARIANTS["debug"])
        names = [row["name"]
                 for row in harness.rows("group", "-q", core, "summarize", "used")
                 if (row["name"] or "").startswith("std::_Sp_counted_ptr<app::Plain*")]
        self.assertEqual(len(names), 1)
        self.assertIn("(destroyed, held by weak_ptr)", names[0])


if __name__ == "__main__":
    unittest.main()
