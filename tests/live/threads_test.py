#!/usr/bin/env python3
"""
A heap of which two allocations and some hundred others have nearly all bytes
(testdata/programs/tables.c) is analysed by 1, 3 and 16 threads: each finds what
the program lost, all answer the same, and no thread has much to do in one go.

Takes the options of live_test.py that say how to compile.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import harness
import live_test

THREADS = (1, 3, 16)
QUESTIONS = """\
count used
summarize used
summarize leaked
list leakroots
count used --min-incoming 20
explain leaked --limit 3
enumerate leaked
"""
# Of any loop, in bytes or references; and how much more than its share one of
# so many threads would have if all were equally fast.
MOST_AT_ONCE = 4 << 20
MOST_UNEVEN = 1.25
# Loops of less have too few turns to be even.
LEAST_WORK = 64 << 20


class Threads(unittest.TestCase):
    options = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="heapcore-threads-")
        cls.addClassCleanup(cls.folder.cleanup)
        try:
            cls.core = cls.take_core(cls.folder.name)
        except harness.Skipped as reason:
            raise unittest.SkipTest(str(reason)) from reason

    @classmethod
    def take_core(cls, directory):
        live_test.PROGRAMS = {"tables": [[]]}
        cls.options.programs = os.path.join(directory, "programs")
        live_test.build(cls.options, cls.options.programs)
        case = live_test.Case("tables", "", [], None)
        process = live_test.start(cls.options, case, directory)
        try:
            return harness.gcore(process, directory)
        finally:
            harness.end(process)

    def lost(self):
        path = os.path.join(self.folder.name, "truth")
        with open(path, encoding="ascii") as file:
            lines = [line.split() for line in file]
        return {int(line[1], 16) for line in lines if line[0] == "lost"}

    def run_heapcore(self, threads, *arguments):
        run = subprocess.run(
            [harness.HEAPCORE, "--threads", str(threads), *arguments],
            capture_output=True, text=True, timeout=120, check=False,
            stdin=subprocess.DEVNULL)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run

    def test_answers_do_not_depend_on_threads(self):
        script = os.path.join(self.folder.name, "script")
        with open(script, "w", encoding="ascii") as file:
            file.write(QUESTIONS)
        answers = [self.run_heapcore(threads, "-f", script, self.core).stdout
                   for threads in THREADS]
        self.assertEqual(answers[1], answers[0])
        self.assertEqual(answers[2], answers[0])
        lost = self.lost()
        self.assertGreater(len(lost), 20000)
        listed = {int(word, 16) for word in answers[0].split()[-len(lost):]}
        self.assertEqual(listed, lost)

    def test_no_thread_has_much_to_do_in_one_go(self):
        for command in ("summarize leaked", "summarize used --min-incoming 1"):
            run = self.run_heapcore(16, "-v", "--format", "json", self.core,
                                    command)
            tables = json.loads(run.stderr)["tables"]
            loops = next(table["rows"] for table in tables
                         if table["name"] == "split")
            self.check_loops(loops)

    def check_loops(self, loops):
        tasks = {loop["task"]: loop for loop in loops}
        scan = tasks["scanning for references"]
        self.assertGreater(scan["work"], 90 << 20)
        for loop in loops:
            self.assertLessEqual(loop["at_once"], MOST_AT_ONCE, loop)
            if loop["work"] >= LEAST_WORK and loop["if_even"] is not None:
                self.assertLess(loop["if_even"],
                                MOST_UNEVEN * loop["work"] / 16, loop)


if __name__ == "__main__":
    Threads.options = live_test.parse_options()
    unittest.main(argv=sys.argv[:1])
