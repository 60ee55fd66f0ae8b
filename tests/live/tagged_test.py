#!/usr/bin/env python3
"""
testdata/programs/tagged.c has values in slabs, whose unions lead to arrays,
tables and texts, as the second number beside them tells. Nearly all allocations
have the types that the program says, and none has another one.
"""

import shutil
import unittest

from harness import LiveTest, addresses_by_type, addresses_said, snap


class TaggedTest(LiveTest):
    def check(self, *flags, compiler="gcc"):
        program = self.compile("tagged", "tagged.c", "truth.c",
                               compiler=compiler, flags=("-g", *flags))
        process = self.start([program])
        truth = addresses_said(process)
        core = snap(process, self.path("core"))
        named = addresses_by_type(core)
        self.assertEqual(set(named), set(truth))
        for name, found in named.items():
            with self.subTest(name=name, flags=flags, compiler=compiler):
                self.assertEqual(found - truth[name], set())
                # Of the few that something else leads to as well, too little
                # is known; texts are text, whatever leads to them.
                self.assertGreaterEqual(len(found), len(truth[name]) * 9 // 10)

    def test_gcc(self):
        self.check("-O2")
        self.check("-O0")

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_clang(self):
        self.check("-O2", compiler="clang")


if __name__ == "__main__":
    unittest.main()
