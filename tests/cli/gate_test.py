#!/usr/bin/env python3
"""
The leak gate: what it counts and calls by name, what it accepts, and how it
ends. testdata/programs/gate_shop.cpp leaks what its arguments say.
"""

import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import harness

SOURCE_DIR = os.environ["SOURCE_DIR"]
HEAPCORE = os.environ["HEAPCORE"]
BUILD_DIR = os.environ.get("BUILD_DIR", "")
SHOP = os.path.join(SOURCE_DIR, "testdata/programs/gate_shop.cpp")
TIMEOUT = 120
# Of each kind some; of one of them six orders, two of which have a ring.
LEAKS = ["plain=3", "order=6", "ring=4", "catalog=2", "big=1", "shared=2"]
SANITIZED = "sanitize" in BUILD_DIR

FOLDER = tempfile.TemporaryDirectory(prefix="heapcore-gate-")
PROGRAMS = {}


def program(*flags):
    """The shop, compiled with these flags; each once."""
    if flags not in PROGRAMS:
        path = os.path.join(FOLDER.name, f"shop-{len(PROGRAMS)}")
        PROGRAMS[flags] = harness.build(path, "g++", "-std=c++17", "-g", *flags, SHOP)
    return PROGRAMS[flags]


def bump_malloc():
    """A library with a malloc that heapcore does not know."""
    return harness.build(os.path.join(FOLDER.name, "bump.so"), "cc", "-shared", "-fPIC", "-O2",
                         "-fno-builtin", os.path.join(harness.PROGRAMS, "bump_malloc.c"))


def run(*words, **options):
    return subprocess.run([HEAPCORE, *words], text=True, capture_output=True,
                          timeout=TIMEOUT, stdin=subprocess.DEVNULL, **options)


def core_of(leaks, *flags):
    """A core of a shop that ran with these leaks; each time a new process."""
    number = len(os.listdir(FOLDER.name))
    path = os.path.join(FOLDER.name, f"core-{number}")
    result = run("-q", "run", "--core", path, "-c", "count leaked", "--",
                 program(*flags), *leaks)
    assert result.returncode == 0, result
    return path


def siblings_core(*flags):
    """A core of a program in C that leaks what looks like what it holds."""
    number = len(os.listdir(FOLDER.name))
    path = os.path.join(FOLDER.name, f"siblings-{number}")
    source = os.path.join(SOURCE_DIR, "testdata/programs/siblings.c")
    helper = os.path.join(SOURCE_DIR, "testdata/programs/truth.c")
    siblings = harness.build(path, "gcc", "-O1", *flags, source, helper)
    with harness.started([siblings], folder=FOLDER.name) as process:
        return harness.snap(process, path + ".core")


class Gate:
    """One run of the gate, as JSON."""

    def __init__(self, core, *words, status):
        result = run("--format", "json", core, "gate", *words)
        assert result.returncode == status, result
        self.errors = result.stderr
        self.tables = {table["name"]: table["rows"]
                       for table in json.loads(result.stdout)["tables"]}

    def __getitem__(self, name):
        return self.tables.get(name, [])

    def prints(self):
        return {leak["fingerprint"]: leak["kind"] for leak in self["leak"]}

    def outcome(self):
        return self["gate"][0]

    def states(self):
        return {leak["kind"]: leak["state"] for leak in self["leak"]}


class GateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.core = core_of(LEAKS, "-O1")
        cls.orders = core_of(["order=6", "plain=3"], "-O1")
        cls.clean = core_of(["keep=5", "spare=3"], "-O1")

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="heapcore-gate-")
        self.addCleanup(self.folder.cleanup)
        self.baseline = os.path.join(self.folder.name, "baseline.json")

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def read_baseline(self):
        with open(self.baseline, encoding="utf-8") as file:
            return {leak["kind"]: leak for leak in json.load(file)["leaks"]}

    def accept(self, core, *words):
        Gate(core, "--baseline", self.baseline, "--update-baseline", *words,
             status=0)

    def edit(self, pattern, replacement):
        with open(self.baseline, encoding="utf-8") as file:
            text = file.read()
        changed = re.sub(pattern, replacement, text)
        self.assertNotEqual(text, changed)
        self.write("baseline.json", changed)

    # What is counted

    def test_every_lost_allocation_counts(self):
        gate = Gate(self.core, status=1)
        kinds = sorted((leak["kind"], leak["roots"], leak["allocations"])
                       for leak in gate["leak"])
        self.assertEqual(kinds, [
            ("shop::Catalog", 2, 25),
            ("shop::Invoice", 4, 4),
            ("shop::Order", 4, 8),  # the rings
            ("shop::Order", 6, 9),
            ("unrecognized allocation", 1, 1),
            ("unrecognized allocation", 3, 3),
        ])
        # Two customers are shared by two invoices each.
        self.assertEqual(gate["shared"][0]["count"], 2)
        self.assertEqual(gate["shared"][0]["counted"], 2)
        self.assertEqual(gate.outcome()["outcome"], "failed")
        self.assertEqual(gate.outcome()["leaks"], 25 + 4 + 8 + 9 + 1 + 3 + 2)
        self.assertIn("the gate failed (--max-leaked 0)",
                      gate.errors)

    def test_valgrind_counts_the_same(self):
        try:
            result = subprocess.run(
                harness.valgrind(program("-O1"), *LEAKS), text=True,
                capture_output=True, timeout=TIMEOUT)
        except FileNotFoundError:
            self.skipTest("valgrind is not installed")
        blocks = re.findall(r"(?:definitely|indirectly) lost: [\d,]+ bytes in "
                            r"([\d,]+) blocks", result.stderr)
        total = sum(int(number.replace(",", "")) for number in blocks)
        self.assertEqual(Gate(self.core, status=1).outcome()["leaks"], total)

    def test_nothing_lost_passes(self):
        gate = Gate(self.clean, status=0)
        self.assertEqual(gate["leak"], [])
        self.assertEqual(gate.outcome(), {
            "outcome": "passed", "leaks": 0, "bytes": 0, "suppressed": 0,
            "known": 0})

    def test_shared_ones_count_only_with_a_leak_that_counts(self):
        rules = self.write("rules", "class:shop::Invoice\n")
        gate = Gate(self.core, "--suppress", rules, status=1)
        self.assertEqual(gate["shared"][0]["counted"], 0)
        self.assertEqual(gate.outcome()["leaks"], 46)
        self.assertEqual(gate.outcome()["suppressed"], 4)

    # Fingerprints

    def test_the_same_leaks_have_the_same_fingerprints(self):
        prints = Gate(self.core, status=1).prints()
        self.assertEqual(len(prints), 6)
        for leaks, flags in (
                (LEAKS, ["-O1"]), (LEAKS, ["-O0"]), (LEAKS, ["-O2"]),
                # Elsewhere, in another order, and of other numbers.
                (["grow=300", "catalog=5", "shared=3", "big=2", "ring=9",
                  "keep=7", "order=31", "plain=1"], ["-O2"])):
            with self.subTest(leaks=leaks, flags=flags):
                gate = Gate(core_of(leaks, *flags), status=1)
                self.assertEqual(gate.prints(), prints)

    def test_a_class_that_changed_changes_its_own_fingerprints_only(self):
        before = Gate(self.core, status=1).prints()
        after = Gate(core_of(LEAKS, "-O1", "-DCHANGED"), status=1).prints()
        changed = {kind for print, kind in before.items()
                   if print not in after}
        self.assertEqual(changed, {"shop::Order"})
        kept = set(before) & set(after)
        self.assertEqual(len(kept), 4)

    # Verdicts

    def test_what_only_spare_capacity_holds_counts_if_wanted(self):
        self.assertEqual(Gate(self.clean, status=0)["leak"], [])
        gate = Gate(self.clean, "--likely", status=1)
        leak, = gate["leak"]
        self.assertEqual((leak["verdict"], leak["kind"], leak["roots"]),
                         ("likely", "shop::Order", 3))
        self.assertIn("spare capacity", leak["held"])
        # One of the three has a note.
        self.assertEqual(gate.outcome()["leaks"], 4)

    def test_a_leak_is_the_same_whether_certain_or_likely(self):
        core = core_of(["order=2", "spare=3"], "-O1")
        gate = Gate(core, "--likely", status=1)
        leak, = gate["leak"]
        self.assertEqual((leak["verdict"], leak["roots"], leak["likely"]),
                         ("certain", 5, 3))
        self.assertIn(leak["fingerprint"],
                      Gate(self.clean, "--likely", status=1).prints())

    # Limits

    def test_limits(self):
        for words, status in (
                (["--max-leaked", "12"], 0), (["--max-leaked", "11"], 1),
                (["--max-leaked-bytes", "1056"], 0),
                (["--max-leaked-bytes", "1055"], 1),
                (["--max-leaked-bytes", "2K"], 0),
                (["--max-leaked-bytes", "2K", "--max-leaked", "1"], 1),
                (["--max-leaked", "99", "--max-used", "10M"], 0),
                (["--max-leaked", "99", "--max-used", "1K"], 1),
                (["--max-leaked", "99", "--max-class", "shop::Order=8"], 0),
                (["--max-leaked", "99", "--max-class", "shop::Order=7"], 1),
                # With derived classes.
                (["--max-leaked", "99", "--max-class", "shop::Item=7"], 1),
                (["--max-leaked", "99", "--max-class", "%VectorBody=9"], 0),
                (["--max-leaked", "99", "--max-class", "%VectorBody=0"], 1)):
            with self.subTest(words=words):
                gate = Gate(self.orders, *words, status=status)
                checks = [check["outcome"] for check in gate["check"]]
                self.assertEqual("failed" in checks, status == 1)
                self.assertEqual(gate.outcome()["outcome"],
                                 "failed" if status else "passed")

    def test_a_check_says_what_was_typed(self):
        gate = Gate(self.orders, "--max-leaked", "99", "--max-class",
                    "shop::Nothing=1", status=0)
        self.assertEqual(gate["check"], [
            {"rule": "--max-leaked 99", "what": "leaked allocations",
             "limit": 99, "value": 12, "outcome": "passed"},
            {"rule": "--max-class shop::Nothing=1",
             "what": "allocations in use of shop::Nothing (nothing has that "
                     "name)",
             "limit": 1, "value": 0, "outcome": "passed"}])

    # The baseline

    def test_growth_since_an_older_core_is_limited(self):
        small = core_of(["order=2"])
        large = core_of(["order=6"])
        for limit, status in ((["--max-class-growth", "shop::Order=4"], 0),
                              (["--max-class-growth", "shop::Order=3"], 1),
                              (["--max-growth", "1M"], 0),
                              (["--max-growth", "100"], 1)):
            gate = Gate(large, "--max-leaked", "99", "--compare", small,
                        *limit, status=status)
            check = gate["check"][1]
            self.assertEqual(check["outcome"],
                             "failed" if status else "passed", limit)
            self.assertIn("shop::Order",
                          [row["kind"] for row in gate["growth"]])
        shrunk = Gate(small, "--max-leaked", "99", "--compare", large,
                      "--max-growth", "0", "--max-class-growth",
                      "shop::Nothing=0", status=0)
        self.assertEqual([row["value"] for row in shrunk["check"]][1:], [0, 0])
        self.assertIn("(nothing has that name)", shrunk["check"][2]["what"])

    def test_growth_since_a_cut_off_core_is_not_known(self):
        core = core_of(["order=2"])
        cut = core + ".cut"
        with open(core, "rb") as whole, open(cut, "wb") as file:
            file.write(whole.read()[:-100000])
        gate = Gate(core, "--max-leaked", "99", "--compare", cut,
                    "--max-growth", "1G", status=3)
        self.assertEqual(gate.outcome()["outcome"], "incomplete")
        self.assertIn(cut, gate.errors)

    def test_what_was_accepted_passes_and_the_rest_does_not(self):
        self.accept(self.orders)
        gate = Gate(self.orders, "--baseline", self.baseline, status=0)
        self.assertEqual(set(gate.states().values()), {"known"})
        self.assertEqual(gate.outcome()["known"], 12)
        gate = Gate(self.core, "--baseline", self.baseline, status=1)
        self.assertEqual(gate.outcome()["known"], 12)
        self.assertEqual(gate.outcome()["leaks"], 52 - 12)

    def test_more_of_what_was_accepted_fails(self):
        self.accept(self.orders)
        self.edit(r'("shop::Order".*"roots": )6', r"\g<1>4")
        gate = Gate(self.orders, "--baseline", self.baseline, status=1)
        self.assertEqual(gate.states(), {"shop::Order": "more",
                                         "unrecognized allocation": "known"})
        # Two of six roots, and so 3 of 9 allocations, are too many.
        self.assertEqual(gate.outcome()["leaks"], 3)

    def test_what_is_gone_is_said_and_ratcheted_away(self):
        self.accept(self.orders)
        self.edit(r'("shop::Order".*"roots": )6', r"\g<1>9")
        words = ["--baseline", self.baseline]
        better = core_of(["order=4"], "-O1")
        gate = Gate(better, *words, status=0)
        self.assertEqual([(leak["kind"], leak["roots"])
                          for leak in gate["gone"]],
                         [("unrecognized allocation", 3)])
        self.assertEqual(self.read_baseline()["shop::Order"]["roots"], 9)
        Gate(better, *words, "--ratchet", status=0)
        self.assertEqual({kind: leak["roots"] for kind, leak
                          in self.read_baseline().items()}, {"shop::Order": 4})
        # It is never raised again.
        Gate(self.orders, *words, "--ratchet", status=1)
        self.assertEqual(self.read_baseline()["shop::Order"]["roots"], 4)

    def test_a_baseline_is_the_same_from_any_run(self):
        self.accept(core_of(LEAKS, "-O0"))
        with open(self.baseline, encoding="utf-8") as file:
            first = file.read()
        os.unlink(self.baseline)
        self.accept(core_of(LEAKS, "-O2"))
        with open(self.baseline, encoding="utf-8") as file:
            self.assertEqual(file.read(), first)
        prints = re.findall(r'"fingerprint": "(\w+)"', first)
        self.assertEqual(prints, sorted(prints))

    def test_no_baseline_is_written_from_half_a_core(self):
        self.accept(self.orders)
        before = self.read_baseline()
        half = os.path.join(self.folder.name, "half")
        with open(self.core, "rb") as file:
            data = file.read()
        with open(half, "wb") as file:
            file.write(data[:len(data) // 2])
        for word in ("--update-baseline", "--ratchet"):
            gate = Gate(half, "--baseline", self.baseline, word, status=3)
            self.assertEqual(gate.outcome()["outcome"], "incomplete")
            self.assertIn("is unchanged", gate.errors)
            self.assertEqual(self.read_baseline(), before)

    # Suppressions

    def test_suppressed_leaks_do_not_count(self):
        rules = self.write("rules", "# ours\nclass:shop::Ord*\nsize:104\n"
                                    "leak:shop::Nothing\n")
        gate = Gate(self.orders, "--suppress", rules, status=0)
        self.assertEqual(set(gate.states().values()), {"suppressed"})
        self.assertEqual(gate.outcome()["suppressed"], 12)
        self.assertEqual(gate["unused rule"],
                         [{"rule": "leak:shop::Nothing", "file": rules,
                           "line": 4}])

    def test_rules_of_several_files_and_kinds(self):
        program_name = os.path.basename(program("-O1"))
        prints = {kind: print for print, kind
                  in Gate(self.orders, status=1).prints().items()}
        for rule, left in (
                (f"module:{program_name}", 3), ("leak:^shop::", 3),
                ("leak:" + program_name[:4], 3), ("size:100-103", 12),
                ("fingerprint:" + prints["unrecognized allocation"], 9)):
            with self.subTest(rule=rule):
                rules = self.write("rules", rule + "\n")
                none = self.write("none", "leak:nothing\n")
                gate = Gate(self.orders, "--suppress", none, "--suppress",
                            rules, status=1)
                self.assertEqual(gate.outcome()["leaks"], left)

    def test_what_holds_a_likely_leak_is_matched_too(self):
        rules = self.write("rules", "leak:VectorBody\n")
        gate = Gate(self.clean, "--likely", "--suppress", rules, status=0)
        self.assertEqual(gate["leak"][0]["rule"], "leak:VectorBody")

    def test_what_libc_loses_is_not_blamed_on_the_program(self):
        source = self.write("conversion.c", """
            #include <stdio.h>
            #include <stdlib.h>
            #include <wchar.h>
            int main(int count, char **arguments)
            {
                wchar_t line[100];
                for (int i = 0; i < 5; i++) {
                    FILE *file = fopen(arguments[1], "r,ccs=UTF-8");
                    if (!file || !fgetws(line, 100, file))
                        return 1;
                    fclose(file);
                }
                /* Over what is left of the last one. */
                fclose(fopen(arguments[1], "r"));
                return 0;
            }
            """)
        path = os.path.join(self.folder.name, "conversion")
        subprocess.run(["gcc", "-w", source, "-o", path], check=True,
                       timeout=TIMEOUT)
        result = run("run", "--", path, source)
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("Gate passed", result.stderr)

    # The end

    def test_wrong_usage(self):
        broken = self.write("broken", '{"heapcore-baseline": 1,\n "leaks": [}')
        for words, message in (
                (["--max-leaked", "many"], "'many' is not a count"),
                (["--max-used", "1f"], "'1f' is not a size"),
                (["--max-class", "shop::Order"], "is not a kind"),
                (["--max-growth", "1M"], "--max-growth needs --compare"),
                (["--compare", "old.core"], "--compare needs --max-growth"),
                (["--ratchet"], "--ratchet needs --baseline"),
                (["--baseline", self.baseline], "No such file"),
                (["--baseline", broken], "broken:2: "),
                (["--suppress", broken], "broken:1: "),
                (["--suppress", "/dev/zero"], "not a regular file"),
                (["leaks"], "takes only switches")):
            with self.subTest(words=words):
                result = run(self.orders, "gate", *words)
                self.assertEqual(result.returncode, 2, result)
                self.assertIn(message, result.stderr)
                self.assertEqual(result.stdout, "")

    def test_half_a_core_is_never_passed_nor_failed(self):
        path = os.path.join(self.folder.name, "half")
        for core, words in ((self.clean, []), (self.core, []),
                            (self.clean, ["--max-leaked", "1000000"])):
            with open(core, "rb") as file:
                data = file.read()
            with open(path, "wb") as file:
                file.write(data[:len(data) * 2 // 3])
            gate = Gate(path, *words, status=3)
            self.assertEqual(gate.outcome()["outcome"], "incomplete")
            self.assertIn("the gate cannot decide", gate.errors)

    def test_an_allocator_that_is_not_understood_is_never_passed(self):
        result = run("run", "--", "env", f"LD_PRELOAD={bump_malloc()}",
                     program("-O1"), "order=3")
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("Gate incomplete", result.stderr)

    def test_the_last_line_says_how_it_ended(self):
        result = run(self.orders, "gate")
        self.assertEqual(
            result.stdout.splitlines()[-1],
            "Gate failed: 12 allocations leaked (1,056 bytes); 0 suppressed, "
            "0 in the baseline.")
        self.assertRegex(
            result.stdout,
            r"Leak [0-9a-f]{16} \(certain, new\): 6 x shop::Order of 104 "
            r"bytes;\n    9 allocations lost in total \(744 bytes\), for "
            r"example 0x[0-9a-f]+\n")

    def test_an_example_shows_its_first_bytes_unless_contents_are_left_out(self):
        bytes_shown = r"for example 0x[0-9a-f]+\n +[0-9a-f]+( +[0-9a-f]+){3}   .{32}\n"
        self.assertRegex(run(self.orders, "gate").stdout, bytes_shown)
        self.assertNotRegex(run("--no-content", self.orders, "gate").stdout, bytes_shown)
        leaks = Gate(self.orders, status=1)["leak"]
        self.assertTrue(all(len(leak["contents"]) == 64 for leak in leaks if leak["size"] >= 32))

    def test_github_gets_an_annotation_for_each_kind_that_counts(self):
        github = {**os.environ, "GITHUB_ACTIONS": "true"}
        result = run(self.orders, "gate", env=github)
        kinds = Gate(self.orders, status=1)["leak"]
        lines = [line for line in result.stderr.splitlines() if line.startswith("::")]
        self.assertEqual(lines, [
            f"::error title=Leak {leak['fingerprint']}::{leak['roots']} x {leak['kind']} "
            f"leaked: {leak['bytes']} bytes lost"
            + (f", allocated by {leak['allocated_by']}" if leak["allocated_by"] else "")
            for leak in kinds])
        self.assertNotIn("::error", run(self.orders, "gate").stderr)

    # Types

    def test_a_leak_has_the_type_of_others_like_it(self):
        core = siblings_core("-g")
        typed = [leak for leak in Gate(core, status=1)["leak"] if leak["type"]]
        leak, = typed
        self.assertEqual((leak["kind"], leak["type"], leak["typed"], leak["size"]),
                         ("unrecognized allocation", "probably struct conn", 1, 40))
        self.assertRegex(leak["by"], r"^40 others of its size, as conns")
        label = f"unrecognized allocation ({leak['typed']} of them probably struct conn)"
        if leak["typed"] == leak["roots"]:
            label = "unrecognized allocation (probably struct conn)"
        self.assertEqual(leak["label"], label)
        shown = run(core, "gate", env={**os.environ, "GITHUB_ACTIONS": "true"})
        self.assertIn(f": {leak['roots']} x {label} of 40 bytes", shown.stdout)
        self.assertRegex(shown.stdout, r"\n    probably struct conn, by 40 others of its size, as c")
        self.assertIn(f"x {label} leaked", shown.stderr)
        self.assertIn("It is of type struct conn (looks like",
                      run(core, "describe", leak["address"]).stdout)
        for written in "junit", "sarif":
            self.assertIn(label, run("--format", written, core, "gate").stdout)

    def test_a_type_changes_no_fingerprint(self):
        typed, plain = siblings_core("-g"), siblings_core("-s")
        self.assertEqual(Gate(typed, status=1).prints(), Gate(plain, status=1).prints())
        self.assertFalse([leak for leak in Gate(plain, status=1)["leak"] if leak["type"]])
        for old, new in (plain, typed), (typed, plain):
            self.accept(old)
            gate = Gate(new, "--baseline", self.baseline, status=0)
            self.assertEqual(set(gate.states().values()), {"known"})
            self.assertEqual(gate["gone"], [])
            os.unlink(self.baseline)

    def test_an_example_address_can_be_explained(self):
        leak = Gate(self.orders, status=1)["leak"][0]
        result = run(self.orders, "describe", leak["address"])
        self.assertIn("an unreferenced allocation", result.stdout)

    @unittest.skipIf(SANITIZED, "the sanitizer has a malloc of its own")
    def test_the_self_check_finds_its_own_leaks(self):
        for core, status in ((self.clean, 0), (self.core, 1)):
            Gate(core, "--self-check", status=status)

    @unittest.skipIf(SANITIZED, "the sanitizer has a malloc of its own")
    def test_the_self_check_fails_where_leaks_are_not_seen(self):
        result = run(self.clean, "gate", "--self-check",
                     env=dict(os.environ, LD_PRELOAD=bump_malloc()))
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("the self-check failed", result.stderr)

    def test_run_ends_by_the_gate(self):
        shop = program("-O1")
        for leaks, words, status in ((["order=3"], [], 1), ([], [], 0),
                                     (["order=3"], ["--max-leaked", "4"], 0),
                                     (["spare=3"], ["--likely"], 1),
                                     (["order=3"], ["--error-exitcode", "9"],
                                      9)):
            with self.subTest(leaks=leaks, words=words):
                result = run("run", *words, "--", shop, *leaks)
                self.assertEqual(result.returncode, status, result)
                self.assertEqual(result.stdout, "done\n")
                self.assertIn("Gate passed" if status == 0 else "Gate failed",
                              result.stderr)

    def test_the_gate_may_stand_in_front_of_the_core(self):
        for words in (["gate", self.core], ["gate", "--max-leaked", "3", self.core],
                      ["gate", self.core, "--max-leaked", "3"],
                      ["-q", "gate", self.clean], ["--format", "csv", "gate", self.clean]):
            core = next(word for word in words if os.path.exists(word))
            others = [word for word in words if word != core]
            at = others.index("gate")
            usual = run(*others[:at], core, *others[at:])
            result = run(*words)
            self.assertEqual((result.returncode, result.stdout, result.stderr),
                             (usual.returncode, usual.stdout, usual.stderr), words)
        self.assertIn("'gate' needs a core", run("gate").stderr)
        self.assertEqual(run("gate").returncode, 2)

    def test_a_prefix_of_its_name_has_its_formats(self):
        result = run("--format", "junit", self.orders, "ga")
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("<testcase ", result.stdout)

    # Formats

    def gate_in(self, report_format):
        self.accept(self.orders)
        self.edit(r'("shop::Order".*"roots": )6', r"\g<1>4")
        self.edit(r'"leaks": \[',
                  r'"leaks": [{"fingerprint": "' + "f" * 16 +
                  r'", "kind": "gone::Class", "size": 8, "roots": 2, '
                  r'"bytes": 16},')
        rules = self.write("rules", "size:96-103\nclass:shop::Catalog\n")
        result = run("--format", report_format, self.core, "gate",
                     "--baseline", self.baseline, "--suppress", rules)
        self.assertEqual(result.returncode, 1, result)
        return result.stdout

    def test_junit(self):
        root = xml.etree.ElementTree.fromstring(self.gate_in("junit"))
        suite = root.find("testsuite")
        cases = {case.get("name"): case for case in suite.iter("testcase")}
        failed = [name for name, case in cases.items()
                  if case.find("failure") is not None]
        skipped = [name for name, case in cases.items()
                   if case.find("skipped") is not None]
        self.assertEqual(int(suite.get("tests")), len(cases))
        self.assertEqual(int(suite.get("failures")), len(failed))
        self.assertIn("--max-leaked 0", failed)
        self.assertEqual([name.split()[1] for name in skipped],
                         ["shop::Catalog"])
        # The plain blocks are known.
        self.assertEqual(len(cases) - len(failed) - len(skipped), 1)

    def test_sarif(self):
        log = json.loads(self.gate_in("sarif"))
        self.assertEqual(log["version"], "2.1.0")
        results = log["runs"][0]["results"]
        states = {(result["locations"][0]["logicalLocations"][0]
                   ["fullyQualifiedName"], result["baselineState"])
                  for result in results if "locations" in result}
        self.assertIn(("gone::Class", "absent"), states)
        self.assertIn(("shop::Order", "updated"), states)
        self.assertIn(("shop::Order", "new"), states)
        self.assertIn(("unrecognized allocation", "unchanged"), states)
        rules = [rule["id"] for rule
                 in log["runs"][0]["tool"]["driver"]["rules"]]
        self.assertEqual(len(rules), len(set(rules)))
        self.assertEqual({result["ruleId"] for result in results}, set(rules))

    def test_json_and_ndjson_have_numbers_as_numbers(self):
        tables = {table["name"]: table["rows"] for table
                  in json.loads(self.gate_in("json"))["tables"]}
        more, = (leak for leak in tables["leak"] if leak["state"] == "more")
        self.assertEqual((more["roots"], more["allowed"], more["size"]),
                         (6, 4, 104))
        self.assertEqual(list(tables)[-1], "gate")
        for line in self.gate_in_lines():
            json.loads(line)

    def gate_in_lines(self):
        result = run("--format", "ndjson", self.core, "gate")
        lines = result.stdout.splitlines()
        self.assertGreater(len(lines), 5)
        return lines

    def test_markdown_and_csv(self):
        lines = self.gate_in("markdown").splitlines()
        self.assertTrue(lines[0].startswith("| fingerprint | verdict |"))
        self.assertTrue(any(line.startswith("| failed | ") for line in lines))
        result = run("--format", "csv", self.orders, "gate")
        rows = list(csv.reader(io.StringIO(result.stdout)))
        self.assertIn("fingerprint", rows[0])
        self.assertEqual(rows[1][rows[0].index("kind")], "shop::Order")


if __name__ == "__main__":
    sys.exit(unittest.main())
