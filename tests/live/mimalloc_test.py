#!/usr/bin/env python3
"""
The heap of mimalloc: testdata/programs/other_malloc.c, run with its library, writes down what
became of its blocks, and heapcore must find the same in its cores.
"""

import unittest

import harness
import preloaded
import truth

LIBRARY = preloaded.first_there("libmimalloc.so.2", "libmimalloc.so.3")
# It says that an aligned block ends behind its end, and the program fills it up to there.
WRONG_SIZES = "libmimalloc.so.3.0"
SETTINGS = ({}, {"MIMALLOC_PAGE_RESET": "1"}, {"MIMALLOC_EAGER_COMMIT": "0"},
            {"MIMALLOC_RESERVE_OS_MEMORY": "512M"})


@unittest.skipUnless(LIBRARY, "there is no libmimalloc")
class Mimalloc(preloaded.PreloadedTest):
    library = LIBRARY

    def run_program(self, *arguments, **variables):
        process, known = super().run_program(*arguments, **variables)
        with open(f"/proc/{process.pid}/maps", encoding="utf-8") as file:
            if f"/{WRONG_SIZES}\n" in file.read():
                raise harness.Skipped("malloc_usable_size() of mimalloc 3.0 is wrong")
        return process, known

    def check(self, core, known):
        """
        A block of the program's may begin inside of one of mimalloc's, if it is aligned. What is
        before it may be an old link, which holds something.
        """
        used, leaked = preloaded.sizes(core, "used"), preloaded.sizes(core, "leaked")
        blocks = truth.Intervals(used)
        found = {start: blocks.find(start) for start in known.used()}
        ends = {start: block and block + used[block] for start, block in found.items()}
        self.assertEqual(ends, {start: start + size for start, size in known.used().items()})
        others = set(used) - set(found.values())
        self.assertEqual([hex(start) for start in known.freed if blocks.find(start) in others], [])
        self.assertLess(len(used) - len(found), preloaded.MOST_UNLISTED)
        lost = {found[start] for start in known.lost}
        self.assertEqual(set(leaked) - lost, set())
        self.assertLessEqual(len(lost) - len(leaked), 2 * len(lost) // preloaded.LOST_BY_STALE_WORD)

    def test_what_is_used_and_leaked_is_as_the_program_says(self):
        for when in ("early", "late"):
            for settings in SETTINGS:
                with self.subTest(when=when, settings=settings):
                    core, known = self.snapped(when, **settings)
                    self.check(core, known)

    def test_cores_of_gdb_and_of_the_kernel_are_read(self):
        self.check_other_cores()


if __name__ == "__main__":
    unittest.main()
