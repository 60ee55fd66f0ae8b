#!/usr/bin/env python3
"""
The heap of musl's older malloc: testdata/programs/other_malloc.c, built with the musl-gcc that
OLDMALLOC_GCC names, also static, writes down what became of its blocks, and heapcore must find the
same in its cores. scripts/allocator-matrix builds such a musl.
"""

import os
import unittest

import harness
import preloaded

COMPILER = os.environ.get("OLDMALLOC_GCC")


@unittest.skipUnless(COMPILER, "there is no musl with oldmalloc")
class OldMalloc(preloaded.MuslTest):
    compiler = COMPILER

    def test_what_is_used_and_leaked_is_as_the_program_says(self):
        self.check_all()

    def test_static_programs_are_read(self):
        self.check_static()

    def test_cores_of_gdb_and_of_the_kernel_are_read(self):
        self.check_other_cores()

    def test_no_other_allocator_is_seen(self):
        core, _ = self.snapped("late")
        rows = harness.tables(core, "bill")["use"]
        self.assertLess({"oldmalloc"}, {row["memory"] for row in rows})
        self.assertFalse({"glibc", "musl", "jemalloc", "tcmalloc", "mimalloc"} &
                         {row["memory"] for row in rows})


if __name__ == "__main__":
    unittest.main()
