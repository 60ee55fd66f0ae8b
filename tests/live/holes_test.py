"""
A core that is nearly all holes is read in no time.

The program reserves 128 GB and touches one page of it. The kernel writes a core of
that size, of which the disk holds some hundred kilobytes.
"""

import os
import resource
import subprocess
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
        commands = ["list leaked", "summarize used", "explain used", "bill", "waste", "gate"]
        words = [word for command in commands for word in ("-c", command)]
        # To read 128 GB of zeros takes a minute of processor time.
        result = subprocess.run(
            [harness.HEAPCORE, *words, core], capture_output=True, text=True, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (30, 30)))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("of size 2,008 (0x7d8)", result.stdout)
        self.assertIn("\n1 allocation uses", result.stdout)
        self.assertIn("Gate failed: 1 allocation leaked (2,008 bytes)", result.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
