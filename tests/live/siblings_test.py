#!/usr/bin/env python3
"""
testdata/programs/siblings.c leaks allocations of types of which others are
held. Those that look like just one of these are said to, and no other.
"""

import shutil
import unittest

from harness import LiveTest, addresses, ask, snap, tables

LIKE = "probably struct conn"


class SiblingsTest(LiveTest):
    def core(self, *flags, compiler="gcc"):
        """A core, and the addresses of what looks like a type and does not."""
        program = self.compile("siblings", "siblings.c", "truth.c",
                               compiler=compiler, flags=flags)
        process = self.start([program])
        truth = {"like": set(), "not": set()}
        for line in process.said:
            word, _, rest = line.strip().partition(" ")
            if word in truth:
                truth[word].add(int(rest))
        return snap(process, self.path("core")), truth

    def check(self, *flags, compiler="gcc"):
        core, truth = self.core(*flags, compiler=compiler)
        self.assertFalse(truth["like"] & truth["not"])
        self.assertLessEqual(truth["like"] | truth["not"],
                             addresses("-q", core, "enumerate", "leaked"))
        named = {row["type"]: row["count"]
                 for row in tables("-q", core, "summarize", "leaked")["group"]
                 if row.get("type")}
        self.assertEqual(named, {LIKE: len(truth["like"])})
        self.assertIn(f"type {LIKE}\n",
                      ask("-q", core, "summarize", "leakroots").stdout)
        for address in truth["like"]:
            self.assertRegex(
                ask("-q", core, "describe", f"{address:x}").stdout,
                r"It is of type struct conn \(looks like: by 40 others of its "
                r"size, as conns")
        for address in truth["not"]:
            self.assertNotIn(
                "looks like",
                ask("-q", core, "describe", f"{address:x}").stdout)
        return core

    def test_gcc(self):
        self.check("-g", "-O0")
        core = self.check("-g", "-O2")
        listed = ask("-q", core, "list", "leaked").stdout
        self.assertEqual(listed.count(LIKE), 5)

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_clang(self):
        self.check("-g", "-O0", compiler="clang")
        self.check("-g", "-O2", compiler="clang")

    def test_held_ones_are_called_the_same_before_and_after(self):
        core, _ = self.core("-g", "-O2")
        alone = ask("-q", core, "summarize", "used").stdout
        both = ask("-q", "-c", "summarize leaked",
                   "-c", "summarize used", core).stdout
        self.assertTrue(both.endswith(alone))

    def test_without_debug_information(self):
        core, _ = self.core("-g0", "-O2")
        groups = tables("-q", core, "summarize", "leaked")["group"]
        self.assertFalse([row for row in groups if row.get("type")])


if __name__ == "__main__":
    unittest.main()
