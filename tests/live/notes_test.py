"""
What an answer about a program of another language does not mean is said, where it is so, and
whatever the command needs to know besides.
"""

import gzip
import lzma
import os
import re
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
# Programs of which there is nothing to note, and what makes them wait. PHP 8.4 keeps a page of
# its own out of cores, which a note says.
ORDINARY = {
    "guile": ["-c", '(display "ready\n") (force-output) (sleep 600)'],
    "luajit": ["-e", 'local ffi = require("ffi") ffi.cdef("int pause(void);") '
               'print("ready") io.stdout:flush() ffi.C.pause()'],
    "node": ["-e", 'console.log("ready"); setTimeout(() => 0, 1e6)'],
    "perl": ["-e", '$| = 1; print "ready\n"; sleep 600'],
    "python3": ["-c", 'import time; print("ready", flush=True); time.sleep(600)'],
    "ruby": ["-e", '$stdout.sync = true; puts "ready"; sleep'],
}
DEBUG_PACKAGE = re.compile(r"heapcore: note: install \S+ for types of .*\n")
KEPT = os.path.join(os.environ["SOURCE_DIR"], "testdata/cores/bookworm-small.core.xz")
OF_LEAKS = ("count leaked", "summarize leaked", "gate")
QUESTIONS = ("info", "summarize leaked", "summarize used", "bill")
OTHERS = ("bill", "count used", "summarize used", "info", "objects", "list modules", "list threads")


def notes(core, command):
    return ask(core, *command.split(), expected=(0, 1, 3)).stderr


def notes_of_all(core, commands):
    """Of one run: a note is said once."""
    return ask(core, *(f"-c{command}" for command in commands), expected=(0, 1, 3)).stderr


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
                self.assertNotIn(note, notes_of_all(core, OF_LEAKS + OTHERS))
                os.remove(core)

    def test_that_no_objects_were_found_is_said_by_each_command_that_says_what_leaked(self):
        for name, (_, note) in INTERPRETERS.items():
            with self.subTest(interpreter=name):
                core = snap(self.start([self.compile(name, text=PLAIN)]), self.path("core"))
                for command in OF_LEAKS:
                    self.assertEqual(notes(core, command).count(note), 1, command)
                os.remove(core)

    def test_of_ordinary_programs_there_is_nothing_to_note(self):
        for name, arguments in ORDINARY.items():
            if not shutil.which(name):
                continue
            with self.subTest(program=name):
                core = self.core_of(name, *arguments)
                said = notes_of_all(core, QUESTIONS)
                self.assertEqual(DEBUG_PACKAGE.sub("", said), "")
                os.remove(core)


class OfAnyCore(LiveTest):
    """Where each must be said, and where it must not."""

    def setUp(self):
        super().setUp()
        self.core = self.path("core")
        with lzma.open(KEPT) as file:
            self.content = file.read()
        with open(self.core, "wb") as file:
            file.write(self.content)

    def test_that_no_language_is_known(self):
        self.assertIn("this process has no objects of a known language",
                      notes(self.core, "objects"))
        self.assertNotIn("no language", notes(self.core, "list used"))

    def test_that_no_compiled_code_is_known(self):
        said = "this process has no runtime whose compiled code is known"
        self.assertIn(said, notes(self.core, "summarize iseqs"))
        self.assertNotIn(said, notes(self.core, "summarize used"))

    def test_what_follows_a_packed_core(self):
        content = gzip.compress(self.content, 1)
        for rest, said in ((b"", False), (b"this is no packed core", True)):
            with open(self.path("core.gz"), "wb") as file:
                file.write(content + rest)
            self.assertEqual(f"what follows the packed core, from byte {len(content)} of its file"
                             in notes(self.path("core.gz"), "count used"), said, rest)

    def test_where_a_packed_core_ends_too_early(self):
        content = gzip.compress(self.content, 1)
        with open(self.path("core.gz"), "wb") as file:
            file.write(content[:len(content) * 3 // 4])
        self.assertRegex(notes(self.path("core.gz"), "count used"),
                         r"the core is packed with gzip, and .* of the packed file: "
                         r"only the [\d,]+ bytes before that are analysed")


if __name__ == "__main__":
    unittest.main()
