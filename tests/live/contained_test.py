#!/usr/bin/env python3
"""
testdata/programs/contained.c has structures that end in a name, to which only
pointers to the names lead. They have their type; what looks like several such
structures, and texts behind words of an allocator, do not.
"""

import collections
import shutil
import unittest

from harness import LiveTest, addresses, ask, snap, tables

UNKNOWN = ("?", "char[]")


class ContainedTest(LiveTest):
    def check(self, *flags, compiler="gcc"):
        program = self.compile("contained", "contained.c", compiler=compiler,
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
