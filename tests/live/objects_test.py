#!/usr/bin/env python3
"""
The census of objects: a program in Python writes down how many it keeps of
each class and what sys.getsizeof() says of them, which includes what they have
apart from themselves.
"""

import collections
import os
import unittest

import harness

SYSTEM = "/usr/bin/python3"
# What allocators add at most to what they are asked for, each time.
ROUNDED = 40

PROGRAM = """
import collections, gc, os, sys

class Slotted:
    __slots__ = ("a", "b")

class Items(list):
    __slots__ = ()

class Table(dict):
    __slots__ = ()

class Unique(set):
    __slots__ = ()

makes = [lambda i: Slotted(), lambda i: Items(range(i % 90 + 1)),
         lambda i: Table.fromkeys(range(i % 70 + 1)),
         lambda i: Unique(range(i % 50 + 9))]
kept = [make(i) for i in range(2000) for make in makes]
gc.collect()
count, size = collections.Counter(), collections.Counter()
for one in kept:
    count[type(one).__name__] += 1
    size[type(one).__name__] += sys.getsizeof(one)
functions = 0
for one in gc.get_objects():
    functions += type(one) is type(makes[0])
with open(sys.argv[1], "w") as truth:
    for name in count:
        print("__main__." + name, count[name], size[name], file=truth)
    print("function", functions, 0, file=truth)
os.write(1, b"ready\\n")
os.read(0, 1)
"""


def classes(core, *words):
    found = harness.tables("-q", core, "objects", *words).get("class", [])
    return collections.OrderedDict((row["class"], row) for row in found)


class Objects(harness.LiveTest):
    def core_of(self, **variables):
        core, truth = self.core_of_script(SYSTEM, PROGRAM, **variables)
        with open(truth, encoding="utf-8") as file:
            return core, {line.split()[0]: [int(word) for word
                                            in line.split()[1:]]
                          for line in file}

    def check(self, core, truth):
        found = classes(core)
        self.assertEqual(len(truth), 5)
        for name, (count, size) in truth.items():
            row = found[name]
            self.assertEqual(row["objects"], count, name)
            if size:
                self.assertGreaterEqual(row["with_blocks"], size, name)
                self.assertLess(row["with_blocks"],
                                size + 2 * ROUNDED * count, name)

    def check_sql(self, core):
        """One by one, they are those of the census."""
        query = ("SELECT class, runtime, count(*) AS objects, sum(bytes) AS bytes,"
                 " sum(with_blocks) AS with_blocks FROM object GROUP BY 1, 2")
        rows = {row["class"]: row for row in harness.tables("-q", core, "sql", query)["result"]}
        census = classes(core)
        self.assertEqual({name: [row[key] for key in ("objects", "bytes", "with_blocks")]
                          for name, row in rows.items()},
                         {name: [row[key] for key in ("objects", "bytes", "with_blocks")]
                          for name, row in census.items()})
        self.assertEqual({row["runtime"] for row in rows.values()}, {"python"})
        kept = harness.tables("-q", core, "sql", "SELECT id, kept, state, visited() AS visited FROM object"
                              " WHERE id = (SELECT min(id) FROM object WHERE class = '__main__.Slotted')")
        self.assertEqual(len(kept["result"]), 1)
        self.assertIn("1 reference", kept["result"][0]["kept"])
        self.assertEqual(kept["result"][0]["state"], "anchored")
        self.check_columns(core)

    def check_columns(self, core):
        """A list has what SQL says of objects, and no value without contents."""
        names = "id,runtime,with_blocks,kept,value,length"
        asked = harness.tables("-q", core, "sql", f"SELECT {names} FROM object")["result"]
        words = ("list", "used", "--columns", names)
        listed = [row for row in harness.tables("-q", core, *words)["allocation"] if row["runtime"]]
        self.assertEqual(listed, asked)
        self.assertGreater(len({row["value"] for row in listed}), 5)
        bare = harness.tables("-q", "--no-content", core, *words)["allocation"]
        self.assertEqual(len({row["value"] for row in bare} - {None}), 1)

    @unittest.skipUnless(os.path.exists(SYSTEM), "no python3 of the system")
    def test_objects_of_python_are_counted_with_their_blocks(self):
        core, truth = self.core_of()
        self.check(core, truth)
        self.check_sql(core)

    @unittest.skipUnless(os.path.exists(SYSTEM), "no python3 of the system")
    def test_malloc_makes_no_difference(self):
        self.check(*self.core_of(PYTHONMALLOC="malloc"))

    @unittest.skipUnless(os.path.exists(SYSTEM), "no python3 of the system")
    def test_order_and_limit_and_what_is_retained(self):
        core, truth = self.core_of()
        sizes = [row["with_blocks"] for row in classes(core).values()]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        counts = [row["objects"] for row in
                  classes(core, "--sort-by", "count", "--top", "4").values()]
        self.assertEqual(len(counts), 4)
        self.assertEqual(counts, sorted(counts, reverse=True))
        row = classes(core, "--retained")["__main__.Table"]
        # A stale word may hold some of them besides.
        self.assertGreater(row["retained"], truth["__main__.Table"][1] * 0.9)
        text = harness.ask("--format", "csv", "-q", core, "objects").stdout
        self.assertIn("__main__.Unique", text)
        only = classes(core, "used", "__main__.Slotted")
        self.assertEqual(list(only), ["__main__.Slotted"])


if __name__ == "__main__":
    unittest.main()
