"""
What tests of PHP share: programs that say what the engine knows of them, and cores of them.
"""

import shutil
import unittest

import harness

# Nothing is allocated once usage is asked for, or it is freed again.
SAY = """
echo "usage ", memory_get_usage(), "\\n", "real ", memory_get_usage(true), "\\n", "ready\\n";
sleep(600);
"""


@unittest.skipUnless(shutil.which("php"), "there is no php")
class PhpTest(harness.LiveTest):
    """A test with cores of programs in PHP, one of each text."""

    def core_of(self, text, **variables):
        """A core of the program, and the numbers that it said, by the word before them."""
        script, core = self.path("program.php"), self.path("core")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"<?php\n{text}\n{SAY}")
        process = self.start(["php", "-n", script], **variables)
        harness.snap(process, core)
        harness.end(process)
        return core, harness.places_said(process)
