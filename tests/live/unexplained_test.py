#!/usr/bin/env python3
"""
Memory that heapcore does not know, or does not see: where it would make an answer wrong, the
overview and the gate say so, and of what only looks so, they do not.
"""

import os
import shutil
import unittest

import harness
import layouts
from harness import FINE, FOUND, INCOMPLETE, LiveTest, gcore, run, snap

UNKNOWN = "anonymous memory of unknown_heap"
NESTED = "large blocks full of addresses of each other"
CHAINED = "links all blocks in one list"
HIDDEN = "where the core has no memory"


class UnexplainedTest(LiveTest):
    def core_of(self, name, *words, by=None, layout=None):
        flags = [flag for flag in harness.FLAGS.split() if flag != "-O2"]
        program = self.compile(name, f"{name}.c", flags=flags)
        process = self.start([program, *words], layout=layout)
        return by(process, self.folder) if by else snap(process, self.path("core"))

    def check(self, core, status, says="", not_says="\0"):
        gate = run(harness.HEAPCORE, core, "gate")
        self.assertEqual(gate.returncode, status, gate.stderr)
        self.assertIn(says, gate.stderr)
        self.assertNotIn(not_says, gate.stderr)
        overview = run(harness.HEAPCORE, core)
        self.assertIn(says, overview.stderr)
        self.assertNotIn(not_says, overview.stderr)
        self.assertEqual(overview.returncode, INCOMPLETE if status == INCOMPLETE else FINE)

    def test_objects_in_memory_of_an_unknown_runtime(self):
        self.check(self.core_of("unknown_heap", "objects"), INCOMPLETE, UNKNOWN)
        self.check(self.core_of("unknown_heap", "objects", by=gcore), INCOMPLETE, UNKNOWN)

    def test_objects_in_large_blocks(self):
        self.check(self.core_of("unknown_heap", "blocks"), INCOMPLETE, NESTED)
        self.check(self.core_of("unknown_heap", "pool"), FINE, not_says="private memory")

    def test_data_is_no_heap(self):
        self.check(self.core_of("unknown_heap", "numbers"), FINE, UNKNOWN)
        self.check(self.core_of("unknown_heap", "few"), FINE, not_says="private memory")

    def test_headers_that_chain_all_blocks(self):
        for mode in ("headers", "rings"):
            core = self.core_of("chained", mode)
            self.check(core, FOUND, CHAINED)
            self.assertIn("100 allocations",
                          harness.ask("-q", core, "count", "leaked").stdout)

    def test_the_list_of_a_program_holds_its_blocks(self):
        for mode in ("list", "cache"):
            self.check(self.core_of("chained", mode), FINE, not_says=CHAINED)

    def test_memory_that_the_program_keeps_out_of_cores(self):
        # Its addresses lie below libraries, above them, or in the place of a large cache.
        for layout in (layouts.Layout(8), layouts.Layout(8, legacy=True), layouts.Layout(150)):
            with self.subTest(layout=str(layout)):
                core = self.core_of("kept_out", by=gcore, layout=layout)
                self.check(core, INCOMPLETE, HIDDEN)

    def test_addresses_of_what_was_unmapped(self):
        for layout in (layouts.Layout(8), layouts.Layout(8, legacy=True), layouts.Layout(150)):
            with self.subTest(layout=str(layout)):
                core = self.core_of("kept_out", "stale", by=gcore, layout=layout)
                self.check(core, FOUND, not_says=HIDDEN)

    def test_a_process_under_valgrind(self):
        program = self.compile("chained", "chained.c")
        core = gcore(self.start(["valgrind", "-q", program]), self.folder)
        self.check(core, INCOMPLETE, "valgrind is loaded", "malloc was never called")

    def test_an_interpreter_by_another_name(self):
        python = os.path.realpath(shutil.which("python3"))
        other = shutil.copy(python, self.path("service"))
        script = self.path("script")
        with open(script, "w", encoding="ascii") as file:
            file.write("import time\n"
                       "class Session: pass\n"
                       "kept = [Session() for _ in range(500)]\n"
                       "print('ready', flush=True)\n"
                       "time.sleep(600)\n")
        process = self.start([other, script], PYTHONHOME=os.path.dirname(os.path.dirname(python)))
        core = snap(process, self.path("core"))
        objects = {row["class"]: row["objects"]
                   for row in harness.rows("class", "-q", core, "objects", "used")}
        self.assertEqual(objects["__main__.Session"], 500)


if __name__ == "__main__":
    unittest.main()
