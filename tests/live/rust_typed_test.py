#!/usr/bin/env python3
"""
testdata/programs/rust_typed.rs says where it makes plain structures, to which
collections, counted pointers and values behind "dyn" of Rust's library lead:
all of them have their type by debug information, and nothing else has, such as
what was removed from a collection.
"""

import collections
import os
import re
import shutil
import unittest

import harness
from harness import LiveTest, addresses, ask, snap

PROGRAM = os.path.join(harness.PROGRAMS, "rust_typed.rs")
PLACES = 13
TABLES = {
    "(u8, ())": 1,
    "(u8, rust_typed::Odd)": 1,
    "(u64, rust_typed::Item)": 21,
    "(u64, alloc::boxed::Box<rust_typed::Leaf, alloc::alloc::Global>)": 1,
}


@unittest.skipUnless(shutil.which("rustc"), "no rustc")
class RustTypedTest(LiveTest):
    def check(self, *flags):
        program = harness.build(self.path("rust_typed"), "rustc", "-g", *flags, PROGRAM)
        process = self.start([program])
        truth = collections.defaultdict(set)
        others = collections.defaultdict(set)
        for line in process.said:
            address, _, where = line.strip().partition(" ")
            if address == "made":
                address, _, name = where.partition(" ")
                others[name].add(int(address, 16))
            elif address.startswith("0x"):
                truth[where].add(int(address, 16))
        self.assertEqual(len(truth), PLACES)
        core = snap(process, self.path("core"))
        found = addresses("-q", core, "enumerate", "used", "rust_typed::Leaf")
        for where, made in truth.items():
            with self.subTest(where=where, flags=flags):
                self.assertEqual(made - found, set())
        self.assertEqual(found, set().union(*truth.values()))
        for name, made in others.items():
            with self.subTest(name=name, flags=flags):
                self.assertEqual(addresses("-q", core, "enumerate", "used",
                                           name), made)
        for name, count in TABLES.items():
            with self.subTest(table=name, flags=flags):
                self.assertEqual(len(addresses(
                    "-q", core, "enumerate", "used",
                    f"hash table of {name}")), count)
        return core, truth

    def test_not_optimised(self):
        core, truth = self.check()
        said = ask("-q", core, "describe",
                   f"{min(truth['BTreeMap']):x}").stdout
        self.assertIn("It is of type rust_typed::Leaf (typed: by ", said)
        self.check_elements(core)

    def check_elements(self, core):
        """Keys and values of collections, those that are there."""
        table = ("hash table of (alloc::string::String, alloc::boxed::Box"
                 "<rust_typed::Leaf, alloc::alloc::Global>)")
        shown = ask("-q", core, "show", "used", table).stdout
        self.assertEqual(
            {int(number) for number in re.findall(
                r'\n  \[\d+\] = \{__0 = "the name of number (\d+)", '
                r'__1 = 0x[0-9a-f]+ \(rust_typed::Leaf\)\}', shown)},
            set(range(200)))
        self.assertIn(f"Type {table} has 1 instance ",
                      ask("-q", core, "summarize", "used").stdout)
        described = ask("-q", core, "describe", "used", table).stdout
        self.assertIn(": length 200, capacity 224 elements.", described)
        self.assertIn(f"It is of type {table} (typed: by ", described)
        node = ("alloc::collections::btree::node::{}<alloc::string::String, "
                "alloc::vec::Vec<rust_typed::Item, alloc::alloc::Global>>")
        shown = ask("-q", core, "show", "used", node.format("LeafNode")).stdout
        keys = re.findall(r"\n  keys = \{(.*)\}\n", shown)
        lengths = re.findall(r"\n  len = (\d+)\n", shown)
        self.assertEqual([len(key.split(", ")) for key in keys],
                         [int(length) for length in lengths])
        # One inner node has the others.
        shared = len(lengths) - 1
        self.assertEqual(sum(map(int, lengths)), 50 - shared)
        self.assertEqual(shown.count("(rust_typed::Item[]), len = 10}"),
                         50 - shared)

    def test_optimised(self):
        self.check("-O")


if __name__ == "__main__":
    unittest.main()
