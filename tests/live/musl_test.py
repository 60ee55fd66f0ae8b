#!/usr/bin/env python3
"""
The heap of musl: testdata/programs/other_malloc.c, built with musl-gcc, also static, writes down
what became of its blocks, and heapcore must find the same in its cores.
"""

import shutil
import unittest

import preloaded


@unittest.skipUnless(shutil.which("musl-gcc"), "there is no musl-gcc")
class Musl(preloaded.MuslTest):
    compiler = "musl-gcc"

    def test_what_is_used_and_leaked_is_as_the_program_says(self):
        self.check_all()

    def test_static_programs_are_read(self):
        self.check_static()

    def test_cores_of_gdb_and_of_the_kernel_are_read(self):
        self.check_other_cores()

    def test_sizes_are_those_asked_for(self):
        """Nothing is wasted by rounding, as the program is known to ask for odd sizes."""
        core, known = self.snapped("early")
        sizes = preloaded.sizes(core, "used")
        odd = [start for start in known.kept if sizes[start] % 2]
        self.assertGreater(len(odd), len(known.kept) // 3)


if __name__ == "__main__":
    unittest.main()
