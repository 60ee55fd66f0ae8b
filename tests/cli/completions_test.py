"""
Completion of heapcore's command line in bash, zsh and fish.
"""

import os
import shutil
import subprocess
import tempfile
import unittest

from front_end import HEAPCORE, Terminal

FOLDER = os.path.join(os.environ["SOURCE_DIR"], "packaging/completions")
# What is typed, and all that its last word may become.
LINES = {
    "heapcore core.1 summ": ["summarize"],
    "heapcore core.1 count leakr": ["leakroots"],
    "heapcore -q core.1 count leak": ["leaked", "leakroots"],
    "heapcore --chap --form": ["--format"],
    "heapcore --format js": ["json"],
    "heapcore -p 1 summ": ["summarize"],
    "heapcore run --timeo": ["--timeout"],
    "heapcore run --max-growt": ["--max-growth"],
    "heapcore snap --zs": ["--zstd"],
    "heapcore core.1 list used --sort-by retai": ["retained"],
    "heapcore sna": ["snap"],
    "heapcore mcp --no-c": ["--no-content"],
    "heapcore help summ": ["summarize"],
}
BASH = """
source "$1"
COMP_LINE=$2
COMP_POINT=${#2}
_heapcore
printf '%s\\n' "${COMPREPLY[@]}"
"""


class CompletionsTest(unittest.TestCase):
    def setUp(self):
        # Shells find it by its name.
        temporary = tempfile.TemporaryDirectory(prefix="heapcore-")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        os.symlink(HEAPCORE, os.path.join(self.folder, "heapcore"))
        with open(os.path.join(self.folder, "of-mine"), "w", encoding="utf-8"):
            pass
        self.environment = {
            **os.environ, "HOME": self.folder, "TERM": "dumb",
            "PATH": self.folder + ":" + os.environ["PATH"],
        }

    def ask(self, *command):
        run = subprocess.run(command, capture_output=True, text=True,
                             check=True, cwd=self.folder,
                             env=self.environment)
        self.assertEqual(run.stderr, "")
        return run.stdout.split()

    def in_bash(self, line):
        return self.ask("bash", "-c", BASH, "bash", f"{FOLDER}/heapcore.bash",
                        line)

    def test_bash(self):
        for line, words in LINES.items():
            with self.subTest(line):
                self.assertEqual(self.in_bash(line), words)

    def test_bash_breaks_words_at_equals_signs(self):
        self.assertEqual(self.in_bash("heapcore --format=js"), ["json"])

    def test_files_are_left_to_the_shell(self):
        for line in ("heapcore ", "heapcore of", "heapcore diff of",
                     "heapcore run -- of", "heapcore --file of"):
            with self.subTest(line):
                self.assertEqual(self.in_bash(line), [])

    @unittest.skipUnless(shutil.which("fish"), "there is no fish")
    def test_fish(self):
        for line, words in {**LINES, "heapcore of": ["of-mine"]}.items():
            with self.subTest(line):
                self.assertEqual(
                    self.ask("fish", "-c", f"source {FOLDER}/heapcore.fish; "
                             f"complete -C '{line}'"), words)

    @unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
    def test_zsh(self):
        terminal = Terminal([shutil.which("zsh"), "-f"], self.folder,
                            self.environment)
        terminal.command(
            f"fpath+={FOLDER}; autoload -U compinit; "
            "compinit -u -D; PS1='ready''> '", "ready> ")
        for line, words in {**LINES, "heapcore of": ["of-mine"]}.items():
            if len(words) == 1:
                terminal.send(line + "\t")
                terminal.expect(line.rsplit(" ", 1)[0] + " " + words[0])
                terminal.send("\x15")
        terminal.send("exit\n")
        self.assertEqual(terminal.wait(), 0)


if __name__ == "__main__":
    unittest.main()
