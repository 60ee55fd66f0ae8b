"""
SQL says what the other commands say, looks up without a scan, and writes nothing.
"""

import collections
import csv
import io
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

import session_test

HEAPCORE = os.environ["HEAPCORE"]
SOURCE_DIR = os.environ["SOURCE_DIR"]
TIMEOUT = 120
# Seconds of processor time; it starts within a tenth of that.
LONG_BEGUN = 0.5
CORES = (("dump", "cores/trixie-small.core"), ("dump", "cores/bookworm-small-jemalloc.core"),
         ("dump", "cores/trixie-damaged-run.core"), ("program", "retained"), ("program", "specification"))


class Core:
    def __init__(self, path):
        self.path = path

    def run(self, *words, options=(), stdin=subprocess.DEVNULL, **more):
        return subprocess.run([HEAPCORE, "-q", *options, self.path, *words], stdin=stdin,
                              capture_output=True, timeout=TIMEOUT, check=False, text=True, **more)

    def tables(self, *words):
        run = self.run(*words, "--format", "json")
        assert run.returncode in (0, 3), run.stderr
        return json.loads(run.stdout)["tables"]

    def rows(self, query):
        return [tuple(row.values()) for row in self.tables("sql", query)[0]["rows"]]

    def total(self, *words):
        for table in self.tables(*words):
            if table["name"] == "total":
                return table["rows"][0]["count"], table["rows"][0]["bytes"]
        raise AssertionError(words)


