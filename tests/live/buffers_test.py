#!/usr/bin/env python3
"""
testdata/programs/buffers.c has buffers behind whose text old pointers stand:
they are named by the numbers beside their pointers. What has such a number by
chance, and memory for structures, has no name.
"""

import shutil
import unittest

from harness import LiveTest


class BuffersTest(LiveTest):
    def check(self, *flags, compiler="gcc"):
        _, truth, named = self.typed("buffers", *flags, compiler=compiler)
        truth.pop("?")
        named.pop("?", None)
        self.assertEqual(named, truth)

    def test_gcc(self):
        self.check("-g", "-O2")
        self.check("-g", "-O0")

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_clang(self):
        self.check("-g", "-O2", compiler="clang")


if __name__ == "__main__":
    unittest.main()
