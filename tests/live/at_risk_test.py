#!/usr/bin/env python3
"""
Runs testdata/programs/at_risk.c, in which the heaps of malloc and of the Boehm
collector refer to each other, linked in several ways, and checks that every
allocation it tells of is in the set that it should be in, and in no other.
"""

import collections
import os
import re
import shutil
import unittest

import harness

FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pthread"]
AT_RISK = 100
# Fifty blocks and as many objects that nothing in the program refers to.
LEAK_ROOTS = 100

# The set of each word of truth, and the sets that it is part of as well.
SETS = {
    "lost": {"leaked", "used"},
    "kept": {"anchored", "used"},
    "risk": {"atrisk", "anchored", "used", "collectable"},
    "garbage": {"garbage", "used", "collectable"},
    "held": {"heldbygarbage", "used"},
    "dead": {"unswept", "free"},
}
CHECKED = sorted(set.union(*SETS.values()) - {"collectable"})
# What libc and the collector need for themselves.
FEW = 64


def has_collector():
    return os.path.exists("/usr/include/gc/gc.h")


@unittest.skipUnless(has_collector(), "there is no libgc-dev")
class AtRiskTest(harness.LiveTest):
    """The truth of at_risk.c against the sets of heapcore."""

    def core(self, *flags, program="at_risk"):
        """A core of the program, whose truth is read."""
        binary = self.compile(program, f"{program}.c", "truth.c",
                              flags=[*FLAGS, *flags])
        process = self.start([binary], truth=self.path("truth"))
        self.truth = collections.defaultdict(set)
        with open(self.path("truth"), encoding="ascii") as file:
            for word, address, _ in map(str.split, file.readlines()[:-1]):
                self.truth[word].add(int(address, 16))
        return harness.gcore(process, self.folder)

    def run_heapcore(self, core, *command):
        result = harness.ask(core, *command)
        return result.stdout, result.stderr

    def members(self, core, name):
        return harness.addresses(core, "enumerate", name)

    def compare(self, core):
        self.assertEqual(len(self.truth["risk"]), AT_RISK)
        found = {name: self.members(core, name) for name in CHECKED}
        for word, addresses in self.truth.items():
            for name in CHECKED:
                with self.subTest(told=word, set=name):
                    there = addresses & found[name]
                    wanted = addresses if name in SETS[word] else set()
                    self.assertEqual(sorted(there), sorted(wanted))
        self.assertEqual(found["atrisk"], self.truth["risk"])
        self.assertEqual(len(self.members(core, "leakroots")), LEAK_ROOTS)
        # What was free before the collection counts as unswept, too.
        for name in ("leaked", "garbage", "heldbygarbage"):
            told = set.union(*(self.truth[word] for word in SETS
                               if name in SETS[word]))
            self.assertEqual(sorted(found[name] - told), [], name)

    def test_dynamic(self):
        core = self.core("-g", "-O2", "-lgc")
        self.compare(core)
        self.explain(core)
        self.describe(core)
        self.summarize(core)

    def test_stripped(self):
        self.compare(self.core("-O1", "-s", "-lgc"))

    def test_static(self):
        self.compare(self.core("-O2", "-static", "-lgc"))

    def test_static_and_stripped(self):
        self.compare(self.core("-O2", "-static", "-s", "-lgc"))

    def explain(self, core):
        """A reader learns from an example of each what will become of it."""
        for word, sentence in (
                ("risk", r"The collector may free the allocation at 0x%x"),
                ("garbage", r"The allocation at 0x%x is garbage"),
                ("held", r"The allocation at 0x%x is held by garbage"),
        ):
            address = min(self.truth[word])
            text, errors = self.run_heapcore(core, "explain", f"{address:x}")
            # Nothing in this program marks roots for the collector.
            self.assertEqual(errors, "")
            self.assertIn(sentence % address, text)

    def describe(self, core):
        """The words for what becomes of an allocation."""
        for name, word in (("atrisk", "At-risk"), ("garbage", "Garbage"),
                           ("heldbygarbage", "Garbage-held"),
                           ("unswept", "Unswept")):
            text, _ = self.run_heapcore(core, "describe", name, "--limit", "1")
            self.assertRegex(text, rf"^{word} allocation at 0x[0-9a-f]+ of size")
        text, _ = self.run_heapcore(core, "list", "unswept", "--limit", "1")
        self.assertRegex(text, "^Unswept allocation at ")

    def summarize(self, core):
        """Whose heap the allocations are in."""
        text, _ = self.run_heapcore(core, "summarize", "used")
        counts = {name: int(count.replace(",", ""))
                  for count, name in re.findall(
                      r"Of these, ([\d,]+) allocations? taking .* "
                      r"in the heap of (\w+)\.", text)}
        self.assertEqual(set(counts), {"boehm", "glibc"})
        self.assertEqual(sum(counts.values()), len(self.members(core, "used")))
        objects = len(self.members(core, "collectable")
                      | self.members(core, "uncollectable"))
        self.assertLessEqual(abs(counts["boehm"] - objects), FEW)

    def test_program_that_marks_by_itself(self):
        """What looks at risk in Guile is marked by Guile."""
        if not shutil.which("guile"):
            self.skipTest("there is no guile")
        process = self.start(
            ["guile", "--no-auto-compile", "-c",
             '(display "ready") (newline) (force-output) (sleep 1000)'])
        core = harness.gcore(process, self.folder)
        text, errors = self.run_heapcore(core, "count", "atrisk")
        self.assertNotEqual(text.split()[0], "0")
        self.assertIn("mark functions of its own", errors)

    def test_without_a_collector(self):
        """Nothing is garbage, and nothing at risk."""
        core = self.core("-O2", program="plain")
        for name in ("garbage", "heldbygarbage", "atrisk", "unswept",
                     "collectable", "uncollectable"):
            self.assertEqual(self.members(core, name), set(), name)
        text, _ = self.run_heapcore(core, "summarize", "used")
        self.assertNotIn("heap of", text)


if __name__ == "__main__":
    unittest.main()
