#!/usr/bin/env python3
"""
The heap of gperftools' tcmalloc: testdata/programs/other_malloc.c, run with its libraries, writes
down what became of its blocks, and what tcmalloc counts; heapcore must find the same in its cores.
"""

import unittest

import harness
import preloaded

MINIMAL, FULL = "libtcmalloc_minimal.so.4", "libtcmalloc.so.4"
SETTINGS = ({}, {"TCMALLOC_SKIP_SBRK": "true"},
            {"TCMALLOC_TRANSFER_NUM_OBJ": "4", "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES": "600000"},
            {"TCMALLOC_RELEASE_RATE": "100"})
SAMPLED = {"TCMALLOC_SAMPLE_PARAMETER": "20000"}
# A MallocExtension, in place of which 2.10 puts another one when it starts.
OWN_LEAKS = (8,)
COUNTED = {"used": "generic.current_allocated_bytes",
           "thread cache": "tcmalloc.thread_cache_free_bytes",
           "transfer cache": "tcmalloc.transfer_cache_free_bytes",
           "page heap": "tcmalloc.pageheap_free_bytes",
           "returned": "tcmalloc.pageheap_unmapped_bytes"}


class TcmallocTest(preloaded.PreloadedTest):
    own_leaks = OWN_LEAKS

    def check_counted(self, core, known):
        """The bill is what tcmalloc counts, to the byte."""
        rows = harness.tables(core, "bill")["use"]
        billed = {row["use"]: row["mapped"] for row in rows if row["memory"] == "tcmalloc"}
        self.assertEqual({name: billed.get(use, 0) for use, name in COUNTED.items()},
                         known.numbers)


@unittest.skipUnless(preloaded.is_there(MINIMAL), "there is no libtcmalloc-minimal4")
class Minimal(TcmallocTest):
    library = MINIMAL

    def test_what_is_used_and_leaked_is_as_the_program_says(self):
        for when in ("early", "late"):
            for settings in SETTINGS if harness.ALL_VARIANTS or when == "late" else SETTINGS[:1]:
                with self.subTest(when=when, settings=settings):
                    core, known = self.snapped(when, **settings)
                    self.check(core, known)
                    self.check_counted(core, known)

    def test_cores_of_gdb_and_of_the_kernel_are_read(self):
        self.check_other_cores()


@unittest.skipUnless(preloaded.is_there(FULL), "there is no libgoogle-perftools4")
class Full(TcmallocTest):
    library = FULL

    def test_sampled_allocations_are_as_large_as_others(self):
        core, known = self.snapped("late", **SAMPLED)
        self.check_used(preloaded.sizes(core, "used"), known)

    def test_the_bill_is_what_it_counts(self):
        self.check_counted(*self.snapped("late"))


if __name__ == "__main__":
    unittest.main()
