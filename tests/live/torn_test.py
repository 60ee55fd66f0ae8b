"""
A program that ends inside of malloc, between two words that belong together:
what is said of the heap names that, and not only an overrun. One that another
process killed there has done nothing wrong.
"""

import glob
import unittest

from harness import FINE, INCOMPLETE, LiveTest, ask, kernel_core_obstacle, run
from harness import Skipped, allow_cores


class Torn(LiveTest):
    def core_of(self, *words):
        obstacle = kernel_core_obstacle()
        if obstacle:
            raise Skipped(obstacle)
        program = self.compile("program", "torn.c")
        allow_cores()
        self.assertEqual(run(program, *words, cwd=self.folder).returncode, 0)
        (core,) = glob.glob(self.path("core*"))
        return core

    def check_fault(self, what, damage):
        core = self.core_of(what, "fault")
        said = ask(core, "count", "used", expected=(INCOMPLETE,)).stderr
        self.assertIn("the heap is damaged", said)
        self.assertIn(damage, said)
        self.assertIn("A thread was inside of malloc", said)
        self.assertNotIn("from process", ask(core, "describe", "threads",
                                             expected=(INCOMPLETE,)).stdout)

    def check_killed(self, what):
        core = self.core_of(what, "kill")
        said = ask(core, "count", "used", expected=(FINE,)).stderr
        self.assertNotIn("damaged", said)
        self.assertIn("the core was taken while a thread was changing", said)
        self.assertIn("ended by signal 11 from process",
                      ask(core, "describe", "threads").stdout)

    def test_fault_as_top_has_no_size_yet(self):
        self.check_fault("top", "(top)")

    def test_fault_as_a_bin_has_one_link_of_two(self):
        self.check_fault("bin", "unsorted bin")

    def test_killed_as_top_has_no_size_yet(self):
        self.check_killed("top")

    def test_killed_as_a_bin_has_one_link_of_two(self):
        self.check_killed("bin")


if __name__ == "__main__":
    unittest.main()
