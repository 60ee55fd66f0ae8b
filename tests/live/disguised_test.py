#!/usr/bin/env python3
"""
What is kept by pointers in disguise counts as leaked, as before; but explain
and describe say of each that it is likely held and where, and of no other.
"""

import json
import unittest

import harness

COUNT = 50
HOW = {
    "tagged": "a tagged pointer",
    "shifted": "a pointer above a tag of 16 bits",
    "past": "a pointer one past its end",
    "before": "a pointer just before its start",
    "packed": "a pointer packed at an odd address",
    "linked": "a link of a list, the XOR of two addresses",
}
# Of the packed ones, some are aligned; of the list, the first two are known.
HELD_PLAINLY = {"packed": (COUNT + 7) // 8, "linked": 2}


class Disguised(harness.LiveTest):
    def setUp(self):
        super().setUp()
        # In high addresses, which random numbers hardly ever are.
        program = self.compile("disguised", "disguised.c",
                               flags=[*harness.FLAGS.split(), "-fPIE", "-pie"])
        process = self.start([program])
        self.told = {}
        for line in process.said:
            how, address = line.split()
            self.told.setdefault(how, set()).add(int(address, 16))
        self.core = harness.snap(process, self.path("core"))
        self.leaked = harness.addresses("-q", self.core, "enumerate", "leaked")

    def ask(self, *words):
        return harness.ask("-q", self.core, *words).stdout

    def test_each_leak_that_is_likely_held_is_told_with_its_place(self):
        document = json.loads(harness.ask(
            "-q", "--format", "json", self.core, "describe", "leaked").stdout)
        held = {int(row["target"], 16): row
                for table in document["tables"]
                if table["name"] == "likely held" for row in table["rows"]}
        for how, text in HOW.items():
            leaked = self.told[how] & self.leaked
            self.assertGreaterEqual(len(leaked),
                                    COUNT - HELD_PLAINLY.get(how, 0), how)
            names = {held[address]["how"] if address in held else None
                     for address in leaked}
            if how == "shifted":
                # What has zeros behind it could be either.
                names.discard(HOW["packed"])
            self.assertEqual(names, {text})
        self.assertEqual(self.told["lost"] - self.leaked, set())
        self.assertEqual(self.told["lost"] & held.keys(), set())

    def test_explain_names_the_variable(self):
        for how, name in (("tagged", "tagged["), ("packed", "packed[")):
            address = max(self.told[how] & self.leaked)
            text = self.ask("explain", f"{address:x}")
            self.assertIn(f"The allocation at 0x{address:x} is likely held by "
                          f"{HOW[how]} at 0x", text)
            self.assertIn(f" in {name}", text)
            self.assertRegex(text, r"looks like that once in \d")

    def test_gate_counts_them_and_says_so_of_its_examples(self):
        result = harness.run(harness.HEAPCORE, "-q", self.core, "gate")
        self.assertEqual(result.returncode, harness.FOUND)
        self.assertIn(f"{len(self.leaked):,} leaked allocations", result.stdout)
        self.assertRegex(result.stdout, r"is likely held by a .* in \w+\[")


if __name__ == "__main__":
    unittest.main()
