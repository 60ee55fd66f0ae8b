"""
Many cores as one: three builds of a program on twenty hosts, among them a core that is broken.
What each process leaked, it was told to leak.
"""

import collections
import contextlib
import gzip
import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import time
import unittest
from xml.etree import ElementTree

import fleet_cores
import harness
from fleet_cores import BUILDS, LARGE, PATTERN

HOSTS = [f"host{i:02}" for i in range(20)]
REQUEST, SESSION = 72, 136
REQUESTS, SESSIONS = 5, 7


class FleetTest(fleet_cores.FleetCores):
    @classmethod
    def setUpClass(cls):
        cls.make_cores(HOSTS)
        cls.run_fleet = harness.run(harness.HEAPCORE, "fleet", "--path-tags", PATTERN, "-o",
                                    cls.database, cls.cores)

    def gate(self, *words):
        return harness.run(harness.HEAPCORE, "fleet", "gate", self.database, *words)

    def test_each_core_is_a_row_with_its_host_and_build(self):
        self.assertEqual(self.run_fleet.returncode, 0, self.run_fleet.stderr)
        self.assertIn("61 cores: 60 analysed, 1 failed, 0 already", self.run_fleet.stderr)
        self.assertIn(f"; failed: {self.broken} (", self.run_fleet.stderr)
        rows = self.ask("SELECT build, host, path FROM core WHERE error IS NULL")
        self.assertEqual(sorted(rows), sorted((b, h, path) for (b, h), path in zip(
            ((b, h) for b in BUILDS for h in HOSTS), self.all)))
        self.assertEqual(self.ask("SELECT path FROM core WHERE error IS NOT NULL"),
                         [(self.broken,)])
        self.assertEqual(self.ask("SELECT count(DISTINCT build_id), min(program), max(program),"
                                  " sum(incomplete) FROM core WHERE error IS NULL"),
                         [(3, "server", "server", 0)])

    def test_a_core_has_what_single_commands_tell_of_it(self):
        core = self.all[0]
        used, leaked = (harness.tables(core, "count", what)["total"][0]
                        for what in ("used", "leaked"))
        self.assertEqual(self.ask(f"SELECT used, used_bytes, leaked, leaked_bytes FROM core"
                                  f" WHERE path = '{core}'"),
                         [(used["count"], used["bytes"], leaked["count"], leaked["bytes"])])
        gate = json.loads(harness.run(harness.HEAPCORE, "--format", "json", core, "gate").stdout)
        leaks = [row for table in gate["tables"] if table["name"] == "leak"
                 for row in table["rows"]]
        self.assertEqual(
            sorted(self.ask(f"SELECT fingerprint, bytes FROM leak JOIN core ON id = core"
                            f" WHERE path = '{core}'")),
            sorted((row["fingerprint"], row["bytes"]) for row in leaks))
        sums = self.ask(f"SELECT sum(bytes), used_bytes FROM kind JOIN core ON id = core WHERE"
                        f" path = '{core}'")
        self.assertEqual(sums[0][0], sums[0][1])

    def test_leaks_join_over_hosts_and_builds(self):
        leaks = self.report()["fleet leak"]
        found = {}
        for row in leaks:
            self.assertEqual(row["most"] % row["size"], 0)
            found[row["kind"]] = (row["cores"], row["hosts"], row["builds"], row["roots"],
                                  row["size"])
        request = [value for kind, value in found.items() if "request" in kind]
        session = [value for kind, value in found.items() if "session" in kind]
        self.assertEqual(request, [(40, 20, 2, 40 * REQUESTS, REQUEST)])
        self.assertEqual(session, [(40, 20, 2, 40 * SESSIONS, SESSION)])
        self.assertEqual(len(leaks), 2, leaks)

    def test_which_build_brought_which_leak(self):
        brought = {row["kind"]: (row["build"], row["until"])
                   for row in self.report()["brought leak"]}
        self.assertEqual(collections.Counter(brought.values()),
                         {("1", "2"): 1, ("2", None): 1})
        for kind, (build, _) in brought.items():
            self.assertIn({"1": "request", "2": "session"}[build], kind)

    def test_the_core_that_uses_far_more_is_an_outlier(self):
        outliers = self.report()["outlier"]
        self.assertEqual([(row["build"], row["host"]) for row in outliers], [LARGE])
        self.assertIn("cached", outliers[0]["kind"])

    def test_selected_cores(self):
        tables = self.report("--select", "build=3", "--select", "host=host0*")
        self.assertEqual(tables["fleet"][0]["cores"], 10)
        self.assertEqual(len(tables["fleet leak"]), 1)
        wrong = harness.run(harness.HEAPCORE, "fleet", "report", self.database, "--select",
                            "build=4")
        self.assertEqual(wrong.returncode, 2, wrong.stderr)

    def test_text_and_a_page_say_the_same(self):
        page = self.path("fleet.html")
        text = harness.ask("fleet", "report", self.database, "-o", page).stdout
        self.assertIn("61 cores of 1 program in 3 builds on 20 hosts", text)
        self.assertIn("core.broken", text)
        with open(page, encoding="utf-8") as file:
            written = file.read()
        table = harness.ask("fleet", "report", self.database, "--format", "csv").stdout
        for row in self.report()["fleet leak"]:
            self.assertEqual(table.count(row["fingerprint"]), 1)
            self.assertIn(row["fingerprint"], text)
            self.assertIn(row["fingerprint"], written)

    def test_gate(self):
        for status, words in (
                (0, ["--baseline", "build=2", "--select", "build=3"]),
                (1, ["--baseline", "build=1", "--select", "build=3"]),
                (1, ["--baseline", "build=1"]),
                (0, ["--baseline", "build=1", "--select", "build=3", "--min-cores", "21"]),
                (1, ["--baseline", "build=2", "--select", "build=3", "--max-leaked-bytes", "900"]),
                (0, ["--baseline", "build=2", "--select", "build=3", "--max-leaked-bytes", "4K"]),
                (1, []),
                (2, ["--baseline", "build=0"]),
                (2, ["--baseline", "build"]),
                (3, ["--baseline", "build=1", "--select", "build=2", "--min-cores", "21"]),
                (0, ["--baseline", "build=1", "--select", "build=2", "--min-cores", "21",
                     "--max-doubtful", "5%"]),
                (3, ["--baseline", "build=1", "--select", "build=2", "--min-cores", "21",
                     "--max-doubtful", "4"]),
                (2, ["--baseline", "build=1", "--max-doubtful", "few"]),
                (2, ["--max-growth", "10%"])):
            with self.subTest(words):
                run = self.gate(*words)
                self.assertEqual(run.returncode, status, run.stdout + run.stderr)

    def test_reports_for_build_servers_fail_as_the_gate_does(self):
        for status, words in ((0, ["--baseline", "build=2", "--select", "build=3"]),
                              (1, ["--baseline", "build=1", "--select", "build=3"]),
                              (1, ["--baseline", "build=2", "--select", "build=3",
                                   "--max-leaked-bytes", "900"])):
            with self.subTest(words):
                run = self.gate(*words, "--format", "junit")
                suite = ElementTree.fromstring(run.stdout)[0]
                self.assertEqual((run.returncode, int(suite.get("failures")) > 0),
                                 (status, status > 0), run.stdout)
                sarif = json.loads(self.gate(*words, "--format", "sarif").stdout)
                errors = [result for result in sarif["runs"][0]["results"]
                          if result["level"] == "error"]
                self.assertEqual(len(errors) > 0, status > 0)

    def test_the_gate_names_the_leak(self):
        text = self.gate("--baseline", "build=1", "--select", "build=3").stdout
        self.assertRegex(text, rf"New leak [0-9a-f]{{16}}: .*session.*, {20 * SESSIONS * SESSION:,} bytes in"
                         r" 20 cores on 20 hosts")
        self.assertIn("Gate failed: 1 new leak. 20 cores judged; 0 could not be", text)

    def add(self, database, *words, **options):
        return harness.run(harness.HEAPCORE, "fleet", "--path-tags", PATTERN, "-o", database,
                           *words, **options)

    def contents(self, database):
        """All but what differs from run to run."""
        names = ("host", "build", "leaked_bytes", "used_bytes", "path", "error", "program")
        cores = self.ask(f"SELECT {', '.join(names)} FROM core ORDER BY path", database)
        tables = [self.ask(f"SELECT path, {columns} FROM {table} JOIN core ON id = core"
                           " ORDER BY 1, 2, 3, 4", database)
                  for table, columns in (("leak", "fingerprint, roots, bytes"),
                                         ("kind", "kind, count, bytes"),
                                         ("bill", "memory, use, bill.mapped"),
                                         ("tag", "name, value, 0"))]
        return cores, *tables

    def test_what_is_killed_goes_on(self):
        """However it ends, and whenever: nothing is lost, nothing is there twice."""
        database = self.path("killed.db")
        for number, wanted in ((signal.SIGKILL, 8), (signal.SIGINT, 30)):
            process = subprocess.Popen(
                [harness.HEAPCORE, "fleet", "-q", "--jobs", "2", "--path-tags", PATTERN, "-o",
                 database, self.cores], stderr=subprocess.DEVNULL)
            with harness.ended(process):
                self.wait_for_rows(database, wanted, process)
                process.send_signal(number)
                process.wait()
        before = self.ask("SELECT count(*) FROM core", database)[0][0]
        again = self.add(database, self.cores)
        self.assertIn(f"{before} already", again.stderr)
        self.assertEqual(self.contents(database), self.contents(self.database))
        last = self.add(database, self.cores, self.all[3])
        self.assertIn("61 cores: 0 analysed, 0 failed, 61 already", last.stderr)

    def wait_for_rows(self, database, wanted, process):
        """Until so many cores are kept, or it is done already."""
        while process.poll() is None:
            try:
                if self.ask("SELECT count(*) FROM core", database)[0][0] >= wanted:
                    return
            except sqlite3.OperationalError:
                pass  # it is not there yet
            time.sleep(0.01)

    def test_limits_and_inputs(self):
        """A core that takes too long, rows made elsewhere, a list with tags, one that changed."""
        database, rows = self.path("small.db"), self.path("rows.ndjson")
        core = self.path("core.changing")
        os.link(self.all[0], core)
        with open(rows, "w", encoding="utf-8") as file:
            file.write(harness.ask(self.all[1], "--format", "ndjson", "facts", "--tag",
                                   "host=elsewhere").stdout)
        listed = f"{core}\thost=listed\tregion=eu\n{rows}\n/none\thost=any\n"
        run = self.add(database, "-", input=listed)
        self.assertIn("3 cores: 2 analysed, 1 failed", run.stderr)
        self.assertEqual(self.ask("SELECT host, leaked, error IS NULL FROM core ORDER BY host",
                                  database),
                         [("any", None, 0), ("elsewhere", REQUESTS, 1), ("listed", REQUESTS, 1)])
        self.assertEqual(self.ask("SELECT value FROM tag WHERE name = 'region'", database),
                         [("eu",)])
        os.unlink(core)
        with open(core, "wb") as file:
            file.write(b"no core any more")
        run = self.add(database, core)
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertEqual(self.ask("SELECT count(*), count(error) FROM core", database), [(3, 2)])
        run = self.add(database, "--max-memory", "64K", self.all[4])
        self.assertIn("1 failed", run.stderr)
        self.assertIn("out of memory", self.ask(
            f"SELECT error FROM core WHERE path = '{self.all[4]}'", database)[0][0])
        self.assertIn("1 already", self.add(database, self.all[4]).stderr)
        self.assertIn("1 analysed", self.add(database, "--retry", self.all[4]).stderr)

    def test_facts_end_with_a_row_whatever_became_of_the_core(self):
        empty, cut, rows = self.path("core.empty"), self.path("core.cut"), self.path("rows")
        os.mkdir(rows)
        with open(self.all[0], "rb") as whole, open(cut, "wb") as file:
            file.write(whole.read(os.path.getsize(self.all[0]) // 2))
        with open(empty, "wb"):
            pass
        os.utime(empty, (1e9, 1e9))
        for number, (core, status, error, says) in enumerate((
                (self.all[0], 0, None, '"complete":true'), (empty, 3, "is empty", None),
                (cut, 3, None, '"complete":false'), (self.path("none"), 2, "No such file or directory", None))):
            run = harness.run(harness.HEAPCORE, "-q", "--format", "ndjson", "--tag", "host=a",
                              "--tag", "rack=7", core, "facts")
            lines = run.stdout.splitlines()
            last = json.loads(next(line for line in lines[::-1] if '"row":"end"' not in line
                                   and '"row":"finding"' not in line))
            self.assertEqual((last["row"], last["status"], last["error"], last["host"], last["rack"],
                              last["name"]), ("facts core", status, error, "a", "7",
                                              os.path.basename(core)))
            self.assertEqual(run.returncode, status)
            self.assertTrue(last["version"])
            if says:
                self.assertIn(says, lines[-1])
            if core == empty:
                self.assertEqual((last["time"], last["time_of"], last["path"]), (1e9, "file", core))
            with open(f"{rows}/{number}.ndjson", "w", encoding="utf-8") as file:
                file.write(run.stdout)
        with open(f"{rows}/killed.ndjson", "w", encoding="utf-8"):
            pass
        database = self.path("rows.db")
        run = self.add_rows(database, rows)
        self.assertIn("5 cores: 2 analysed, 3 failed", run.stderr)
        self.assertIn("killed.ndjson (is empty)", run.stderr)
        self.assertEqual(self.ask("SELECT origin, error, host, time FROM core WHERE error IS NOT"
                                  f" NULL AND origin = '{empty}'", database),
                         [(empty, "is empty", "a", 1e9)])
        self.assertEqual(self.ask("SELECT count(*) FROM tag WHERE (name, value) = ('rack', '7')",
                                  database), [(4,)])
        # The leaks of the core that is cut off are not known.
        tables = self.report(database=database)
        self.assertEqual((tables["fleet"][0]["cores"], tables["fleet"][0]["failed"],
                          tables["fleet"][0]["incomplete"]), (5, 3, 1))
        self.assertEqual([(row["roots"], row["cores"]) for row in tables["fleet leak"]],
                         [(REQUESTS, 1)])
        self.assertEqual(len(tables["doubtful core"]), 4)
        self.assertGreater(self.report("--with-doubtful", database=database)["fleet"][0]["used"],
                           tables["fleet"][0]["used"])

    def add_rows(self, database, *words, **options):
        return harness.run(harness.HEAPCORE, "fleet", "-o", database, *words, **options)

    def test_a_core_counts_once_whatever_it_is_called_and_packed(self):
        folder, database = self.path("copies"), self.path("copies.db")
        os.mkdir(folder)
        core = os.path.join(folder, "core.b")
        shutil.copy(self.all[0], core)
        shutil.copy(self.all[0], os.path.join(folder, "core.c"))
        os.symlink(core, os.path.join(folder, "core.a"))
        with open(core, "rb") as file, gzip.open(core + ".gz", "wb", 1) as packed:
            shutil.copyfileobj(file, packed)
        shutil.copy(self.all[1], os.path.join(folder, "core.other"))
        self.add_rows(database, folder)
        fleet = self.report(database=database)["fleet"][0]
        self.assertEqual((fleet["cores"], fleet["copies"]), (2, 3))
        self.assertEqual(fleet["leaked"], 2 * REQUESTS * REQUEST)
        text = harness.run(harness.HEAPCORE, "fleet", "gate", database).stdout
        self.assertIn("in 2 cores", text)
        self.assertIn("2 cores judged", text)

    def test_cores_are_removed_by_age_build_and_file(self):
        database, rows = self.path("pruned.db"), self.path("rows")
        os.mkdir(rows)
        now = time.time()
        for name, build, age in (("new", "1", 1), ("old", "1", 40), ("other", "2", 40)):
            fleet_cores.made_rows(os.path.join(rows, name), name, build, {"table": 4096},
                                  [("a", 64)], time=now - age * 86400)
        def prune(*words):
            run = harness.run(harness.HEAPCORE, "fleet", "prune", database, *words)
            hosts = self.ask("SELECT host FROM core ORDER BY host", database)
            for table in ("leak", "kind", "bill", "tag"):
                self.assertEqual(self.ask(f"SELECT count(DISTINCT core) FROM {table}", database),
                                 [(len(hosts),)])
            return run.returncode, [host for host, in hosts]

        self.add_rows(database, rows)
        self.assertEqual(prune(), (2, ["new", "old", "other"]))
        self.assertEqual(prune("--older", "30d", "--build", "1"), (0, ["new", "other"]))
        self.assertEqual(prune("--missing"), (0, ["new", "other"]))
        os.unlink(os.path.join(rows, "new"))
        self.assertEqual(prune("--missing"), (0, ["other"]))
        self.assertEqual(harness.run(harness.HEAPCORE, "fleet", "prune", self.path("no.db"),
                                     "--missing").returncode, 2)
        self.assertFalse(os.path.exists(self.path("no.db")))

    def test_a_file_of_an_older_heapcore(self):
        """Its tables get the new columns, when it is asked, too; --again fills them."""
        database = self.path("older.db")
        self.add(database, self.all[0], self.all[1])
        added = {3: ["ALTER TABLE core DROP COLUMN uptime"],
                 2: ["ALTER TABLE kind DROP COLUMN allocated_by"],
                 1: ["DROP TABLE holder", *(f"ALTER TABLE core DROP COLUMN {column}" for column in (
                     "origin", "machine", "identity", "version", "signal", "place", "reason"))]}
        schema = self.ask("SELECT name, sql FROM sqlite_master ORDER BY name", database)
        for version in (4, 3, 2, 1):
            with contextlib.closing(sqlite3.connect(database)) as connection, connection:
                for later in range(3, version - 1, -1):
                    for change in added[later]:
                        connection.execute(change)
                connection.execute(f"PRAGMA user_version = {version}")
            self.assertEqual(self.report(database=database)["fleet"][0]["cores"], 2)
            self.assertEqual(self.ask("PRAGMA user_version", database), [(4,)])
        self.assertEqual({name for name, _ in schema}, {name for (name,) in self.ask(
            "SELECT name FROM sqlite_master", database)})
        self.assertEqual(self.report(database=database)["fleet"][0]["cores"], 2)
        self.assertEqual(self.report("--table", "growth", database=database)["growth"], [])
        self.assertIn("0 analysed, 0 failed, 2 already", self.add(database, *self.all[:2]).stderr)
        self.assertIn("2 analysed", self.add(database, "--again", *self.all[:2]).stderr)
        self.assertIn("2 already", self.add(database, "--again", *self.all[:2]).stderr)
        self.assertEqual(self.ask("SELECT count(identity), min(machine), min(uptime) > 0 FROM core", database),
                         [(2, "x86-64", 1)])

    def test_a_pattern_that_fits_no_path_is_wrong(self):
        run = harness.run(harness.HEAPCORE, "fleet", "-o", self.path("no.db"), "--path-tags",
                          "{host}/{rack}/dump", self.all[0])
        self.assertEqual(run.returncode, 2)
        self.assertIn("no path ends as --path-tags", run.stderr)
        self.assertFalse(os.path.exists(self.path("no.db")))

    def test_the_log_has_an_object_for_each_core(self):
        log = self.path("log")
        self.add(self.path("logged.db"), "--log", log, self.all[0], self.broken)
        self.add(self.path("logged.db"), "--log", log, self.all[0], self.all[1])
        with open(log, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual({(line["core"], line["error"] is None, line["status"]) for line in lines},
                         {(self.all[0], True, 0), (self.broken, False, 3), (self.all[1], True, 0)})
        self.assertEqual(len(lines), 3)

    def test_two_at_once_share_the_work(self):
        database, log = self.path("shared.db"), self.path("log")
        both = [subprocess.Popen([harness.HEAPCORE, "fleet", "--jobs", "2", "--path-tags", PATTERN,
                                  "--log", log, "-o", database, self.cores],
                                 stderr=subprocess.PIPE, text=True) for _ in range(2)]
        said = [process.communicate()[1] for process in both]
        with open(log, encoding="utf-8") as file:
            analysed = [json.loads(line)["core"] for line in file]
        self.assertEqual(len(analysed), len(set(analysed)), said)
        self.assertEqual(self.contents(database), self.contents(self.database))

    def test_killed_at_any_time(self):
        """Ten times, and each time two work on it: in the end it is as if nobody had been killed."""
        database = self.path("killed.db")
        chosen = random.Random(4711)
        for _ in range(10):
            both = [subprocess.Popen([harness.HEAPCORE, "fleet", "-q", "--jobs", "2", "--path-tags",
                                      PATTERN, "-o", database, self.cores]) for _ in range(2)]
            time.sleep(chosen.uniform(0.01, 0.15))
            for process in both:
                process.kill()
                process.wait()
        self.add(database, self.cores)
        self.assertEqual(self.contents(database), self.contents(self.database))
        self.assertEqual(self.ask("PRAGMA integrity_check", database), [("ok",)])

    def test_a_full_disk_loses_nothing(self):
        folder = self.path("disk")
        os.mkdir(folder)
        if harness.run("mount", "-t", "tmpfs", "-o", "size=128k", "none", folder).returncode:
            self.skipTest("a small disk is mounted by root only")
        database = os.path.join(folder, "fleet.db")
        try:
            run = self.add(database, self.cores)
            self.assertEqual(run.returncode, 3, run.stderr)
            self.assertIn("full", run.stderr)
            self.assertEqual(self.ask("PRAGMA integrity_check", database), [("ok",)])
            kept = self.ask("SELECT count(*) FROM core", database)[0][0]
            harness.run("mount", "-o", "remount,size=16m", folder, check=True)
            self.assertIn(f"{kept} already", self.add(database, self.cores).stderr)
            self.assertEqual(self.contents(database), self.contents(self.database))
        finally:
            harness.run("umount", folder)

    @unittest.skipIf(harness.SANITIZED, "there is no limit with the address sanitizer")
    def test_the_limit_of_memory_is_beside_the_core(self):
        """Half a gigabyte more than the limit is allowed for libraries; the core is larger, if sparse."""
        core, database = self.path("core.large"), self.path("large.db")
        shutil.copy(self.all[0], core)
        os.truncate(core, 1 << 30)
        self.assertIn("1 analysed", self.add_rows(database, "--max-memory", "64M", core).stderr)
        run = harness.run(harness.HEAPCORE, "fleet", "-o", database, "--max-memory", "64M",
                          "--fetch", "cat {}", core)
        self.assertIn("1 analysed", run.stderr)
        self.assertEqual(self.ask("SELECT leaked FROM core", database), [(REQUESTS,)])

    def test_growth_has_what_holds_it(self):
        """With --holders; two builds differ in the length of one list, whose nodes hold each other."""
        database, folder = self.path("held.db"), self.path("held")
        for build, size in (("a", 50), ("b", 500)):
            os.makedirs(os.path.join(folder, build))
            for host in range(3):
                harness.snap(self.start([self.program("1"), str(size + host)]),
                             os.path.join(folder, build, f"core.{host}"))
        self.add_rows(database, "--holders", "--path-tags", "{build}/core.*", folder)
        grown = {row["kind"]: row for row in self.report(database=database)["growth"]}
        held = grown["held by cached"]
        self.assertEqual((held["build"], held["former_build"], held["cores"]), ("b", "a", 3))
        self.assertGreaterEqual(held["median"] - held["former"], 450 * 200)
        self.assertIn(("cache (server)",), self.ask("SELECT holder FROM holder", database))
        self.assertNotIn("held by", json.dumps(self.report(database=database)["common kind"]))

    def test_cores_are_fetched_by_a_command(self):
        """Names are no words of the shell, and need be no paths."""
        store, database = self.path("store"), self.path("fetched.db")
        os.mkdir(store)
        names = ["a b", "$(touch hacked)", "c'd\"", "web/1"]
        os.mkdir(os.path.join(store, "web"))
        for name, core in zip(names, self.all):
            os.symlink(core, os.path.join(store, name))
        run = harness.run(harness.HEAPCORE, "fleet", "-o", database, "--fetch",
                          f"cat {store}/{{}}", "-", cwd=self.folder,
                          input="\n".join([*names, "none"]) + "\thost=x\n")
        self.assertIn("5 cores: 4 analysed, 1 failed", run.stderr)
        self.assertRegex(run.stderr, r"failed: none \(cat: .*No such file")
        self.assertEqual(sorted(path for path, in self.ask(
            f"SELECT path FROM core WHERE error IS NULL AND leaked = {REQUESTS}", database)),
            sorted(names))
        self.assertFalse(os.path.exists(self.path("hacked")))

    def test_what_grew_beyond_the_spread_of_a_build(self):
        """'busy' is as different on the hosts of a build as in both; 'session' is four times as much."""
        database, rows = self.path("grown.db"), self.path("rows")
        os.mkdir(rows)
        for host in range(8):
            for build, session, leaks in (("1.4", 10_000, [("old", 64)]), ("1.5", 10_000, [("old", 64)]),
                                          ("1.6", 40_000, [("new", 32)])):
                fleet_cores.made_rows(f"{rows}/{build}-{host}", f"host{host}", build, {
                    "busy": 50_000 * (1 + host), "session": session + 100 * host, "small": 8},
                    leaks, time=1e9 + 86400 * (build == "1.6"))
        self.add_rows(database, rows)
        grown = self.report(database=database)["growth"]
        self.assertEqual([(row["kind"], row["build"], row["former_build"], row["former"],
                           row["median"]) for row in grown],
                         [("session", "1.6", "1.5", 10_300, 40_300)])
        self.assertEqual(grown[0]["allocated_by"], "make_session")
        differing = self.tables_of("diff", database, "1.5", "1.6")
        self.assertEqual([row["kind"] for row in differing["growth"]], ["session"])
        self.assertEqual({(row["fingerprint"], row["only_in"])
                          for row in differing["leak that differs"]}, {("old", "1.5"), ("new", "1.6")})
        self.assertNotIn("growth", self.tables_of("diff", database, "1.4", "1.5"))
        back = self.tables_of("diff", database, "1.6", "1.5")
        self.assertNotIn("growth", back)
        self.assertEqual([(row["day"], row["cores"]) for row in self.report(database=database)["trend"]],
                         [("2001-09-10", 8), ("2001-09-09", 16)])
        shown = self.tables_of("show", database, "new")
        self.assertEqual((shown["fleet leak"][0]["first_build"], len(shown["leaking core"]),
                          shown["leaking core"][0]["core"]), ("1.6", 8, "/cores/host0/1.6/core"))
        for status, words in ((2, ["show", database, "never"]), (2, ["diff", database, "1.5", "1.7"]),
                              (2, ["diff", database, "1.5"])):
            self.assertEqual(harness.run(harness.HEAPCORE, "fleet", *words).returncode, status)
        metrics = harness.ask("fleet", "report", database, "--format", "openmetrics").stdout
        self.assertRegex(metrics, r"(?s)\A# TYPE .*\n# EOF\n\Z")
        self.assertIn('\nheapcore_fleet_growth_bytes{program="service",build="1.6",kind="session"} 30000\n',
                      metrics)
        families = [line.split("{")[0].split()[0] for line in metrics.splitlines()
                    if not line.startswith("#")]
        self.assertEqual(len(set(families)), len(list(itertools.groupby(families))))
        words = ["gate", database, "--baseline", "build=1.5", "--select", "build=1.6", "--min-cores",
                 "9", "--max-growth"]
        for status, most in ((1, "50%"), (0, "300")):
            run = harness.run(harness.HEAPCORE, "fleet", *words, most, "--format", "junit")
            self.assertEqual((run.returncode, run.stdout.count("<failure")), (status, status))
        self.assertIn("growth of 1 kind", harness.run(harness.HEAPCORE, "fleet", *words, "50").stdout)
        self.assertIn("growth of 1 kind", harness.run(harness.HEAPCORE, "fleet", *words[:-1]).stdout)
        self.assertEqual(harness.run(harness.HEAPCORE, "fleet", "gate", database, "--baseline", "build=1.4",
                                     "--select", "build=1.5").returncode, 0)

    def test_a_gate_on_too_few_cores_says_that_growth_is_not_judged(self):
        database, rows = self.path("few.db"), self.path("few")
        os.mkdir(rows)
        for build, program, cores in (("1", "many", 3), ("2", "many", 3), ("1", "few", 3), ("2", "few", 2),
                                      ("2", "fresh", 4)):
            for host in range(cores):
                fleet_cores.made_rows(f"{rows}/{program}{build}{host}", f"{program}{host}", build,
                                      {"cache": 10_000 * int(build)}, program=program)
        self.add_rows(database, rows)
        text = "Growth of {} is not judged: that takes three cores of each side, and there are {} to judge and {} of the baseline."
        run = harness.run(harness.HEAPCORE, "fleet", "gate", database, "--baseline", "build=1")
        self.assertEqual((run.returncode, [line for line in run.stdout.splitlines() if "not judged" in line]),
                         (0, [text.format("few", 2, 3), text.format("fresh", 4, 0)]))
        self.assertNotIn("not judged", harness.ask("fleet", "gate", database, "--min-cores", "9").stdout)
        junit = harness.ask("fleet", "gate", database, "--baseline", "build=1", "--format", "junit").stdout
        self.assertNotIn("<failure", junit)

    def test_growth_by_hours_of_uptime(self):
        """
        Of 1.5, 'cache' and the leak grow with the hours, 'busy' by host, 'late' in one core only;
        1.4 has them too, but the same age everywhere; four cores of 1.6 are too few.
        """
        database, rows = self.path("aged.db"), self.path("aged")
        os.mkdir(rows)
        ages, caches = [], []
        for build, hosts, step in (("1.5", 12, 5), ("1.4", 12, 0), ("1.6", 4, 5)):
            for host in range(hosts):
                ages.append(2 + host * step)
                caches.append(10_000 + 3_000 * ages[-1] + 40 * (host % 3))
                fleet_cores.made_rows(f"{rows}/{build}-{host}", f"host{host}", build, {
                    "cache": caches[-1], "busy": 100_000 * (1 + host * 5 % 7), "steady": 9_000,
                    **({"late": 50_000} if host == 11 else {})}, [("lost", 1_000 * ages[-1])], hours=ages[-1])
        fleet_cores.made_rows(f"{rows}/untold", "host99", "1.5", {"cache": 1 << 30, "steady": 1})
        self.add_rows(database, rows)
        tables = self.report(database=database)
        slope = round(statistics.linear_regression(ages[:12], caches[:12]).slope)
        self.assertEqual([(row["build"], row["kind"], row["bytes_per_hour"], row["cores"], row["youngest"],
                           row["oldest"]) for row in tables["uptime growth"]],
                         [("1.5", "cache", slope, 12, 2, 57), ("1.5", "leaked", 1_000, 12, 2, 57)])
        self.assertEqual(tables["uptime growth"][0]["allocated_by"], "make_cache")
        self.assertEqual({row["build"]: row["hours"] for row in tables["fleet build"]},
                         {"1.4": 2, "1.5": 30, "1.6": 10})
        metrics = harness.ask("fleet", "report", database, "--format", "openmetrics").stdout
        self.assertIn('\nheapcore_fleet_growth_bytes_per_hour{program="service",build="1.5",kind="leaked"} 1000\n',
                      metrics)

    def test_the_age_of_a_process_is_in_the_core_or_given_by_a_tag(self):
        """gcore and the kernel do not write it."""
        database = self.path("age.db")
        process = harness.start([self.program("1"), "10"], folder=self.folder)
        self.addCleanup(harness.end, process)
        by_gdb, own = self.path("core.gdb"), self.path("core.own")
        subprocess.run(["gcore", "-o", by_gdb, str(process.pid)], check=True, capture_output=True)
        harness.snap(process, own)
        self.add_rows(database, by_gdb + f".{process.pid}", own)
        self.assertEqual(self.ask("SELECT uptime BETWEEN 0 AND 600 FROM core ORDER BY path", database),
                         [(None,), (1,)])
        os.unlink(database)
        self.add_rows(database, by_gdb + f".{process.pid}", own, "--tag", "uptime=7200")
        self.assertEqual(self.ask("SELECT uptime FROM core", database), [(7200.0,)] * 2)

    def test_a_slim_core_has_the_facts_of_the_whole_one(self):
        """Packed, too: leaks keep their fingerprints, the age of the process is there, and it counts once."""
        database, slim = self.path("slim.db"), self.path("core.slim")
        harness.ask("slim", self.all[0], "-o", slim)
        subprocess.run(["zstd", "-q", "-o", slim + ".zst", slim], check=True)
        self.add_rows(database, self.all[0], slim, slim + ".zst")
        facts = self.ask("SELECT program, process, time, used, used_bytes, leaked, leaked_bytes, uptime, incomplete,"
                         " error FROM core", database)
        self.assertEqual(facts, [facts[0]] * 3)
        leaks = self.ask("SELECT fingerprint, roots, bytes, count(*) FROM leak GROUP BY 1, 2, 3", database)
        self.assertEqual((len(leaks), {row[-1] for row in leaks}), (1, {3}))
        other = self.path("other.slim")
        harness.ask("slim", self.all[1], "-o", other)
        self.add_rows(database, other)
        fleet = self.report(database=database)["fleet"][0]
        self.assertEqual((fleet["cores"], fleet["copies"]), (2, 2))

    def test_leaks_of_a_deleted_core_are_no_other_core_s(self):
        """Deleted by hand: sqlite3 leaves the rows of other tables."""
        database = self.path("deleted.db")
        self.add(database, self.all[0])
        with contextlib.closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("DELETE FROM core")
        self.add(database, self.all[-1])
        self.assertEqual(
            self.ask("SELECT sum(allocations) FROM leak JOIN core ON id = core", database),
            self.ask("SELECT leaked FROM core", database))

    def test_a_core_without_a_time_has_that_of_its_file(self):
        """Not that of the rows, which were made later."""
        rows, database = self.path("rows.ndjson"), self.path("dated.db")
        core = harness.gcore(self.start([self.program("1"), "1"]), self.folder)
        os.utime(core, (1e9, 1e9))
        written = {path: harness.ask(path, "--format", "ndjson", "facts").stdout
                   for path in (core, self.all[0])}
        for path, source in ((core, "file"), (self.all[0], "core")):
            self.assertEqual(json.loads(written[path].splitlines()[0])["time_of"], source)
        with open(rows, "w", encoding="utf-8") as file:
            file.write(written[core])
        self.add_rows(database, rows)
        self.assertEqual(self.ask("SELECT time FROM core", database), [(1e9,)])
        # Nobody said on which host it was.
        self.assertIn("1 core of 1 program in 1 build: ",
                      harness.ask("fleet", "report", database).stdout)

    def test_rows_that_are_wrong(self):
        """Of them nothing stays but that they are wrong, whatever comes before and after."""
        rows = harness.ask(self.all[0], "--format", "ndjson", "facts").stdout.splitlines(True)
        leak = next(row for row in rows if '"facts leak"' in row)
        wrong = {"complete": rows[:-1], "are not complete": [*rows[:3], leak[:40]], "those": [*rows[:-1], '{"row":"facts leak",]}\n', rows[-1]],
                 "those of": [rows[0], "no row\n", *rows[1:]],
                 "not those": [*rows[:3], leak.replace("fingerprint", "none"), *rows[3:]],
                 "not complete": [rows[0], *rows]}
        names = {name: self.path(f"{name}.ndjson") for name in wrong}
        for name, lines in wrong.items():
            with open(names[name], "w", encoding="utf-8") as file:
                file.write("".join(lines))
        with open(self.path("fine.ndjson"), "w", encoding="utf-8") as file:
            file.write("".join([*rows[:-1], '{"row":"of another version","a":[1]}\n', rows[-1]]))
        database = self.path("wrong.db")
        self.assertIn("1 analysed, 6 failed", self.add_rows(database, self.folder).stderr)
        for name, path in names.items():
            error, found = self.ask("SELECT error, count(l.core) + count(b.core) FROM core LEFT JOIN"
                                    " leak l ON l.core = id LEFT JOIN bill b ON b.core = id WHERE"
                                    f" path = '{path}'", database)[0]
            self.assertIn(name, error)
            self.assertEqual(found, 0)

    def test_other_files_are_refused(self):
        other = self.path("other.db")
        with contextlib.closing(sqlite3.connect(other)) as connection:
            connection.execute("CREATE TABLE mine (a)")
        for words in (["-o", other, self.all[0]], ["report", other], ["gate", self.all[0]],
                      ["report", self.path("none.db")], []):
            with self.subTest(words):
                self.assertEqual(harness.run(harness.HEAPCORE, "fleet", *words).returncode, 2)


if __name__ == "__main__":
    unittest.main()
