"""
A fleet in other databases: the tables of docs/fleet/report.sql, which 'heapcore fleet report' asks
itself, tell the same in SQLite, PostgreSQL and DuckDB. PostgreSQL loads the CSV of every command.
"""

import collections
import csv
import json
import os
import re
import subprocess
import time
import unittest

import engines
import fleet_cores
import harness

DOCUMENTS = os.path.join(harness.ROOT, "docs/fleet")
HOSTS = ["host07", "host08", "host09"]
TABLES = ("fleet", "fleet leak", "fleet build", "brought leak", "growth", "uptime growth", "outlier", "common kind",
          "common use", "trend", "doubtful core")
# One of each command that writes rows, and of sets whose rows are others.
COMMANDS = (
    "backtrace", "bill", "count used", "dangling", "describe used", "diff OTHER", "dump PLACE 40",
    "enumerate used", "explain used", "facts", "find32 1234", "fragmentation", "gate", "list used",
    "list arenas", "list maps", "list modules", "list stacks", "list threads", "list free",
    "memprof sizes", "objects", "path PLACE", "profile", "show leaked", "sql SELECT * FROM allocation", "sql .tables",
    "string PLACE", "summarize used", "summarize leaked", "summarize leakroots", "summarize free",
    "tree", "waste")
# These set something, or write another thing.
OTHERS = {"doctor", "export", "help", "overview", "istype", "let", "report", "session"}


def document(name):
    with open(os.path.join(DOCUMENTS, name), encoding="utf-8") as file:
        return file.read()


TIMES = {"first": "%Y-%m-%d %H:%M", "day": "%Y-%m-%d"}


def comparable(row):
    """The row, whatever writes it: numbers as text, or with more digits than there are."""
    def value(name, text):
        # DuckDB writes large integers as text.
        if name in TIMES and re.fullmatch(r"\d+(\.\d+)?", str(text)):
            return time.strftime(TIMES[name], time.gmtime(float(text)))
        is_number = isinstance(text, (int, float)) or re.fullmatch(r"\d+(\.\d+)?", text or "")
        return round(float(text), 5) if is_number and name != "build" else text
    return sorted((name, value(name, text)) for name, text in row.items())


@unittest.skipIf(harness.SANITIZED, "others are enough: this is about other programs")
class DatabasesTest(fleet_cores.FleetCores):
    @classmethod
    def setUpClass(cls):
        cls.make_cores(HOSTS)
        rows = os.path.join(cls.temporary.name, "rows")
        os.mkdir(rows)
        for host in range(5):
            for build in range(3):
                fleet_cores.made_rows(f"{rows}/{host}-{build}", host, f"v{build}",
                                      {"table": 10_000 * (1 + 3 * (build == 1)) + 1500 * host},
                                      hours=1 + host)
        harness.ask("fleet", "-q", "--path-tags", fleet_cores.PATTERN, "-o", cls.database,
                    cls.cores, rows)
        cls.tables = os.path.join(cls.temporary.name, "tables")
        subprocess.run([os.path.join(DOCUMENTS, "tables.sh"), cls.database, cls.tables], check=True)

    def check(self, query, *chosen):
        """query() has the rows of each table of the report, as objects."""
        report = self.report(*chosen)
        self.assertEqual(set(report), set(TABLES) | {"section"})
        for name in TABLES:
            with self.subTest(name):
                names = ", ".join(key.replace(" ", "_") for key in report[name][0])
                rows = query(f"SELECT {names} FROM {name.replace(' ', '_')}")
                self.assertEqual(sorted(map(comparable, rows), key=repr),
                                 sorted(map(comparable, report[name]), key=repr))

    def test_sqlite(self):
        def query(text, before=""):
            run = subprocess.run(["sqlite3", "-readonly", "-json", self.database],
                                 input=f"{before}{document('report.sql')}{text};", text=True,
                                 capture_output=True, check=True)
            return json.loads(run.stdout)

        self.check(query)
        narrow = "CREATE TEMP TABLE core AS SELECT * FROM main.core WHERE build IN ('1', '2');"
        self.assertIn(narrow.split(" WHERE")[0], document("report.sql"))
        self.assertEqual(query("SELECT cores, hosts FROM fleet", narrow),
                         [{"cores": 7, "hosts": 3}])

    def test_postgresql(self):
        engines.need("sqlite3", "psql")
        with engines.postgres(self.folder) as variables:
            def psql(*words, **options):
                return subprocess.run(
                    ["psql", "-qtAX", "-v", "ON_ERROR_STOP=1", *words], cwd=self.tables, text=True,
                    env={**os.environ, **variables}, check=True, capture_output=True, **options)

            def query(text):
                return [json.loads(line) for line in psql(
                    "-f", os.path.join(DOCUMENTS, "report.sql"), "-c",
                    f"SELECT row_to_json(t) FROM ({text}) t").stdout.splitlines()]

            psql("-f", os.path.join(DOCUMENTS, "tables.sql"), "-f",
                 os.path.join(DOCUMENTS, "postgresql.sql"))
            self.check(query)
            self.check_commands(psql)

    def test_duckdb(self):
        modules = engines.node_modules("@duckdb/node-api")

        def query(text):
            run = subprocess.run(
                ["node", os.path.join(harness.ROOT, "tests/live/duckdb.cjs"), modules, ":memory:"],
                input="".join(map(document, ("tables.sql", "duckdb.sql", "report.sql"))) + text,
                text=True, capture_output=True, check=True, cwd=self.tables)
            return json.loads(run.stdout)

        self.check(query)

    def write_csv(self, command, path):
        """The rows of a command as the csv module reads them; a tag has all that csv must quote."""
        core = self.all[0]
        place = harness.ask(core, "enumerate leaked").stdout.split()[0]
        words = [core, command.replace("OTHER", self.all[-1]).replace("PLACE", place),
                 "--tag", 'text=a, "b" \\.', "--tag", "core"]
        harness.ask("-q", "-o", path, "-o", path + ".ndjson", *words, expected=(0, 1))
        with open(path + ".ndjson", encoding="utf-8") as file:
            lines = file.read().splitlines()
        with open(path, encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        told = collections.Counter(json.loads(line)["row"] for line in lines)
        self.assertEqual(len(rows), told[rows[0][0]] if rows else 0, command)
        return head, rows

    def check_commands(self, psql):
        """PostgreSQL's COPY loads what each command writes, and gives back the same."""
        verbs = {name[:-2] for name in os.listdir(os.path.join(harness.ROOT, "cli/commands"))}
        asked = {command.split()[0] for command in COMMANDS}
        self.assertEqual({verb for verb in verbs - asked - OTHERS if "_" not in verb}, {"find"})
        script, written = [], {}
        for number, command in enumerate(COMMANDS):
            path = self.path(f"{number}.csv")
            head, written[command] = self.write_csv(command, path)
            columns = ", ".join(f'"{name}" text' for name in head)
            script += [f"CREATE TEMP TABLE t{number} ({columns});",
                       f"\\copy t{number} FROM '{path}' (FORMAT csv, HEADER)",
                       f"\\copy t{number} TO '{path}.back' (FORMAT csv)"]
        psql(input="\n".join(script) + "\n")
        for number, command in enumerate(COMMANDS):
            with open(self.path(f"{number}.csv.back"), encoding="utf-8", newline="") as file:
                self.assertEqual(list(csv.reader(file)), written[command], command)


if __name__ == "__main__":
    unittest.main()
