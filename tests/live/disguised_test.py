#!/usr/bin/env python3
"""
What is kept by pointers in disguise counts as leaked; but explain and describe
say of each that it is likely held and where, and of no other, and a gate does
not count it.
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
    "boxed": "a boxed pointer (light userdata)",
    "relative": "a pointer relative to its own address",
}
# Of the packed ones, some are aligned; of lists, the first one is known.
HELD_PLAINLY = {"packed": (COUNT + 7) // 8, "relative": 1}


class Test(harness.LiveTest):
    def start_disguised(self, *words):
        # In high addresses, which random numbers hardly ever are.
        program = self.compile("disguised", "disguised.c",
                               flags=[*harness.FLAGS.split(), "-fPIE", "-pie"])
        return self.start([program, *words])


class Disguised(Test):
    def setUp(self):
        super().setUp()
        process = self.start_disguised()
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

    def test_sums_say_how_many_are_likely_held(self):
        lost = len(self.told["lost"])
        held = len(self.leaked) - lost
        line = f"{held:,} of {len(self.leaked):,} "
        self.assertEqual(
            len(harness.addresses("-q", self.core, "enumerate", "likelyheld")), held)
        for words in (["info"], ["tree", "leaked"], ["report"],
                      ["summarize", "leakroots"]):
            self.assertIn("are likely held by tagged pointers", self.ask(*words))
        self.assertIn(line, self.ask("info"))
        self.assertNotIn("likely held", self.ask("tree", "anchored"))

    def test_gate_counts_only_what_is_certain(self):
        lost = len(self.told["lost"])
        result = harness.run(harness.HEAPCORE, "-q", self.core, "gate")
        self.assertEqual(result.returncode, harness.FOUND)
        self.assertIn(f"Gate failed: {lost:,} allocations leaked", result.stdout)
        self.assertRegex(result.stdout, r"is likely held by a .* in \w+\[")
        result = harness.run(harness.HEAPCORE, "-q", self.core, "gate",
                             "--max-leaked", str(lost))
        self.assertEqual(result.returncode, harness.FINE)
        result = harness.run(harness.HEAPCORE, "-q", self.core, "gate",
                             "--max-leaked", str(lost), "--likely")
        self.assertEqual(result.returncode, harness.FOUND)
        self.assertIn(f"{len(self.leaked):,} leaked allocations, {lost} allowed",
                      result.stdout)


class AmongManyLost(Test):
    """Of much that leaked, the first screen looks at a sample first: it finds the same."""

    def check(self, count, *words, lost=0.99):
        process = self.start_disguised(count, *words)
        core = harness.snap(process, self.path("core"))
        held = len(harness.addresses("-q", core, "enumerate", "likelyheld"))
        leaked = len(harness.addresses("-q", core, "enumerate", "leaked"))
        self.assertGreater(leaked, held + int(count) * lost)
        self.assertIn(f"{held:,} of {leaked:,} leaked are likely held",
                      harness.ask("-q", core, "info").stdout)
        return held

    def test_few_that_are_likely_held_are_seen(self):
        self.assertGreater(self.check("20000"), 5 * COUNT)

    def test_a_large_one_alone_is_seen(self):
        self.assertEqual(self.check("20000", "one"), 1)

    def test_a_part_of_millions_is_seen_in_a_part_of_memory(self):
        self.assertGreater(self.check("2000000", "many", lost=0.95), 60000)


class TrulyLost(harness.LiveTest):
    """10,000 lost blocks among numbers of many kinds, and sizes that lead from one to the next."""

    def test_none_of_them_is_likely_held(self):
        for mode in ("sizes", "constants", "negative"):
            process = self.start([self.compile("lost", "lost_among_numbers.c"), mode])
            core = harness.snap(process, self.path("core"))
            count = harness.tables("-q", core, "count", "likelyheld")
            self.assertEqual(count["total"][0]["count"], 0, mode)
            text = harness.ask("-q", core, "summarize", "leakroots").stdout
            self.assertIn("10,000 leak roots hold", text)
            self.assertNotIn("likely held", text)
            self.assertNotIn("likely held", harness.ask("-q", core, "info").stdout)
            harness.end(process)


if __name__ == "__main__":
    unittest.main()
