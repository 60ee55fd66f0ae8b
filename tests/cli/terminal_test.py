"""
What a terminal shows: every command of the README, at several widths.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

import examples_test
import session_test

WIDTHS = (60, 80, 132)
ROWS = 24
COLOUR = re.compile("\x1b\\[[0-9;]*m")
NEED_WORDS = ("list", "show", "describe", "explain", "dump")
# What must be whole, to be typed again: it may stand out, alone but for its indentation.
ALONE = re.compile(r" *\S+")


def read_all(terminal):
    text = b""
    while True:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # the program has ended
            break
        if not data:
            break
        text += data
    return text.decode().replace("\r\n", "\n")


def show_colours(width, *arguments, **environment):
    """What a terminal of that width shows."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, width, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "PAGER": "cat", **environment}
    with subprocess.Popen([examples_test.HEAPCORE, *arguments], stdin=end, stdout=end, stderr=end,
                          env=environment, start_new_session=True) as process:
        os.close(end)
        text = read_all(terminal)
        os.close(terminal)
    return process.returncode, text


def show(width, *arguments, **environment):
    """The same without its colours."""
    status, text = show_colours(width, *arguments, **environment)
    return status, COLOUR.sub("", text)


def readme_commands(places):
    """The commands in its table and its text, with addresses that there are."""
    text = examples_test.read("README.md")
    words = re.findall(r"`([a-z][^`\n]*)`", text) + re.findall(r"heapcore> (.*)", text)
    verbs = examples_test.commands() - {"let", "quit", "source", "redirect", "gate"}
    for command in sorted(set(words)):
        verb = command.split()[0]
        if verb not in verbs or (" " not in command and verb in NEED_WORDS):
            continue
        command = re.sub(r"\bADDRESS\b|\b5[56][0-9a-f]{10}\b", places["address"], command)
        yield re.sub(r"\bOLD\b|\bolder\.core\b", places["older"], command)
    for verb in "list", "show", "describe", "explain":
        yield f"{verb} used"
    yield f"dump {places['address']} 0x80 --ascii"


class TerminalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        dumps = session_test.Dumps()
        cls.addClassCleanup(dumps.close)
        cls.core = dumps.find("program", "examples")
        address = examples_test.heapcore(cls.core, "enumerate", "used", "app::Session").stdout
        cls.places = {"address": address.split()[0], "older": cls.core + session_test.OLDER}

    def commands(self):
        return [command.replace("shop::Order", "app::Session").replace("shop::Item", "app::Session")
                for command in readme_commands(self.places)]

    def test_every_command_of_the_readme_fits(self):
        self.assertGreater(len(self.commands()), 15)
        for width in WIDTHS:
            for command in self.commands():
                with self.subTest(width=width, command=command):
                    status, text = show(width, "-q", "-c", command, self.core)
                    self.assertEqual(status, 0, text)
                    self.assertTrue(text.strip())
                    wide = [line for line in text.splitlines()
                            if len(line) > width and not ALONE.fullmatch(line)]
                    self.assertEqual(wide, [])

    def test_nothing_is_lost_between_lines(self):
        """The words are those that a pipe gets, but for sums in units."""
        command = f"explain {self.places['address']}"
        _, shown = show(60, "-q", "-c", command, self.core)
        piped = examples_test.heapcore("-c", command, self.core).stdout
        self.assertEqual(re.sub(r" \([\d.]+ .B\)", "", " ".join(shown.split())),
                         " ".join(piped.split()))

    def test_where_a_thread_is_gives_way_last(self):
        """What it executes matters more than the bounds of its stack."""
        both = ["stack start", "stack end"]
        # glibc 2.41 waits in a function of a longer name.
        for width, left_out in ((60, [both]), (80, [both, ["stack end"]]), (132, [[]])):
            _, text = show(width, "-q", "-c", "list threads", self.core)
            with self.subTest(width=width):
                if width > 60:
                    self.assertIn("PC", text.partition("(left out")[0])
                self.assertIn("in function" if width == 132 else "function", text)
                self.assertIn(re.findall(r"stack (?:start|end)(?=[,;])", text), left_out)

    def test_a_number_stays_with_its_unit(self):
        for width in WIDTHS:
            for command in "summarize used", "bill", "count used":
                _, text = show(width, "-q", "-c", command, self.core)
                self.assertNotRegex(text, r"\d\n *(?:KiB|MiB|bytes?)\b")

    def test_a_list_is_short_and_the_largest_come_first(self):
        _, text = show(80, "-q", "-c", "list used", self.core)
        sizes = [int(size.replace(",", ""))
                 for size in re.findall(r"of size ([\d,]+)", text)]
        self.assertEqual(len(sizes), 20)
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertRegex(text, r"\.\.\. and \d+ more allocations \(--all\)\.\n")
        _, text = show(80, "-q", "-c", "list used --limit 3", self.core)
        self.assertEqual(text.count("of size"), 3)

    def test_a_pipe_and_chap_get_everything_in_lines_of_any_length(self):
        count = int(examples_test.heapcore(
            self.core, "count", "used").stdout.split()[0])
        piped = examples_test.heapcore(self.core, "list", "used").stdout
        _, chap = show(60, "-q", "--chap", "-c", "list used", self.core)
        self.assertEqual(piped.count("of size"), count)
        self.assertEqual(chap.count("of size"), count)

    def test_a_long_message_fits(self):
        _, text = show(60, "-q", self.core, "count", "used", "--sort-by", "retained",
                       "--skip-tainted-references")
        self.assertGreater(text.count("\n"), 1)
        self.assertLessEqual(max(map(len, text.splitlines())), 60)

    def test_a_pager_gets_what_the_terminal_shows(self):
        pager = {"PAGER": "sed s/^/paged:/"}
        lines = show(80, "-q", "-c", "list used --limit 2", self.core)[1].splitlines()
        _, text = show(80, "-q", "-c", "list used --limit 2", self.core, **pager)
        self.assertEqual(text.splitlines(), ["paged:" + line for line in lines])
        for words in (["--no-pager", "-c", "count used"], ["-c", "count used | cat"]):
            self.assertNotIn("paged:", show(80, "-q", *words, self.core, **pager)[1])
        self.assertNotIn("paged:", examples_test.heapcore(self.core, "count", "used").stdout)

    def test_a_pager_that_is_left_early_is_no_error(self):
        status, text = show(80, "-q", "-c", "show used --limit 1000", self.core,
                            PAGER="head -n 1")
        self.assertEqual((status, text.count("\n")), (0, 1), text)

    def test_kinds_and_outcomes_have_colours(self):
        kind = re.escape("\x1b[36mapp::Session\x1b[0m")
        gate = ("-q", "-c", "gate --max-leaked 1000000", self.core)
        self.assertRegex(show_colours(80, "-q", "-c", "summarize used", self.core)[1], kind)
        self.assertIn("\x1b[32mpassed\x1b[0m", show_colours(80, *gate)[1])
        self.assertNotIn("\x1b", show_colours(80, *gate, NO_COLOR="1")[1])
        self.assertNotIn("\x1b", show_colours(80, "--color=never", *gate)[1])
        self.assertNotIn("\x1b", examples_test.heapcore(self.core, *gate[1:3]).stdout)

    def test_bars_are_of_blocks_where_the_terminal_has_them(self):
        for locale, bar in (("C.UTF-8", "\u2588"), ("C", "#")):
            _, text = show(80, "-q", "-c", "bill", self.core, LC_ALL=locale)
            self.assertRegex(text, f"resident\n(?:.*\n)*.* {bar}+")
        piped = examples_test.heapcore(self.core, "-c", "bill").stdout
        self.assertNotIn("\u2588", piped)

    def test_sums_are_in_units_too(self):
        self.assertRegex(show(80, "-q", "-c", "count used", self.core)[1],
                         r"\A\d+ allocations use [\d,]+ bytes \([\d.]+ KiB\)\.\n\Z")


if __name__ == "__main__":
    unittest.main()
