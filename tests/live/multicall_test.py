#!/usr/bin/env python3
"""
testdata/programs/multicall.c is one of many programs in a file. What its
pointer leads to is known by its own words, although several programs define
structures of the name; and no pointer of one meaning is taken for it.
"""

import unittest

from harness import LiveTest, addresses, ask, numbers_said, snap, tables


class MulticallTest(LiveTest):
    def check(self, flag):
        program = self.compile("multicall", "multicall.c", "multicall_first.c",
                               "multicall_second.c", "truth.c", flags=("-g", flag))
        process = self.start([program])
        truth = {word: set(found) for word, found in numbers_said(process).items()}
        core = snap(process, self.path("core"))
        lone, = truth["not"]
        row, = tables("-q", core, "describe", f"{lone:x}")["address"]
        self.assertIsNone(row["type"])
        told = ask("-q", core, "describe", "globals").stdout
        self.assertRegex(told, r"of type block with struct globals2?\b")
        found = addresses("-q", core, "enumerate", "used", "item")
        # Those to which only the lone block leads stay without a type.
        self.assertLessEqual(found, truth["item"])
        self.assertEqual(len(found), 9)

    def test_a_pointer_to_whichever_program_runs(self):
        self.check("-O0")
        self.check("-O2")


if __name__ == "__main__":
    unittest.main()
