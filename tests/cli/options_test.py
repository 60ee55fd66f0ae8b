"""
The command line, commands that do not come from a prompt, and the exit status.
"""

import os
import re
import signal
import stat
import struct
import unittest

import front_end

FINE, WRONG_USAGE, NOT_ANALYSED, INTERRUPTED = 0, 2, 3, 130
COUNT = re.compile(r"[\d,]+ allocations use [\d,]+ bytes\.\n")
PIPE_BUFFER = 65536


def elf_header(kind, machine):
    """A 64-bit ELF header without anything behind it."""
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    return identity + struct.pack(
        "<HHIQQQIHHHHHH", kind, machine, 1, 0, 0, 0, 0, 64, 56, 0, 64, 0, 0
    )


class FrontEndTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = front_end.Workplace()
        cls.addClassCleanup(cls.place.close)

    def run_heapcore(self, status, *arguments, **options):
        run = self.place.run(*arguments, **options)
        self.assertEqual(run.returncode, status, run.errors + run.output)
        return run

    def check_error(self, status, message, *arguments, **options):
        """It fails with that message, and nothing else."""
        run = self.run_heapcore(status, *arguments, **options)
        self.assertRegex(run.errors, message)
        self.assertEqual(run.output, "")


class MaximumMemoryTest(FrontEndTest):
    def test_what_needs_more_fails_and_the_rest_still_works(self):
        """The smallest limit that counting can do with, or nearly."""
        limit = 1 << 16
        while self.place.run(f"--max-memory={limit // 1024}K",
                             self.place.core, "count", "used").returncode:
            limit += 1 << 16
        run = self.run_heapcore(
            NOT_ANALYSED, f"--max-memory={limit // 1024}K",
            "-c", "summarize leaked", "-c", "count used", self.place.core)
        self.assertRegex(run.output, COUNT)
        self.assertRegex(
            run.errors,
            r"out of memory in the stage '\w+': [\d,]+ bytes more were needed "
            rf"beside the [\d,]+ in use; the limit is {limit:,}")

    def test_a_limit_that_is_none_is_wrong_usage(self):
        self.check_error(WRONG_USAGE, "'lots' is not a size",
                         "--max-memory=lots", self.place.core)
        self.check_error(WRONG_USAGE, "--max-memory", "--max-memory=0",
                         self.place.core)


class OptionsTest(FrontEndTest):
    def test_help_and_version_need_no_core(self):
        help_run = self.run_heapcore(FINE, "--help")
        self.assertIn("summarize leakroots", help_run.output)
        self.assertLess(len(help_run.output.splitlines()), 70)
        version = self.run_heapcore(FINE, "--version")
        self.assertRegex(version.output, r"\Aheapcore \d")

    def test_help_on_commands_needs_no_core(self):
        self.assertIn("summarize", self.run_heapcore(FINE, "help").output)
        run = self.run_heapcore(FINE, "help", "count", "leaked")
        self.assertIn("--min-size", run.output)
        self.assertIn("leaked", run.output)
        self.assertIn("leakroots", self.run_heapcore(FINE, "help", "sets").output)
        self.check_error(WRONG_USAGE, "did you mean 'count'", "help", "cuont")
        self.assertIn("'minus'", self.run_heapcore(FINE, "help", "and").output)
        run = self.run_heapcore(FINE, "-c", "let mine = used", "-c",
                                "help mine", "core.1")
        self.assertIn("a set that you named", run.output)
        self.assertIn("--min-size SIZE",
                      self.run_heapcore(FINE, "help", "--min-size").output)

    def test_every_command_and_set_has_its_help(self):
        listed = self.run_heapcore(FINE, "help").output
        sets = self.run_heapcore(FINE, "help", "sets").output
        words = re.findall(r"^  ([a-z]+) ", listed + sets, re.MULTILINE)
        self.assertGreater(len(words), 20)
        for word in words:
            self.assertIn(word, self.run_heapcore(FINE, "help", word).output)

    def test_wrong_options_are_wrong_usage(self):
        self.check_error(WRONG_USAGE, "no core is given")
        self.check_error(WRONG_USAGE, "frobnicate", "--frobnicate", "core.1")
        self.check_error(WRONG_USAGE, "--color: 'sometimes' is not 'auto'", "--color=sometimes", "core.1")
        self.check_error(WRONG_USAGE, "no commands", "-t", "core.1", "help")

    def test_no_such_file_is_wrong_usage(self):
        self.check_error(
            WRONG_USAGE, r"\Aheapcore: nothing: No such file", "nothing"
        )
        self.check_error(WRONG_USAGE, "Is a directory", ".")
        self.check_error(WRONG_USAGE, "No such file", "-f", "nothing", "core.1")

    def test_foreign_files_cannot_be_analysed(self):
        self.place.write("empty", b"")
        self.place.write("text", "This is not a core.\n" * 100)
        self.place.write("riscv", elf_header(4, 243))
        self.place.write("bare", elf_header(4, 62))
        self.place.write("short", b"\x7fELF\x02\x01")
        for name in ("empty", "text", "riscv", "short", "many", "bare"):
            with self.subTest(name):
                run = self.run_heapcore(NOT_ANALYSED, name, "count", "used")
                self.assertIn(name, run.errors)

    def test_shows_no_colours_where_there_is_no_terminal(self):
        run = self.run_heapcore(FINE, "core.1", "list", "leaked")
        self.assertNotIn("\x1b", run.output)


