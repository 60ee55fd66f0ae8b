#!/usr/bin/env python3
"""
Who allocated, as programs note it themselves: what heapcore reads from a core is what the program's
own profiler says.
"""

import ast
import os
import re
import unittest

from harness import LiveTest, rows
from script_stacks_test import PYTHONS

TRACED = """
import gc, os, sys, tracemalloc

gc.disable()
tracemalloc.start(4)

import decimal

def texts(count):
    return {f"word {i}": (i, str(i) * 3) for i in range(count)}

class Node:
    def __init__(self, number):
        self.number, self.next = number, None

kept = [[bytearray(1000 + i) for i in range(500)], texts(3000), [Node(i) for i in range(2000)]]
# What take_snapshot() begins with. It makes tuples, and those that were freed and are taken again
# count as allocated there: so all of these are taken before.
tuples = [tuple([None] * size) for size in range(1, 20) for number in range(2000)]
traces = tracemalloc._get_traces()
child = os.fork()
if child == 0:
    inner = reversed if sys.version_info >= (3, 7) else list # the innermost call first
    sums = {}
    for trace in tracemalloc.Snapshot(traces, 4).traces:
        key = " < ".join(f"{os.path.basename(frame.filename)}:{frame.lineno}"
                         for frame in inner(trace.traceback))
        line = list(inner(trace.traceback))[0]
        for one in (key, f"{line.filename}:{line.lineno}"):
            total = sums.setdefault(one, [0, 0])
            total[0] += trace.size
            total[1] += 1
    with open(sys.argv[1], "w") as truth:
        print(sums, file=truth)
    print("ready", flush=True)
    os._exit(0)
os.read(0, 1)
"""


def profile(core, *words):
    return {row["allocated_by"]: [row["bytes"], row["allocations"]]
            for row in rows("profile", "-q", core, "profile", *words)}


class TracemallocTest(LiveTest):
    def check(self, python):
        core, truth = self.core_of_script(python, TRACED)
        with open(truth, encoding="utf-8") as file:
            sums = ast.literal_eval(file.read())
        # Lines that allocate or free once these are taken.
        moving = [f"program:{number}" for number, line in enumerate(TRACED.splitlines(), 1)
                  if re.match(r"traces = |child = |os\.read", line)]
        for found in (profile(core), profile(core, "--by", "line")):
            self.assertGreater(len(found), 5)
            for place, total in found.items():
                if not any(line in place for line in moving):
                    self.assertEqual(total, sums.pop(place), place)
        left = [place for place in sums if not any(line in place for line in moving)]
        self.assertEqual(left, [])

    def test_profile_is_the_snapshot_of_tracemalloc(self):
        # Tables are of one form up to 3.8, and of another from 3.9 on.
        for python in [path for path in PYTHONS if os.path.exists(path) and
                       re.search(r"^/usr|/3\.(8|13)\.", path)]:
            with self.subTest(python):
                self.check(python)


if __name__ == "__main__":
    unittest.main()
