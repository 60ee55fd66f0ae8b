"""
A column of allocations stands once, and is in SQL, in 'list --columns', in help and in completion,
with the same values.
"""

import csv
import io
import json
import os
import re
import subprocess
import unittest

import session_test

HEAPCORE = os.environ["HEAPCORE"]
# How SQL calls what 'list' shows of used allocations, and of free ones.
OF_USED = ("allocation", "dominator", "object")
CORES = (("program", "retained"), ("dump", "cores/trixie-small.core"))


def run(*words):
    return subprocess.run([HEAPCORE, "-q", *words], capture_output=True, timeout=120, text=True,
                          check=False)


def complete(*words):
    return subprocess.run([HEAPCORE, "--complete", *words], capture_output=True, timeout=120, text=True, check=False)


def first_table(core, *words):
    return json.loads(run(core, *words, "--format", "json").stdout)["tables"][0]["rows"]


def in_help():
    entries = run("help", "columns").stdout.split("\nColumns:\n")[1].split("\nExamples:\n")[0]
    return re.findall(r"^  (\w+) +\S", entries, re.MULTILINE)


class ColumnsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dumps = session_test.Dumps()
        cls.addClassCleanup(cls.dumps.close)
        cls.cores = [cls.dumps.find(kind, what) for kind, what in CORES]
        cls.core = cls.cores[0]

    def in_sql(self, *tables):
        return {name: [row["column"] for row in first_table(self.core, "sql", f".schema {name}")]
                for name in tables}

    def test_each_is_in_sql_in_help_in_completion_and_in_a_list(self):
        names = in_help()
        in_sql = self.in_sql(*OF_USED, "free")
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual(set(names), {name for table in in_sql.values() for name in table})
        self.assertEqual(list(first_table(self.core, "list", "used", "--columns", ",".join(names))[0]), names)
        completed = complete(self.core, "list", "used", "--columns", "").stdout.split()
        self.assertEqual(completed, names)
        unknown = run(self.core, "list", "used", "--columns", "no_such").stderr
        self.assertIn("'no_such' is not a column: use " + ", ".join(names), unknown)

    def test_a_list_has_the_values_of_sql(self):
        for core in self.cores:
            for table, names in self.in_sql(*OF_USED, "free").items():
                with self.subTest(core=core, table=table):
                    selected = first_table(core, "sql", f"SELECT {', '.join(names)} FROM {table}")
                    chosen = first_table(core, "list", "free" if table == "free" else "used",
                                         "--columns", ",".join(names))
                    ids = {row["id"] for row in selected}
                    self.assertEqual([row for row in chosen if row["id"] in ids], selected)

    def test_other_formats_have_them_in_the_order_asked_for(self):
        words = ("list", "used", "--columns", "size,address", "--sort-by", "size", "--limit", "3")
        rows = list(csv.reader(io.StringIO(run(self.core, *words, "--format", "csv").stdout)))
        self.assertEqual(rows[0][1:], ["size", "address"])
        self.assertEqual(len(rows), 4)
        self.assertEqual([row[1:] for row in rows[1:]],
                         [[str(row["size"]), row["address"]]
                          for row in first_table(self.core, *words)])
        self.assertEqual(rows[1][1], str(max(row["size"] for row in first_table(
            self.core, "list", "used", "--columns", "size"))))
        text = run(self.core, *words).stdout.splitlines()
        self.assertEqual(text[0].split(), ["size", "address"])
        self.assertRegex(text[-1], r"^[\d,]+ allocations use [\d,]+ bytes\.$")
        self.assertIn("| size | address |", re.sub(" +", " ", run(
            self.core, *words, "--format", "markdown").stdout))

    def test_free_and_used_allocations_have_their_own_values_in_one_table(self):
        rows = first_table(self.core, "list", "used", "or", "free", "--columns", "state,kind,retained")
        self.assertEqual({row["retained"] is None for row in rows if row["state"] == "free"}, {True})
        self.assertEqual({row["retained"] is None for row in rows if row["state"] == "anchored"}, {False})

    def test_mistakes_are_usage_errors(self):
        for words, message in ((("list", "used", "--columns", "size,size"), "twice"),
                               (("list", "used", "--columns", "size,"), "'' is not a column"),
                               (("list", "threads", "--columns", "size"), "not a set of allocations"),
                               (("show", "used", "--columns", "size"), "no switch")):
            with self.subTest(words):
                failed = run(self.core, *words)
                self.assertEqual(failed.returncode, 2)
                self.assertIn(message, failed.stderr)
                self.assertEqual(failed.stdout, "")

    def test_what_follows_a_comma_is_completed(self):
        for words in (["--columns", "size,retained_"], ["--columns=size,retained_"]):
            with self.subTest(words):
                self.assertEqual(complete(self.core, "list", "used", *words).stdout,
                                 words[-1] + "count\n")



if __name__ == "__main__":
    unittest.main()
