"""
Every example of the help, the manual and the README is run, as it stands.

What cannot be the same in any two cores is replaced: PLACES tells what by
what. The commands of one block are run on top of each other, as a reader would
type them. An example is wrong if heapcore complains, shows nothing, or shows
that there is nothing of the kind.
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import harness
import session_test

SOURCE_DIR = os.environ["SOURCE_DIR"]
HEAPCORE = os.environ["HEAPCORE"]
CORE = "core.4711"
TIMEOUT = 120

# What is made up in examples; the command whose output has it instead, in which
# place there, and what is to be added.
PLACES = {
    "55d0c0ffee10": ("enumerate used app::Session and anchored", 9, 0),
    "55d0c0ffee18": ("enumerate used app::Session and anchored", 9, 8),
    "55d0c0ffee40": ("enumerate used %LongString", 0, 0),
    "55bd4cec3ca0": ("list used app::Session", 0, 0),
    "7ffd1c0a2000": ("enumerate stacks", -1, 0x10000),
}

# They have no output of their own, or none where there is no prompt.
SILENT = {"redirect", "quit", "exit", "history"}
# What this core has none of: a collector, an interpreter, fibers, what gcore leaves
# out, and what the compiler decides.
EMPTY = re.compile(r"collectable|likelyheld|lostcount|iseqs|unswept|garbage|atrisk|inaccessible|fibers"
                   r"|registeranchor|integeranchor|kernelanchor|^objects\b|# none")
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|\.\.\.")
BLOCK = re.compile(r"^Examples?:\n\n?((?: {4}.*\n?)+)", re.MULTILINE)
TYPED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")

RUBY = "Ruby: ObjectSpace and mwrap"
# As in the article on hidden leaks: blocks that no object knows, and methods that stay.
HIDDEN_LEAKS = """
require "fiddle"
def leak_memory
  pointers = Array.new(2000) { Fiddle.malloc(1024) }
  1000.times { Fiddle.free(pointers.pop) }
end
module BigModule; end
2000.times { |i| BigModule.module_eval("def generated_#{i}; [1].each { |n| n }; end") }
leak_memory
GC.start
puts "ready"
$stdout.flush
$stdin.gets
"""
# As in the thread on the memory of Crystal's backtraces.
BACKTRACE = """
begin
  raise "x"
rescue error
  error.backtrace
