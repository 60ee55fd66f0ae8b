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
import subprocess
import tempfile
import time
import unittest

SOURCE_DIR = os.environ["SOURCE_DIR"]
HEAPCORE = os.environ["HEAPCORE"]
PROGRAMS = os.path.join(SOURCE_DIR, "testdata/programs")
SOURCES = [os.path.join(PROGRAMS, name) for name in ("at_risk.c", "truth.c")]
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pthread"]
TIMEOUT = 60
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
class AtRiskTest(unittest.TestCase):
    """The truth of at_risk.c against the sets of heapcore."""

    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="heapcore-at-risk-")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.truth = collections.defaultdict(set)

    def path(self, name):
        return os.path.join(self.folder, name)

    def core(self, *flags):
        subprocess.run(["cc", *FLAGS, *flags, "-o", self.path("at_risk"),
                        *SOURCES, "-lgc"], check=True)
        process = subprocess.Popen(
            [self.path("at_risk")],
            env={**os.environ, "HEAPCORE_TRUTH": self.path("truth")})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + TIMEOUT
        while not self.read_truth():
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        subprocess.run(["gcore", "-o", self.path("core"), str(process.pid)],
                       check=True, stdin=subprocess.DEVNULL,
                       capture_output=True)
        return f"{self.path('core')}.{process.pid}"

    def read_truth(self):
        if not os.path.exists(self.path("truth")):
            return False
        with open(self.path("truth"), encoding="ascii") as file:
            text = file.read()
        if not text.endswith("ready\n"):
            return False
        for word, address, _ in map(str.split, text.splitlines()[:-1]):
            self.truth[word].add(int(address, 16))
        return True

    def run_heapcore(self, core, *command):
        run = subprocess.run([HEAPCORE, core, *command], capture_output=True,
                             text=True, check=False, timeout=TIMEOUT)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout, run.stderr

    def members(self, core, name):
        text, _ = self.run_heapcore(core, "enumerate", name)
        return {int(line, 16) for line in text.split()}

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
        core = self.core("-g", "-O2")
        self.compare(core)
        self.explain(core)
        self.describe(core)
        self.summarize(core)

    def test_stripped(self):
        self.compare(self.core("-O1", "-s"))

    def test_static(self):
        self.compare(self.core("-O2", "-static"))

    def test_static_and_stripped(self):
        self.compare(self.core("-O2", "-static", "-s"))

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
            self.assertRegex(text, rf"^{word} allocation at [0-9a-f]+ of size")
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
        with subprocess.Popen(
                ["guile", "--no-auto-compile", "-c",
                 '(display "ready") (newline) (force-output) (sleep 1000)'],
                stdout=subprocess.PIPE, text=True) as process:
            try:
                self.assertEqual(process.stdout.readline(), "ready\n")
                subprocess.run(
                    ["gcore", "-o", self.path("core"), str(process.pid)],
                    check=True, stdin=subprocess.DEVNULL, capture_output=True)
            finally:
                process.kill()
        core = f"{self.path('core')}.{process.pid}"
        text, errors = self.run_heapcore(core, "count", "atrisk")
        self.assertNotEqual(text.split()[0], "0")
        self.assertIn("by functions of its own", errors)

    def test_without_a_collector(self):
        """Nothing is garbage, and nothing at risk."""
        program = self.path("plain")
        subprocess.run(["cc", *FLAGS, "-O2", "-o", program,
                        os.path.join(PROGRAMS, "plain.c"), SOURCES[1]],
                       check=True)
        self.truth.clear()
        process = subprocess.Popen(
            [program], env={**os.environ,
                            "HEAPCORE_TRUTH": self.path("truth")})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while not self.read_truth():
            time.sleep(0.05)
        subprocess.run(["gcore", "-o", self.path("core"), str(process.pid)],
                       check=True, stdin=subprocess.DEVNULL,
                       capture_output=True)
        core = f"{self.path('core')}.{process.pid}"
        for name in ("garbage", "heldbygarbage", "atrisk", "unswept",
                     "collectable", "uncollectable"):
            self.assertEqual(self.members(core, name), set(), name)
        text, _ = self.run_heapcore(core, "summarize", "used")
        self.assertNotIn("heap of", text)


if __name__ == "__main__":
    unittest.main()
