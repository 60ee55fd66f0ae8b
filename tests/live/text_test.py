#!/usr/bin/env python3
"""
testdata/programs/texts.c says which of its allocations hold text, and which
only look like it. Those and no others must be strings, with an example.
"""

import collections
import unittest

from harness import LiveTest, addresses, ask, snap, tables


class TextTest(LiveTest):
    def core(self, *flags):
        """A core, and the program's allocations by what they are."""
        program = self.compile("texts", "texts.c", "truth.c", flags=flags)
        process = self.start([program])
        truth = collections.defaultdict(set)
        for line in process.said:
            word, _, address = line.strip().partition(" ")
            if address:
                truth[word].add(int(address, 16))
        return snap(process, self.path("core")), truth

    def check(self, *flags):
        core, truth = self.core(*flags)
        found = addresses("-q", core, "enumerate", "used", "%String")
        self.assertEqual(truth["text"] - found, set())
        self.assertEqual((truth["other"] | truth["letters"]) & found, set())
        wide = addresses("-q", core, "enumerate", "used", "%WideString")
        self.assertEqual(wide - truth["letters"], truth["wide"])
        rows = [row for row in tables("-q", core, "summarize",
                                      "used")["group"]
                if row.get("group") == "Strings"]
        self.assertEqual(sum(row["count"] for row in rows), len(found))
        self.assertTrue(rows[0]["such_as"].isprintable())
        self.check_nameless(core)
        left_out = ask("-q", "--no-content", core, "summarize", "used").stdout
        self.assertIn("Strings have", left_out)
        self.assertNotIn("such as", left_out)

    def check_nameless(self, core):
        """The structures with a name are held by an array, or by nothing."""
        groups = tables("-q", core, "summarize", "used")["group"]
        rows = [row for row in groups if row.get("size") == 72]
        self.assertEqual({row["held_by"] for row in rows},
                         {"static data of texts"})
        self.assertEqual(sum(row["count"] for row in rows), 400)
        self.assertIn("int", rows[0]["shape"])
        self.assertIn("texts+0x", rows[0]["path"])
        # Nothing is said of a path that goes round in a circle.
        self.assertEqual([(row["path"], row["count"]) for row in groups
                          if row["held_by"] == "a linked list (link at +0x0, nodes of 0x158 bytes)"],
                         [(None, 28)])

    def test_stripped(self):
        self.check("-O2", "-s")
        self.check("-O0", "-s", "-no-pie")


if __name__ == "__main__":
    unittest.main()
