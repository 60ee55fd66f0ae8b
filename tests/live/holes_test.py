"""
A core that is nearly all holes is read in no time.

The program reserves 128 GB and touches one page of it; the kernel writes a
core of that size, of which the disk holds some hundred kilobytes.
"""

import os
import sys
import unittest

import harness

SOURCE = os.path.join(harness.ROOT, "tests/cli/programs/reserved.c")


class Holes(harness.LiveTest):
    def test_what_was_reserved_and_never_touched_costs_nothing(self):
        program = self.compile("reserved", SOURCE, flags=["-O1"])
        core = harness.kernel_core(self.start([program]), self.folder)
        if os.path.getsize(core) < 1 << 37:
            self.skipTest("the kernel writes a cut core here")
        result = harness.ask("-c", "list leaked", "-c", "summarize used", core)
        self.assertIn("of size 2,008 (0x7d8)", result.stdout)
        self.assertIn("\n1 allocation uses", result.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
