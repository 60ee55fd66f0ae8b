"""
Reports for machines follow their schemas: JUnit's XML and SARIF those that were
published, JSON the one in docs/heapcore.schema.json; exports those of their viewers.
"""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness

try:
    import jsonschema
except ImportError:
    print("SKIPPED: there is no python3-jsonschema")
    sys.exit(77)

HEAPCORE = os.environ["HEAPCORE"]
SOURCE_DIR = os.environ["SOURCE_DIR"]
SCHEMAS = os.path.join(SOURCE_DIR, "testdata/schemas")
OWN_SCHEMA = os.path.join(SOURCE_DIR, "docs/heapcore.schema.json")
TIMEOUT = 60
MARKUP = "a <leak> & \"b\""

PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct kept { struct kept *next; int number; } *kept;

int main(int count, char **arguments)
{
	size_t sizes[] = { 56, 104, 200, 312 };

	for (int i = 1; i < count; i++)
		for (int n = atoi(arguments[i]); n > 0; n--)
			memset(malloc(sizes[i - 1]), 1, 8);
	kept = calloc(1, sizeof(*kept));
	kept->next = calloc(1, sizeof(*kept));
	return 0;
}
"""
# One suppression that matches, and one that does not.
SUPPRESSIONS = "size:200\nleak:nothing_of_the_kind\n"
COMMANDS = ("count used", "list used", "summarize used", "list threads",
            "list stacks", "describe allocations", "summarize leaked",
            "list leaked /limit 2", "backtrace", "summarize leakroots",
            "list arenas", "list modules", "gate --likely", "gate",
            "show leaked", "help count", "waste", "bill", "fragmentation", "tree",
            "objects", "explain leaked", "list maps", "list symbols /limit 9",
            "list used /limit 3", "count free", "summarize free",
            "sql .tables", "sql .schema", "export",
            "sql SELECT id, address, kind, size FROM allocation",
            "sql SELECT id, path, value FROM member", "sql .help",
            "info", "top", "report", "facts", "memprof sizes", "let mine = leaked", "history",
            "enumerate leaked", "find32 1", "findbytes 0101010101", "dump ADDRESS 64", "string ADDRESS",
            "describe ADDRESS", "explain ADDRESS", "path ADDRESS", "show ADDRESS", "istype ADDRESS kept",
            "notype ADDRESS", "list incoming ADDRESS", "list outgoing ADDRESS", "tree --top 3",
            "summarize used --sort-by retained", "list used --annotate *.*", "backtrace --locals",
            "fragmentation --by-arena", "bill --all", "dangling", "profile", "doctor", "describe leaked --limit 2", "list roots", "help sets")
# They act on heapcore, or start something else.
WITHOUT_ROWS = {"exit", "quit", "redirect", "source"}
TAGS = ("--tag", "core", "--tag", "pid", "--tag", "time", "--tag", "build-id",
        "--tag", "size=a,b")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class SchemasTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="heapcore-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        harness.build(cls.path("leaky"), "cc", "-O0", "-g", "-x", "c", "-", text=PROGRAM)
        with open(cls.path("rules"), "w", encoding="ascii") as file:
            file.write(SUPPRESSIONS)
        if cls.run_program([], "1").returncode == 3:
            raise unittest.SkipTest("programs cannot be traced here")
        # What was accepted: fewer of one kind, another as it is, one gone.
        cls.run_program(["--baseline", cls.path("accepted"),
                         "--update-baseline"], "1", "2", "0", "3")
        cls.everything = cls.run_program(
            ["--baseline", cls.path("accepted"), "--suppress",
             cls.path("rules"), "--core", cls.path(MARKUP), "-o",
             cls.path("report.sarif"), "-o", "junit:" + cls.path("report.xml"),
             "-o", cls.path("report.json")], "2", "2", "1", "0")

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def run_program(cls, options, *words):
        return subprocess.run(
            [HEAPCORE, "run", *options, "--", cls.path("leaky"), *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=TIMEOUT, check=False)

    def command(self, *words):
        """Standard output of a command on the core."""
        return subprocess.run(
            [HEAPCORE, *words], stdin=subprocess.DEVNULL, timeout=TIMEOUT,
            capture_output=True, text=True, check=False).stdout

    def validate_xml(self, path, schemas=("JUnit.xsd", "jenkins-junit.xsd")):
        for schema in schemas:
            with self.subTest(schema=schema):
                result = subprocess.run(
                    ["xmllint", "--noout", "--nonet", "--schema",
                     os.path.join(SCHEMAS, schema), path],
                    capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, 0, result.stderr)

    def read_tables(self, path="report.json"):
        document = load(self.path(path))
        return {table["name"]: table["rows"] for table in document["tables"]}

    def test_the_report_has_leaks_of_every_state(self):
        self.assertEqual(self.everything.returncode, 1, self.everything)
        tables = self.read_tables()
        self.assertEqual(sorted(row["state"] for row in tables["leak"]),
                         ["known", "more", "suppressed"])
        self.assertEqual(len(tables["gone"]), 1)
        self.assertEqual(len(tables["unused rule"]), 1)

    @unittest.skipUnless(shutil.which("xmllint"), "there is no xmllint")
    def test_junit(self):
        # Ant's schema is from before tests could be skipped.
        self.validate_xml(self.path("report.xml"), ["jenkins-junit.xsd"])
        path = self.path("none-suppressed.xml")
        self.run_program(["--baseline", self.path("accepted"), "-o",
                          "junit:" + path], "2", "2")
        self.validate_xml(path)

    @unittest.skipUnless(shutil.which("xmllint"), "there is no xmllint")
    def test_junit_tells_failures_from_what_is_accepted(self):
        text = subprocess.run(
            ["xmllint", "--xpath",
             "concat(count(//testcase), ' ', count(//failure), ' ', "
             "count(//skipped), ' ', count(//error), ' ', "
             "//testsuite/@tests, ' ', //testsuite/@failures)",
             self.path("report.xml")], capture_output=True, text=True,
            check=True).stdout
        self.assertEqual(text.strip(), "4 2 1 0 4 2")

    def truncate(self):
        """A core that ends in the middle."""
        path = self.path("cut")
        with open(self.path(MARKUP), "rb") as file:
            whole = file.read()
        with open(path, "wb") as file:
            file.write(whole[:len(whole) // 2])
        return path

    @unittest.skipUnless(shutil.which("xmllint"), "there is no xmllint")
    def test_junit_of_what_is_incomplete_has_an_error(self):
        path = self.path("cut.xml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.command("--format", "junit", self.truncate(),
                                    "gate"))
        self.validate_xml(path)
        with open(path, encoding="utf-8") as file:
            self.assertIn('errors="1"', file.read())

    def validate_sarif(self, document):
        jsonschema.validate(document,
                            load(os.path.join(SCHEMAS, "sarif-2.1.0.json")))

    def test_sarif(self):
        document = load(self.path("report.sarif"))
        self.validate_sarif(document)
        run = document["runs"][0]
        self.assertEqual(
            sorted(result["baselineState"] for result in run["results"]),
            ["absent", "new", "unchanged", "updated"])
        self.assertEqual({rule["id"] for rule in
                          run["tool"]["driver"]["rules"]},
                         {result["ruleId"] for result in run["results"]})
        self.assertEqual(
            [result["baselineState"] for result in run["results"]
             if result["level"] == "error"], ["updated"])

    def test_sarif_of_what_is_incomplete_says_so(self):
        document = json.loads(self.command("--format", "sarif",
                                           self.truncate(), "gate"))
        self.validate_sarif(document)
        invocation = document["runs"][0]["invocations"][0]
        self.assertFalse(invocation["executionSuccessful"])

    def test_json_of_commands(self):
        schema = load(OWN_SCHEMA)
        jsonschema.Draft7Validator.check_schema(schema)
        jsonschema.validate(load(self.path("report.json")), schema)
        written = 0
        for command in COMMANDS:
            with self.subTest(command=command):
                text = self.command("--format", "json", self.path(MARKUP), *self.words(command))
                if text.strip():
                    jsonschema.validate(json.loads(text), schema)
                    written += 1
        self.assertGreater(written, len(COMMANDS) / 2)

    def test_every_command_of_help_is_among_those(self):
        lines = self.command("help").split("Verbs that take a set")[1].split("To read more")[0]
        names = set(re.findall(r"^  (\w+)", lines, re.MULTILINE))
        sets = {"used", "leaked", "leakroots", "free", "incoming"}
        self.assertGreater(len(names), 30)
        self.assertEqual(names - sets - WITHOUT_ROWS - {"diff"},
                         {command.split()[0] for command in COMMANDS} - {"help"} | {"help"})

    def test_each_line_of_ndjson_is_a_row_of_the_document(self):
        schema = load(OWN_SCHEMA)
        row = jsonschema.Draft7Validator({"definitions": schema["definitions"],
                                          **schema["definitions"]["table"]["properties"]["rows"]["items"]})
        lines = [(self.path(MARKUP), *self.words(command)) for command in COMMANDS]
        lines.append(("diff", self.path(MARKUP), self.path(MARKUP)))
        for words in lines:
            with self.subTest(words=words):
                rows = [json.loads(line) for line
                        in self.command("--format", "ndjson", *words).splitlines()]
                text = self.command("--format", "json", *words)
                tables = json.loads(text)["tables"] if text.strip() else []
                self.assertEqual([each["row"] for each in rows if each["row"] not in ("finding", "end")],
                                 [table["name"] for table in tables for _ in table["rows"]])
                for each in rows[:-1]:
                    if each["row"] != "finding":
                        row.validate(each)
                if rows:
                    self.assertEqual((rows[-1]["row"], rows[-1]["complete"]), ("end", True))

    def words(self, command):
        if not hasattr(type(self), "address"):
            type(self).address = self.command(self.path(MARKUP), "enumerate", "used",
                                              "struct kept").split()[0]
        verb, *rest = command.replace("ADDRESS", self.address).split(" ", 1)
        return [verb, *(rest if verb == "sql" else " ".join(rest).split())]

    def tables_of(self, command):
        """Rows by name of table; a file has those of one name that have the columns of the first."""
        text = self.command("--format", "json", *TAGS, self.path(MARKUP), *self.words(command))
        tables = json.loads(text)["tables"] if text.strip() else []
        rows = {}
        for table in tables:
            known = rows.setdefault(table["name"], [])
            known.extend(row for row in table["rows"] if not known or list(row) == list(known[0]))
        return rows

    def check_separated(self, command, name, rows):
        """Each row is there once, with as many values as the head has names."""
        text = self.command("--format", "csv", *TAGS, "--table", name.replace(" ", "_"),
                            self.path(MARKUP), *self.words(command))
        records = list(csv.reader(io.StringIO(text)))
        self.assertEqual({len(record) for record in records}, {len(records[0])})
        self.assertEqual({record[0] for record in records[1:]}, {name} if rows else set())
        self.assertEqual(len(records) - 1, len(rows))
        self.assertEqual(len(set(records[0])), len(records[0]))
        if rows:
            self.assertEqual(records[0][1:], list(rows[0]))
        if rows and shutil.which("sqlite3"):
            self.check_import(text, len(rows))

    def check_import(self, text, count):
        path = self.path("rows.csv")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        run = subprocess.run(["sqlite3", ":memory:", f".import --csv {path} loaded",
                              "SELECT count(*) FROM loaded"], capture_output=True,
                             text=True, check=False)
        self.assertEqual((run.stdout, run.stderr), (f"{count}\n", ""))

    def test_each_table_of_each_command_loads(self):
        for command in COMMANDS:
            tables = self.tables_of(command)
            for name, rows in tables.items():
                with self.subTest(command=command, table=name):
                    self.check_separated(command, name, rows)
                    for row in rows:
                        self.assertEqual(row["core"], self.path(MARKUP))
                        self.assertRegex(row["build_id"], "^[0-9a-f]{16,}$")
                        self.assertGreater(row["time"], 1600000000)
                        self.assertEqual("a,b", row.get("size_2", row["size"]))

    def test_without_a_choice_the_main_table_is_written(self):
        for command, table in (("list used", "allocation"), ("backtrace", "call"),
                               ("summarize leaked", "group"), ("waste", "waste"),
                               ("fragmentation", "arena"), ("count used", "total")):
            text = self.command("--format", "tsv", self.path(MARKUP), *command.split())
            lines = text.splitlines()
            self.assertEqual({line.split("\t")[0] for line in lines[1:]}, {table})
            self.assertEqual(lines[0].split("\t")[0], "row")

    def test_a_table_that_is_not_there_is_wrong_usage(self):
        run = subprocess.run([HEAPCORE, self.path(MARKUP), "count", "used", "--table", "bogus"],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=TIMEOUT, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn("there is no table 'bogus' here, but: 'total'", run.stderr)

    def test_log_of_a_run_has_the_document_alone(self):
        log = self.path("log.json")
        result = self.run_program(["--format", "json", "--log-file", log],
                                  "1")
        document = load(log)
        jsonschema.validate(document, load(OWN_SCHEMA))
        self.assertEqual(document["core"], self.path("leaky"))
        # What people are to read is not lost.
        self.assertIn("the gate failed", result.stderr)

    def test_json_of_what_is_incomplete(self):
        document = json.loads(self.command("--format", "json",
                                           self.truncate(), "gate"))
        jsonschema.validate(document, load(OWN_SCHEMA))
        self.assertFalse(document["complete"])
        self.assertTrue(document["findings"])

    def test_the_schema_refuses_what_is_not_so(self):
        schema = load(OWN_SCHEMA)
        document = load(self.path("report.json"))
        for key, value in (("heapcore", 1), ("complete", "yes"),
                           ("tables", {}), ("further", 1)):
            with self.subTest(key=key), \
                    self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate({**document, key: value}, schema)
        document["tables"][0]["rows"][0]["bytes"] = "many"
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate(document, schema)


if __name__ == "__main__":
    unittest.main()
