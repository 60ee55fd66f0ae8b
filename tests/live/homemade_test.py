#!/usr/bin/env python3
"""
An allocator that is unlike malloc in all that the analyzer might take for
granted: testdata/allocators/homemade.c reads the heap of
testdata/programs/homemade.c, of which two areas lie in blocks of malloc.
"""

import collections
import os
import sys
import unittest

import harness

AREAS, AREA_SIZE = 3, 64 << 10
HEAD = 64
OUTER = "used, around a nested heap"
harness.HEAPCORE = os.path.join(
    os.environ.get("BUILD_DIR") or os.path.join(harness.ROOT, "build"),
    "heapcore_more")


def address(row, column="address"):
    return int(row[column], 16)


class Homemade(harness.LiveTest):
    @classmethod
    def setUpClass(cls):
        cls.truth = collections.defaultdict(dict)
        maker = harness.LiveTest()
        maker.setUp()
        cls.addClassCleanup(maker.doCleanups)
        program = maker.compile("homemade", "homemade.c", "truth.c",
                                flags=harness.FLAGS.split())
        path = maker.path("truth")
        process = maker.start([program], truth=path)
        cls.core = harness.snap(process, maker.path("core"))
        with open(path, encoding="ascii") as file:
            for line in file:
                word, *numbers = line.split()
                if len(numbers) == 2:
                    cls.truth[word][int(numbers[0], 16)] = int(numbers[1])
                elif numbers:
                    cls.truth[word][int(numbers[0])] = None
        cls.outer = list(cls.truth["outer"])  # the one with a head first, wherever they lie

    def ask(self, *words, name="allocation", options=()):
        return harness.tables(*options, self.core, *words)[name]

    def sizes(self, name):
        return {address(row): row["size"] for row in self.ask("list", name)}

    def areas(self):
        """Where each area is."""
        rows = self.ask("list", "arenas", name="arena")
        return sorted(address(row, "arena") for row in rows
                      if row["allocator"] == "homemade")

    def in_areas(self, blocks):
        areas = self.areas()
        return {start: size for start, size in blocks.items()
                if any(start - base in range(AREA_SIZE) for base in areas)}

    def describe(self, place):
        return harness.tables(self.core, "describe", f"{place:x}")

    def test_blocks_are_used_free_and_leaked_as_the_program_says(self):
        used, lost = self.sizes("used"), self.truth["lost"]
        told = self.truth["kept"] | lost
        self.assertEqual(len(self.areas()), AREAS)
        self.assertEqual(self.in_areas(used), self.in_areas(told))
        self.assertEqual(used, used | told)
        self.assertEqual(self.sizes("leaked"), lost)
        free = self.in_areas(self.sizes("free"))
        freed = self.in_areas(self.truth["freed"])
        self.assertEqual(free, free | freed)
        self.assertEqual(len(free), len(freed) + AREAS)
        total = self.ask("count", "used", name="total")[0]
        self.assertEqual(total["bytes"], sum(used.values()))

    def test_no_two_allocations_share_a_byte(self):
        blocks = sorted((self.sizes("used") | self.sizes("free")).items())
        for (start, size), (following, _) in zip(blocks, blocks[1:]):
            self.assertLessEqual(start + size, following)

    def test_address_in_a_nested_heap_leads_to_the_inner_block(self):
        inner = self.in_areas(self.truth["kept"])
        nested = [start for start in inner
                  if start - self.outer[0] in range(HEAD + AREA_SIZE)]
        self.assertGreater(len(nested), 50)
        for start in nested[:3]:
            found = self.describe(start + 5)
            self.assertEqual(address(found["address"][0], "start"), start)
            self.assertEqual(found["address"][0]["size"], inner[start])
            row = found["outer block"][0]
            self.assertEqual(address(row, "outer"), self.outer[0])
            self.assertEqual((row["allocator"], row["nested"]),
                             ("glibc", "homemade"))

    def test_head_of_an_outer_block_is_an_allocation(self):
        row = self.describe(self.outer[0] + 8)["address"][0]
        self.assertEqual(address(row, "start"), self.outer[0])
        self.assertEqual(row["size"], HEAD)
        row = self.describe(self.outer[1])["address"][0]
        self.assertLess(row["size"], HEAD * 8)

    def test_free_blocks_are_described_by_their_allocator(self):
        script = self.path("script")
        with open(script, "w", encoding="ascii") as file:
            for start in self.in_areas(self.truth["freed"]):
                file.write(f"describe {start:x}\n")
        text = harness.ask("-f", script, self.core).stdout
        for i in range(AREAS):
            name = f"which is first on the home-made list of area {i}\n"
            self.assertEqual(text.count(name), 1)

    def test_bill_has_each_byte_once(self):
        rows = self.ask("bill", name="use")
        total = rows.pop()
        uses = {(row["memory"], row["use"]): row for row in rows}
        sizes = self.in_areas(self.sizes("used"))
        freed = self.in_areas(self.truth["freed"])
        self.assertEqual(sum(row["mapped"] for row in rows), total["mapped"])
        used = uses["homemade", "used"]
        self.assertEqual(used["mapped"], sum(sizes.values()))
        self.assertEqual(used["count"], len(sizes))
        free = uses["homemade", "home-made list"]
        self.assertEqual(free["mapped"], sum(freed.values()))
        rest = uses["homemade", "home-made rest"]["mapped"]
        self.assertEqual(used["mapped"] + free["mapped"] + rest,
                         AREAS * AREA_SIZE)
        outer = uses["glibc", OUTER]
        self.assertEqual(outer["count"], len(self.outer))
        whole = sum(self.describe(start)["outer block"][0]["size"]
                    for start in self.outer)
        self.assertEqual(outer["mapped"], whole - 2 * AREA_SIZE)

    def test_fragmentation_adds_up_for_each_area(self):
        arenas = {address(row): row
                  for row in self.ask("fragmentation", name="arena")
                  if row["arena"] == "area"}
        ends = {address(row): row["free_at_end"]
                for row in self.ask("fragmentation", name="heap end")
                if row["arena"] == "area"}
        self.assertEqual(sorted(arenas), self.areas())
        for base, row in arenas.items():
            self.assertEqual(row["used"] + row["free"], AREA_SIZE)
            self.assertEqual(row["largest_free"], ends[base])

    def test_side_file_brings_all_of_it_back(self):
        for words in (("list", "leaked"), ("list", "used")):
            rows = self.ask(*words)
            for _ in range(2):
                self.assertEqual(
                    self.ask(*words, options=("--side-file",)), rows)


if __name__ == "__main__":
    sys.exit(unittest.main())
