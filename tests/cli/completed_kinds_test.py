"""
Classes and types that the prompt completes.
"""

import os
import tempfile
import unittest

import harness
import session_test
from front_end import CONTROL_D, HEAPCORE, Terminal

PROMPT = "heapcore> "
# Which are more than are shown, all of a long common prefix.
MANY = 400


class CompletedTest(unittest.TestCase):
    """A prompt in a folder of its own."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="heapcore-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = temporary.name

    def start(self, *words):
        environment = {**os.environ, "HOME": self.folder, "TERM": "xterm", "PAGER": "cat",
                       "XDG_STATE_HOME": self.folder, "INPUTRC": "/dev/null"}
        self.terminal = Terminal([HEAPCORE, *words], self.folder, environment)
        self.addCleanup(self.leave)
        self.terminal.expect(PROMPT)

    def leave(self):
        self.terminal.send(CONTROL_D)
        self.terminal.wait()

    def complete(self, typed):
        """What the line has become."""
        self.terminal.command(typed)
        path = os.path.join(self.folder, "heapcore/history")
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()[-1].rstrip()


class CompletedKindsTest(CompletedTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dumps = session_test.Dumps()
        cls.addClassCleanup(cls.dumps.close)

    def test_classes_are_completed_behind_a_set(self):
        self.start(self.dumps.find("program", "examples"))
        for typed, line in (
                ("count used app::Ses\t", "count used app::Session"),
                ("count used APP::ses\t", "count used app::Session"),
                ("count used \"app::Ses\t", "count used \"app::Session\""),
                ("count used and free app::Ses\t", "count used and free app::Session"),
                ("let mine = used app::Ses\t", "let mine = used app::Session"),
                ("count used app::Session app::Ses\t", "count used app::Session app::Ses"),
                ("count app::Ses\t", "count app::Ses")):
            with self.subTest(typed):
                self.assertEqual(self.complete(typed), line)

    def test_types_are_completed_once_they_were_read(self):
        # The first screen reads them.
        self.start("-q", self.dumps.find("program", "typed"))
        self.assertEqual(self.complete("count used custo\t"), "count used custo")
        self.terminal.command("summarize used")
        self.assertEqual(self.complete("count used custo\t"), "count used customer")

    def test_of_too_many_only_what_they_begin_with(self):
        source = os.path.join(self.folder, "crowd.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <cstdio>\n#include <unistd.h>\nnamespace crowd {\n")
            for number in range(MANY):
                file.write(f"struct Member{number} {{ virtual ~Member{number}(); }};\n"
                           f"Member{number}::~Member{number}() {{}}\n")
            file.write("}\nint main() { puts(\"ready\"); fflush(stdout); pause(); }\n")
        program = harness.build(os.path.join(self.folder, "crowd"), "g++", "-O0", source)
        with harness.started([program]) as process:
            core = harness.gcore(process, self.folder)
        self.start(core)
        self.assertEqual(self.complete("count used cro\t"), "count used crowd::Member")
        # Tab twice would list them, and the prompt come again before the answer.
        self.assertEqual(self.complete("count used crowd::Member39\t0\t"),
                         "count used crowd::Member390")


if __name__ == "__main__":
    unittest.main()
