#!/usr/bin/env python3
"""
testdata/programs/casts.c says which type each of its allocations is of, though
no declaration does: its code, tags and contents have to tell. What heapcore
calls them must be that, however the program was compiled.
"""

import collections
import shutil
import unittest

from harness import LiveTest, addresses, rows, snap, tables


class CastsTest(LiveTest):
    def check(self, *flags, compiler="gcc"):
        program = self.compile("casts", "casts.c", compiler=compiler,
                               flags=flags)
        process = self.start([program])
        truth = collections.defaultdict(set)
        for line in process.said:
            address, _, name = line.strip().partition(" ")
            if name not in ("", "?"):
                truth[name].add(int(address, 16))
        core = snap(process, self.path("core"))
        named = {row["type"]: row["count"]
                 for row in tables("-q", core, "summarize", "used")["group"]
                 if row.get("type")}
        self.assertEqual(named, {name: len(found)
                                 for name, found in truth.items()})
        for name, expected in truth.items():
            with self.subTest(name=name, flags=flags, compiler=compiler):
                self.assertEqual(addresses("-q", core, "enumerate", "used",
                                           name), expected)
        slabs = rows("allocation", "-q", core, "describe", "used",
                     "block with struct crate")
        self.assertEqual([slab["values"] for slab in slabs], [50, 50])

    def test_gcc(self):
        self.check("-g", "-O2")
        self.check("-g", "-O0")

    def test_position_dependent_code(self):
        self.check("-g", "-O1", "-no-pie")

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_clang(self):
        self.check("-g", "-O2", compiler="clang")
        self.check("-g", "-O0", compiler="clang")


if __name__ == "__main__":
    unittest.main()