end
puts "ready"
STDOUT.flush
STDIN.gets
"""


def heapcore(*arguments, **options):
    return subprocess.run(
        [HEAPCORE, "--quiet", *arguments], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, errors="backslashreplace",
        timeout=TIMEOUT, check=False, **options,
    )


def read(path):
    with open(os.path.join(SOURCE_DIR, path), encoding="utf-8") as file:
        return file.read()


def help_on(*words):
    run = heapcore("help", *words)
    if run.returncode != 0 or run.stderr:
        raise AssertionError(f"help {words}: {run.stderr}")
    return run.stdout


def without_comment(line):
    return re.sub(r"\s+#.*", "", line)


def blocks_of(text):
    """The commands of each list of examples in a text."""
    return [[line.strip() for line in block.splitlines()]
            for block in BLOCK.findall(text)]


def commands():
    return set(re.findall(r"^### ([a-z0-9]+)", manual(), re.MULTILINE))


def manual():
    return heapcore("--manual", "markdown").stdout


def typed_in(text):
    """The commands that are quoted within sentences, or behind a prompt."""
    verbs = commands()
    typed = TYPED.findall(text) + re.findall(r"heapcore> (.*)", text)
    return [line for line in typed
            if line.split()[0] in verbs and " " in line
            and not PLACEHOLDER.search(re.sub(r"'.*?'", "", line))]


def in_place_of_others():
    """The commands in the right column of the tables of docs/peers.md, by section."""
    sections = {}
    for section in read("docs/peers.md").split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        _, found, table = text.partition("| there | here |\n")
        if found:
            rows = table.split("\n\n")[0].splitlines()[1:]
            sections[heading] = [command for row in rows
                                 for command in re.findall(r"`(.*?)`", row.rsplit(" | ", 1)[1])]
    return sections


class ExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.checked = set()
        cls.dumps = session_test.Dumps()
        cls.addClassCleanup(cls.dumps.close)
        folder = tempfile.TemporaryDirectory(prefix="heapcore-examples-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.core = os.path.join(cls.folder, CORE)
        core = cls.dumps.find("program", "examples")
        os.symlink(core, cls.core)
        os.symlink(core + session_test.OLDER,
                   os.path.join(cls.folder, "older.core"))
        os.mkdir(os.path.join(cls.folder, "cores"))
        os.symlink(core, os.path.join(cls.folder, "cores", "core.1"))
        cls.write("leaks.heapcore", "count leaked\n")
        cls.write("SCRIPT", "count leaked\n")
        cls.write("leaks.json", '{"heapcore-baseline": 1, "leaks": []}\n')
        shutil.copy("/bin/true", os.path.join(cls.folder, "mytest"))
        cls.write("server", "#!/bin/sh\nexec sleep 600\n")
        os.chmod(os.path.join(cls.folder, "server"), 0o755)
        cls.places = {place: cls.find_place(*how)
                      for place, how in PLACES.items()}
        threads = heapcore(cls.core, "backtrace").stdout
        cls.thread = re.search(r"Thread (\d+)", threads).group(1)

    @classmethod
    def write(cls, name, text):
        with open(os.path.join(cls.folder, name), "w",
                  encoding="utf-8") as file:
            file.write(text)

    @classmethod
    def find_place(cls, command, number, offset):
        run = heapcore(cls.core, *command.split())
        found = re.findall(r"(?m)^(0x[0-9a-f]+)$|signature (0x[0-9a-f]+)",
                           run.stdout)
        return f"{int(''.join(found[number]), 16) + offset:x}"

    def fill_in(self, line):
        for place, real in self.places.items():
            line = line.replace(place, real)
        return re.sub(r"(backtrace|thread) 4711", rf"\1 {self.thread}", line)

    def run_on_core(self, lines):
        """Run the last line, behind those that it may depend on."""
        arguments = []
        for line in lines[:-1]:
            line = without_comment(line)
            if "|" in line or re.search(r"\s>>?\s", line):
                arguments += ["-c", line]
            elif session_test.is_remembered(line):
                arguments += ["-c", f"{line} > /dev/null"]
        return heapcore(*arguments, "-c", lines[-1], self.core,
                        cwd=self.folder)

    def check_block(self, lines):
        """The manual has the examples of the help: each is run once."""
        if tuple(lines) in self.checked:
            return
        self.checked.add(tuple(lines))
        lines = [self.fill_in(line) for line in lines]
        for i, line in enumerate(lines):
            with self.subTest(line):
                self.check_run(self.run_on_core(lines[:i + 1]), line)

    def check_run(self, run, line):
        # The gate fails where there are more leaks than allowed, doctor where the machine has a limit.
        said, failed = re.subn(r"(?m)^heapcore: (the gate failed .*|\d+ of the checks found a limit)\n",
                               "", run.stderr)
        may_fail = line.split()[0] in ("gate", "doctor")
        self.assertEqual(said if may_fail else run.stderr, "", line)
        self.assertEqual(run.returncode, failed if may_fail else 0, line)
        target = re.search(r"\s>>? *(\S+)", without_comment(line))
        if target:
            with open(os.path.join(self.folder, target.group(1)),
                      encoding="utf-8") as file:
                self.assertTrue(file.read(), f"{line}: wrote nothing")
        elif line.split()[0] not in SILENT:
            self.assertTrue(run.stdout.strip(), f"{line}: no output")
        if not EMPTY.search(line):
            self.assertNotRegex(run.stdout, r"(?m)^0 ", line)

    def test_examples_in_the_help_run(self):
        words = commands() | set(re.findall(
            r"^- `([a-z0-9]+)", help_free_sets(), re.MULTILINE))
        self.assertGreater(len(words), 40)
        for word in sorted(words):
            blocks = blocks_of(help_on(word))
            self.assertTrue(blocks, f"help {word} has no example")
            for lines in blocks:
                self.check_block(lines)

    def test_examples_in_the_manual_run(self):
        text = manual()
        blocks = blocks_of(text)
        self.assertGreater(len(blocks), 20)
        for lines in blocks:
            self.check_block(lines)
        for line in sorted(set(typed_in(text))):
            self.check_block(self.with_names(line))

    def test_commands_in_the_readme_run(self):
        # Its transcripts are for tutorial_test.
        lines = typed_in(re.sub("heapcore> .*", "", read("README.md")))
        self.assertGreater(len(lines), 3)
        for line in lines:
            line = re.sub(r"\b55[0-9a-f]{10}\b", "55d0c0ffee10", line)
            self.check_block(self.with_names(line))

    def run_in_place(self, line, core, process):
        """Run a command of docs/peers.md: at the prompt, or with heapcore in front of it."""
        line = self.fill_in(line)
        if line.startswith("heapcore "):
            line = line.replace("--fork 4711", f"--fork -o forked {process.pid}")
            run = heapcore(*line.split()[1:], cwd=self.folder)
        else:
            run = heapcore("-c", line, core, cwd=self.folder)
        failed = line.startswith("gate ") and run.returncode == 1
        self.assertTrue(failed or run.returncode in (0, 3), f"{line}: {run.stderr}")
        return run.stdout

    def check_peers(self, sections, core):
        with harness.ended(harness.launch(["sleep", "600"])) as process:
            for line in [line for section in sections for line in section]:
                with self.subTest(line):
                    self.run_in_place(line, core, process)

    def test_commands_in_place_of_other_tools_run(self):
        sections = in_place_of_others()
        del sections[RUBY]
        self.assertGreater(sum(map(len, sections.values())), 30)
        self.check_peers(sections.values(), self.core)

    def test_commands_in_place_of_those_of_ruby_run(self):
        core = self.core_of_ruby()
        self.check_peers([in_place_of_others()[RUBY]], core)
        # The two leaks of the article. A word on the stack may still lead to the blocks' Array.
        self.assertRegex(heapcore(core, "info").stdout, r"(1,000|9\d\d) +(of )?1,032 bytes")
        self.assertRegex(heapcore(core, "summarize", "iseqs").stdout,
                         r"(?m)^2,000 +[\d,]+  generated_N +BigModule")

    def core_of_ruby(self):
        if not shutil.which("ruby"):
            self.skipTest("Ruby is not installed")
        return self.core_when_ready("ruby", "-e", HIDDEN_LEAKS)

    def core_when_ready(self, *command):
        with harness.ended(harness.launch(list(command))) as process:
            harness.wait_for_line(process, "ready")
            return self.dumps.take_core(process)

    def test_memory_of_a_backtrace_of_crystal_has_its_holder(self):
        if not shutil.which("crystal"):
            self.skipTest("Crystal is not installed")
        program = harness.build_crystal(os.path.join(self.folder, "backtrace"), BACKTRACE)
        said = heapcore(self.core_when_ready(program), "info").stdout
        self.assertRegex(said, r"Exception::CallStack::.* Array\(Crys.*Row\)")

    @staticmethod
    def with_names(line):
        """Sentences may speak of a set that was named elsewhere."""
        return ["let big = used --min-size 1K", line] \
            if re.search(r"\bbig\b", line) else [line]

    def test_command_lines_in_the_readme_and_the_manual_run(self):
        path = os.path.dirname(HEAPCORE) + os.pathsep + os.environ["PATH"]
        lines = [re.split(r"\s{2,}", line.strip())[0] for line in
                 re.findall(r"(?m)^ {4}(?:\$ )?(heapcore .*)",
                            read("README.md") + manual())]
        self.assertGreater(len(lines), 5)
        sleeper = self.sleep(TIMEOUT)
        for line in lines:
            if "[" in line:
                continue
            line = self.fill_in(re.sub(r"\bCORE\b", CORE, line))
            # watch waits until the process has ended.
            process = self.sleep(1) if line.startswith("heapcore watch") else sleeper
            line = re.sub(r"\bPID\b", str(process.pid), line)
            line = re.sub(r"\bCMD\b", "true", line)
            with self.subTest(line):
                run = subprocess.run(
                    line, shell=True, capture_output=True, text=True,
                    stdin=subprocess.DEVNULL, cwd=self.folder,
                    timeout=TIMEOUT, check=False,
                    env={**os.environ, "PATH": path},
                )
                self.check_end(line, run)

    def sleep(self, seconds):
        process = subprocess.Popen(["sleep", str(seconds)])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def check_end(self, line, run):
        """`run` reports where messages go; the core has leaks."""
        if line.startswith("heapcore run "):
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("Gate passed", run.stderr)
        elif " gate" in line:
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn("the gate failed", run.stderr)
        elif re.match(r"heapcore (snap|-p|fleet|soak|watch) ", line):
            # A message says how long the process stood still, how many cores there are, or what grows.
            self.assertEqual(run.returncode, 0, run.stderr)
        else:
            self.assertEqual((run.returncode, run.stderr), (0, ""))


def help_free_sets():
    """The list of all sets, in the manual."""
    return manual().partition("Sets of allocations:")[2].partition("\n## ")[0]


class ManualTest(unittest.TestCase):
    def test_commands_md_is_up_to_date(self):
        self.assertEqual(
            read("docs/commands.md"), manual(),
            "docs/commands.md is not what the program says of its commands: "
            "run scripts/docs",
        )

    @unittest.skipUnless(shutil.which("man"), "man is not installed")
    def test_manual_page_is_well_formed(self):
        page = heapcore("--manual", "man").stdout
        with tempfile.NamedTemporaryFile("w", suffix=".1") as file:
            file.write(page)
            file.flush()
            run = subprocess.run(
                ["man", "--warnings", "-l", file.name], capture_output=True,
                text=True, check=True, env={**os.environ, "MANWIDTH": "80"},
            )
        self.assertEqual(run.stderr, "")
        for title in ("NAME", "SYNOPSIS", "OPTIONS", "COMMANDS", "EXIT STATUS",
                      "FILES", "ENVIRONMENT"):
            self.assertRegex(run.stdout, f"(?m)^{title}$")

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_manual_page_passes_mandoc(self):
        run = subprocess.run(
            ["mandoc", "-Tlint", "-Wwarning"], capture_output=True, text=True,
            input=heapcore("--manual", "man").stdout, check=False,
        )
        # A date would change the page with each build.
        self.assertRegex(run.stdout, r"\A(.*missing date.*\n)?\Z")

    def test_other_forms_are_wrong_usage(self):
        run = heapcore("--manual", "poetry")
        self.assertEqual(run.returncode, 2)
        self.assertIn("poetry", run.stderr)

    def test_lines_of_help_fit_on_a_terminal(self):
        for word in sorted(commands()) + ["sets", "extend", "switches"]:
            for line in help_on(word).splitlines():
                self.assertLessEqual(len(line), 100, f"help {word}: {line}")

    def test_every_topic_and_switch_has_its_help(self):
        listed = help_on().partition("To read more")[2]
        topics = re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)
        self.assertGreater(len(topics), 5)
        for word in topics:
            self.assertGreater(len(help_on(word).splitlines()), 5, word)
        for word in ("--min-size", "/minSize", "min-size", "--extend"):
            self.assertIn("--", help_on(word))


if __name__ == "__main__":
    unittest.main()
