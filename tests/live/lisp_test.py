#!/usr/bin/env python3
"""
Objects of Guile and of ECL in cores of testdata/programs/guile_objects.scm and
ecl_objects.lisp, which make a number of each kind.

An interpreter has many objects of its own, so each script is run for COUNT and
for ten times as many: what there is more of must be MORE. The interpreter's own
work leaves objects behind, as words on its stack still look like references to
them, and not the same in each run: of pairs, over a hundred. A twentieth of
MORE may be there or not for that; a kind taken for another shows.
"""

import os
import shutil
import struct
import unittest

import harness
import memprof_test

COUNT = 1000
MORE = 9 * COUNT
SLACK = MORE // 20
SLACK_OF_NONE = 12
WASTE = 8  # of what was dropped, so many may stand somewhere yet

GUILE = {
    "GuileFlonum": 1, "GuileVector": 3, "GuileString": 1,
    "GuileText": 2, "GuileSymbol": 1, "GuileBytevector": 1,
    "GuileHashTable": 1, "GuileBignum": 1, "GuileFraction": 1,
    "GuileComplex": 1, "GuileProcedure": 1, "GuilePair": 1,
    "GuileKeyword": 0, "GuileVariable": 0, "GuileStruct": 0,
}
ECL = {
    "EclDoubleFloat": 2, "EclSingleFloat": 1, "EclVector": 1, "EclArray": 1,
    "EclString": 3, "EclSymbol": 1, "EclBignum": 1, "EclRatio": 1,
    "EclInstance": 1, "EclSlots": 1, "EclHashTable": 1, "EclHashEntries": 1,
    "EclCons": 1, "EclFunction": 0, "EclPackage": 0,
}


class Core:
    def __init__(self, path):
        self.path = path
        self.memory = memprof_test.Memory(path)

    def run(self, *words):
        return harness.ask("-q", self.path, *words).stdout

    def count(self, *words):
        return harness.number(self.run("count", *words).split()[0])

    def addresses(self, *words):
        return [int(line, 16) for line in self.run("enumerate",
                                                   *words).split()]


class LispTest(harness.LiveTest):
    def take_core(self, *command):
        return Core(harness.gcore(self.start(command), self.folder))

    def check_counts(self, few, many, kinds):
        for kind, times in kinds.items():
            before = few.count("used", f"%{kind}")
            self.assertGreaterEqual(before, times * COUNT, kind)
            self.assertAlmostEqual(
                many.count("used", f"%{kind}") - before, times * MORE,
                delta=SLACK if times else SLACK_OF_NONE, msg=kind)

    def check_numbers(self, core, kind):
        """All that were made, and hardly one that was dropped."""
        numbers = {struct.unpack("<d", struct.pack(
            "<Q", core.memory.words(address, 16)[1]))[0]
                   for address in core.addresses("used", f"%{kind}")}
        self.assertLessEqual({i + 0.5 for i in range(COUNT)}, numbers)
        dropped = {-0.25 - i for i in range(COUNT)} & numbers
        self.assertLessEqual(len(dropped), WASTE)

    def check_owners(self, core, kind, words):
        found = core.addresses("used", f"%{kind}")
        text = core.run("describe", f"{found[len(found) // 2]:x}")
        self.assertIn(f"This allocation matches pattern {kind}.", text)
        self.assertIn(words, text)

    @unittest.skipUnless(shutil.which("guile"), "no guile; scripts/"
                         "install-dependencies gets it")
    def test_objects_of_guile_are_counted(self):
        script = os.path.join(harness.PROGRAMS, "guile_objects.scm")
        few, many = (self.take_core("guile", "--no-auto-compile", script,
                                    str(count))
                     for count in (COUNT, COUNT + MORE))
        self.check_counts(few, many, GUILE)
        self.check_numbers(few, "GuileFlonum")
        self.check_owners(few, "GuileSymbol", "It is a symbol of Guile.")
        texts = b"".join(
            struct.pack("<4Q", *few.memory.words(address, 32)) + b"\n"
            for address in few.addresses("used", "%GuileText", "--min-size",
                                         "32", "--max-size", "32"))
        for i in range(COUNT):
            self.assertIn(b"text number %d\0" % i, texts)

    @unittest.skipUnless(shutil.which("ecl"), "no ecl; scripts/"
                         "install-dependencies gets it")
    def test_objects_of_ecl_are_counted(self):
        script = os.path.join(harness.PROGRAMS, "ecl_objects.lisp")
        few, many = (self.take_core("ecl", "--norc", "--load", script, "--",
                                    str(count))
                     for count in (COUNT, COUNT + MORE))
        self.check_counts(few, many, ECL)
        self.check_numbers(few, "EclDoubleFloat")
        self.check_owners(few, "EclSlots",
                          "It is the slots of the instance of ECL at 0x")


if __name__ == "__main__":
    unittest.main()
