"""
Each transcript of the README, the tutorial, the tasks, the guide to large processes and the pages of languages
is what a reader would see.

A comment <!-- program: NAME --> names the program of the transcripts below it.
In an indented block, lines that begin with "heapcore> " are commands; what
follows is their output, where a line of ... stands for any lines. Addresses
differ from run to run: each one in the text stands for the one that came out
in its place first. Sums of bytes may differ a little: each glibc makes other
allocations larger than asked for, and each libstdc++ keeps a pool of its own
size for exceptions. The older core of a program is called older.core.

A program pages/NAME is run by its interpreter or compiled, in a folder that is called /srv in the text. Versions of a
language differ in numbers and in what they are made of: any number stands for another one there, any bar for another.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402
import session_test  # noqa: E402

SOURCE_DIR = os.environ["SOURCE_DIR"]
# How many commands each page shows at least.
PAGES = {"docs/tutorial.md": 16, "docs/tasks.md": 10, "docs/large-process.md": 7, "README.md": 2}
# The page of each language, and what runs its program or compiles it.
LANGUAGES = {"python": ("py", "python3"), "ruby": ("rb", "ruby"), "perl": ("pl", "perl"), "php": ("php", "php"),
             "node": ("js", "node"), "crystal": ("cr", "crystal"), "rust": ("rs", "rustc"), "java": ("java", "java")}
PROMPT = "heapcore> "
LEAKS = """
#include <stdlib.h>
static char *new_order(int number)
{
	char *order = calloc(1, 40);

	order[0] = (char)number;
	return order;
}
static void check_orders(void)
{
	for (int i = 1; i <= 3; i++)
		new_order(i);
}
static void clear(void)
{
	volatile char stack[65536];
	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = 0;
}
int main(void)
{
	check_orders();
	clear();
	return 0;
}
"""
ADDRESS = re.compile(r"(?<![0-9a-fA-F])(?:0x)?([5-7][0-9a-f]{11})(?![0-9a-f])")

SUM = re.compile(r"(?:0x[0-9a-f]+ ?\()?\b\d{1,3},\d{3}\b")
LITTLE = 1024


def without_numbers(text):
    """Fingerprints and addresses differ."""
    return re.sub(r"\b(0x)?[0-9a-f]{10,}\b", "...", text)


def transcripts(path):
    """[(program, line number, command, lines of output)]."""
    found, program, output = [], None, None
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file.read().splitlines(), 1):
            match = re.fullmatch(r"<!-- program: (.*) -->", line)
            if match:
                program = match.group(1)
            if line.startswith("    " + PROMPT):
                output = []
                command = line[4 + len(PROMPT):]
                found.append((program, number, command, output))
            elif line and not line.startswith("    "):
                output = None  # prose
            elif output is not None:
                output.append(line[4:])
    return found


def generalise(line, names):
    """Put wildcards in the place of addresses."""

    def replace(match):
        address = match.group(1)
        prefix = match.group(0)[:-len(address)]
        if address in names:
            return f"{prefix}<{names[address]}>"
        names[address] = f"a{len(names)}"
        return f"{prefix}<hex:{names[address]}>"

    return ADDRESS.sub(replace, line)


def near(actual, expected):
    """The actual lines, with sums of those expected where they are close."""

    def number(text):
        return int(re.search(r"[\d,]+$", text)[0].replace(",", ""))

    def replace(match):
        def distance(text):
            return abs(number(text) - number(match[0]))

        closest = min(sums, key=distance, default=match[0])
        little = min(LITTLE, number(match[0]) // 100)
        return closest if distance(closest) <= little else match[0]

    sums = SUM.findall("\n".join(expected))
    return [SUM.sub(replace, line) for line in actual]


def loose(line):
    """The regular expression of a line whose numbers and bars stand for others."""
    words = (r"[#:.]+" if re.fullmatch(r"[#:.]+", word) else r"(?:0x)?[0-9a-f,.]+".join(
        map(re.escape, re.split(r"0x[0-9a-f]+|\d[\d,.]*", word))) for word in line.split())
    return r"[^\S\n]*" + r"[^\S\n]+".join(words) + "\n"


def matches_loosely(expected, actual):
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else loose(line) for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual))


def without_end(lines):
    """Empty lines at the end separate it from what follows."""
    while lines and lines[-1] == "":
        lines = lines[:-1]
    return lines


class TutorialTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dumps = session_test.Dumps()
        cls.addClassCleanup(cls.dumps.close)

    def check(self, page):
        dumps = self.dumps
        names, known, before = {}, {}, []
        last = None
        shown = transcripts(os.path.join(SOURCE_DIR, page))
        self.assertGreaterEqual(len(shown), PAGES[page])
        for program, number, command, output in shown:
            if program != last:
                names, known, before, last = {}, {}, [], program
            core = dumps.find("program", program)
            command = session_test.fill_in(generalise(command, names), known)
            command = command.replace("older.core",
                                      core + session_test.OLDER)
            actual, messages, _ = session_test.run(core, command, before)
            if session_test.is_remembered(command):
                before.append(command)
            expected = [generalise(line, names)
                        for line in without_end(output)]
            if messages or not session_test.match_lines(
                    expected, near(without_end(actual), expected), known):
                self.fail("\n".join(
                    [f"{page}:{number}: {command}", "--- expected"]
                    + expected + ["--- actual"] + actual + messages))

    def test_tutorial(self):
        self.check("docs/tutorial.md")

    def test_readme(self):
        self.check("README.md")

    def test_tasks(self):
        self.check("docs/tasks.md")

    def test_large_process(self):
        self.check("docs/large-process.md")

    def test_each_task_takes_two_commands_at_most(self):
        with open(os.path.join(SOURCE_DIR, "docs/tasks.md"), encoding="utf-8") as file:
            tasks = file.read().split("\n## ")[1:]
        self.assertEqual(len(tasks), 7)
        for task in tasks:
            count = len(re.findall(r"^    (?:heapcore>|\$) ", task, re.MULTILINE))
            self.assertIn(count, (1, 2), task)

    def language_command(self, source, tool, folder):
        program = os.path.join(folder, "app")
        if tool == "crystal":
            return [harness.build_crystal(program, source.read_text(encoding="utf-8"), "--debug")]
        if tool == "rustc":
            return [harness.build(program, tool, str(source))]
        options = ["-XX:+UseG1GC", "-Xmx256m"] if tool == "java" else []
        return [tool, *options, shutil.copy(source, folder)]

    def check_language(self, page):
        ending, tool = LANGUAGES[page]
        if not shutil.which(tool):
            self.skipTest(f"there is no {tool}")
        folder = tempfile.mkdtemp(dir=self.dumps.folder.name)
        source = pathlib.Path(SOURCE_DIR, f"testdata/programs/pages/app.{ending}")
        with harness.started(self.language_command(source, tool, folder)) as process:
            harness.settle(process)
            core = harness.snap(process, os.path.join(folder, "core"))
        shown = transcripts(os.path.join(SOURCE_DIR, f"docs/{page}.md"))
        self.assertGreaterEqual(len(shown), 1)
        for program, number, command, output in shown:
            self.assertEqual(program, f"pages/app.{ending}")
            actual, messages, _ = session_test.run(core, command)
            actual = [line.replace(folder, "/srv") for line in actual]
            with self.subTest(f"docs/{page}.md:{number}: {command}"):
                self.assertTrue(matches_loosely(without_end(output), actual), "\n".join(actual + messages))

    def check_gate(self, path):
        with open(os.path.join(SOURCE_DIR, path), encoding="utf-8") as file:
            shown = file.read().split("    $ heapcore run")[1].split("\n\n")[0]
        command, *output = f"run{shown}".splitlines()
        folder = self.dumps.folder.name
        with open(f"{folder}/mytest.c", "w", encoding="utf-8") as file:
            file.write(LEAKS)
        subprocess.run(["cc", "-g", "-O0", "-o", "mytest", "mytest.c"], cwd=folder, check=True)
        run = subprocess.run(
            [session_test.HEAPCORE, *command.split()], cwd=folder, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=session_test.TIMEOUT)
        self.assertEqual(run.returncode, 1, run.stderr)
        expected = "\n".join(line[4:] for line in output) + "\n"
        self.assertEqual(without_numbers(run.stderr.replace(f"{folder}/", "")),
                         without_numbers(expected))

    def test_gate_fails_as_shown(self):
        self.check_gate("README.md")


for language in LANGUAGES:
    setattr(TutorialTest, f"test_page_of_{language}", lambda self, page=language: self.check_language(page))

if __name__ == "__main__":
    unittest.main()
