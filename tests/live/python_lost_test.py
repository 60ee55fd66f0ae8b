#!/usr/bin/env python3
"""
What a program in Python loses: objects whose count of references C code left
too high, and cycles that the collector did not free, as it is switched off.
"""

import os
import struct
import unittest

import core_file
import harness
import layouts
import python_test

LOST, CYCLES = 100, 1000
INCOMPLETE = (0, 3)  # statuses, also of a damaged core
WORD, POOL = 8, 16 << 10  # bytes; multiples of 4 KiB are pools up to 3.9
# Of cycles: words on the stack may hold two, with all that they lead to.
MOST_HELD = 2 * CYCLES // 200

PROGRAM = f"""
import ctypes, gc, os, sys, weakref

api = ctypes.pythonapi
api.Py_IncRef.argtypes = [ctypes.py_object]

watchers = []

class Lost:
    __slots__ = ("part", "table")

class Node:
    pass

class Live:
    pass

class Bare:
    __slots__ = ("__dict__",)

def write(truth, word, *ones):
    for one in ones:
        print(word, hex(id(one)), file=truth)

def lose(number, truth):
    one = Lost()
    one.part, one.table = [number] * 40, {{number: one.__class__}}
    api.Py_IncRef(one)
    write(truth, "lost", one)
    write(truth, "part", one.part, one.table)

def drop(number, truth):
    one, other = Node(), Node()
    one.other, other.other, one.part = other, one, [number] * 40
    watchers.append(weakref.ref(one))
    write(truth, "cycle", one, other)

def keep(number, truth):
    one, other = Live(), Live()
    one.other, other.other, one.part = other, one, [number] * 40
    write(truth, "live", one, other, one.part)
    return one

# What it calls for each is called by C, whose part of the stack is used anew afterwards.
def repeat(number, function):
    return list(map(function, range(number)))

def overwrite(depth):
    values = [depth] * 10
    return depth and repeat(1, lambda i: overwrite(depth - 1))

SWITCH
with open(sys.argv[1], "w") as truth:
    print("version", hex(sys.hexversion), file=truth)
    repeat({LOST}, lambda i: lose(i, truth))
    repeat({CYCLES}, lambda i: drop(i, truth))
    kept = repeat({CYCLES}, lambda i: keep(i, truth))
    # Objects of 48 bytes behind 32 of header: the block after each is 16 bytes away.
    bare = repeat(100, lambda i: Bare())
    write(truth, "live", *bare)
spare = [Lost() for i in range(100)]
overwrite(100)
FREEZE
os.write(1, b"ready\\n")
os.read(0, 1)
"""


# A type whose function for the collector waits: the process stops in the middle
# of a collection, when the links of all older objects have counts in them.
TRAP = """
class Slot(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int), ("function", ctypes.c_void_p)]

class Spec(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("size", ctypes.c_int),
                ("item", ctypes.c_int), ("flags", ctypes.c_uint),
                ("slots", ctypes.POINTER(Slot))]

TRAVERSE, COLLECTED = 71, 1 << 14
pause = ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p)
slots = (Slot * 2)(Slot(TRAVERSE, pause.value))
spec = Spec(b"trap.Trap", 16, 0, COLLECTED, slots)
api.PyType_FromSpec.restype = ctypes.py_object
trap = api.PyType_FromSpec(ctypes.byref(spec))()
parent = os.getpid()
if os.fork() == 0:
    state = "R"
    while state != "S":
        with open(f"/proc/{parent}/stat") as file:
            state = file.read().rpartition(")")[2].split()[0]
    os.write(1, b"ready\\n")
    os._exit(0)
gc.collect()
"""


def read_truth(path):
    truth = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            word, address = line.split()
            truth.setdefault(word, set()).add(int(address, 16))
    return truth


def is_noted(truth):
    """Where the collector's state is known."""
    return 0x0307 <= max(truth["version"]) >> 16 <= 0x030d


def write_words(core, words):
    """Overwrite words of the core, by address."""
    opened = core_file.Core(core)
    with open(core, "r+b") as file:
        for address, word in words.items():
            file.seek(opened.offset_of(address))
            file.write(struct.pack("<Q", word))
    opened.close()


@unittest.skipUnless(os.path.exists(python_test.SYSTEM),
                     "no python3 of the system")
