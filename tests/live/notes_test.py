"""
What an answer about a program of another language does not mean is said.
"""

import shutil
import unittest

from harness import LiveTest, Skipped, ask, snap

LISP = """
(format t "ready~%")
(finish-output)
(sleep 600)
"""


class Notes(LiveTest):
    def core_of(self, *command):
        if not shutil.which(command[0]):
            raise Skipped(f"there is no {command[0]}")
        return snap(self.start(command), self.path("core"))

    def test_what_ecl_marks_itself_is_said_to_who_wants_no_notes(self):
        script = self.path("script.lisp")
        with open(script, "w", encoding="ascii") as file:
            file.write(LISP)
        core = self.core_of("ecl", "--norc", "--load", script)
        self.assertIn("mark functions of its own",
                      ask("-q", core, "count", "atrisk").stderr)


if __name__ == "__main__":
    unittest.main()
