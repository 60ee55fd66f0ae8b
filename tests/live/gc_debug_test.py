#!/usr/bin/env python3
"""
Objects that GC_debug_malloc() made are told by the file and line of who made
them.
"""

import os
import re
import subprocess
import tempfile
import unittest

SOURCE_DIR = os.environ["SOURCE_DIR"]
HEAPCORE = os.environ["HEAPCORE"]
PROGRAM = os.path.join(SOURCE_DIR, "testdata/programs/gc_debug.c")
TIMEOUT = 60
MADE = {"a node": 20, "a text": 7}


def line_of(comment):
    with open(PROGRAM, encoding="ascii") as file:
        return next(number for number, line in enumerate(file, 1)
                    if f"/* {comment} */" in line)


@unittest.skipUnless(os.path.exists("/usr/include/gc/gc.h"),
                     "there is no libgc-dev")
class GcDebugTest(unittest.TestCase):
    """One core, of the program without debug information."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="heapcore-gc-debug-")
        self.addCleanup(temporary.cleanup)
        program = os.path.join(temporary.name, "gc_debug")
        subprocess.run(["cc", "-s", "-o", program, "gc_debug.c", "-lgc"],
                       check=True, cwd=os.path.dirname(PROGRAM))
        process = subprocess.Popen([program], stdout=subprocess.PIPE,
                                   text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.core = f"{program}.core"
        subprocess.run(["gcore", "-o", self.core, str(process.pid)],
                       check=True, stdin=subprocess.DEVNULL,
                       capture_output=True)
        self.core += f".{process.pid}"

    def run_heapcore(self, *words):
        return subprocess.run([HEAPCORE, self.core, *words], check=True,
                              capture_output=True, text=True,
                              timeout=TIMEOUT).stdout

    def test_objects_are_grouped_by_who_made_them(self):
        text = self.run_heapcore("summarize", "used")
        for what, count in MADE.items():
            self.assertRegex(
                text, rf"made at gc_debug\.c:{line_of(what)} .* "
                rf"have {count} instances")

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
