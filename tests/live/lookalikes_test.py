#!/usr/bin/env python3
"""
testdata/programs/lookalikes.c has allocations that look like values of types
that they are not of. heapcore calls none of them so, and the others by their
types.
"""

import collections
import shutil
import unittest

from harness import LiveTest, addresses, snap, tables

UNKNOWN = ("?", "char[]", "not text")


class LookalikesTest(LiveTest):
    def check(self, *flags, compiler="gcc"):
        program = self.compile("lookalikes", "lookalikes.c", compiler=compiler,
                               flags=flags)
        process = self.start([program])
        truth = collections.defaultdict(set)
        for line in process.said:
            address, _, name = line.strip().partition(" ")
            if name:
                truth[name].add(int(address, 16))
        core = snap(process, self.path("core"))
        named = {row["type"]: addresses("-q", core, "enumerate", "used",
                                        row["type"])
                 for row in tables("-q", core, "summarize", "used")["group"]
                 if row.get("type") and row["type"] not in UNKNOWN}
        self.assertEqual(named, {name: found for name, found in truth.items()
                                 if name not in UNKNOWN})
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
