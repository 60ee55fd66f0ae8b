"""
A database that `export sqlite` wrote has the same rows as `sql` has, for sqlite3 alone.
"""

import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import tempfile
import unittest

import hostile_text_test
import session_test

HEAPCORE = os.environ["HEAPCORE"]
SOURCE_DIR = os.environ["SOURCE_DIR"]
TIMEOUT = 120
CORES = (("dump", "cores/trixie-small.core"), ("dump", "cores/bookworm-small-jemalloc.core"),
         ("dump", "cores/trixie-damaged-run.core"), ("program", "retained"), ("program", "specification"))
# What the file does without.
LEFT_OUT = {"member", "item"}
CONTENTS = {"value", "length"}
ENOUGH = 10000
EVIL = b"');DROP VIEW a;--"


def setUpModule():
    global DUMPS, CORE_PATHS
    hostile_text_test.HOSTILE[b"HOSTILE_NAME_MARKER"] = EVIL
    DUMPS = session_test.Dumps()
    CORE_PATHS = [DUMPS.find(kind, what) for kind, what in CORES]


def tearDownModule():
    DUMPS.close()


def run(core, *words, **more):
    return subprocess.run([HEAPCORE, "-q", core, *words], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=TIMEOUT, check=False, text=True, **more)


def as_integer(value):
    """An address of JSON, as SQLite has it."""
    if isinstance(value, str) and re.fullmatch("0x[0-9a-f]+", value):
        number = int(value, 16)
        return number - (number >> 63 << 64)
    return value


def ask_all(core, asked):
    """The rows of each query, as heapcore says: a document for each."""
    answer = subprocess.run([HEAPCORE, "-q", "--format", "json", core, "sql"], text=True, check=False,
                            input="".join(query + ";\n" for query in asked), capture_output=True,
                            timeout=TIMEOUT)
    assert answer.returncode in (0, 3), answer.stderr
    decoder, text, results = json.JSONDecoder(), answer.stdout.strip(), []
    while text:
        document, end = decoder.raw_decode(text)
        rows = document["tables"][0]["rows"]
        results.append([tuple(map(as_integer, row.values())) for row in rows])
        text = text[end:].strip()
    return results


class File:
    def __init__(self, core):
        self.path = os.path.join(DUMPS.folder.name, "exported.db")
        answer = run(core, "export", "sqlite", "-o", self.path)
        assert answer.returncode in (0, 3), answer.stderr
        self.connection = sqlite3.connect(self.path)

    def ask(self, query):
        return [tuple(map(as_integer, row)) for row in self.connection.execute(query)]


def tables(core):
    rows = json.loads(run(core, "sql", ".schema", "--format", "json").stdout)["tables"][0]["rows"]
    columns = {}
    for row in rows:
        columns.setdefault(row["table"], []).append(row["column"])
    return columns


def queries():
    with open(os.path.join(SOURCE_DIR, "docs/sql.md"), encoding="utf-8") as file:
        text = re.search(r"```sql\n(.*?)```", file.read(), re.DOTALL).group(1)
    # Of what is equal, any may be the last.
    text = re.sub("--.*", "", text)
    return [re.sub(r"LIMIT \d+$", "", query.strip()) for query in text.split(";") if query.strip()]


def in_order(rows):
    return sorted(rows, key=lambda row: [str(value) for value in row])


class SameRowsTest(unittest.TestCase):
    def test_tables_views_and_queries_have_the_same_rows(self):
        for core in CORE_PATHS:
            file = File(core)
            columns = {name: ", ".join(f'"{column}"' for column in names if column not in CONTENTS)
                       for name, names in tables(core).items() if name not in LEFT_OUT}
            asked = [f"SELECT {names} FROM {name} LIMIT {ENOUGH}"
                     for name, names in columns.items() if name != "finding"]
            asked += [f"SELECT * FROM {view}" for view in ("suspects", "fan_in", "object_reference", "duplicates")]
            asked += queries()
            answers = ask_all(core, asked)
            self.assertEqual(len(answers), len(asked))
            for query, rows in zip(asked, answers):
                with self.subTest(core=core, query=query):
                    self.assertEqual(in_order(file.ask(query)), in_order(rows))
            self.assertEqual(file.ask("PRAGMA integrity_check"), [("ok",)])

    def test_lookups_use_an_index(self):
        file = File(CORE_PATHS[3])
        for query in ("SELECT * FROM allocation WHERE id = 1", "SELECT * FROM object WHERE id = 1",
                      "SELECT * FROM dominator WHERE id = 1", "SELECT * FROM reference WHERE source = 1"):
            plan = " ".join(str(row[3]) for row in file.ask("EXPLAIN QUERY PLAN " + query))
            self.assertNotIn("SCAN", plan, query)

    @unittest.skipUnless(shutil.which("sqlite3"), "there is no sqlite3")
    def test_the_tool_reads_it(self):
        file = File(CORE_PATHS[3])
        for query in queries():
            answer = subprocess.run(["sqlite3", "-json", file.path, query], capture_output=True,
                                    text=True, check=False)
            self.assertEqual((answer.returncode, answer.stderr), (0, ""), query)


class OutputTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "a.db")

    def test_it_is_for_its_owner_and_replaces_a_file_when_complete(self):
        with open(self.path, "w", encoding="ascii") as file:
            file.write("before")
        os.symlink(self.folder, self.folder + "-link")
        self.addCleanup(os.unlink, self.folder + "-link")
        answer = run(CORE_PATHS[0], "export", "sqlite", "-o", self.folder + "-link/a.db")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn(f"{os.path.getsize(self.path):,} bytes", answer.stdout)
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
        self.assertEqual(os.listdir(self.folder), ["a.db"])

    def test_mistakes(self):
        os.mkdir(self.path)
        other = os.path.join(self.folder, "b.db")
        for words, message in (
                ([], "'sqlite' is a database; name a file with '-o FILE'"),
                (["leaked", "-o", other], "it takes '-o FILE' alone"),
                (["--limit", "4", "-o", other], "it takes '-o FILE' alone"),
                (["-o", self.path], "that is no regular file"),
                (["-o", CORE_PATHS[0]], "that is the dump itself"),
                (["-o", "/nowhere/at/all"], "/nowhere/at/all: ")):
            answer = run(CORE_PATHS[0], "export", "sqlite", *words)
            self.assertEqual(answer.returncode, 2, words)
            self.assertIn(message, answer.stderr)
        self.assertEqual(os.listdir(self.folder), ["a.db"])

    def test_a_full_disk_leaves_nothing(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))
        answer = run(CORE_PATHS[3], "export", "sqlite", "-o", self.path, preexec_fn=limit,
                     restore_signals=False)
        self.assertEqual(answer.returncode, 2, answer)
        self.assertIn("disk", answer.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_an_interrupt_leaves_nothing(self):
        with open(self.path, "w", encoding="ascii") as file:
            file.write("before")
        with subprocess.Popen([HEAPCORE, "-q", CORE_PATHS[3], "export", "sqlite", "-o", self.path],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            while process.poll() is None and len(os.listdir(self.folder)) < 2:
                pass
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=TIMEOUT)
        self.assertEqual(os.listdir(self.folder), ["a.db"])
        # It may have been too quick.
        self.assertIn(process.returncode, (0, 130))
        with open(self.path, "rb") as file:
            self.assertEqual(file.read(6), b"before" if process.returncode else b"SQLite")


class SecretsTest(unittest.TestCase):
    def export(self, place):
        path = os.path.join(DUMPS.folder.name, "secrets.db")
        answer = run(place.core, "--no-content", "export", "sqlite", "-o", path)
        self.assertIn(answer.returncode, (0, 3), answer.stderr)
        return path

    def test_text_of_the_core_is_a_value(self):
        with tempfile.TemporaryDirectory() as folder:
            path = self.export(hostile_text_test.Place(folder, True))
        connection = sqlite3.connect(path)
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        self.assertIn("used_allocation", names)
        self.assertNotIn("evil", names)
        texts = connection.execute("SELECT path FROM core UNION ALL SELECT name FROM symbol"
                                   " UNION ALL SELECT kind FROM kind").fetchall()
        self.assertTrue(any(EVIL.decode() in str(text) for text, in texts))
        self.assertFalse(any(map(hostile_text_test.is_harmful, "".join(text for text, in texts))))

    def test_contents_are_in_no_column(self):
        with tempfile.TemporaryDirectory() as folder:
            path = self.export(hostile_text_test.Place(folder, False))
        with open(path, "rb") as file:
            self.assertNotIn(hostile_text_test.SECRET.encode(), file.read())


if __name__ == "__main__":
    unittest.main()
