#!/usr/bin/env python3
"""
Builds testdata/programs/rust_objects.rs in several ways. In a core of it, values
behind "dyn" have the names of their types, buffers of Vec and String their
patterns, without debug information, and nothing else is taken for one.
"""

import bisect
import collections
import csv
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import harness
import layouts
from harness import LiveTest, addresses, ask

PROGRAM = os.path.join(harness.PROGRAMS, "rust_objects.rs")
TYPES = ["Circle", "Square", "Polygon"]


class Truth:
    """What the program wrote down, by address."""

    def __init__(self, path):
        self.all = collections.defaultdict(dict)
        with open(path, encoding="utf-8") as file:
            for line in file:
                word, *values = line.split()
                if values:
                    self.all[word][int(values[0], 16)] = values[1:]

    def of(self, *words):
        return {address for word in words for address in self.all[word]}

    def of_type(self, name):
        return {address for address, (found,) in self.all["dyn"].items()
                if found == f"rust_objects::{name}"}


@unittest.skipUnless(shutil.which("rustc"), "no rustc")
class RustTest(LiveTest):
    def core(self, *flags, stripped=False, layout=None):
        program, truth = self.path("rust_objects"), self.path("truth")
        harness.build(program, "rustc", *flags, PROGRAM)
        if stripped:
            subprocess.run(["strip", program], check=True)
            # As where a distribution built Rust's library.
            path = pathlib.Path(program)
            path.write_bytes(path.read_bytes().replace(b"/rustc/", b"/build/"))
        process = self.start([program, truth], layout=layout)
        return harness.snap(process, self.path("core")), Truth(truth)

    def check_buffers(self, core, truth):
        vecs = addresses("-q", core, "enumerate", "used", "%RustVecBuffer")
        # A VecDeque is a Vec's words and one more.
        self.assertLessEqual(vecs, truth.of("vec", "deque"))
        # One element of the smallest size says nothing.
        missing = truth.of("vec") - vecs
        self.assertLessEqual(len(missing), len(truth.of("vec")) // 100)
        texts = addresses("-q", core, "enumerate", "used", "%RustString")
        self.assertLessEqual(texts, truth.of("string", "hidden"))
        self.assertEqual(truth.of("string") - texts, set())
        self.check_fill(core, truth)

    def check_fill(self, core, truth):
        """How much of it is in use, as its owner says."""
        for address, (length, capacity) in list(
                truth.all["string"].items())[::100]:
            said = ask("-q", core, "describe", f"{address:x}").stdout
            self.assertIn(f"length {int(length):,}, "
                          f"capacity {int(capacity):,} bytes", said)
            self.assertIn("It is the text of the String at 0x", said)
        has_length = 0
        for address, (length, capacity) in list(
                truth.all["vec"].items())[1::100]:
            said = ask("-q", core, "describe", f"{address:x}").stdout
            self.assertIn(f"capacity {int(capacity):,} elements", said)
            # Where no other Vec tells it from a VecDeque, it is not said.
            if "length" in said:
                self.assertIn(f": length {int(length):,}, ", said)
                has_length += 1
        self.assertGreater(has_length, 0)

    def check_tables(self, core, truth):
        said = ask("-q", core, "describe", "used", "%RustHashTable").stdout
        found = re.findall(r"It is the elements of the HashMap or HashSet at "
                           r"0x([0-9a-f]+).*: length ([\d,]+), capacity "
                           r"([\d,]+) elements", said)
        owners = sorted(truth.all["table"])
        self.assertEqual(len(found), len(owners))
        for header, *numbers in found:
            numbers = [number.replace(",", "") for number in numbers]
            owner = owners[bisect.bisect(owners, int(header, 16)) - 1]
            # A table and the keys of its hashes.
            self.assertLess(int(header, 16) - owner, 6 * 8)
            self.assertEqual(truth.all["table"].pop(owner), numbers)

    def check_types(self, core, truth):
        for name in TYPES:
            with self.subTest(name=name):
                self.assertEqual(addresses("-q", core, "enumerate", "used",
                                           f"rust_objects::{name}"),
                                 truth.of_type(name))

    def check(self, *flags, layout=None):
        core, truth = self.core(*flags, layout=layout)
        self.assertEqual(len(truth.of("dyn")), 900)
        self.check_buffers(core, truth)
        self.check_tables(core, truth)
        self.check_types(core, truth)

    def test_optimised(self):
        self.check("-O")

    def test_not_optimised(self):
        self.check("-C", "debuginfo=0")

    def test_libraries_below_the_program(self):
        self.check("-C", "debuginfo=0", layout=layouts.Layout(legacy=True))

    def test_newer_names_of_symbols(self):
        self.check("-O", "-C", "symbol-mangling-version=v0")

    def test_debug_information(self):
        """What elements of a Vec point to has types."""
        core, truth = self.core("-g")
        for name in "rust_objects::Customer", "rust_objects::Counted":
            made = {address for address, (found,) in truth.all["type"].items()
                    if found == name}
            self.assertEqual(len(made), 300)
            self.assertEqual(addresses("-q", core, "enumerate", "used", name),
                             made)

    def test_stripped(self):
        """The places of their vtables stand for types."""
        core, truth = self.core("-O", stripped=True)
        self.check_buffers(core, truth)
        self.check_tables(core, truth)
        rows = csv.DictReader(ask("-q", core, "list", "used", "--format",
                                  "csv").stdout.splitlines())
        names = {int(row["address"], 16): row["name"] for row in rows
                 if row["row"] == "allocation"}
        found = [{names[address] for address in truth.of_type(name)}
                 for name in TYPES]
        for named in found:
            self.assertEqual(len(named), 1)
            self.assertRegex(*named, r"dyn value \(vtable rust_objects\+0x")
        self.assertEqual(len(set.union(*found)), len(TYPES))


if __name__ == "__main__":
    unittest.main()
