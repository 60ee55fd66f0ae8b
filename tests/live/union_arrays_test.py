#!/usr/bin/env python3
"""
testdata/programs/union_arrays.c has arrays that only unions lead to. They are
called by the type of their elements where memory says that they are arrays,
and by none where they may be something else.
"""

import shutil
import unittest

from harness import LiveTest, addresses_by_type, addresses_said, snap


class UnionArraysTest(LiveTest):
    def check(self, *flags, compiler="gcc"):
        program = self.compile("union_arrays", "union_arrays.c",
                               compiler=compiler, flags=flags)
        process = self.start([program])
        truth = addresses_said(process)
        found = addresses_by_type(snap(process, self.path("core")))
        found.pop("char[]", None)
        truth.pop("?")
        for name in {*found, *truth}:
            with self.subTest(name=name, flags=flags):
                self.assertEqual(found.get(name, set()), truth.get(name, set()))

    def test_gcc(self):
        self.check("-g", "-O2")
        self.check("-g", "-O0")

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_clang(self):
        self.check("-g", "-O2", compiler="clang")


if __name__ == "__main__":
    unittest.main()
