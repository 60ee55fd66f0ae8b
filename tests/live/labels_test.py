#!/usr/bin/env python3
"""Allocations that the program labels are named by the label, as the library's report has them."""

import collections
import os
import re
import unittest

import harness

PROGRAM = os.path.join(harness.PROGRAMS, "labels.c")
REPORTED = re.compile(r"^\s+(.*\S)\s+contains\s+\d+ bytes in\s+\d+ blocks")
NAMED = re.compile(r'identity "(.*)" at offset 0x38 have ([\d,]+) instance')


@unittest.skipUnless(os.path.exists("/usr/include/talloc.h"), "there is no libtalloc")
class LabelsTest(harness.LiveTest):
    def summarize(self, *arguments):
        """What the program says of itself, and heapcore of it."""
        program = harness.build(self.path("labels"), "cc", "-O1", PROGRAM, "-ltalloc")
        process = self.start([program, *arguments])
        core = harness.snap(process, self.path("core"))
        return process.said, harness.ask(core, "summarize", "used", "--all").stdout

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


if __name__ == "__main__":
    unittest.main()
