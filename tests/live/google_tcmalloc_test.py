#!/usr/bin/env python3
"""
The heap of Google's tcmalloc: testdata/programs/other_malloc.c, run with its library, writes down
what became of its blocks; heapcore must find the same in its cores. No distribution has the
library: scripts/google-tcmalloc-matrix builds several versions, and runs this with each.
"""

import os
import unittest

import preloaded

LIBRARY = os.environ.get("GOOGLE_TCMALLOC", "libgoogle_tcmalloc.so")
# glibc takes the restartable sequences for itself: then threads have caches, else processors.
SETTINGS = ({}, {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"})


@unittest.skipUnless(preloaded.is_there(LIBRARY), "there is no library of Google's tcmalloc")
class GoogleTcmalloc(preloaded.PreloadedTest):
    library = LIBRARY

    def test_what_is_used_and_leaked_is_as_the_program_says(self):
        for when in ("early", "late"):
            for settings in SETTINGS:
                with self.subTest(when=when, settings=settings):
                    self.check(*self.snapped(when, **settings))

    def test_cores_of_gdb_and_of_the_kernel_are_read(self):
        self.check_other_cores()


if __name__ == "__main__":
    unittest.main()
