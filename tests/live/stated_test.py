#!/usr/bin/env python3
"""
testdata/programs/stated.c says where its structures are, to some of which no
pointer with a type leads. What the user states about one of them holds for all
that follows from it.
"""

import shutil
import subprocess
import unittest

from harness import FINE, HEAPCORE, USAGE, LiveTest, addresses, ask, places_said, snap, tables


class StatedTest(LiveTest):
    def core(self, *flags, compiler="gcc"):
        """A core, and the address of the first of each chain."""
        program = self.compile("stated", "stated.c", "truth.c",
                               compiler=compiler, flags=flags)
        process = self.start([program])
        return snap(process, self.path("core")), places_said(process)

    def ask_all(self, core, *questions, expected=(FINE,)):
        words = [word for question in questions for word in ("-c", question)]
        return ask("-q", *words, core, expected=expected)

    def check_stated(self, core, truth):
        hidden = truth["hidden"]
        before = addresses("-q", core, "enumerate", "used", "conn")
        self.assertEqual(len(before), 3)
        said = self.ask_all(core, f"istype {hidden:x} conn", "enumerate used conn",
                            "show " + f"{hidden:x}").stdout.splitlines()
        # Four more of the chain, and a text of each. Two that leaked now look like these.
        self.assertEqual(said[0], "Type struct conn for 1 allocation; 9 more follow from it.")
        after = {int(line, 16) for line in said[1:11]}
        self.assertEqual(len(after), 10)
        self.assertLess(before, after)
        self.assertIn(hidden, after)
        self.assertEqual(said[12], "... of type struct conn")
        self.assertRegex(said[13], r"  next = 0x\w+ \(struct conn\)")
        self.assertRegex(said[14], r'  peer = 0x\w+ "a peer that is far away"')

    def test_types_follow_from_what_is_stated(self):
        self.check_stated(*self.core("-g", "-O0"))
        self.check_stated(*self.core("-g", "-O2"))

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_clang(self):
        self.check_stated(*self.core("-g", "-O2", compiler="clang"))

    def test_why_is_said(self):
        core, truth = self.core("-g", "-O2")
        hidden = truth["hidden"]
        for name in "struct conn", "'struct conn'", "conn":
            self.assertIn("It is of type struct conn (stated by the user).\n", self.ask_all(
                core, f"istype {hidden + 8:x} {name}", f"describe {hidden:x}").stdout)
        self.assertRegex(
            self.ask_all(core, f"istype {hidden:x} conn", "explain used conn").stdout,
            rf"It is of type struct conn \(typed: by 0x{hidden:x}->next, "
            rf"2 steps from 0x{hidden:x} of stated type\)\.")

    def test_leaks_follow_from_what_is_stated(self):
        core, truth = self.core("-g", "-O2")
        said = self.ask_all(
            core, "summarize leaked", f"istype {truth['lost']:x} conn", "summarize leaked",
            "count leaked conn", "summarize leakroots", f"describe {truth['lost']:x}").stdout
        before, after = said.split("Type struct conn for 1 allocation; 3 more follow from it.\n")
        self.assertNotIn("Type struct conn", before)
        self.assertIn("Type struct conn has 2 instances taking 80 bytes.\n", after)
        self.assertIn("\n2 allocations use 80 bytes.\n", after)
        self.assertIn("stated by the user", after)

    def test_what_only_followed_is_denied_too(self):
        core, truth = self.core("-g", "-O2")
        said = self.ask_all(core, f"notype {truth['held']:x}", "count used conn",
                            f"describe {truth['held']:x}",
                            f"describe {truth['second']:x}").stdout.splitlines()
        # Its text does; to the others another variable leads.
        self.assertEqual(said[0], "Type struct conn denied for 1 allocation; "
                         "1 more has no type any more.")
        self.assertEqual(said[1], "2 allocations use 80 bytes.")
        self.assertIn("It is held by conns (stated).", said)
        self.assertIn("It is of type struct conn (certain: by second (stated)).", said)

    def test_statements_are_withdrawn(self):
        core, truth = self.core("-g", "-O2")
        plain = ask("-q", core, "summarize", "used").stdout
        said = self.ask_all(core, f"istype {truth['hidden']:x} conn",
                            f"notype {truth['hidden']:x}", "summarize used").stdout
        self.assertTrue(said.endswith(
            "Type struct conn withdrawn for 1 allocation; 9 more have no type any more.\n" +
            plain), said)
        denied = self.ask_all(core, f"notype {truth['held']:x}",
                              f"istype {truth['held']:x} conn", "summarize used").stdout
        self.assertTrue(denied.endswith(plain), denied)

    def test_a_script_states_types(self):
        core, truth = self.core("-g", "-O2")
        said = subprocess.run(
            [HEAPCORE, "-q", core], text=True, capture_output=True, check=True,
            input=f"istype {truth['hidden']:x} conn\ncount used conn\n").stdout
        self.assertIn("10 allocations use 400 bytes.", said)
        row, = tables("-q", core, "istype", f"{truth['hidden']:x}", "conn")["type"]
        self.assertEqual((row["type"], row["typed"]), ("struct conn", 9))

    def test_mistakes(self):
        core, truth = self.core("-g", "-O2")
        narrow = f"{truth['narrow']:x}"
        for words, message in (
                (("istype", narrow, "conm"), "unknown type 'conm'; did you mean 'conn'?"),
                (("istype", narrow, "conn"),
                 "struct conn is of size 40 (0x28), but the allocation of size "),
                (("istype", narrow, "wide"), "struct wide is of size 320 (0x140), but "),
                (("istype", "10", "conn"), "there is no allocation at 0x10"),
                (("istype", narrow), "'istype' takes ADDRESS TYPE"),
                (("istype", narrow, "conn", "conn"), "unexpected word 'conn' after a type"),
                (("notype", narrow), f"the allocation at 0x{narrow} has no type"),
                (("notype", "10"), "there is no allocation at 0x10")):
            with self.subTest(words=words):
                self.assertIn(message, ask("-q", core, *words, expected=(USAGE,)).stderr)

    def test_of_two_types_of_one_name_the_one_that_fits_is_meant(self):
        core, truth = self.core("-g", "-O2")
        for name, length in ("narrow", 2), ("broad", 9):
            self.assertEqual(
                self.ask_all(core, f"istype {truth[name]:x} twin", f"show {truth[name]:x}")
                .stdout.splitlines()[2:4],
                ["... of type struct twin", f"  numbers = {{{', '.join(length * '0')}}}"])

    def test_without_debug_information(self):
        core, truth = self.core("-g0", "-O2")
        self.assertIn("no debug information", ask(
            "-q", core, "istype", f"{truth['hidden']:x}", "conn", expected=(USAGE,)).stderr)


if __name__ == "__main__":
    unittest.main()
