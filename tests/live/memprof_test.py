#!/usr/bin/env python3
"""
What memprof says of a core of testdata/programs/crystal_objects.cr: the counts
against those that the program wrote down, the sizes against what is computed
here from the bytes of the core, the graph against the words that hold its
references.
"""

import collections
import re
import shutil
import struct
import tempfile
import unittest

import crystal_test
import harness

PT_LOAD = 1
POINTER_FREE = "... which is a pointer-free object"


class Memory:
    """The memory that is in a core."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        offset, = struct.unpack_from("<Q", self.bytes, 32)
        count, = struct.unpack_from("<H", self.bytes, 56)
        self.segments = []
        for i in range(count):
            kind, _, start, address, _, size, _, _ = struct.unpack_from(
                "<IIQQQQQQ", self.bytes, offset + 56 * i)
            if kind == PT_LOAD and size:
                self.segments.append((address, address + size, start))

    def words(self, address, size):
        for start, end, offset in self.segments:
            if start <= address and address + size <= end:
                return struct.unpack_from(f"<{size // 8}Q", self.bytes,
                                          offset + address - start)
        raise AssertionError(f"{address:x} is not in the core")


class Heap:
    """Who refers to whom, by the words of the core."""

    def __init__(self, core):
        self.memory = Memory(core.path)
        self.used = core.used
        self.starts = sorted(self.used)
        self.plain = set()
        self.find_plain(core)
        self.targets = {address: self.read(address) for address in self.used}

    def find_plain(self, core):
        """Those that refer to nothing, as the collector knows them."""
        with tempfile.NamedTemporaryFile("w") as script:
            script.writelines(f"describe {address:x}\n"
                              for address in self.used)
            script.flush()
            text = harness.ask("-f", script.name, core.path).stdout
        address = None
        for line in text.splitlines():
            found = re.match(r"Address 0x([0-9a-f]+) is at offset 0x0 of", line)
            if found:
                address = int(found.group(1), 16)
            elif line == POINTER_FREE:
                self.plain.add(address)

    def find(self, word):
        low, high = 0, len(self.starts)
        while low < high:
            middle = (low + high) // 2
            if self.starts[middle] <= word:
                low = middle + 1
            else:
                high = middle
        start = self.starts[low - 1] if low else None
        if start is None or word >= start + self.used[start].size:
            return None
        return start

    def read(self, address):
        if address in self.plain:
            return {}
        words = self.memory.words(address, self.used[address].size)
        found = {8 * i: self.find(word) for i, word in enumerate(words)}
        return {offset: target for offset, target in found.items()
                if target is not None and target != address}

    def reach(self, addresses):
        reached, pending = set(addresses), list(addresses)
        while pending:
            for target in self.targets[pending.pop()].values():
                if target not in reached:
                    reached.add(target)
                    pending.append(target)
        return sum(self.used[address].size for address in reached)


def table(text):
    """Numbers by type, of which the first line says how many there are."""
    first, *lines = text.splitlines()
    if int(first) != len(lines):
        raise AssertionError(f"{first} is not {len(lines)}")
    rows = [re.fullmatch(r"(\d+)\t([^\t]+)", line).groups() for line in lines]
    return {name: int(number) for number, name in rows}


@unittest.skipUnless(crystal_test.ROOT or shutil.which("crystal"),
                     "no crystal; scripts/install-dependencies gets it")
class MemprofTest(unittest.TestCase):
    """One core of a debug build."""

    path = crystal_test.CrystalTest.path
    take_core = crystal_test.CrystalTest.take_core
    dump = crystal_test.CrystalTest.dump

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="heapcore-memprof-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        shutil.copy(crystal_test.PROGRAM, cls.folder)
        crystal_test.compile_program(cls.folder, "memprof", ["--debug"])

    def setUp(self):
        self.truth, self.core = self.take_core("memprof")

    def check_counts(self):
        counts = table(self.core.run("memprof", "counts"))
        for name, count in self.truth.counts.items():
            self.assertEqual(counts[name], count, name)
        named = collections.Counter(self.truth.objects.values())
        for name in ("Hash(String, Int32)", "Fiber"):
            self.assertGreaterEqual(counts[name], named[name])
        self.assertEqual(list(counts.values()),
                         sorted(counts.values(), reverse=True))
        return counts

    def check_sizes(self, heap, counts):
        sizes = table(self.core.run("memprof", "sizes"))
        self.assertEqual(sizes.keys(), counts.keys())
        objects = collections.defaultdict(list)
        for address, found in self.core.used.items():
            if found.is_object:
                objects[found.name].append(address)
        # Garbage is no part of it: the class has some, or it has not.
        checked = [name for name in sizes
                   if len(objects[name]) == counts[name]]
        self.assertGreater(len(checked), 0.9 * len(sizes))
        self.assertEqual({name: sizes[name] for name in checked},
                         {name: heap.reach(objects[name])
                          for name in checked})

    def check_size(self, heap):
        step = len(self.truth.objects) // 20
        for address in list(self.truth.objects)[::step]:
            if address in heap.used:
                self.assertEqual(
                    int(self.core.run("memprof", "size", f"{address:x}")),
                    heap.reach([address]))

    def check_graph(self, heap):
        """All that leads to the keepers, and in which fields."""
        text = self.core.run("memprof", "graph", "Zoo::Keeper",
                             "--levels", "3", "--objects", "2")
        head, *lines = text.splitlines()
        self.assertEqual(head, "graph LR")
        node = r'  0x(\w+)\["0x\1 ([^"]+)"\]'
        keepers = sorted(address for address, name in
                         self.truth.objects.items() if name == "Zoo::Keeper")
        self.assertEqual([re.fullmatch(node, line).groups()
                          for line in lines[:2]],
                         [(f"{address:x}", "Zoo::Keeper")
                          for address in keepers[:2]])
        levels = {address: 0 for address in keepers[:2]}
        found = set()
        for line in lines[2:]:
            edge = re.fullmatch(node + r" --@(.+),(\d)--> 0x(\w+)", line)
            source, target = int(edge[1], 16), int(edge[5], 16)
            self.assertEqual(levels[target], int(edge[4]))
            levels.setdefault(source, levels[target] + 1)
            found.add((source, target))
        expected = {(source, target) for source, targets in
                    heap.targets.items() for target in targets.values()
                    if levels.get(target, 3) < 3}
        self.assertEqual(found, expected)
        self.assertRegex(text, r'Everything"\] --@keepers,2--> ')
        self.assertRegex(text, r'Array\(Zoo::Keeper\)"\] --@buffer,1--> ')
        self.assertRegex(text, r'%CrystalArrayBuffer"\] --@\(field \d+\),0-->')

    def check_allocations(self):
        first, *lines = self.core.run("memprof", "allocations").splitlines()
        self.assertEqual(int(first), len(lines))
        rows = [line.split("\t") for line in lines]
        counts = {row[2]: int(row[0]) for row in rows if row[2] != "(class 0)"}
        for name, count in self.truth.counts.items():
            self.assertEqual(counts[name], count)
        garbage = int(self.core.run("count", "garbage").split()[0])
        self.assertEqual(sum(int(row[0]) for row in rows) + garbage,
                         len(self.core.used))

    def test_all_agrees_with_the_core(self):
        heap = Heap(self.core)
        self.check_sizes(heap, self.check_counts())
        self.check_size(heap)
        self.check_graph(heap)
        self.check_allocations()


if __name__ == "__main__":
    unittest.main()