class TruncationTest(FrontEndTest):
    def truncate(self, name, share):
        with open(self.place.core, "rb") as file:
            content = file.read()
        self.missing = len(content) - int(len(content) * share)
        return self.place.write(name, content[: len(content) - self.missing])

    def test_complete_core_is_said_to_be(self):
        run = self.run_heapcore(FINE, "-t", "core.1")
        self.assertIn("complete", run.output)

    def test_missing_bytes_are_told(self):
        name = self.truncate("truncated", 0.9)
        run = self.run_heapcore(NOT_ANALYSED, "-t", name)
        told = int(re.search(r"([\d,]+) bytes are missing", run.output)[1].replace(",", ""))
        # Section headers, which gdb writes behind the memory, are no loss.
        self.assertLess(abs(told - self.missing), 10000)

    def test_truncated_core_is_analysed_as_far_as_possible(self):
        name = self.truncate("truncated", 0.6)
        run = self.run_heapcore(NOT_ANALYSED, name, "count", "used")
        self.assertRegex(run.output, COUNT)
        self.assertIn("heapcore: warning: ", run.errors)
        self.assertIn("answers may be wrong", run.errors)

    def test_cut_headers_cannot_be_analysed(self):
        for share in (0, 0.00001, 0.0001):
            name = self.truncate("headless", share)
            self.run_heapcore(NOT_ANALYSED, name, "count", "used")