class Lost(harness.LiveTest):
    def core_of(self, switch, freeze="", **variables):
        text = PROGRAM.replace("SWITCH", switch).replace("FREEZE", freeze)
        core, truth = self.core_of_script(python_test.SYSTEM, text, **variables)
        return core, read_truth(truth)

    def find(self, core, words, addresses, expected=(harness.FINE,)):
        rows = harness.tables("-q", core, "list", *words.split(),
                              expected=expected)["allocation"]
        blocks = python_test.Blocks(
            {int(row["address"], 16): row["size"] for row in rows})
        return {address for address in addresses
                if blocks.around(address) is not None}

    def check(self, core, truth):
        self.assertEqual(len(truth["lost"]), LOST)
        self.assertEqual(len(truth["cycle"]), 2 * CYCLES)
        for word in ("lost", "part"):
            self.assertEqual(truth[word] - self.find(core, "leaked", truth[word]), set())
        self.assertLessEqual(
            len(truth["cycle"] - self.find(core, "garbage", truth["cycle"])), MOST_HELD)
        for words in ("leaked", "garbage", "heldbygarbage"):
            self.assertEqual(self.find(core, words, truth["live"]), set())
        self.assertEqual(self.find(core, "garbage", truth["lost"]), set())

    def test_lost_objects_and_cycles_are_told_apart(self):
        core, truth = self.core_of("gc.disable()")
        self.check(core, truth)
        self.assertEqual(self.find(core, "leaked", truth["cycle"]), set())
        roots = harness.tables("-q", core, "list", "leakroots")["allocation"]
        self.assertEqual({row["name"] for row in roots}, {"__main__.Lost"})
        self.assertEqual(LOST, len(roots))
        answer = harness.ask(core, "count", "garbage")
        self.assertEqual(is_noted(truth), "(gc.disable())" in answer.stderr)
        lost = min(self.find(core, "leaked", truth["lost"]))
        text = harness.ask("-q", core, "explain", f"{lost:x}").stdout
        said = "kept by a count of 1 reference, of which 0 were found: C code lost 1"
        self.assertIn(said, text)
        for words in ("explain leaked __main__.Lost --limit 2", "describe leaked __main__.Lost --limit 2"):
            self.assertEqual(harness.ask("-q", core, *words.split()).stdout.count(said), 2)
        self.assertNotIn("of which", harness.ask("-q", core, "describe", "used", "__main__.Live",
                                                 "--limit", "2").stdout)

    def test_without_pymalloc_they_are_the_same(self):
        self.check(*self.core_of("gc.disable()", PYTHONMALLOC="malloc"))

    def test_in_the_middle_of_a_collection_they_are_the_same(self):
        # In the second, a type has an old reference where its block was rounded up.
        for layout in None, layouts.Layout(legacy=True):
            with self.subTest(layout=str(layout)):
                core, truth = self.core_of("gc.disable()", TRAP, layout=layout)
                self.check(core, truth)
                answer = harness.ask(core, "count", "garbage")
                self.assertEqual(is_noted(truth), "was running" in answer.stderr)

    def test_damage_costs_only_itself(self):
        core, truth = self.core_of("gc.disable()")
        live = sorted(truth["live"])
        pools = {address & -POOL for address in live[::100]}
        words = {address + WORD: 16 for address in live[1::7]}  # types
        words.update({address: 1 << 40 for address in live[2::7]})  # counts
        words.update({address + 2 * WORD: 1 << 60 for address in live[3::7]})
        words.update({pool: 1 << 20 for pool in pools})  # blocks in use
        write_words(core, words)
        for words in ("leaked", "garbage", "heldbygarbage"):
            self.assertEqual(self.find(core, words, truth["live"], INCOMPLETE),
                             set())
        answer = harness.ask(core, "objects", "--all", expected=INCOMPLETE)
        self.assertIn("pools of Python's arenas that make no sense: "
                      f"{len(pools)}", answer.stderr)
        self.assertIn("__main__.Live", answer.stdout)

    def test_frozen_objects_are_told(self):
        core, truth = self.core_of("gc.set_threshold(100000)",
                                   "gc.freeze(); gc.enable()")
        answer = harness.ask(core, "count", "garbage")
        self.assertEqual(is_noted(truth), "(gc.freeze())" in answer.stderr)

    def test_side_file_brings_it_back(self):
        core, truth = self.core_of("gc.disable()")
        lost = min(self.find(core, "leaked", truth["lost"]))
        answers = [harness.ask("--side-file", "-q", core, *words.split()).stdout
                   for words in ("list garbage", "list leaked",
                                 "list heldbygarbage", f"explain {lost:x}")
                   for _ in range(2)]
        self.assertEqual(answers[::2], answers[1::2])


if __name__ == "__main__":
    unittest.main()
