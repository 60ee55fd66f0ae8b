#!/usr/bin/env python3
"""
Words that Python does not use any more hold nothing: containers of a program that keeps its
containers, and drops what was in them, with the collector off. Weak references are no way to reach
an object, blocks have the names of what they are, and a set is counted as the objects in it.
"""

import os
import sys
import unittest

import harness
import python_test

# Of each class, words that C left on the stack hold a few.
MOST_HELD = 12

PROGRAM = r"""
import array, collections, ctypes, gc, io, os, queue, struct, sys, weakref

gc.disable()
truth, kept = {}, []

def new_class(name, dropped):
    class Made:
        def __init__(self, number=0):
            self.number, self.me = number + 0.5, self
    Made.__name__ = Made.__qualname__ = name
    truth[name] = dropped
    return Made

def use(*values):
    pass

def left():
    Made = new_class("Left", 1200)
    for _ in range(20):
        one = collections.deque(Made(i) for i in range(60))
        for i in range(60):
            one.popleft()
        one.append("more")
        kept.append(one)

def right():
    Made = new_class("Right", 4000)
    for _ in range(20):
        one = collections.deque(Made(i) for i in range(200))
        for i in range(200):
            one.pop()
        kept.append(one)

def ring():
    Made = new_class("Ring", 450)
    kept.append(collections.deque((Made(i) for i in range(500)), maxlen=50))

def queued():
    Made = new_class("Queued", 290)
    one = queue.Queue()
    for i in range(300):
        one.put(Made(i))
    for i in range(290):
        one.get()
    kept.append(one)

def suspended():
    Made = new_class("Suspended", 300)
    def generate():
        use(Made(1), Made(2), Made(3), Made(4), Made(5), Made(6))
        yield 1
    for _ in range(50):
        one = generate()
        next(one)
        kept.append(one)

def ended():
    Made = new_class("Ended", 200)
    def generate():
        first, second = Made(1), Made(2)
        use(Made(3), Made(4))
        yield 1
    for _ in range(50):
        one = generate()
        list(one)
        kept.append(one)

def outgrown():
    Made = new_class("Outgrown", 400)
    for _ in range(100):
        one = {Made(i) for i in range(4)}
        one.update(range(20))
        for element in [element for element in one if isinstance(element, Made)]:
            one.discard(element)
        kept.append(one)

def numbered():
    Made = new_class("Numbered", 100)
    by_id, ids = {}, set()
    for i in range(100):
        one = Made(i)
        by_id[id(one)] = 1
        ids.add(id(one))
    kept.extend((by_id, ids))

def written():
    Made = new_class("Written", 300)
    text, numbers, file = bytearray(), array.array("Q"), open(os.devnull, "wb")
    for i in range(100):
        text += struct.pack("Q", id(Made(i)))
        numbers.append(id(Made(i)))
        file.write(struct.pack("Q", id(Made(i))))
    kept.extend((text, numbers, file))

def watched():
    Made = new_class("Watched", 100)
    seen, keys, values = weakref.WeakSet(), weakref.WeakKeyDictionary(), weakref.WeakValueDictionary()
    for i in range(100):
        one = Made(i)
        seen.add(one)
        keys[one], values[i] = 1, one
        kept.append(weakref.ref(one))
    kept.extend((seen, keys, values))

def versioned():
    # A dict's version is a number that may be like an address.
    Made = new_class("Versioned", 100)
    for i in range(100):
        one = {"number": i}
        ctypes.c_uint64.from_address(id(one) + 24).value = id(Made(i))
        kept.append(one)

class Deep:
    pass

class Found:
    pass

def overwrite(depth):
    use(depth, depth, depth, depth, depth, depth, depth, depth)
    return depth and list(map(overwrite, [depth - 1]))

for one in (left, right, ring, queued, suspended, ended, outgrown, numbered, written, watched, versioned):
    one()
overwrite(50)
seen, root = weakref.WeakSet(), Deep()
deep = root
for i in range(6):
    deep.next = Deep()
    deep = deep.next
deep.last = Found()
seen.add(deep.last)
plain = weakref.ref(deep.last)
del deep, one
big = bytearray(5000000)
class Viewer:
    pass
for i in range(20):
    viewer = Viewer()
    viewer.me, viewer.view = viewer, memoryview(big)[5:10]
del viewer
with open(sys.argv[1], "w") as out:
    for name, count in truth.items():
        print(name, count, file=out)
    print("found", hex(id(root.next.next.next.next.next.next.last)), file=out)
os.write(1, b"ready\n")
os.read(0, 1)
"""


@unittest.skipUnless(os.path.exists(python_test.SYSTEM), "no python3 of the system")
class Stale(harness.LiveTest):
    def core(self, **variables):
        core, path = self.core_of_script(python_test.SYSTEM, PROGRAM, **variables)
        with open(path, encoding="utf-8") as file:
            truth = dict(line.split() for line in file)
        return core, int(truth.pop("found"), 16), truth

    def check_garbage(self, core, truth):
        rows = {row["class"]: row for row in harness.tables("-q", core, "objects", "garbage")["class"]}
        for name, dropped in truth.items():
            row = rows.get("__main__." + name, {"objects": 0})
            self.assertLessEqual(row["objects"], int(dropped), name)
            self.assertGreaterEqual(row["objects"], int(dropped) - 2 * MOST_HELD, name)

    def test_words_that_are_not_used_any_more_hold_nothing(self):
        core, found, truth = self.core()
        self.check_garbage(core, truth)
        self.check_path(core, found)
        self.check_numbers(core)
        self.check_names(core)

    def test_without_pymalloc_neither(self):
        core, _, truth = self.core(PYTHONMALLOC="malloc")
        self.check_garbage(core, truth)

    def check_path(self, core, found):
        """Not by a weak reference, and garbage has none."""
        text = harness.ask("-q", core, "explain", f"{found:x}").stdout
        self.assertIn("reaches it as __main__.root" + 6 * ".next" + ".last\n", text)
        for name in ("Watched", "Left"):
            text = harness.ask("-q", core, "tree", "garbage", "__main__." + name).stdout
            self.assertIn("__main__." + name, text)
            self.assertNotIn("__main__." + name + " (", text)

    def check_numbers(self, core):
        """A set's blocks are those of its objects: the bytes that garbage views are in use."""
        query = "SELECT class, sum(with_blocks) AS bytes FROM object WHERE state LIKE '%garbage' GROUP BY 1"
        by_class = {row["class"]: row["bytes"] for row in harness.tables("-q", core, "sql", query)["result"]}
        rows = harness.tables("-q", core, "objects", "garbage")["class"]
        held = harness.tables("-q", core, "objects", "heldbygarbage").get("class", [])
        counted = {}
        for row in rows + held:
            counted[row["class"]] = counted.get(row["class"], 0) + row["with_blocks"]
        self.assertEqual(by_class, counted)
        self.assertLess(counted["memoryview"], 100000)

    def check_names(self, core):
        names = {row["name"] for row in harness.tables("-q", core, "list", "used", "%PythonDequeBlock")["allocation"]}
        self.assertTrue(names)
        text = harness.ask("-q", core, "summarize", "used").stdout
        # Not looked into with 3.13 of Debian 13, which has no symbols of its own.
        if sys.version_info < (3, 12):
            self.assertEqual([line for line in text.split("\n") if "with identity Py" in line], [])


if __name__ == "__main__":
    unittest.main()