class BatchTest(FrontEndTest):
    def test_options_stand_anywhere(self):
        plain = self.run_heapcore(FINE, "-q", "--format", "csv", "core.1", "count", "used")
        for words in (("core.1", "-q", "count", "--format", "csv", "used"),
                      ("core.1", "count", "used", "--format=csv", "--quiet"),
                      ("core.1", "--threads", "1", "count", "used", "--format=csv", "-q"),
                      ("-q", "core.1", "-c", "count used", "--format", "csv")):
            run = self.run_heapcore(FINE, *words)
            self.assertEqual((run.output, run.errors), (plain.output, ""), words)

    def test_option_that_is_unknown_is_an_error_behind_the_core_too(self):
        self.check_error(WRONG_USAGE, "there is no option '--bogus'", "core.1", "--bogus", "count")
        self.check_error(WRONG_USAGE, "'count' has no switch '--bogus'", "core.1", "count", "used",
                         "--bogus")

    def test_without_a_command_and_without_input_there_is_an_overview(self):
        run = self.run_heapcore(FINE, "-q", "core.1")
        self.assertRegex(run.output, r"\A\S*many \(process \d+, 1 thread\)\nCore core\.1: ")
        self.assertRegex(run.output, r"\nHeap: .* allocations; [\d,]+ bytes leaked\n")
        self.assertEqual(self.run_heapcore(FINE, "-q", "core.1", text="let big = used\n").output
                         .count("Core"), 0)

    def test_command_stands_behind_the_core(self):
        run = self.run_heapcore(FINE, "core.1", "count", "used")
        self.assertRegex(run.output, COUNT)
        run = self.run_heapcore(
            FINE, "core.1", "enumerate", "used", "--sort-by", "address",
            "--limit=2",
        )
        self.assertEqual(len(run.output.splitlines()), 2)

    def test_command_may_be_one_argument(self):
        run = self.run_heapcore(FINE, "core.1", "count used | cat -n")
        self.assertRegex(run.output, r"\A +1\t" + COUNT.pattern)

    def test_commands_run_in_the_order_given(self):
        self.place.write("script", "count leaked\n")
        run = self.run_heapcore(
            FINE, "-c", "count stacks", "-f", "script", "-c", "count modules",
            "core.1", "count", "free",
        )
        self.assertRegex(
            run.output, r"(?s)stack.*\n.*allocations.*\n.*module.*\n.*alloc"
        )
        self.assertEqual(len(run.output.splitlines()), 4)

    def test_unknown_words_name_the_nearest(self):
        for words, nearest in (
            ("cuont used", "count"),
            ("count usde", "used"),
            ("count used --sortby-x bytes", "--sort-by"),
            ("count used /minsise 10", "/minsize"),
            ("count used --fromat csv", "--format"),
            ("count used %longstrin", "LongString"),
            ("count used and usde", "used"),
            ("count used minu leaked", "minus"),
            ("list used --sort-by byts", "bytes"),
            ("help extnd", "extend"),
            ("help leakd", "leaked"),
            ("help --min-sise", "min-size"),
            ("help %longstrin", "LongString"),
        ):
            with self.subTest(words):
                self.check_error(
                    WRONG_USAGE, f"did you mean '{nearest}'", "core.1",
                    *words.split(),
                )

    def test_what_is_no_command_may_be_another_word(self):
        self.check_error(WRONG_USAGE, "set, not a command.*'summarize leaked'",
                         "core.1", "leaked")
        self.check_error(WRONG_USAGE, "'help extend'", "core.1", "extend")
        self.check_error(WRONG_USAGE, "put 'and'",
                         "core.1", "count", "used", "leaked")

    def test_batch_goes_on_behind_an_error(self):
        run = self.run_heapcore(
            WRONG_USAGE, "-c", "nonsense", "-c", "count used", "core.1"
        )
        self.assertRegex(run.output, COUNT)
        self.assertIn("nonsense", run.errors)

    def test_wrong_usage_outweighs_what_was_not_analysed(self):
        self.run_heapcore(
            NOT_ANALYSED, "-c", "count used > /dev/full", "core.1"
        )
        self.run_heapcore(
            WRONG_USAGE, "-c", "count used > /dev/full", "-c", "nonsense",
            "-c", "count used > /dev/full", "core.1",
        )

    def test_commands_come_from_standard_input(self):
        run = self.run_heapcore(
            FINE, "core.1", text="# first\n\ncount \\\n used\r\ncount used"
        )
        self.assertRegex(run.output, rf"\A({COUNT.pattern}){{2}}\Z")
        self.run_heapcore(FINE, "core.1", text="")
        self.run_heapcore(FINE, "core.1", text="quit\nnonsense")

    def test_errors_name_the_line(self):
        run = self.run_heapcore(
            WRONG_USAGE, "core.1", text="#\n\ncount \\\n used --zzz\nnonsense"
        )
        first, second = run.errors.splitlines()
        self.assertIn("heapcore: standard input:3: ", first)
        self.assertIn("heapcore: standard input:5: ", second)

    def test_nul_byte_is_an_error(self):
        run = self.run_heapcore(
            WRONG_USAGE, "core.1", text=b"count used\0 foo\ncount used\n"
        )
        self.assertRegex(run.output, rf"\A{COUNT.pattern}\Z")
        self.assertIn("standard input:1: ", run.errors)

    def test_very_long_line_is_an_error_like_another(self):
        run = self.run_heapcore(
            WRONG_USAGE, "core.1", text="x" * 1000000 + "\ncount used\n"
        )
        self.assertRegex(run.output, COUNT)

    def test_verbose_tells_what_stages_took(self):
        run = self.run_heapcore(FINE, "-v", "core.1", "count", "used")
        self.assertRegex(run.errors, r"(?m)^stage +from +wall s +processor s")
        self.assertRegex(run.errors, r"(?m)^total +- +\d")
        self.assertRegex(run.output, rf"\A{COUNT.pattern}\Z")

    def test_answers_do_not_depend_on_threads(self):
        commands = ["summarize leaked", "summarize used", "list leakroots",
                    "list used --sort-by retained --limit 9",
                    "list anchored --limit 99", "waste"]
        text = "\n".join(commands) + "\n"
        outputs = {
            self.run_heapcore(FINE, "--threads", threads, "core.1",
                              text=text).output
            for threads in ("1", "2", "3", "16")
        }
        self.assertEqual(len(outputs), 1)

    def test_verbose_tells_how_work_was_split(self):
        run = self.run_heapcore(FINE, "-v", "--threads", "2", "core.1",
                                "count", "leaked")
        found = re.search(
            r"(?m)^scanning for references +([12]) +([\d,]+) +([\d,]+) ",
            run.errors)
        self.assertIsNotNone(found)
        total, most = (int(found[number].replace(",", ""))
                       for number in (2, 3))
        self.assertGreaterEqual(int(found[1]) * most, total)
        self.assertLessEqual(most, total)

    def test_threads_are_a_number(self):
        for wrong, message in (("0", "0 is not in 1 to 64"),
                               ("many", "'many' is not a count"),
                               ("1000", "1000 is not in 1 to 64")):
            self.check_error(WRONG_USAGE, "--threads: " + message,
                             "--threads", wrong, self.place.core)

    def test_addresses_alone_leave_what_must_be_known_to_notes(self):
        run = self.run_heapcore(
            FINE, "core.1", "enumerate", "used", "--extend", "->",
            "--extend", "->",
        )
        self.assertRegex(run.output, r"\A(0x[0-9a-f]+\n)+\Z")
        self.assertIn("note: the rule '->' adds nothing", run.errors)
        run = self.run_heapcore(FINE, "core.1", "enumerate", "used", "--size", "28")
        self.assertEqual(run.output, "")
        self.assertRegex(run.errors, "note: sizes are decimal. None is 28, but that of the "
                                     "allocation at 0x[0-9a-f]+ is in hexadecimal")

    def test_quiet_shows_no_notes(self):
        run = self.run_heapcore(
            FINE, "-q", "-c", "redirect on", "-c", "count used", "core.1"
        )
        self.assertNotIn("note:", run.errors)
        self.assertNotIn("count_used", run.errors)


