#!/usr/bin/env python3
"""
Allocations that the program labels are named by the label, and hold those that belong to them, as
the library's report has them.
"""

import collections
import json
import os
import re
import unittest

import harness

PROGRAM = os.path.join(harness.PROGRAMS, "labels.c")
REPORTED = re.compile(r"^\s+(.*\S)\s+contains\s+\d+ bytes in\s+\d+ blocks")
CHUNK = re.compile(r"contains\s+\d+ bytes in\s+(\d+) blocks \(ref 0\) 0x([0-9a-f]+)")
HEADER = 0x60
NAMED = re.compile(r'identity "(.*)" at offset 0x38 have ([\d,]+) instance')


@unittest.skipUnless(os.path.exists("/usr/include/talloc.h"), "there is no libtalloc")
class LabelsTest(harness.LiveTest):
    def capture(self, *arguments):
        """What the program says of itself, and a core of it."""
        program = harness.build(self.path("labels"), "cc", "-O1", PROGRAM, "-ltalloc")
        process = self.start([program, *arguments])
        return process.said, harness.snap(process, self.path("core"))

    def summarize(self, *arguments):
        said, core = self.capture(*arguments)
        return said, harness.ask(core, "summarize", "used", "--all").stdout

    def count_retained(self, core):
        """How many allocations each one holds, itself included."""
        answer = harness.ask(core, "sql", "SELECT address, retained_count FROM dominator",
                             "--format", "json").stdout
        return {int(row["address"], 16): row["retained_count"]
                for row in json.loads(answer)["tables"][0]["rows"]}

    def test_each_label_has_its_count(self):
        said, text = self.summarize()
        reported = collections.Counter(match[1] for match in map(REPORTED.match, said) if match)
        named = {name: int(count.replace(",", "")) for name, count in NAMED.findall(text)}
        for name in ("struct session", "struct request", "long"):
            self.assertEqual(named[name], reported[name], text)
        # Texts have their own contents as label.
        self.assertEqual(set(named), {"top", "struct session", "struct request", "long"})

    def test_member_that_is_one_of_a_few_texts_is_no_label(self):
        self.assertNotIn("identity", self.summarize("jobs")[1])

    def test_each_allocation_holds_what_belongs_to_it(self):
        said, core = self.capture()
        reported = {int(match[2], 16) - HEADER: int(match[1])
                    for match in map(CHUNK.search, said) if match}
        retained = self.count_retained(core)
        self.assertEqual(len(reported), 1200)
        self.assertEqual({address: retained.get(address) for address in reported}, reported)
        whole = harness.ask(core, "tree").stdout
        self.assertRegex(whole, r'(?m)^ 1[0-9]{2},[0-9]{3} .* 1 +104 +0x\w+ +"top"$')

    def test_labelled_entries_of_lists_hold_nothing(self):
        said, core = self.capture("lists")
        self.assertIn('"struct page"', harness.ask(core, "summarize", "used", "--all").stdout)
        self.assertEqual(set(self.count_retained(core).values()), {1})


if __name__ == "__main__":
    unittest.main()
