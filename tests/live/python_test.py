#!/usr/bin/env python3
"""
Inside CPython: a program writes down where the objects are that it keeps, how
large they are and of what type, where those were that it dropped, and what C
code lost. What it keeps is larger than 512 bytes, too: that is from malloc.
"""

import bisect
import collections
import os
import unittest

import harness

SYSTEM = "/usr/bin/python3"
UNIT, SMALL = 16, 512
# What malloc adds at most to what it is asked for.
ROUNDED = 40
LOST, LOST_SIZE = 400, 200
# Their sizes include that of memory that they have apart.
SEVERAL = ("builtins.list", "builtins.dict", "builtins.set")
# Where a set has the address of its table, which may be in the set itself.
TABLE = 40
# A register or a stack may hold the address that was handed out last.
MOST_HELD = 4

PROGRAM = f"""
import ctypes, os, sys

class Base:
    __slots__ = ()

class Slotted(Base):
    __slots__ = ("a", "b")

class Dropped(Base):
    __slots__ = ("a", "b", "c", "d", "e", "f")

api = ctypes.pythonapi
api.PyMem_Malloc.restype = ctypes.c_void_p
api.PyMem_Malloc.argtypes = [ctypes.c_size_t]
api.PyMem_Free.argtypes = [ctypes.c_void_p]
makes = [
    lambda i: "text" * (i % 200 + 1) + str(i),
    lambda i: b"bytes" * (i % 200 + 1) + b"%d" % i,
    lambda i: i * 1.5,
    lambda i: 10 ** 6 + i,
    lambda i: tuple(range(i % 70 + 21)),
    lambda i: complex(i, i),
    lambda i: Slotted(),
    lambda i: [i, i],
    lambda i: {{i: i}},
    lambda i: set(range(i % 300 + 5)),
]
kept = [make(i) for i in range(3000) for make in makes]
# Of sizes of which none is made once they are dropped.
dropped = [Dropped() for i in range(6000)]
dropped += ["dropped" * (i % 40 + 20) + str(i) for i in range(6000)]
kept += dropped[::3]
del dropped[::3]

def lose(truth):
    '''What held the address of a lost block is itself freed.'''
    holder = api.PyMem_Malloc({LOST_SIZE})
    word = ctypes.c_uint64.from_address(holder + 64)
    word.value = api.PyMem_Malloc({LOST_SIZE})
    print("lost", hex(word.value), file=truth)
    return holder

with open(sys.argv[1], "w") as truth:
    for holder in [lose(truth) for i in range({LOST})]:
        api.PyMem_Free(holder)
    del holder
    for one in kept:
        kind = type(one)
        print("kept", hex(id(one)), sys.getsizeof(one),
              kind.__module__ + "." + kind.__qualname__, file=truth)
        if kind is set:
            table = ctypes.c_uint64.from_address(id(one) + {TABLE}).value
            if table - id(one) not in range(set().__sizeof__()):
                print("table", hex(table), file=truth)
    for one in dropped:
        print("freed", hex(id(one)), file=truth)
del truth, one, kind
ready = b"ready\\n"
dropped.clear()
os.write(1, ready)
os.read(0, 1)
"""


class Truth:
    def __init__(self, path):
        self.kept = {}
        self.freed, self.lost, self.table = set(), set(), set()
        with open(path, encoding="utf-8") as file:
            for line in file:
                word, address, *rest = line.split()
                if word == "kept":
                    self.kept[int(address, 16)] = int(rest[0]), rest[1]
                else:
                    getattr(self, word).add(int(address, 16))


def rows(core, *words, name="allocation"):
    return harness.tables("-q", core, *words)[name]


def sizes(core, *words):
    return {int(row["address"], 16): row["size"]
            for row in rows(core, "list", *words)}


class Blocks:
    """Blocks by the addresses in them."""

    def __init__(self, found):
        self.sizes = found
        self.starts = sorted(found)

    def around(self, address):
        """The start of the block that has the address, or None."""
        number = bisect.bisect_right(self.starts, address) - 1
        if number < 0:
            return None
        start = self.starts[number]
        return start if address - start < self.sizes[start] else None


def fits(size, wanted):
    """Whether a block of that size is given to who asks for wanted bytes."""
    if wanted <= SMALL:
        return size == (wanted + UNIT - 1) // UNIT * UNIT
    return 0 <= size - wanted < ROUNDED


