#!/usr/bin/env python3
"""
Runs testdata/programs/waste.cpp, and checks that heapcore finds each duplicate
and each block of zeros that it tells of, and, to the byte, the waste of each
kind in each of its types.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE_DIR = os.environ["SOURCE_DIR"]
HEAPCORE = os.environ["HEAPCORE"]
PROGRAM = os.path.join(SOURCE_DIR, "testdata/programs/waste.cpp")
TIMEOUT = 60
VARIANTS = {
    "g++ -O0": ["g++", "-O0"],
    "g++ -O2, stripped": ["g++", "-O2", "-s"],
}


def heapcore(core, *words):
    run = subprocess.run([HEAPCORE, core, *words], capture_output=True,
                         text=True, check=False, timeout=TIMEOUT)
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    return run.stdout


def rows(core, *words):
    """The rows of each table, by the table's name."""
    found = {}
    for line in heapcore(core, *words, "--format", "ndjson").splitlines():
        row = json.loads(line)
        found.setdefault(row.pop("row"), []).append(row)
    return found


def addresses(core, name):
    return {int(line, 16)
            for line in heapcore(core, "enumerate", name).split()}


class Truth:
    def __init__(self, path):
        self.blocks = {"duplicate": set(), "single": set(), "zero": set()}
        self.waste, self.tails = {}, {}
        with open(path, encoding="ascii") as file:
            for line in file:
                self.read(*line.split())

    def read(self, word, *values):
        if word in self.blocks:
            self.blocks[word].add(int(values[0], 16))
        elif word == "waste":
            key = tuple(values[:2])
            self.waste[key] = self.waste.get(key, 0) + int(values[2])
        elif word == "tail":
            self.tails[int(values[0], 16)] = int(values[1])


def is_ready(path):
    if not os.path.exists(path):
        return False
    with open(path, "rb") as file:
        return file.read().endswith(b"ready\n")


def take_core(program, folder):
    truth = os.path.join(folder, "truth")
    with subprocess.Popen([program], stdin=subprocess.DEVNULL,
                          env={**os.environ, "HEAPCORE_TRUTH": truth}) as run:
        try:
            end = time.monotonic() + TIMEOUT
            while not is_ready(truth):
                if run.poll() is not None or time.monotonic() > end:
                    raise AssertionError("the program is not ready")
                time.sleep(0.01)
            prefix = os.path.join(folder, "core")
            subprocess.run(["gcore", "-o", prefix, str(run.pid)], check=True,
                           stdin=subprocess.DEVNULL, capture_output=True)
        finally:
            run.send_signal(signal.SIGKILL)
    return f"{prefix}.{run.pid}", Truth(truth)


class WasteTest(unittest.TestCase):
    def look_at(self, core, truth):
        duplicates, zeros = addresses(core, "duplicates"), addresses(core,
                                                                     "zeros")
        self.assertLessEqual(truth.blocks["duplicate"], duplicates)
        self.assertFalse(truth.blocks["single"] & duplicates)
        self.assertLessEqual(truth.blocks["zero"], zeros)
        self.assertFalse(duplicates & zeros)
        told = rows(core, "waste", "used", "--limit", "10000")
        self.check_types(told["waste by type"], truth)
        self.check_sums(told)
        self.check_blocks(core)
        self.check_tails(core, truth)

    def check_types(self, found, truth):
        by_type = {(row["waste"], row["kind"]): row["bytes"] for row in found}
        for (kind, name), wanted in truth.waste.items():
            if name == "text":  # others have some, too
                self.assertGreaterEqual(by_type[kind, name], wanted)
            else:
                self.assertEqual(by_type.get((kind, name), 0), wanted,
                                 f"{kind} {name}")

    def check_sums(self, told):
        """What is told by type adds up to what is told by kind, and that to
        the total, which is no more than what is used."""
        for row in told["waste"]:
            by_type = [other for other in told["waste by type"]
                       if other["waste"] == row["waste"]]
            self.assertEqual(sum(one["bytes"] for one in by_type),
                             row["bytes"])
        total = told["total waste"][0]
        self.assertEqual(sum(row["bytes"] for row in told["waste"]),
                         total["bytes"])
        self.assertLessEqual(total["bytes"], total["of_bytes"])

    def check_blocks(self, core):
        """Of sizes that only the blocks have."""
        groups = {(row["copies"], row["of_size"])
                  for row in rows(core, "waste", "duplicates", "--limit",
                                  "10000")["content"]}
        self.assertLessEqual({(40, 1000), (50, 24), (30, 1204), (2, 1304)},
                             groups)
        self.assertTrue([size for copies, size in groups
                         if copies == 3 and size >= 300000])
        slack = rows(core, "waste", "slack", "used", "--min-size", "4b4",
                     "--max-size", "4c4")["waste by type"]
        self.assertEqual([(row["kind"], row["allocations"]) for row in slack],
                         [("text", 30)])

    def check_tails(self, core, truth):
        for address, size in truth.tails.items():
            told = rows(core, "waste", "zeros", "allocation", f"{address:x}")
            self.assertEqual(told["total waste"][0]["bytes"], size)

    def test_what_the_program_wastes_is_found(self):
        for name, command in VARIANTS.items():
            with self.subTest(name), tempfile.TemporaryDirectory(
                    prefix="heapcore-waste-") as folder:
                program = os.path.join(folder, "waste")
                subprocess.run([*command, "-o", program, PROGRAM], check=True)
                self.look_at(*take_core(program, folder))


if __name__ == "__main__":
    if subprocess.run(["which", "gcore", "g++"], check=False,
                      capture_output=True).returncode:
        sys.exit(77)
    unittest.main()
