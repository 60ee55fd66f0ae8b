"""
What a core says never reaches a terminal raw, and with --no-content its
contents reach no report at all: every command, in every format.
"""

import os
import subprocess
import tempfile
import unittest

import harness

HEAPCORE = os.environ["HEAPCORE"]
SOURCE_DIR = os.environ["SOURCE_DIR"]
PROGRAM = os.path.join(SOURCE_DIR, "tests/cli/programs/secrets.cpp")
FORMATS = ("text", "csv", "tsv", "markdown", "json", "ndjson")
GATE_FORMATS = ("junit", "sarif")
EXPORTS = ("dot", "folded", "heapsnapshot", "heaptrack", "svg")
SECRET = "hunter2-Zq9x"
TIMEOUT = 300

# What stands in place of the program's names, made as long.
HOSTILE = {
    b"HOSTILE_NAME_MARKER": b"\x1b[31mX\xe2\x80\xae\xc2\x9b\x7f\x07\r\xff",
    b"HOSTILE_CALL_MARKER": b"\x1b]0;gone\x07\n\xe2\x81\xa6=\xd8\x9c",
}
BIDIRECTIONAL = {0x61c, 0x200e, 0x200f, *range(0x2028, 0x202f),
                 *range(0x2066, 0x206a)}


def is_harmful(character):
    code = ord(character)
    return (code < 0x20 and character not in "\n\t" or 0x7f <= code < 0xa0
            or code in BIDIRECTIONAL)


def verbs():
    for name in sorted(os.listdir(os.path.join(SOURCE_DIR, "cli/commands"))):
        if name.endswith(".c"):
            yield name[:-2]


class Place:
    """A program that holds a secret, and its core."""

    def __init__(self, folder, hostile):
        program = harness.build(os.path.join(folder, "program"), "c++", "-g", "-O0", PROGRAM)
        core = os.path.join(folder, "core")
        if hostile:
            with open(program, "rb") as file:
                image = file.read()
            for marker, name in HOSTILE.items():
                assert marker in image
                image = image.replace(marker, name.ljust(len(marker), b"A"))
            program = os.path.join(folder, "pro\x1b[31m\u202egram\n\x7f")
            core = os.path.join(folder, "co\x1b[31m\u202ere\n\x7f")
            with open(program, "wb") as file:
                file.write(image)
            os.chmod(program, 0o755)
        secret = "\x1b[31m\u202e\x9b\n" if hostile else SECRET
        environment = harness.environment(SECRET=secret)
        with harness.ended(harness.launch([program],
                                          env=environment)) as process:
            self.text, self.holder = process.stdout.readline().split()
            harness.snap(process, core)
        self.core = core

    def commands(self):
        """Each verb with what it may take; what fails tells something, too."""
        for verb in verbs():
            if verb in ("exit", "quit", "source", "redirect"):
                continue
            for words in ("", "used", "leaked", self.text, self.holder,
                          f"{self.holder} 100", f"{self.text} 64 --ascii",
                          "stacks", "writable", "used --sort-by bytes",
                          "used --annotate *.*", "threads"):
                yield f"{verb} {words}"
        yield "show used --ascii"
        yield "gate --verbose"
        for name in EXPORTS:
            yield f"export {name} allocations"

    def run(self, *options, commands=None, **environment):
        words = [f"--command={line}" for line in commands or self.commands()]
        run = subprocess.run([HEAPCORE, *options, *words, self.core],
                             stdin=subprocess.DEVNULL, capture_output=True,
                             env={**os.environ, **environment}, timeout=TIMEOUT)
        return run.stdout + run.stderr


class HostileTextTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="heapcore-")
        cls.addClassCleanup(folder.cleanup)
        cls.place = Place(folder.name, True)

    def check(self, output):
        text = output.decode("utf-8")
        text = text.replace("\r\n", "\n")  # as csv has it
        for line in text.split("\n"):
            harm = [character for character in line if is_harmful(character)]
            self.assertEqual(harm, [], ascii(line[:200]))

    def test_the_names_are_there(self):
        output = self.place.run(commands=["summarize leaked", "backtrace"])
        self.assertIn(rb"\x1b[31mX", output)
        self.assertIn(rb"\x1b]0;gone", output)

    def test_no_command_writes_them_raw(self):
        for name in FORMATS:
            with self.subTest(format=name):
                self.check(self.place.run("--format", name))
        for name in GATE_FORMATS:
            with self.subTest(format=name):
                self.check(self.place.run("--format", name, commands=["gate"]))

    def test_github_gets_none_of_them_raw(self):
        output = self.place.run(commands=["gate"], GITHUB_ACTIONS="true")
        annotations = [line for line in output.splitlines() if line.startswith(b"::error")]
        self.assertTrue(any(rb"\x1b[31mX" in line for line in annotations), annotations)
        self.check(output)

    def test_no_mistake_is_repeated_raw(self):
        evil = "\x1b[31m\u202e\u009b\x7f"
        mistakes = [f"{verb} {words}" for verb in verbs() for words in (
            f'"{evil}"', f'used "{evil}"', f'--limit "{evil}"',
            f'--{evil}', f'used "%{evil}"')
            if verb not in ("exit", "quit", "redirect")]
        self.check(self.place.run(commands=[*mistakes, evil, f"let {evil} ="]))
        self.check(self.place.run("--format", "json",
                                  commands=[f'count used "{evil}"']))
        self.check(self.place.run("--format", evil, commands=["count used"]))
        for option in ("-o", "--sysroot", "--threads", "--max-memory",
                       "--color", "--coredumpctl", "-p"):
            self.check(self.place.run(option, evil + ".what",
                                      commands=["count used"]))
        run = subprocess.run([HEAPCORE, self.place.core, "-c" + evil],
                             stdin=subprocess.DEVNULL, capture_output=True,
                             check=False, timeout=TIMEOUT)
        self.check(run.stderr)


class NoContentTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="heapcore-")
        cls.addClassCleanup(folder.cleanup)
        cls.place = Place(folder.name, False)
        secret = SECRET.encode()
        cls.forms = [secret, secret.hex().encode()] + [
            b"%x" % int.from_bytes(secret[i:i + 8], "little")
            for i in range(len(secret) - 7)]

    def forms_in(self, output):
        return [form for form in self.forms if form in output]

    def test_contents_are_shown_without_it(self):
        for command in ("show used --ascii", f"dump {self.place.text} 16",
                        f"string {self.place.text}",
                        "list used --annotate *.*"):
            with self.subTest(command=command):
                output = self.place.run(commands=[command])
                self.assertNotEqual(self.forms_in(output), [])

    def test_no_command_shows_contents_with_it(self):
        for name in FORMATS:
            with self.subTest(format=name):
                output = self.place.run("--no-content", "--format", name)
                self.assertEqual(self.forms_in(output), [])
                self.assertIn(b"(content left out)",
                              output.replace(b"\\", b""))
        for name in GATE_FORMATS:
            output = self.place.run("--no-content", "--format", name,
                                    commands=["gate"])
            self.assertEqual(self.forms_in(output), [])

    def test_no_export_has_contents(self):
        for name in EXPORTS:
            with self.subTest(format=name):
                output = self.place.run("--no-content", commands=[f"export {name}"])
                self.assertNotIn(b"heapcore:", output)
                self.assertEqual(self.forms_in(output), [])

    def test_what_only_looks_for_contents_is_refused(self):
        for command in (f"findbytes --text {SECRET}", "find32 12345678"):
            output = self.place.run("--no-content", commands=[command])
            self.assertIn(b"--no-content leaves out", output)
            self.assertEqual(self.forms_in(output), [])

    def test_classes_and_functions_are_no_contents(self):
        output = self.place.run("--no-content", commands=[
            "summarize leaked", "backtrace"])
        self.assertIn(b"HOSTILE_NAME_MARKER", output)
        self.assertIn(b"HOSTILE_CALL_MARKER", output)


if __name__ == "__main__":
    unittest.main()
