"""
What grew between cores of programs that know what they lost.
"""

import os
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

import harness
import layouts
from harness import TIMEOUT, tables

# Half of what it asked for by malloc() is free again when the second core is
# taken.
FIDDLE = """
require "fiddle"
$stdout.sync = true
puts "older"
gets
blocks = Array.new(100_000) { Fiddle.malloc(1024) }
blocks.each_with_index { |block, i| Fiddle.free(block) if i.odd? }
puts "ready"
sleep
"""

# What grows is bytes and numbers, held by lists, deep and not; and sets of several variables.
HOLDERS = """
import array, sys
class Market:
    def __init__(self):
        self.frames, self.quotes = [], {}
market, one, two, three = Market(), [], [], []
def grow(first):
    for i in range(first, first + 3000):
        market.frames.append(b"%d" % i * 200)
        market.quotes.setdefault(i % 50, set()).add(i * 1.5)
        for group in one, two, three:
            group.append(array.array("d", [i] * 40))
grow(0)
print("older", flush=True)
sys.stdin.readline()
grow(3000)
print("ready", flush=True)
sys.stdin.readline()
"""


class Subject:
    """A program that goes on when it reads a line, and cores of it."""

    def __init__(self, folder, command):
        self.folder = folder
        # A number over half of a stale pointer is no address of the large registry then.
        self.process = subprocess.Popen(
            layouts.still(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        harness.end(self.process)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().strip()

    def snap(self, name):
        return harness.snap(self.process, os.path.join(self.folder, name))


class Load:
    """Requests without a pause, from a thread of its own."""

    BATCH = 1000

    def __init__(self, server):
        self.server = server
        self.lost = 0
        self.ended = False
        self.thread = threading.Thread(target=self.serve)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.thread.join()

    def serve(self):
        while not self.ended:
            self.server.tell(str(self.BATCH))
            self.lost = int(self.server.answer())

    def wait_for(self, lost):
        end = time.monotonic() + TIMEOUT
        while self.lost < lost and time.monotonic() < end:
            time.sleep(0.01)


class DiffTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="heapcore-diff-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.server = harness.build(os.path.join(cls.folder, "slow_leak"), "g++", "-O1", "-g",
                                   os.path.join(harness.PROGRAMS, "slow_leak.cpp"))

    def server_cores(self, name, phases):
        cores, lost = [], []
        with Subject(self.folder, [self.server]) as server:
            for phase in range(phases):
                server.tell("2000")
                lost.append(int(server.answer()))
                cores.append(server.snap(f"{name}.{phase}"))
        return cores, lost

    def test_slow_leak_is_named_with_its_rate(self):
        cores, lost = self.server_cores("slow", 5)
        leaked = lost[-1] - lost[0]
        found = tables("diff", *cores, "--elapsed", "2h")
        self.assertIn("the cores are not in order of time",
                      harness.ask("diff", cores[1], cores[0], *cores[2:]).stderr)
        self.assertEqual(found["comparison"][0]["relation"], "One process")
        first = found["growth"][:3]
        self.assertEqual({row["kind"] for row in first},
                         {"server::Session", "server::Profile",
                          "std::map<int, int> node"})
        self.assertEqual({row["grew"] for row in first}, {"always"})
        self.assertTrue(all(row["grew"] == "at times"
                            for row in found["growth"][3:]), found["growth"])
        sessions = first[0]
        self.assertEqual(sessions["kind"], "server::Session")
        self.assertEqual(sessions["growth_count"], leaked)
        self.assertEqual(sessions["per_hour"], sessions["growth"] // 2)
        turnover = found["turnover"][0]
        self.assertEqual(
            (turnover["now"], turnover["new"], turnover["gone"],
             turnover["survived"]),
            (lost[-1], leaked, 0, lost[0]))
        steps = [row["growth_count"] for row in found["step"]
                 if row["kind"] == "server::Session"]
        self.assertEqual(steps, [b - a for a, b in zip(lost, lost[1:])])
        self.check_sets(cores, leaked, lost[0])

    def test_slow_leak_is_named_under_load(self):
        interval, lost, cores = 3000, [0], []
        with Subject(self.folder, [self.server]) as server, \
                Load(server) as load:
            for number in range(5):
                load.wait_for(lost[-1] + interval)
                lost.append(load.lost)
                cores.append(server.snap(f"load.{number}"))
                lost.append(load.lost)
        found = tables("diff", *cores)
        first = found["growth"][:3]
        self.assertEqual([row["kind"] for row in first],
                         ["server::Session", "server::Profile",
                          "std::map<int, int> node"])
        self.assertEqual({row["grew"] for row in first}, {"always"})
        # What is being served at the moment may be lost already, or not yet.
        batch = Load.BATCH // 10 + 1
        growth = first[0]["growth_count"]
        self.assertGreaterEqual(growth, lost[-2] - lost[2] - batch)
        self.assertLessEqual(growth, lost[-1] - lost[1] + batch)
        seconds = found["comparison"][0]["seconds"]
        if seconds < 60:  # an hour's growth is not told by seconds
            self.assertIsNone(first[0]["per_hour"])
        else:
            self.assertAlmostEqual(first[0]["per_hour"] * seconds / 3600, first[0]["growth"],
                                   delta=first[0]["growth"] / 100)

    def check_sets(self, cores, leaked, first):
        for words, expected in (
            ("count new server::Session", leaked),
            ("count survived server::Session", first),
            ("count used server::Session minus new minus survived", 0),
        ):
            count = tables("--compare", cores[0], cores[-1], *words.split())
            self.assertEqual(count["total"][0]["count"], expected, words)
        owners = tables("diff", cores[0], cores[-1], "--by", "owner")
        self.assertEqual(
            [row["kind"] for row in owners["growth"][:2]],
            ["server::registry (slow_leak)", "server::Session"])

    def test_different_runs_are_compared_by_kind(self):
        cores, lost = self.server_cores("one", 1)
        more, more_lost = self.server_cores("other", 3)
        found = tables("diff", cores[0], more[2])
        self.assertEqual(found["comparison"][0]["relation"], "Different runs")
        self.assertIsNone(found["comparison"][0]["seconds"])
        self.assertNotIn("turnover", found)
        counts = {row["kind"]: row["growth_count"]
                  for row in found["growth"]}
        self.assertEqual(counts["server::Session"], more_lost[2] - lost[0])
        result = harness.run(harness.HEAPCORE, "--quiet", "--compare", cores[0], more[2], "count", "new")
        self.assertEqual(result.returncode, 2)
        self.assertIn("of the same process", result.stderr)

    def test_a_core_without_contents_is_of_the_same_process(self):
        """Its note has a hash of what AT_RANDOM leads to."""
        cores, lost = self.server_cores("whole", 2)
        slim = os.path.join(self.folder, "slim")
        harness.ask("slim", cores[0], "-o", slim)
        found = tables("diff", slim, cores[1])
        comparison = found["comparison"][0]
        self.assertEqual((comparison["relation"], comparison["reason"]),
                         ("One process", "AT_RANDOM, program and process id match"))
        self.assertEqual(found["turnover"], tables("diff", *cores)["turnover"])
        sessions = next(row for row in found["turnover"] if row["kind"] == "server::Session")
        self.assertEqual((sessions["new"], sessions["survived"]), (lost[1] - lost[0], lost[0]))
        other = self.server_cores("elsewhere", 1)[0][0]
        comparison = tables("diff", slim, other)["comparison"][0]
        self.assertEqual((comparison["relation"], comparison["reason"]),
                         ("Different runs", "AT_RANDOM differs"))

    def growing_cores(self, *flags):
        """Of a program in C, which keeps 5,000 more connections and 300 more
        orders, and loses 400 connections."""
        program = harness.build(os.path.join(self.folder, "growing"), "gcc", *flags,
                                "-D_GNU_SOURCE",
                                os.path.join(harness.PROGRAMS, "growing.c"))
        with Subject(self.folder, [program]) as process:
            cores = []
            for line in "2500 100 100", "5000 300 400":
                process.tell(line)
                process.answer()
                cores.append(process.snap(f"growing.{len(cores)}"))
        return cores

    def test_types_that_grew_are_named(self):
        growth = {row["kind"]: (row["growth_count"], row["growth"])
                  for row in tables("diff", *self.growing_cores("-g", "-O1"))["growth"]}
        self.assertEqual(growth["struct conn"], (5000, 5000 * 72))
        self.assertEqual(growth["struct order"], (300, 300 * 104))
        # A stale word on the stack may hold the last one.
        lost, size = growth["probably struct conn"]
        self.assertAlmostEqual(lost, 400, delta=2)
        self.assertEqual(size, lost * 72)

    def test_without_debug_information_sizes_grew(self):
        growth = {row["kind"]: row["growth_count"]
                  for row in tables("diff", *self.growing_cores("-g0", "-O1"))["growth"]}
        self.assertEqual(growth["unrecognized of size 72 (0x48)"], 5400)
        self.assertFalse([kind for kind in growth if "struct" in kind])

    @unittest.skipUnless(shutil.which("ruby"), "there is no Ruby")
    def test_blocks_of_fiddle_are_the_growth(self):
        with Subject(self.folder, ["ruby", "-e", FIDDLE]) as ruby:
            ruby.answer()
            before = ruby.snap("before")
            ruby.tell("")
            ruby.answer()
            after = ruby.snap("after")
        first = tables("diff", before, after)["growth"][0]
        self.assertEqual(first["kind"],
                         "unrecognized of size 1,032 (0x408)")
        # What is left of a free block may be too small to be cut off.
        self.assertAlmostEqual(first["growth_count"], 50_000, delta=20)

    @unittest.skipUnless(os.path.exists("/usr/bin/python3"), "no python3 of the system")
    def test_the_holder_of_growth_is_named_as_the_program_names_it(self):
        with Subject(self.folder, ["/usr/bin/python3", "-c", HOLDERS]) as python:
            python.answer()
            before = python.snap("before")
            python.tell("")
            python.answer()
            after = python.snap("after")
        places = {row["holder"]: row["place"]
                  for row in tables("diff", before, after)["holder growth"]}
        self.assertEqual(places["list"], "__main__.market.frames")
        self.assertEqual(places["set"], "__main__.market.quotes")
        # Three variables hold a third of them each.
        self.assertNotIn(places["array.array"],
                         ("__main__.one", "__main__.two", "__main__.three"))

    def test_older_core_that_is_cut_off_leaves_doubt(self):
        cores, _ = self.server_cores("whole", 1)
        cut = os.path.join(self.folder, "cut")
        with open(cores[0], "rb") as core, open(cut, "wb") as file:
            file.write(core.read()[:os.path.getsize(cores[0]) // 2])
        result = harness.run(harness.HEAPCORE, "--quiet", "diff", cut, cores[0])
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn(f"warning: {cut}: ", result.stderr)


if __name__ == "__main__":
    unittest.main()