class ScriptTest(FrontEndTest):
    def test_sourced_file_names_its_lines(self):
        self.place.write("inner", "\nnonsense\ncount used\n")
        self.place.write("outer", "source inner\nsource nothing\n")
        run = self.run_heapcore(WRONG_USAGE, "core.1", "source", "outer")
        self.assertIn("heapcore: inner:2: ", run.errors)
        self.assertIn("heapcore: outer:2: nothing: No such", run.errors)
        self.assertRegex(run.output, COUNT)

    def test_path_is_no_switch(self):
        path = self.place.path(self.place.write("script", "count used"))
        self.run_heapcore(FINE, "core.1", "source", path)

    def test_nesting_is_bounded(self):
        self.place.write("endless", "source endless\n")
        run = self.run_heapcore(WRONG_USAGE, "core.1", "source", "endless")
        self.assertIn("nested too deep", run.errors)
        self.assertEqual(len(run.errors.splitlines()), 1)

    def test_output_of_a_script_can_be_redirected(self):
        self.place.write("script", "count used\ncount leaked | cat\n")
        run = self.run_heapcore(FINE, "core.1", text="source script > both")
        self.assertRegex(self.place.read("both"), rf"\A{COUNT.pattern}\Z")
        self.assertRegex(run.output, rf"\A{COUNT.pattern}\Z")

    def test_quit_leaves_the_scripts_around_it_too(self):
        self.place.write("script", "quit\nnonsense")
        run = self.run_heapcore(
            FINE, "core.1", text="source script\nnonsense\n"
        )
        self.assertEqual(run.output, "")


