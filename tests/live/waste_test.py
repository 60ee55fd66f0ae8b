#!/usr/bin/env python3
"""
Runs testdata/programs/waste.cpp, and checks that heapcore finds each duplicate
and each block of zeros that it tells of, and, to the byte, the waste of each
kind in each of its types.
"""

import os
import unittest

import harness
from harness import tables

VARIANTS = {
    "g++ -O0": ["-O0"],
    "g++ -O2, stripped": ["-O2", "-s"],
}


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


class WasteTest(harness.LiveTest):
    def look_at(self, core, truth):
        duplicates, zeros = (
            harness.addresses(core, "enumerate", name)
            for name in ("duplicates", "zeros"))
        self.assertLessEqual(truth.blocks["duplicate"], duplicates)
        self.assertFalse(truth.blocks["single"] & duplicates)
        self.assertLessEqual(truth.blocks["zero"], zeros)
        self.assertFalse(duplicates & zeros)
        told = tables(core, "waste", "used", "--limit", "10000")
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
        """What is shown by type adds up to what is shown by kind, and that to
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
                  for row in tables(core, "waste", "duplicates", "--limit",
                                  "10000")["content"]}
        self.assertLessEqual({(40, 1000), (50, 24), (30, 1204), (2, 1304)},
                             groups)
        self.assertTrue([size for copies, size in groups
                         if copies == 3 and size >= 300000])
        slack = tables(core, "waste", "slack", "used", "--min-size", "0x4b4",
                     "--max-size", "0x4c4")["waste by type"]
        self.assertEqual([(row["kind"], row["allocations"]) for row in slack],
                         [("text", 30)])

    def check_tails(self, core, truth):
        for address, size in truth.tails.items():
            told = tables(core, "waste", "zeros", "allocation", f"{address:x}")
            self.assertEqual(told["total waste"][0]["bytes"], size)

    def test_what_the_program_wastes_is_found(self):
        for name, flags in VARIANTS.items():
            with self.subTest(name):
                program = self.compile("waste", "waste.cpp", flags=flags,
                                       compiler="g++")
                truth = self.path("truth")
                process = self.start([program], truth=truth)
                self.look_at(harness.gcore(process, self.folder), Truth(truth))
                os.remove(truth)


if __name__ == "__main__":
    unittest.main()
