#!/usr/bin/env python3
"""
testdata/programs/owners.c says how many bytes each of its variables alone
holds. "tree" says the same, whether there is debug information or not.
"""

import re
import unittest

from harness import LiveTest, ask, snap, tables

MOST_NODES = 1 << 16  # of analyzer/owners/owners.h


class TreeTest(LiveTest):
    def core(self, *flags):
        process = self.start([self.compile("owners", "owners.c",
                                           flags=flags)])
        truth = dict(line.split() for line in process.said)
        return (snap(process, self.path("core")),
                {owner: int(size) for owner, size in truth.items()})

    def tree(self, core, *words):
        return tables("-q", core, "tree", *words)["owner"]

    def below(self, rows, owner):
        """The row with that owner, and the rows below it."""
        start = next(number for number, row in enumerate(rows)
                     if re.fullmatch(owner, row["owner"]))
        result = []
        for row in rows[start + 1:]:
            if row["depth"] <= rows[start]["depth"]:
                break
            result.append(row)
        return rows[start], result

    def test_owners(self):
        core, truth = self.core("-g", "-O2")
        rows = self.tree(core, "--top", "100")
        roots = {row["owner"]: row["retained"] for row in rows
                 if row["depth"] == 1}
        self.assertEqual(roots["conns (owners)"], truth["conns"])
        self.assertEqual(roots["jobs (owners)"], truth["jobs"])
        self.assertEqual(roots["what leaked"], truth["leaked"])
        self.assertEqual(sum(roots.values()), rows[0]["retained"])
        self.assertEqual(
            rows[0]["retained"],
            tables("-q", core, "count", "used")["total"][0]["bytes"])
        shared = self.below(
            rows, r"shared by (first and second|second and first) \(owners\)")[1]
        self.assertIn(truth["shared"], [row["bytes"] for row in shared])
        stack = self.below(rows, r".+ of thread \d+")[1]
        self.assertIn(truth["stack"], [row["bytes"] for row in stack])

    def test_more_paths_than_nodes(self):
        core = snap(self.start([self.compile("many_paths", "many_paths.c", flags=["-O1"])]),
                    self.path("core"))
        lines = [line.rpartition(" ") for line
                 in ask("-q", core, "export", "folded").stdout.splitlines()]
        used = tables("-q", core, "count", "used")["total"][0]
        self.assertGreater(used["count"], MOST_NODES)
        self.assertLess(len(lines), MOST_NODES)
        self.assertGreater(len(lines), MOST_NODES * 3 // 4)
        self.assertEqual(len({path for path, _, _ in lines}), len(lines))
        # What has no node of its own is counted above.
        self.assertEqual(sum(int(size) for _, _, size in lines), used["bytes"])
        self.assertEqual(self.tree(core)[0]["retained"], used["bytes"])

    def test_kinds(self):
        core, _ = self.core("-g", "-O2")
        rows = self.tree(core, "--top", "100")
        _, held = self.below(rows, r"conns \(owners\)")
        self.assertEqual(
            [(row["depth"], row["owner"], row["allocations"])
             for row in held],
            [(2, "struct conn *[]", 1), (3, "struct conn", 100),
             (4, "char[]", 100)])
        self.assertEqual(held[0]["retained"],
                         sum(row["bytes"] for row in held))
        _, held = self.below(rows, r"jobs \(owners\)")
        self.assertEqual(
            [(row["depth"], row["owner"], row["allocations"])
             for row in held],
            [(2, "struct conn", 50), (3, "char[]", 50)],
            "a list is one node")

    def test_without_names(self):
        core, truth = self.core("-O2", "-s")
        rows = self.tree(core, "--top", "100", "--depth", "1")
        roots = {row["owner"]: row["retained"] for row in rows
                 if row["depth"] == 1}
        self.assertGreaterEqual(roots["static data of owners"],
                                truth["conns"] + truth["jobs"])
        self.assertEqual(roots["what leaked"], truth["leaked"])

    def test_limits(self):
        core, truth = self.core("-g", "-O2")
        rows = self.tree(core, "--depth", "1", "--top", "2")
        self.assertEqual(len(rows), 4)
        self.assertRegex(rows[3]["owner"], "^and [0-9]+ more$")
        self.assertEqual(sum(row["retained"] for row in rows[1:]),
                         rows[0]["retained"])
        rows = self.tree(core, "leaked", "--depth", "1")
        self.assertEqual([(row["owner"], row["retained"]) for row in rows],
                         [("the heap", truth["leaked"]),
                          ("what leaked", truth["leaked"])])

    def test_lines_are_indented(self):
        core, _ = self.core("-g", "-O2")
        self.assertRegex(
            ask("-q", core, "tree").stdout,
            r"\n +[0-9,]+ .*    conns \(owners\)\n"
            r" +[0-9,]+ .*      struct conn \*\[\]\n"
            r" +[0-9,]+ .*        struct conn\n")


if __name__ == "__main__":
    unittest.main()