class RedirectionTest(FrontEndTest):
    def test_output_goes_to_a_file_for_the_owner_only(self):
        run = self.run_heapcore(FINE, "core.1", text="count used > new\n")
        self.assertEqual(run.output, "")
        self.assertRegex(self.place.read("new"), rf"\A{COUNT.pattern}\Z")
        mode = stat.S_IMODE(os.stat(self.place.path("new")).st_mode)
        self.assertEqual(mode, 0o600)

    def test_file_is_overwritten_or_appended_to(self):
        self.place.write("out", "before\n" * 1000)
        self.run_heapcore(
            FINE, "core.1", text="count used > out\ncount used >> out"
        )
        self.assertRegex(
            self.place.read("out"), rf"\A({COUNT.pattern}){{2}}\Z"
        )

    def test_wrong_usage_leaves_the_file_alone(self):
        self.place.write("out", "before")
        self.run_heapcore(WRONG_USAGE, "core.1", text="count --zzz > out")
        self.assertEqual(self.place.read("out"), "before")

    def test_symbolic_link_is_not_followed(self):
        self.place.write("precious", "before")
        os.symlink("precious", self.place.path("link"))
        self.check_error(
            WRONG_USAGE, "link: a symbolic link is not followed", "core.1",
            text="count used > link",
        )
        self.assertEqual(self.place.read("precious"), "before")

    def test_dump_does_not_overwrite_itself(self):
        size = os.path.getsize(self.place.core)
        self.check_error(
            WRONG_USAGE, "the dump itself", "core.1",
            text="count used > ./core.1",
        )
        self.assertEqual(os.path.getsize(self.place.core), size)

    def test_full_disk_is_told(self):
        with open("/dev/full", "wb") as full:
            self.check_error(
                NOT_ANALYSED, "No space left", "core.1", "enumerate", "used",
                stdout=full,
            )
        self.check_error(
            NOT_ANALYSED, "/dev/full: No space left", "core.1",
            text="count used > /dev/full",
        )

    def test_redirect_gives_each_command_a_file(self):
        run = self.run_heapcore(
            FINE, "core.1",
            text="redirect on\ncount used /minsize 10\nhelp quit\n"
            "count used | cat\nredirect off\ncount used\n",
        )
        self.assertRegex(
            self.place.read("core.1.count_used"), rf"\A{COUNT.pattern}\Z"
        )
        self.assertIn("core.1.count_used", run.errors)
        self.assertIn("Leave", run.output)
        self.assertEqual(len(COUNT.findall(run.output)), 2)

    def test_redirected_file_may_end_as_asked_for(self):
        for spelling in "/redirectSuffix", "--redirect-suffix":
            self.run_heapcore(
                FINE, "-c", "redirect on",
                "-c", f"count leaked {spelling} of-{spelling[-6:]}", "core.1",
            )
            self.assertRegex(
                self.place.read(f"core.1.count_leaked.of-{spelling[-6:]}"),
                rf"\A{COUNT.pattern}\Z")

    def test_shell_gets_the_output(self):
        run = self.run_heapcore(
            FINE, "core.1",
            text="enumerate used | wc -l\nenumerate used | head -n 1\n"
            "count used\n",
        )
        lines = run.output.splitlines()
        self.assertGreater(int(lines[0]), front_end.HELD)
        self.assertRegex(lines[1], r"\A0x[0-9a-f]+\Z")
        self.assertEqual(len(lines), 3)
        self.assertEqual(run.errors, "")

    def test_shell_gets_nothing_from_a_command_that_fails(self):
        run = self.run_heapcore(
            WRONG_USAGE, "core.1", text="count allocation 1 | wc -l\n"
        )
        self.assertEqual(run.output, "")

    def test_broken_pipe_ends_quietly(self):
        with self.place.start("core.1", "enumerate", "used") as process:
            process.stdout.read(1)
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(process.returncode, -signal.SIGPIPE)

    def test_broken_pipe_ends_an_audit_quietly(self):
        with self.place.start("slim", "--audit", "core.1") as process:
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(process.returncode, -signal.SIGPIPE)


class InterruptTest(FrontEndTest):
    def test_interrupt_ends_the_program(self):
        with self.place.start(
            "-c", "enumerate used", "-c", "count used", "core.1"
        ) as process:
            # It waits for somebody to read what does not fit into the pipe.
            process.stdout.read(1)
            os.killpg(process.pid, signal.SIGINT)
            output, errors = process.communicate(timeout=front_end.TIMEOUT)
        self.assertEqual(process.returncode, INTERRUPTED, errors)
        self.assertIn(b"interrupted", errors)
        self.assertNotIn(b"allocations", output)

    def test_interrupt_counts_where_the_reader_is_gone_as_well(self):
        for _ in range(5):
            self.run_heapcore(
                INTERRUPTED, "-c", "enumerate used | kill -INT $PPID",
                "-c", "count used", "core.1")

    def test_interrupt_ends_the_shell_command_too(self):
        with self.place.start(
            "-c", "count used | (echo begun; sleep 100)", "core.1"
        ) as process:
            self.assertEqual(process.stdout.readline(), b"begun\n")
            os.killpg(process.pid, signal.SIGINT)
            process.communicate(timeout=front_end.TIMEOUT)
        self.assertEqual(process.returncode, INTERRUPTED)


if __name__ == "__main__":
    unittest.main()
