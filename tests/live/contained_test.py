#!/usr/bin/env python3
"""
testdata/programs/contained.c has structures that end in a name, to which only
pointers to the names lead. They have their type; what looks like several such
structures, and texts behind words of an allocator, do not.
"""

import shutil
import unittest

from harness import LiveTest, ask

UNKNOWN = ("?", "char[]")


def known(by_name):
    return {name: found for name, found in by_name.items()
            if name not in UNKNOWN}


class ContainedTest(LiveTest):
    def check(self, *flags, compiler="gcc"):
        core, truth, named = self.typed("contained", *flags, compiler=compiler)
        self.assertEqual(known(named), known(truth))
        said = ask("-q", core, "describe",
                   f"{min(truth['struct member']):x}").stdout
        self.assertIn("It is of type struct member (looks like: by all.members"
                      "[", said)

    def test_gcc(self):
        self.check("-g", "-O2")
        self.check("-g", "-O0")

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_clang(self):
        self.check("-g", "-O2", compiler="clang")


if __name__ == "__main__":
    unittest.main()
