#!/usr/bin/env python3
"""
Real programs, and what their allocations are called: names that people would
use, and none that is made up of numbers that look like addresses.
"""

import shutil
import unittest

from harness import LiveTest, addresses, ask, number, snap

RUBY = """
require "objspace"
$made = (1..1000).map { |i| eval "lambda { |x| x + #{i} }" }
2.times { GC.start }
puts ObjectSpace.count_imemo_objects[:imemo_iseq], "ready"
$stdout.flush
sleep
"""


class NamesTest(LiveTest):
    def core(self, *command):
        """The core of a program that says when it is ready."""
        process = self.start(command)
        return process.said, snap(process, self.path("core"))

    @unittest.skipUnless(shutil.which("ruby"), "no ruby")
    def test_code_of_ruby_is_no_signature(self):
        said, core = self.core("ruby", "-e", RUBY)
        found = addresses("-q", core, "enumerate", "used",
                          "%RubyInstructions")
        self.assertEqual(len(found), number(said[0]))
        text = ask("-q", core, "describe", f"{min(found):x}").stdout
        self.assertIn("It is the instructions of the iseq at 0x", text)
        self.assertRegex(text, r", which has \d+ words")


if __name__ == "__main__":
    unittest.main()
