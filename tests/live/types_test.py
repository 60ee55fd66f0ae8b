#!/usr/bin/env python3
"""
testdata/programs/typed.c says which type each of its allocations is of. What
heapcore calls them by debug information must be that, however the program was
compiled; without debug information, it calls none by a type.
"""

import collections
import os
import re
import shutil
import unittest

from harness import ROOT, LiveTest, addresses, ask, core_of, needs_i386, snap, tables
from layouts import Layout

UNKNOWN = "?"


class TypesTest(LiveTest):
    def core(self, *flags, compiler="gcc", layout=None):
        """A core, and the allocations of each type as the program has them."""
        program = self.compile("typed", "typed.c", compiler=compiler,
                               flags=flags)
        process = self.start([program], layout=layout)
        truth = collections.defaultdict(set)
        self.last = {}
        for line in process.said:
            address, _, name = line.strip().partition(" ")
            if name:
                self.last[name] = int(address, 16)
                truth[name].add(self.last[name])
        return core_of(process, self.folder, flags), truth

    def check(self, *flags, compiler="gcc", unknown=(), layout=None):
        core, truth = self.core(*flags, compiler=compiler, layout=layout)
        for name in unknown:
            truth[name].discard(self.last[name])
        for name, expected in truth.items():
            with self.subTest(name=name, flags=flags, compiler=compiler):
                if name != UNKNOWN:
                    self.assertEqual(addresses(
                        "-q", core, "enumerate", "used", name),
                        expected)
        named = {row["type"]: row["count"]
                 for row in tables("-q", core, "summarize", "used")["group"]
                 if row.get("type")}
        self.assertEqual(named, {name: len(found)
                                 for name, found in truth.items()
                                 if name != UNKNOWN})

    def test_gcc(self):
        self.check("-g", "-O2")
        self.check("-g", "-O0")

    def test_older_debug_information(self):
        self.check("-gdwarf-4", "-O2")

    def test_packed_debug_information(self):
        self.check("-g", "-gz", "-O2", "-no-pie")

    def test_split_debug_information(self):
        """Where a thread-local variable is, libdw does not tell of it."""
        self.check("-g", "-gsplit-dwarf", "-O1", unknown=["struct order"])

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_clang(self):
        self.check("-g", "-O2", compiler="clang")

    def test_i386(self):
        needs_i386()
        self.check("-g", "-O2", "-m32")
        # The last page of the heap is a mapping of its own, which gdb leaves out.
        self.check("-g", "-O2", "-m32", layout=Layout(legacy=True, unlimited=True, huge=True))

    def test_what_an_address_is_and_why(self):
        core, _ = self.core("-g", "-O2")

        def describe(name, command="describe"):
            return ask("-q", core, command, f"{self.last[name]:x}").stdout

        self.assertIn("It is of type struct customer[] (typed: by "
                      "local.customers of main(), frame ",
                      describe("struct customer[]"))
        self.assertIn("It is of type struct customer (certain: by best (typed",
                      describe("struct customer"))
        self.assertIn("It is of type point[] (typed: by shop.customers[49]"
                      ".shape->corners, 3 steps from shop.customers (typed",
                      describe("point[]"))
        self.assertIn("It is held by hidden (typed", describe("?"))
        self.assertRegex(describe("int[]", "explain"),
                         r" \d+\. \[49\]\.scores -> int\[\] 0x\w+, \d+ bytes\n")

    def test_paths_of_circles_begin_at_variables(self):
        core, _ = self.core("-g", "-O2")

        def describe(name):
            return ask("-q", core, "describe", f"{self.last[name]:x}").stdout

        self.assertIn("It is of type struct box (typed: by lid (typed",
                      describe("struct box"))
        self.assertIn("It is of type block, beginning with struct hull (looks "
                      "like: by cabin (typed",
                      describe("block, beginning with struct hull"))
        for name in self.last:
            with self.subTest(name=name):
                self.assertNotIn("more than 10,000 steps", describe(name))

    def test_what_has_no_type_is_held_by_members(self):
        core, truth = self.core("-g", "-O2")
        self.assertIn(
            "of size 56 (0x38), [0 x7], have "
            f"{len(truth['struct order']) - 1} instances taking 5,600 bytes, "
            "held by struct order.wrapping, as ",
            ask("-q", core, "summarize", "used").stdout)

    def test_what_takes_too_long_is_said(self):
        process = self.start([self.compile("paths", "paths.c",
                                           flags=("-g", "-O2"))])
        core = snap(process, self.path("core"))
        self.assertIn("note: not all types of allocations are inferred: more "
                      "than 1,048,576 paths of members lead to allocations",
                      ask(core, "summarize", "used").stderr)

    def test_many_are_followed_by_address(self):
        """Lists and trees lead to each other's nodes, also by pointers to their first members."""
        program = self.compile("many", os.path.join(ROOT, "bench", "typed.c"),
                               flags=("-g", "-O2"))
        process = self.start([program, "300000"])
        customers, orders = 1 << 16, (300000 - 1 - (2 << 16)) // 3
        core = snap(process, self.path("core"))
        for threads in "1", "4":
            groups = tables("-q", "--threads", threads, core, "summarize", "used")["group"]
            self.assertEqual({row["type"]: row["count"] for row in groups if row.get("type")},
                             {"struct customer *[]": 1, "struct customer": customers,
                              "struct order": orders, "struct line[]": orders,
                              "char[]": customers + orders})

    def test_values(self):
        """As gdb's `p *pointer` has them."""
        for flags in ("-g", "-O2"), ("-gdwarf-4", "-O0"):
            with self.subTest(flags=flags):
                core, truth = self.core(*flags)
                shape, corners = (self.last[name] for name in (
                    "struct shape", "point[]"))
                self.assertEqual(ask(
                    "-q", core, "show", f"{shape:x}").stdout,
                    f"Used allocation at {shape:#x} of size 40 (0x28)\n"
                    "... of type struct shape\n"
                    "  sides = 52\n"
                    "  colour = GREEN\n"
                    "  is_filled = 1\n"
                    "  shade = -3\n"
                    '  title = "round"\n'
                    f"  corners = 0x{corners:x} (point[])\n\n")
                notes = re.findall(
                    '  note = (0x[0-9a-f]+) "to be delivered at the back door"',
                    ask("-q", core, "show", "used", "order").stdout)
                self.assertGreater(len(notes), 9)
                self.assertLessEqual({int(note, 16) for note in notes},
                                     truth["char[]"])
                self.assertIn("  {0 <repeats 22 times>}\n", ask(
                    "-q", core, "show", f"{self.last['int[]']:x}").stdout)
                rows = tables("-q", core, "show", f"{corners:x}")["member"]
                self.assertEqual(
                    rows[51], {"address": f"0x{corners + 51 * 16:x}",
                               "offset": f"0x{51 * 16:x}", "type": "point",
                               "member": "[51]", "value": "{x = 0, y = 0}"})
                # Who asks for bytes gets these.
                self.assertNotIn("sides", ask(
                    "-q", core, "show", f"{shape:x}", "--ascii").stdout)

    def test_without_debug_information(self):
        core, _ = self.core("-O2", "-g0")
        groups = tables("-q", core, "summarize", "used")["group"]
        self.assertFalse([row for row in groups if row.get("type")])
        self.assertIn("unknown", ask("-q", core, "count", "used", "customer",
                                     expected=(2,)).stderr)


if __name__ == "__main__":
    unittest.main()
