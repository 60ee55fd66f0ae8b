"""
The prompt, in a terminal.
"""

import os
import re
import stat
import unittest

import front_end
from front_end import CONTROL_C, CONTROL_D

COUNT = r"[\d,]+ allocations use [\d,]+ bytes\."
PROMPT = "heapcore> "
FEW_LINES = 1000


class PromptTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = front_end.Workplace()
        cls.addClassCleanup(cls.place.close)

    def setUp(self):
        self.terminal = self.place.terminal("core.1")
        self.greeting = self.terminal.expect(PROMPT)

    def tearDown(self):
        self.terminal.send(CONTROL_D)
        self.terminal.wait()

    def leave(self, how):
        self.terminal.send(how)
        self.assertEqual(self.terminal.wait(), 0)
        self.terminal = self.place.terminal("core.1")
        self.terminal.expect(PROMPT)

    def test_greeting_says_what_it_is(self):
        self.assertIn("core.1", self.greeting)
        self.assertIn("many", self.greeting)
        self.assertIn("1 thread", self.greeting)
        self.assertIn("help", self.greeting)

    def test_command_is_run(self):
        self.assertRegex(self.terminal.command("count used"), COUNT)

    def test_error_is_shown_and_does_not_matter(self):
        self.assertIn(
            "did you mean 'count'", self.terminal.command("cuont used")
        )
        self.leave("quit\n")

    def test_control_d_and_quit_and_exit_leave(self):
        for how in (CONTROL_D, "quit\n", "exit\n"):
            self.leave(how)

    def test_words_are_completed(self):
        for typed, line in (
            ("cou\tus\t", "count used"),
            ("count leakr\t", "count leakroots"),
            ("summ\tleaked --sort\tby\t", "summarize leaked --sort-by bytes"),
            ("count used /sort\tby\t", "count used /sortby bytes"),
            ("count used --sort-by=by\t", "count used --sort-by=bytes"),
            ("count used /minsize 8 /maxs\t8",
             "count used /minsize 8 /maxsize 8"),
            ("help summ\t", "help summarize"),
            ("help leakr\t", "help leakroots"),
            ("redirect of\t", "redirect off"),
            ("memp\tcou\t", "memprof counts"),
            ("waste sla\tleakr\t", "waste slack leakroots"),
            ("waste leakr\tmin\t", "waste leakroots minus"),
            ("diff --by own\t", "diff --by owner"),
            ("count used min\tleakr\t", "count used minus leakroots"),
            ("count used - o\tfree\t", "count used - or free"),
            ("count used %Longs\t", "count used %LongString"),
            ("count used %Longs\tmin\tfr\t",
             "count used %LongString minus free"),
            ("count incoming 10 and leaked an\tan\t",
             "count incoming 10 and leaked and anchor"),
            ("count used --set-op\tsub\t",
             "count used --set-operation subtract"),
            ("count used --extend ->%Longs\t",
             "count used --extend ->%LongString"),
            ("count used --extend=A<-%Longs\t",
             "count used --extend=A<-%LongString"),
            ("count used --min-inc\t%Longs\t",
             "count used --min-incoming %LongString"),
            ("count used --form\tndj\t", "count used --format ndjson"),
            ("count used --format=ndj\t", "count used --format=ndjson"),
            ("help exte\t", "help extend"),
            ("help --min-si\t", "help --min-size"),
            ("help count leakr\t", "help count leakroots"),
        ):
            self.check_completed(typed, line)

    def check_completed(self, typed, line):
        with self.subTest(typed):
            self.terminal.command(typed)
            self.assertEqual(self.last_line().split(), line.split())

    def test_named_sets_are_completed(self):
        self.terminal.command("let peculiar = used")
        for typed, line in (
            ("count pec\t", "count peculiar"),
            ("count used min\tpec\t", "count used minus peculiar"),
            ("let more = pec\t", "let more = peculiar"),
            ("let more =pec\t", "let more =peculiar"),
            ("let more=pec\t", "let more=peculiar"),
            ("let more=peculiar min\tleakr\t",
             "let more=peculiar minus leakroots"),
            ("let more = leakroots --min-s\t0", "let more = leakroots "
             "--min-size 0"),
        ):
            self.check_completed(typed, line)

    def test_names_of_files_are_completed(self):
        self.place.write("script-of-mine", "count used\n")
        self.place.write("file-of-mine", "")
        path = self.place.path("script-of-m")
        self.assertRegex(self.terminal.command("source script-o\t"), COUNT)
        self.assertRegex(self.terminal.command(f"source {path}\t"), COUNT)
        self.terminal.command("count used > file-o\t")
        self.assertRegex(self.place.read("file-of-mine"), COUNT)

    def test_nothing_is_completed_where_nothing_is_known(self):
        self.assertNotIn(
            "state", self.terminal.command("count used \t\t --zz\t\t")
        )

    def last_line(self):
        return self.place.read("state/heapcore/history").splitlines()[-1]

    def test_history_is_kept_across_runs(self):
        self.terminal.command("count leaked")
        self.terminal.command("count leaked")
        self.leave(CONTROL_D)
        self.terminal.send("\x1b[A")
        self.assertIn("count leaked", self.terminal.command(""))
        listed = self.terminal.command("history | tail -n 3")
        self.assertEqual(listed.count("count leaked"), 1)
        path = self.place.path("state/heapcore/history")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)

    def test_control_c_drops_the_line(self):
        self.terminal.send("nonsense" + CONTROL_C)
        self.terminal.expect(PROMPT)
        self.terminal.send(CONTROL_C)
        self.terminal.expect(PROMPT)
        shown = self.terminal.command("count used")
        self.assertRegex(shown, COUNT)
        self.assertNotIn("nonsense", shown)

    def test_line_is_continued_or_dropped(self):
        self.terminal.send("count \\\n")
        self.terminal.expect(r"\n.*> ")
        self.assertRegex(self.terminal.command("used"), COUNT)
        self.terminal.send("nonsense \\\n")
        self.terminal.expect(r"\n.*> ")
        self.terminal.send(CONTROL_C)
        self.terminal.expect(PROMPT)
        self.assertRegex(self.terminal.command("count used"), COUNT)

    def test_control_c_ends_the_command(self):
        # The terminal takes only so much that nobody reads.
        self.terminal.send("enumerate used\n")
        self.terminal.expect(r"\n0x[0-9a-f]{8,}\r")
        self.terminal.send(CONTROL_C)
        shown = self.terminal.expect(PROMPT)
        self.assertIn("interrupted", shown)
        self.assertLess(len(shown.splitlines()), front_end.HELD)
        self.assertRegex(self.terminal.command("count used"), COUNT)

    def test_control_c_ends_the_shell_command(self):
        self.terminal.send("count used | (echo be''gun; sleep 100)\n")
        self.terminal.expect("begun")
        self.terminal.send(CONTROL_C)
        self.terminal.expect(PROMPT)
        self.assertRegex(self.terminal.command("count used"), COUNT)

    def test_sql_is_a_shell(self):
        self.terminal.send("sql\n")
        self.terminal.expect("sql> ")
        for typed, shown in ((".ta\t\n", "allocations in use"), (".he\t\n", "shortest way from a root"),
                             (".schema lea\t\n", "BYTES_INTEGER"),
                             ("sel\tcount(*) > 3 as 'more' from allo\t;\n", "more"),
                             ("select paren\tfrom domin\tlimit 1;\n", "parent"),
                             ("select a.addr\t from allocation as a limit 1;\n", "0x")):
            with self.subTest(typed):
                self.terminal.send(typed)
                self.terminal.expect(shown)
                self.terminal.expect("sql> ")
        self.terminal.send("select 1\n")
        self.terminal.expect(r"\.\.\.> ")
        self.terminal.send(CONTROL_C)
        self.terminal.expect("sql> ")
        # What the terminal shows of a long query tells that it began.
        self.terminal.send("with recursive c(x) as (select 1 union all select x + 1 from c)"
                           " select count(*) from c;\n")
        self.terminal.expect("answering the query")
        self.terminal.send(CONTROL_C)
        self.terminal.expect("interrupted")
        self.terminal.expect("sql> ")
        self.terminal.send(".quit\n")
        self.terminal.expect(PROMPT)
        self.assertRegex(self.terminal.command("count used"), COUNT)

    def addresses(self):
        """Of all that is leaked, and of some in use."""
        return [
            address for words in (("leaked",), ("anchored", "--limit", "3"))
            for address in self.place.run(
                "-q", "core.1", "enumerate", *words).output.split()
        ]

    def explained(self, address):
        """As in a script, in the lines of a terminal."""
        output = self.place.run("-q", "core.1", "explain", address).output
        self.assertIn(address, output)
        return output.replace("\n", "\r\n")

    def test_answers_are_those_of_a_script(self):
        for address in self.addresses():
            shown = self.terminal.command(f"explain {address}")
            self.assertIn(self.explained(address), shown)
            self.assertNotIn("heapcore: ", shown)

    def test_lines_that_come_at_once_are_run(self):
        addresses = self.addresses()
        self.terminal.send(
            "".join(f"explain {address}\n" for address in addresses))
        for address in addresses:
            shown = self.terminal.expect(
                re.escape(self.explained(address)) + ".*" + PROMPT)
            self.assertNotIn("interrupted", shown)

    def test_control_c_and_control_d_work_after_an_explanation(self):
        leaked, *_ = self.addresses()
        for typed in ("", "nonsense"):
            self.terminal.command(f"explain {leaked}")
            self.terminal.send(typed + CONTROL_C)
            self.terminal.expect(PROMPT)
            self.assertRegex(self.terminal.command("count used"), COUNT)
        self.terminal.command(f"explain {leaked}")
        self.leave(CONTROL_D)
        self.terminal.send(f"explain {leaked}\n")
        self.leave("quit\n")

    def test_output_goes_to_a_file_or_the_shell(self):
        self.assertNotRegex(self.terminal.command("count used > out"), COUNT)
        self.assertRegex(self.place.read("out"), COUNT)
        self.assertRegex(
            self.terminal.command("count used | cat -n"), " 1\t" + COUNT
        )
        shown = self.terminal.command("enumerate used | head -n 1")
        self.assertEqual(len(re.findall(r"\b0x[0-9a-f]{8,}\r\n", shown)), 1)
        self.assertNotIn("heapcore: ", shown)

    def test_quiet_does_not_greet(self):
        terminal = self.place.terminal("-q", "core.1")
        self.assertNotIn("core.1", terminal.expect(PROMPT))
        terminal.send(CONTROL_D)
        self.assertEqual(terminal.wait(), 0)


if __name__ == "__main__":
    unittest.main()
