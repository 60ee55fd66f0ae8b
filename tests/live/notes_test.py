"""
What an answer about a program of another language does not mean is said, where it is so, and
whatever the command needs to know besides.
"""

import os
import shutil
import unittest

from harness import LiveTest, Skipped, ask, snap

LISP = """
(format t "ready~%")
(finish-output)
(sleep 600)
"""

PLAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *volatile kept;

int main(void)
{
	kept = malloc(100);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
"""

# Interpreters, what makes them wait, and what is said of leaks where no objects are found.
INTERPRETERS = {
    "ruby": ('$stdout.sync = true; $kept = (0..999).map { |i| "text number #{i}" * 9 }; '
             'puts "ready"; sleep', "no pages of its objects were found"),
    "perl": ('$| = 1; our @kept = map { "text number $_" } 0 .. 999; print "ready\\n"; '
             "sleep 600", "no arenas of its values were found"),
}
OF_LEAKS = ("count leaked", "summarize leaked", "gate")
OTHERS = ("bill", "count used", "summarize used", "info", "objects", "list modules", "list threads")


def notes(core, command):
    return ask(core, *command.split(), expected=(0, 1, 3)).stderr


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

    def test_objects_that_are_found_are_not_said_to_be_missing(self):
        for name, (script, note) in INTERPRETERS.items():
            with self.subTest(interpreter=name):
                core = self.core_of(name, "-e", script)
                for command in OF_LEAKS + OTHERS:
                    self.assertNotIn(note, notes(core, command), command)
                os.remove(core)

    def test_that_no_objects_were_found_is_said_by_each_command_that_says_what_leaked(self):
        for name, (_, note) in INTERPRETERS.items():
            with self.subTest(interpreter=name):
                core = snap(self.start([self.compile(name, text=PLAIN)]), self.path("core"))
                for command in OF_LEAKS:
                    self.assertEqual(notes(core, command).count(note), 1, command)
                os.remove(core)


if __name__ == "__main__":
    unittest.main()
