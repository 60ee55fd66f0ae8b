#!/usr/bin/env python3
"""
Objects that GC_debug_malloc() made are named by the file and line of the code that made
them.
"""

import os
import re
import subprocess
import unittest

import harness

PROGRAM = os.path.join(harness.PROGRAMS, "gc_debug.c")
MADE = {"a node": 20, "a text": 7}


def line_of(comment):
    with open(PROGRAM, encoding="ascii") as file:
        return next(number for number, line in enumerate(file, 1)
                    if f"/* {comment} */" in line)


@unittest.skipUnless(os.path.exists("/usr/include/gc/gc.h"),
                     "there is no libgc-dev")
class GcDebugTest(harness.LiveTest):
    """One core, of the program without debug information."""

    def setUp(self):
        super().setUp()
        # The program knows its file by the name that the compiler was given.
        subprocess.run(["cc", "-s", "-o", self.path("gc_debug"), "gc_debug.c",
                        "-lgc"], check=True, cwd=harness.PROGRAMS)
        self.core = harness.gcore(self.start([self.path("gc_debug")]),
                                  self.folder)

    def run_heapcore(self, *words):
        return harness.ask(self.core, *words).stdout

    def test_objects_are_grouped_by_who_made_them(self):
        text = self.run_heapcore("summarize", "used")
        for what, count in MADE.items():
            self.assertRegex(
                text, rf"made at gc_debug\.c:{line_of(what)} .* "
                rf"have {count:,} instances?")

    def test_memprof_says_the_same_in_its_own_format(self):
        text = self.run_heapcore("memprof", "allocations")
        for what, count in MADE.items():
            self.assertRegex(text, rf"(?m)^{count}\t\d+\t\(class 0\)\t"
                             rf"gc_debug\.c:{line_of(what)}$")

    def test_description_tells_who_made_an_object(self):
        text = self.run_heapcore("describe", "used")
        for what, count in MADE.items():
            place = f"made at gc_debug.c:{line_of(what)}"
            self.assertEqual(len(re.findall(rf"identity {place}\b", text)),
                             count)


if __name__ == "__main__":
    unittest.main()
