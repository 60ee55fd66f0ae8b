#!/usr/bin/env python3
"""
What explain says of a leak root is what summarize leakroots counts for it: in
several cores, and in rings as well.
"""

import json
import os
import subprocess
import unittest

import session_test

HEAPCORE = os.environ["HEAPCORE"]
CORES = ("bookworm-small", "bookworm-small-jemalloc", "glibc_2_19-small",
         "bookworm-small-aarch64", "trixie-small")


def tables(core, *words):
    answer = subprocess.run([HEAPCORE, "-q", "--format", "json", core, *words],
                            check=True, stdin=subprocess.DEVNULL,
                            capture_output=True, timeout=60).stdout
    return json.loads(answer)["tables"]


def rows(core, name, *words):
    return [row for table in tables(core, *words) if table["name"] == name
            for row in table["rows"]]


class LeakRootsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dumps = session_test.Dumps()

    @classmethod
    def tearDownClass(cls):
        cls.dumps.close()

    def test_explain_and_summarize_say_the_same(self):
        for name in CORES:
            with self.subTest(core=name):
                core = self.dumps.find("dump", f"cores/{name}.core")
                roots = rows(core, "leak root", "explain", "leakroots")
                total = rows(core, "total", "summarize", "leakroots")[-1]
                shared = rows(core, "shared", "summarize", "leakroots")
                self.assertGreater(len(roots), 0)
                self.assertEqual(len(roots), total["count"])
                for column, of_all in (("owned", "allocations_lost"), ("bytes", "bytes")):
                    lost = sum(row[column] or 1 for row in roots)
                    lost += sum(row["bytes" if column == "bytes" else "count"]
                                for row in shared)
                    self.assertEqual(lost, total[of_all])


if __name__ == "__main__":
    unittest.main()