def processor_time(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def setUpModule():
    global DUMPS, ALL, SMALL, RETAINED
    DUMPS = session_test.Dumps()
    ALL = [Core(DUMPS.find(kind, what)) for kind, what in CORES]
    SMALL, RETAINED = ALL[0], ALL[3]


def tearDownModule():
    DUMPS.close()


class SumsTest(unittest.TestCase):
    def each(self):
        for core in ALL:
            with self.subTest(core=core.path):
                yield core

    def test_allocations_are_those_of_count(self):
        for core in self.each():
            for where, words in (("", "used"), ("WHERE state = 'leaked'", "leaked"),
                                 ("WHERE anchor IS NOT NULL", "anchorpoints"),
                                 ("WHERE is_leak_root", "leakroots")):
                row = core.rows(f"SELECT count(*), total(size) FROM allocation {where}")[0]
                self.assertEqual(row, core.total("count", words), words)
            row = core.rows("SELECT count(*), total(size) FROM free")[0]
            self.assertEqual(row, core.total("count", "free"))

    def test_kinds_are_those_of_summarize(self):
        for core in self.each():
            groups = collections.Counter()
            for row in core.tables("summarize", "used")[0]["rows"]:
                if row["group"] is None and row["pattern"] is None and row["type"] is None:
                    continue
                name = row["type"] or (row["pattern"] and "%" + row["pattern"]) or row["group"]
                name = {"Strings": "%String",
                        "Unrecognized allocations": "unrecognized"}.get(name, name)
                groups[name] += row["bytes"]
            kinds = dict(core.rows("SELECT kind, sum(size) FROM allocation GROUP BY kind"))
            self.assertEqual(kinds, dict(core.rows("SELECT kind, bytes FROM kind")))
            for name, size in groups.items():
                self.assertEqual(kinds[name], size, name)
            ungrouped = core.rows("SELECT kind, size FROM allocation")
            again = collections.Counter()
            for kind, size in ungrouped:
                again[kind] += size
            self.assertEqual(kinds, dict(again))

    def test_the_bill_is_that_of_bill(self):
        for core in self.each():
            total = core.tables("bill")[0]["rows"][-1]
            self.assertEqual(core.rows("SELECT sum(mapped), sum(resident) FROM bill")[0],
                             (total["mapped"], total["resident"]))

    def test_sets_of_ranges_are_those_of_list(self):
        for core in self.each():
            for table, words in (("mapping", "maps"), ("module", "modules"), ("thread", "threads"),
                                 ("arena", "arenas"), ("root", "roots"), ("stack", "stacks")):
                listed = [tuple(row.values()) for row in core.tables("list", words)[0]["rows"]]
                self.assertEqual(core.rows(f"SELECT * FROM {table}"), listed, table)

    def test_references_are_those_of_list(self):
        for core in self.each():
            pairs = core.rows("SELECT a.address, b.address FROM reference AS r"
                              " JOIN allocation AS a ON a.id = r.source"
                              " JOIN allocation AS b ON b.id = r.target")
            by_target = core.rows("SELECT source, target, offset FROM reference ORDER BY target")
            by_source = core.rows("SELECT source, target, offset FROM reference ORDER BY source")
            self.assertEqual(sorted(by_target, key=str), sorted(by_source, key=str))
            self.assertEqual([row[1] for row in by_target], sorted(row[1] for row in by_target))
            for words, here, there in (("outgoing", 0, 1), ("incoming", 1, 0)):
                for address in sorted({pair[here] for pair in pairs})[:12]:
                    listed = {row["address"] for table in core.tables("list", words, address)
                              if table["name"] == "allocation" for row in table["rows"]}
                    self.assertEqual({pair[there] for pair in pairs if pair[here] == address},
                                     listed, address)

    def test_the_word_at_a_reference_is_in_its_target(self):
        for core in self.each():
            rows = core.rows("SELECT words(r.address, 1), t.address, t.size, r.target_offset FROM reference AS r"
                             " CROSS JOIN (SELECT id, address, size FROM allocation"
                             " UNION ALL SELECT id, address, size FROM free) AS t ON t.id = r.target")
            for word, start, size, offset in rows:
                self.assertEqual(int(word, 16) - int(start, 16), offset)
                self.assertLess(offset, size)

    def test_dominators_are_a_tree_of_sums(self):
        for core in self.each():
            rows = core.rows("SELECT id, size, parent, retained, retained_count FROM dominator")
            sums, counts = {row[0]: row[1] for row in rows}, {row[0]: 1 for row in rows}
            children = collections.defaultdict(list)
            for row in rows:
                children[row[2]].append(row[0])
            order = [None]
            for parent in order:
                order.extend(children[parent])
            parents = {row[0]: row[2] for row in rows}
            for each in reversed(order[1:]):
                if parents[each] is not None:
                    sums[parents[each]] += sums[each]
                    counts[parents[each]] += counts[each]
            self.assertEqual({row[0]: row[3:] for row in rows},
                             {each: (sums[each], counts[each]) for each in sums})


class LookupTest(unittest.TestCase):
    def visited(self, query):
        rows = RETAINED.rows(query)
        self.assertTrue(rows, query)
        return rows[-1][-1]

    def test_an_allocation_is_found_without_a_scan(self):
        count = RETAINED.rows("SELECT count(*) FROM allocation")[0][0]
        identity, address, kind = RETAINED.rows(
            f"SELECT id, address, kind FROM allocation LIMIT 1 OFFSET {count // 2}")[0]
        self.assertGreater(count, 4)
        for where in (f"address = {address}", f"id = {identity}", f"rowid = {identity}",
                      f"address BETWEEN {address} AND {address} + 1"):
            self.assertEqual(self.visited(f"SELECT visited() FROM allocation WHERE {where}"), 1,
                             where)
        members = RETAINED.rows(f"SELECT count(*) FROM allocation WHERE kind = '{kind}'")[0][0]
        self.assertEqual(self.visited(f"SELECT visited() FROM allocation WHERE kind = '{kind}'"),
                         members)

    def test_edges_of_one_are_found_without_a_scan(self):
        source, target = RETAINED.rows("SELECT source, target FROM reference LIMIT 1 OFFSET 5")[0]
        for where in (f"source = {source}", f"target = {target}"):
            rows = RETAINED.rows(f"SELECT source, target, visited() FROM reference WHERE {where}")
            self.assertIn((source, target), [row[:2] for row in rows])
            self.assertEqual(rows[-1][-1], len(rows), where)

    def test_conditions_narrow_as_sqlite_would(self):
        all_rows = RETAINED.rows("SELECT id, address, size, kind FROM allocation")
        middle = all_rows[len(all_rows) // 2]
        values = (middle[0], int(middle[1], 16), middle[2])
        for number, column in enumerate(("id", "address", "size")):
            def value(row, number=number):
                return int(row[1], 16) if number == 1 else row[number]
            for sign, test in (("=", lambda a, b: a == b), ("<", lambda a, b: a < b),
                               ("<=", lambda a, b: a <= b), (">", lambda a, b: a > b),
                               (">=", lambda a, b: a >= b)):
                for wanted in (values[number], values[number] + 1, 0, -1, 2 ** 62):
                    rows = RETAINED.rows(
                        f"SELECT id FROM allocation WHERE {column} {sign} {wanted}")
                    self.assertEqual([row[0] for row in rows],
                                     [row[0] for row in all_rows if test(value(row), wanted)],
                                     f"{column} {sign} {wanted}")
        for odd in ("NULL", "'x'", "1.5", "X'00'"):
            for column in ("id", "address", "size", "kind"):
                self.assertEqual(RETAINED.rows(f"SELECT id FROM allocation WHERE {column} = {odd}"), [])
            self.assertEqual(RETAINED.rows(f"SELECT source FROM reference WHERE target = {odd}"), [])


class RestraintTest(unittest.TestCase):
    def test_nothing_can_be_written_or_opened(self):
        with tempfile.TemporaryDirectory() as folder:
            for query in (f"ATTACH '{folder}/a' AS b", f"VACUUM INTO '{folder}/c'", "CREATE TABLE a(b)",
                          "CREATE TEMP TABLE a(b)", "PRAGMA journal_mode = WAL", "BEGIN",
                          "INSERT INTO allocation(id) VALUES (1)", "DELETE FROM kind",
                          "DROP VIEW suspects", "CREATE VIRTUAL TABLE a USING fts5(b)",
                          "SELECT load_extension('x')", "SELECT writefile('x', 'y')"):
                run = SMALL.run("sql", query)
                self.assertEqual(run.returncode, 2, query)
                self.assertTrue(run.stderr.startswith("heapcore: "), run.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_mistakes_are_told_by_sqlite(self):
        for query, message in (("SELECT a FROM allocation", "no such column: a"),
                               ("SELECT * FROM nosuch", "no such table: nosuch"),
                               ("SELECT txt(1)", "no such function: txt; did you mean 'text'?"),
                               ("SELECT retained FROM reference",
                                "no such column: retained; it is a column of allocation, dominator, variable\n"),
                               ("SELEC", 'near "SELEC": syntax error'),
                               (".schema nothing", "there is no table 'nothing'"),
                               (".import a b", "there are '.tables'")):
            run = SMALL.run("sql", query)
            self.assertEqual(run.returncode, 2)
            self.assertIn(message, run.stderr)
            self.assertEqual(run.stdout, "")

    def test_a_damaged_core_says_so(self):
        self.assertEqual(ALL[2].run("sql", "SELECT count(*) FROM allocation").returncode,
                         ALL[2].run("count", "used").returncode)

    def test_contents_are_left_out(self):
        run = SMALL.run("sql", "SELECT text(address), words(address, 2) FROM allocation",
                        options=("--no-content", "--format", "tsv"))
        self.assertEqual(set(run.stdout.splitlines()[1:]),
                         {"result\t(content left out)\t(content left out)"})

    def test_an_endless_query_is_interrupted(self):
        endless = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
                   " SELECT 'begun' UNION ALL SELECT count(*) FROM c")
        with subprocess.Popen([HEAPCORE, "-q", SMALL.path, "sql", endless],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            # That it began and goes on shows in the time that it takes.
            while process.poll() is None and processor_time(process.pid) < LONG_BEGUN:
                time.sleep(0.01)
            self.assertIsNone(process.poll(), "it ended by itself")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(TIMEOUT), 130)

    def test_memory_is_limited(self):
        run = SMALL.run("sql", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c"
                        " LIMIT 3000000) SELECT count(*) FROM (SELECT x, hex(randomblob(50)) AS y FROM c"
                        " ORDER BY y)", options=("--max-memory", "16M"))
        self.assertEqual(run.returncode, 3)
        self.assertIn("memory", run.stderr)


class ShellTest(unittest.TestCase):
    def test_queries_are_read_from_standard_input(self):
        queries = ".tables\nSELECT 1 AS one,\n 2 AS two;\n\nSELECT 'a;b' AS text;\nSELECT 3 AS last"
        for words in (("sql",), ()):
            text = queries if words else "sql\n" + queries + ";\n.quit\ncount used\n"
            run = SMALL.run(*words, stdin=None, input=text, options=("--format", "csv"))
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("row,one,two\nresult,1,2\n", run.stdout)
            self.assertIn("row,text\nresult,a;b\n", run.stdout)
            self.assertIn("row,last\nresult,3\n", run.stdout)
            self.assertEqual("allocations" in run.stdout.splitlines()[-1], not words)

    def test_columns_of_one_name_are_told_apart(self):
        rows = SMALL.tables("sql", "SELECT 1 AS a, 2 AS b, 3 AS a, 4 AS a_2, 5 AS a")[0]["rows"]
        self.assertEqual(list(rows[0].values()), [1, 2, 3, 4, 5])

    def test_a_result_has_each_format(self):
        query = "SELECT id, address, kind, 1.5 AS real, NULL AS absent, -3 AS negative FROM allocation LIMIT 2"
        rows = SMALL.tables("sql", query)[0]["rows"]
        self.assertEqual([type(value) for value in rows[0].values()],
                         [int, str, str, float, type(None), int])
        self.assertRegex(rows[0]["address"], "^0x[0-9a-f]+$")
        text = SMALL.run("sql", query, "--format", "csv").stdout
        table = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual([row["address"] for row in table], [row["address"] for row in rows])
        self.assertEqual(table[0]["negative"], "-3")


class DocumentTest(unittest.TestCase):
    def test_queries_of_the_page_run(self):
        with open(os.path.join(SOURCE_DIR, "docs/sql.md"), encoding="utf-8") as file:
            queries = re.search(r"```sql\n(.*?)```", file.read(), re.DOTALL).group(1)
        queries = [query.strip() for query in queries.split(";") if query.strip()]
        self.assertEqual(len(queries), 10)
        for query in queries:
            for core in (RETAINED, ALL[4]):
                with self.subTest(query=query, core=core.path):
                    run = core.run("sql", stdin=None, input=query + ";\n")
                    self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_views_answer(self):
        for view in ("suspects", "fan_in", "object_reference", "duplicates"):
            self.assertEqual(RETAINED.run("sql", f"SELECT * FROM {view}").returncode, 0)
        kinds = [row[0] for row in RETAINED.rows("SELECT kind FROM suspects")]
        self.assertTrue(kinds)


if __name__ == "__main__":
    unittest.main()
