"""
A program that is killed inside of malloc, between two words that belong
together: what is said of the heap names that, and not only an overrun.
"""

import glob
import unittest

from harness import INCOMPLETE, LiveTest, ask, kernel_core_obstacle, run
from harness import Skipped, allow_cores


class Torn(LiveTest):
    def test_top_without_its_size(self):
        obstacle = kernel_core_obstacle()
        if obstacle:
            raise Skipped(obstacle)
        program = self.compile("program", "torn_top.c")
        allow_cores()
        self.assertEqual(run(program, cwd=self.folder).returncode, 0)
        core = self.only("core*")
        said = ask(core, "count", "used", expected=(INCOMPLETE,)).stderr
        self.assertIn("the heap is damaged", said)
        self.assertIn("A thread was inside of malloc", said)

    def only(self, pattern):
        (path,) = glob.glob(self.path(pattern))
        return path


if __name__ == "__main__":
    unittest.main()
