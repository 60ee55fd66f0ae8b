#!/usr/bin/env python3
"""
The heap of jemalloc 3.6 and 4.5: testdata/programs/other_malloc.c, run with the library that
JEMALLOC4 names, writes down what became of its blocks, and heapcore must find the same in its
cores. No suite of Debian that is served has such a library.

4.5 begins large allocations anywhere in their first page, and notes nowhere where: heapcore shows
the pages.
"""

import bisect
import os
import unittest

import harness
import preloaded

LIBRARY = os.environ.get("JEMALLOC4")
PAGE = 4096
# What 4.5 keeps for a thread: 16 bytes for each of four arenas of each processor.
OF_THREAD, MOST_THREADS = 16 * 4 * os.cpu_count(), 5


@unittest.skipUnless(LIBRARY, "there is no jemalloc before 5")
class Jemalloc4(preloaded.PreloadedTest):
    library = LIBRARY

    def shown(self, sizes, known):
        """The same, with what is shown as whole pages under the address that the program has."""
        starts = sorted(sizes)
        for start, size in {**known.kept, **known.lost}.items():
            around = starts[bisect.bisect_right(starts, start) - 1]
            if start - around < PAGE and sizes.get(around) == size + PAGE:
                del sizes[around]
                sizes[start] = size
        return sizes

    def check(self, core, known):
        used, leaked = (self.shown(preloaded.sizes(core, which), known)
                        for which in ("used", "leaked"))
        # 4.5 keeps something for each thread in its own heap, where a freed block may have been.
        reused = [start for start in known.freed if used.get(start, PAGE) <= OF_THREAD]
        self.assertLessEqual(len(reused), MOST_THREADS)
        for start in reused:
            del used[start]
        self.check_used(used, known)
        held = [start for start in known.lost if start not in leaked]
        self.assertLessEqual(len(held), len(known.lost) // preloaded.LOST_BY_STALE_WORD)
        self.assertEqual([hex(start) for start in leaked if start not in known.lost], [])

    def test_what_is_used_and_leaked_is_as_the_program_says(self):
        for when in ("early", "late"):
            for settings in ("", "narenas:1", "tcache:false"):
                with self.subTest(when=when, settings=settings):
                    self.check(*self.snapped(when, MALLOC_CONF=settings))

    def test_cores_of_gdb_and_of_the_kernel_are_read(self):
        self.check_other_cores()

    def test_no_other_allocator_is_seen(self):
        core, _ = self.snapped("late")
        seen = {row["memory"] for row in harness.tables(core, "bill")["use"]}
        self.assertIn("jemalloc4", seen)
        self.assertFalse(seen & {"jemalloc", "tcmalloc", "mimalloc", "musl", "oldmalloc"})


if __name__ == "__main__":
    unittest.main()
