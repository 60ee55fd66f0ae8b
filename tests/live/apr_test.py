#!/usr/bin/env python3
"""
Nodes of APR's pools are allocations with the tags of their pools; those of destroyed ones are free.
"""

import bisect
import ctypes.util
import json
import unittest

import harness


def ask_rows(core, question):
    return json.loads(harness.ask(core, "sql", question, "--format", "json").stdout)[
        "tables"][0]["rows"]


@unittest.skipUnless(ctypes.util.find_library("apr-1"), "there is no libapr1")
class AprTest(harness.LiveTest):
    def capture(self):
        program = self.compile("apr_pools", "apr_pools.c", flags=["-l:libapr-1.so.0"])
        process = self.start([program])
        said = [line.split(" ", 1) for line in process.said]
        return ([(int(address, 16), tag) for address, tag in said],
                harness.snap(process, self.path("core")))

    def test_parts_are_in_pools_of_their_tags(self):
        said, core = self.capture()
        rows = ask_rows(core, "SELECT address, size, class FROM allocation "
                              "WHERE class LIKE 'apr pool%' ORDER BY address")
        free = ask_rows(core, "SELECT address, size, 'freed' AS class FROM free")
        ranges = sorted((int(row["address"], 16), row["size"], row["class"])
                        for row in rows + free)
        starts = [start for start, _, _ in ranges]
        found = []
        for address, _ in said:
            start, size, name = ranges[bisect.bisect(starts, address) - 1]
            found.append((address, name if address - start < size else None))
        self.assertEqual(found, said)
        # Nothing but APR's own pools has no part.
        empty = {name for start, size, name in ranges
                 if not any(address - start in range(size) for address, _ in said)}
        self.assertFalse({name for name in empty if name.startswith("apr pool ")}
                         - {"apr pool apr_global_pool", "apr pool apr_initialize",
                            "apr pool session"})

    def test_tree_has_pools_and_nothing_leaked(self):
        core = self.capture()[1]
        objects = harness.ask(core, "objects").stdout
        slim = harness.run(harness.HEAPCORE, "slim", core, "-o", self.path("slim"))
        self.assertEqual(slim.returncode, 0, slim.stderr)
        self.assertEqual(harness.ask(self.path("slim"), "objects").stdout, objects)
        self.assertRegex(harness.ask(core, "tree").stdout, "apr pool session\n")
        self.assertEqual(harness.ask(core, "count", "leaked").stdout.split()[0], "0")

    def test_program_that_makes_no_pool_has_none(self):
        program = self.compile("plain", "plain.c", "truth.c",
                               flags=["-Wl,--no-as-needed", "-l:libapr-1.so.0"])
        core = harness.snap(self.start([program], truth=self.path("truth")), self.path("core"))
        self.assertIn("0 objects", harness.ask(core, "objects").stdout)
        self.assertNotIn("apr ", harness.ask(core, "bill").stdout)


if __name__ == "__main__":
    unittest.main()
