#!/usr/bin/env python3
"""
testdata/programs/lookalikes.c has allocations that look like values of types
that they are not of. heapcore calls none of them so, and the others by their
types.
"""

import shutil
import unittest

from harness import LiveTest, addresses

UNKNOWN = ("?", "char[]", "not text")


def known(by_name):
    return {name: found for name, found in by_name.items()
            if name not in UNKNOWN}


class LookalikesTest(LiveTest):
    def check(self, *flags, compiler="gcc"):
        core, truth, named = self.typed("lookalikes", *flags, compiler=compiler)
        self.assertEqual(known(named), known(truth))
        self.assertFalse(truth["not text"] & addresses(
            "-q", core, "enumerate", "used", "char[]"))

    def test_gcc(self):
        self.check("-g", "-O2")
        self.check("-g", "-O0")

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_clang(self):
        self.check("-g", "-O2", compiler="clang")


if __name__ == "__main__":
    unittest.main()