@unittest.skipUnless(os.path.exists(SYSTEM), "no python3 of the system")
class Python(harness.LiveTest):
    def core_of(self, **variables):
        core, truth = self.core_of_script(SYSTEM, PROGRAM, **variables)
        return core, Truth(truth)

    def check_objects(self, core, truth):
        used = Blocks(sizes(core, "used"))
        wrong = collections.Counter()
        for address, (size, kind) in truth.kept.items():
            start = used.around(address)
            if start is None:
                wrong["missed", kind] += 1
            elif kind not in SEVERAL and not fits(used.sizes[start], size):
                wrong[kind, size, used.sizes[start]] += 1
        for address in truth.freed:
            wrong["freed"] += used.around(address) is not None
        self.assertGreater(len(truth.kept), 20000)
        self.assertGreater(len(truth.freed), 4000)
        self.assertEqual(+wrong, collections.Counter())

    def test_blocks_are_as_the_program_says(self):
        core, truth = self.core_of()
        self.check_objects(core, truth)
        arenas = [row for row in rows(core, "list", "arenas", name="arena")
                  if row["allocator"] == "pymalloc"]
        self.assertGreater(len(arenas), 0)
        self.assertGreater(sum(row["used"] for row in arenas),
                           len(truth.kept) // 2)

    def test_what_freed_blocks_hold_is_leaked(self):
        core, truth = self.core_of()
        leaked = set(sizes(core, "leaked"))
        self.assertEqual(len(truth.lost), LOST)
        self.assertLessEqual(len(truth.lost - leaked), MOST_HELD)
        self.assertLessEqual(len(leaked - truth.lost), MOST_HELD)

    def test_without_pymalloc_all_is_from_malloc(self):
        core, truth = self.core_of(PYTHONMALLOC="malloc")
        used = Blocks(sizes(core, "used"))
        self.assertEqual({row["allocator"] for row in
                          rows(core, "list", "arenas", name="arena")},
                         {"glibc"})
        for address in truth.kept:
            self.assertIsNotNone(used.around(address))

    def test_the_tree_of_arenas_is_named(self):
        """It has a part for each 16 GB of addresses, and one above, from Python 3.10 on."""
        version = harness.run(SYSTEM, "-c", "import sys; print(sys.version_info >= (3, 10))")
        core, _ = self.core_of()
        parts = {int(row["arena"], 16) >> 34
                 for row in rows(core, "list", "arenas", name="arena") if row["allocator"] == "pymalloc"}
        self.assertEqual(len(sizes(core, "used", "%PythonArenaMap")),
                         len(parts) + 1 if version.stdout.strip() == "True" else 0)
        core, _ = self.core_of(PYTHONMALLOC="malloc")
        self.assertEqual(sizes(core, "used", "%PythonArenaMap"), {})

    def test_objects_have_the_names_of_their_types(self):
        core, truth = self.core_of()
        found = {int(row["address"], 16): row
                 for row in rows(core, "list", "used")}
        used = Blocks({start: row["size"] for start, row in found.items()})
        wrong = collections.Counter()
        for address, (_, kind) in truth.kept.items():
            name = found[used.around(address)]["name"]
            if name != kind.removeprefix("builtins."):
                wrong[kind, name] += 1
        self.assertEqual(wrong, collections.Counter())

    def test_objects_are_found_by_type_and_base(self):
        core, truth = self.core_of()
        made = collections.Counter(kind for _, kind in truth.kept.values())
        names = ("__main__.Slotted", "__main__.Dropped", "complex")
        for name in names:
            kind = name if "." in name else "builtins." + name
            total = rows(core, "count", "used", name, name="total")[0]
            self.assertEqual(total["count"], made[kind])
        total = rows(core, "count", "used", "__main__.Base", name="total")[0]
        self.assertEqual(total["count"], made["__main__.Slotted"]
                         + made["__main__.Dropped"])

    def test_without_pymalloc_objects_have_names_too(self):
        core, truth = self.core_of(PYTHONMALLOC="malloc")
        kept = {address for address, (_, kind) in truth.kept.items()
                if kind == "__main__.Slotted"}
        found = Blocks(sizes(core, "used", "__main__.Slotted"))
        self.assertEqual(len(found.starts), len(kept))
        self.assertEqual({found.around(address) for address in kept},
                         set(found.starts))

    def test_how_an_object_is_kept_is_told(self):
        core, truth = self.core_of()
        address = next(address for address, (_, kind) in truth.kept.items()
                       if kind == "__main__.Slotted")
        text = harness.ask("-q", core, "describe", f"{address:x}").stdout
        self.assertIn("(__main__.Slotted)", text)
        self.assertIn("kept by a count of 1 reference", text)

    def test_tables_of_sets_are_found(self):
        core, truth = self.core_of()
        self.assertGreater(len(truth.table), 2000)
        found = set(sizes(core, "used", "%PythonSetEntries"))
        self.assertEqual(truth.table - found, set())

    def test_bill_has_arenas_as_a_heap(self):
        core, _ = self.core_of()
        uses = {(row["memory"], row["use"]): row
                for row in rows(core, "bill", name="use")}
        self.assertNotIn(("other memory", "Python's objects"), uses)
        arenas = [row for row in rows(core, "list", "arenas", name="arena")
                  if row["allocator"] == "pymalloc"]
        mapped = sum(row["mapped"] for (memory, _), row in uses.items()
                     if memory == "pymalloc")
        self.assertEqual(mapped, sum(row["size"] for row in arenas))
        self.assertEqual(uses["pymalloc", "used"]["mapped"],
                         sum(row["used_bytes"] for row in arenas))

    def test_side_file_brings_all_of_it_back(self):
        core, _ = self.core_of()
        answers = [harness.ask("--side-file", "-q", core, "list", words).stdout
                   for words in ("used", "leaked", "free", "arenas")
                   for _ in range(2)]
        self.assertEqual(answers[::2], answers[1::2])


if __name__ == "__main__":
    unittest.main()
