"""
heapcore mcp speaks the Model Context Protocol: by hand, line by line. Whatever a client sends, the
server goes on; no file but the cores that were allowed is read, and none is written.
"""

import json
import os
import re
import select
import subprocess
import tempfile
import time
import unittest

import hostile_text_test
import session_test

HEAPCORE = os.environ["HEAPCORE"]
TIMEOUT = 120
# The newest that begins with 'initialize', and the one after it.
NEWEST, OLDEST, STATELESS = "2025-11-25", "2024-11-05", "2026-07-28"
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, NO_RESOURCE = (
    -32700, -32600, -32601, -32602, -32002)
NO_VERSION = -32022
TOOLS = ["open", "overview", "report", "top", "summarize", "objects", "list", "show", "explain",
         "path", "tree", "bill", "waste", "fragmentation", "backtrace", "sql", "diff", "gate", "help",
         "fleet_report", "fleet_diff", "fleet_show", "fleet_sql"]
ENDLESS = ("WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number) "
           "SELECT count(*) FROM number")
# What no tool may have: it would write files, or start programs.
FORBIDDEN = ("export", "run", "snap", "redirect", "source", "memprof")


class Server:
    """heapcore mcp, and a client's side of the conversation."""

    def __init__(self, *arguments, version=NEWEST, errors=subprocess.PIPE):
        self.process = subprocess.Popen([HEAPCORE, "mcp", *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=errors)
        self.seen, self.number, self.notified = b"", 0, []
        if version:
            self.hello = self.ask("initialize", protocolVersion=version, capabilities={},
                                  clientInfo={"name": "test", "version": "1"})
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def send(self, message):
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self):
        """The next message, which is a line of JSON and nothing else."""
        end = time.monotonic() + TIMEOUT
        while b"\n" not in self.seen:
            ready = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]
            assert ready, f"no answer, but {self.seen!r}"
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, f"the server ended: {self.process.wait()}"
            self.seen += data
        line, self.seen = self.seen.split(b"\n", 1)
        message = json.loads(line.decode())
        assert message["jsonrpc"] == "2.0"
        return message

    def begin(self, method, **params):
        """Send a request, and return its id."""
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def answer_to(self, number):
        while (message := self.receive()).get("id") != number:
            assert "id" not in message, message
            self.notified.append(message)
        return message

    def ask(self, method, **params):
        message = self.answer_to(self.begin(method, **params))
        return message["result"] if "result" in message else message["error"]

    def call(self, name, /, **arguments):
        return self.ask("tools/call", name=name, arguments=arguments)

    def text(self, name, /, **arguments):
        """What a tool says, which is no error."""
        result = self.call(name, **arguments)
        assert not result["isError"], result
        return result["content"][1]["text"]

    def mistake(self, name, /, **arguments):
        """What a tool says is wrong."""
        result = self.call(name, **arguments)
        assert result["isError"] and "structuredContent" not in result, result
        return result["content"][1]["text"]

    def rows(self, table, name, /, **arguments):
        for each in self.call(name, **arguments)["structuredContent"]["tables"]:
            if each["name"] == table:
                return each["rows"]
        raise AssertionError(table)

    def end(self):
        """Close the connection: the exit status, and what else was written."""
        out, errors = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, self.seen + out, errors.decode()


def setUpModule():
    global DUMPS, CORE, MANY, FOLDER
    DUMPS = session_test.Dumps()
    unittest.addModuleCleanup(DUMPS.close)
    FOLDER = os.path.realpath(DUMPS.folder.name)
    CORE, MANY = (DUMPS.find("program", name) for name in ("retained", "many"))


def started(*arguments, **options):
    return Server(*(arguments or (CORE,)), **options)


class ProtocolTest(unittest.TestCase):
    def test_versions_are_negotiated(self):
        for asked, expected in ((NEWEST, NEWEST), ("2025-06-18", "2025-06-18"), (OLDEST, OLDEST),
                                ("2025-03-26", OLDEST), ("2031-01-01", NEWEST), ("1.0", OLDEST)):
            with started(version=asked) as server:
                self.assertEqual(server.hello["protocolVersion"], expected)
                self.assertEqual(server.hello["serverInfo"]["name"], "heapcore")
                self.assertEqual(set(server.hello["capabilities"]), {"tools", "resources"})

    def test_each_request_may_tell_its_version(self):
        meta = {"io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientCapabilities": {}}
        with started(version=None) as server:
            found = server.ask("server/discover", _meta=meta)
            self.assertEqual(found["supportedVersions"], [STATELESS, NEWEST, "2025-06-18", OLDEST])
            self.assertEqual(set(found["capabilities"]), {"tools", "resources"})
            for method, more in (("tools/list", {}), ("resources/list", {}),
                                 ("resources/templates/list", {}),
                                 ("resources/read", {"uri": "heapcore://report"})):
                result = server.ask(method, _meta=meta, **more)
                self.assertEqual((result["resultType"], result["ttlMs"], result["cacheScope"]),
                                 ("complete", 0, "private"))
            result = server.ask("tools/call", name="overview", _meta=meta)
            self.assertEqual((result["resultType"], result["isError"]), ("complete", False))
            self.assertEqual(server.ask("resources/read", uri="x:y", _meta=meta)["code"],
                             INVALID_PARAMS)
            self.assertEqual(server.ask("tools/list")["code"], INVALID_REQUEST)
            meta["io.modelcontextprotocol/protocolVersion"] = "2031-01-01"
            refused = server.ask("tools/list", _meta=meta)
            self.assertEqual((refused["code"], refused["data"]["requested"],
                              refused["data"]["supported"]),
                             (NO_VERSION, "2031-01-01", found["supportedVersions"]))

    def test_initialize_comes_first_and_once(self):
        with started(version=None) as server:
            self.assertEqual(server.ask("tools/list")["code"], INVALID_REQUEST)
            self.assertEqual(server.ask("ping"), {})
            self.assertEqual(server.ask("initialize")["code"], INVALID_PARAMS)
            self.assertIn("serverInfo", server.ask("initialize", protocolVersion=NEWEST))
            self.assertEqual(server.ask("initialize", protocolVersion=NEWEST)["code"],
                             INVALID_REQUEST)

    def test_it_ends_with_its_input(self):
        with started() as server:
            server.begin("tools/list")
            server.begin("tools/call", name="overview")
            status, output, errors = server.end()
        self.assertEqual((status, errors), (0, ""))
        answers = [json.loads(line) for line in output.decode().splitlines()]
        self.assertEqual([answer["id"] for answer in answers], [2, 3])
        self.assertFalse(answers[1]["result"]["isError"])

    def test_the_last_line_need_not_be_ended(self):
        run = subprocess.run([HEAPCORE, "mcp", CORE], capture_output=True, timeout=TIMEOUT,
                             input=b'{"jsonrpc":"2.0","id":"a","method":"ping"}', check=True)
        self.assertEqual(json.loads(run.stdout), {"jsonrpc": "2.0", "id": "a", "result": {}})

    def test_it_ends_when_nobody_reads(self):
        with started() as server:
            server.process.stdout.close()
            server.begin("tools/list")
            self.assertEqual(server.process.wait(TIMEOUT), 0)

    def test_what_is_no_request_is_refused(self):
        deep = b"[" * 100000
        for line, code, number in (
                (b"{", PARSE_ERROR, None), (deep, PARSE_ERROR, None), (b"\xff", PARSE_ERROR, None),
                (b'{"jsonrpc":"2.0","id":7,"id":8}', PARSE_ERROR, None),
                (b'{"a":"\\u0000"}', PARSE_ERROR, None), (b"\0", PARSE_ERROR, None),
                (b'{"a":1' + b"0" * 30 + b"}", PARSE_ERROR, None),
                (b'{"a":' * 5000, PARSE_ERROR, None), (b"[]", INVALID_REQUEST, None),
                (b"7", PARSE_ERROR, None), (b"{}", INVALID_REQUEST, None),
                (b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]', INVALID_REQUEST, None),
                (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', INVALID_REQUEST, 7),
                (b'{"jsonrpc":2,"id":"x","method":"ping"}', INVALID_REQUEST, "x"),
                (b'{"jsonrpc":"2.0","id":7.5,"method":"ping"}', INVALID_REQUEST, None),
                (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, None),
                (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', INVALID_REQUEST, None),
                (b'{"jsonrpc":"2.0","id":7,"method":[]}', INVALID_REQUEST, 7),
                (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}', INVALID_REQUEST, 7),
                (b'{"jsonrpc":"2.0","id":7,"method":"tools/steal"}', NO_METHOD, 7),
                (b'{"jsonrpc":"2.0","id":7,"method":""}', NO_METHOD, 7),
                (b'{"jsonrpc":"2.0","id":7,"method":"tools/call"}', INVALID_PARAMS, 7),
                (b'{"jsonrpc":"2.0","id":7,"method":"resources/read"}', INVALID_PARAMS, 7),
                (b'"' + b"a" * (8 << 20) + b'"', INVALID_REQUEST, None)):
            with self.subTest(line=line[:60]), started() as server:
                server.send(line)
                message = server.receive()
                self.assertEqual((message["error"]["code"], message["id"]), (code, number))
                self.assertEqual(server.ask("ping"), {})

    def test_what_needs_no_answer_gets_none(self):
        with started() as server:
            for line in (b"", b"  \t\r", b'{"jsonrpc":"2.0","method":"no/such"}',
                         b'{"jsonrpc":"2.0","id":7,"result":{}}',
                         b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}',
                         b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
                         b'{"jsonrpc":"2.0","method":"notifications/cancelled",'
                         b'"params":{"requestId":[]}}',
                         b'{"jsonrpc":"2.0","method":"notifications/cancelled",'
                         b'"params":{"requestId":99}}'):
                server.send(line)
            self.assertEqual(server.ask("tools/list").keys(), {"tools"})

    def test_a_large_message_is_taken(self):
        with started() as server:
            self.assertLess(len(server.mistake("list", set="used", kind="a" * 1000000)), 100000)

    def test_a_request_is_cancelled(self):
        with started() as server:
            running = server.begin("tools/call", name="sql", arguments={"query": ENDLESS},
                                   _meta={"progressToken": "how far"})
            waiting = server.begin("tools/call", name="sql", arguments={"query": ENDLESS})
            told = [server.receive(), server.receive()]  # it goes on, and tells of it
            self.assertEqual(server.ask("ping"), {})
            for number in (waiting, running):
                server.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                             "params": {"requestId": number, "reason": "enough"}})
            self.assertIn("allocations", server.text("overview"))
            self.assertEqual(server.rows("result", "sql", query="SELECT 1 AS one"), [{"one": 1}])
        for message in told:
            self.assertEqual(message["method"], "notifications/progress")
            self.assertEqual(message["params"]["progressToken"], "how far")
        self.assertLess(*(message["params"]["progress"] for message in told))

    def test_wrong_usage_of_the_command(self):
        for words in ((), ("/nowhere",), ("--allow", "/nowhere"), (CORE, CORE), ("/dev/null",),
                      ("--max-memory", "much", CORE)):
            run = subprocess.run([HEAPCORE, "mcp", *words], stdin=subprocess.DEVNULL,
                                 capture_output=True, timeout=TIMEOUT, check=False)
            self.assertEqual((run.returncode, run.stdout), (2, b""), words)


class ToolsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = started(CORE, FOLDER)
        cls.addClassCleanup(cls.server.__exit__)
        cls.server.text("open", core=CORE)

    def test_tools_are_commands(self):
        listed = self.server.ask("tools/list")["tools"]
        self.assertEqual([tool["name"] for tool in listed], TOOLS)
        for tool in listed:
            schema = tool["inputSchema"]
            self.assertTrue(tool["annotations"]["readOnlyHint"])
            self.assertTrue(tool["description"].endswith("."), tool)
            self.assertEqual((schema["type"], schema["additionalProperties"]), ("object", False))
            self.assertLessEqual(set(schema["required"]), set(schema["properties"]))
            for name, each in schema["properties"].items():
                self.assertRegex(name, "^[a-z-]{1,64}$")
                self.assertIn(each["type"], ("string", "boolean", "integer", "array"))
                self.assertTrue(each["description"], (tool["name"], name))
            for name in ("output", "format", "table", "redirect-suffix", "baseline", "suppress",
                         "update-baseline", "ratchet", "self-check"):
                self.assertNotIn(name, schema["properties"])
        of = {tool["name"]: tool["inputSchema"] for tool in listed}
        self.assertEqual(of["list"]["required"], ["set"])
        self.assertEqual(of["path"]["required"], ["address"])
        self.assertEqual(of["diff"]["required"], ["old"])
        self.assertEqual(of["explain"]["required"], [])
        self.assertIn("max-leaked", of["gate"]["properties"])
        sql, = (tool["description"] for tool in listed if tool["name"] == "sql")
        self.assertIn("\nreference(", sql)
        self.assertRegex(sql, r"allocation\(id, address, size, kind, .*\): allocations in use")
        self.assertEqual(of["list"]["properties"]["sort-by"]["enum"],
                         ["count", "bytes", "address", "retained"])

    def test_objects_are_those_of_languages(self):
        with started(CORE) as server:
            self.assertIn("no objects of a known language", server.text("objects"))

    def test_answers_are_those_of_commands(self):
        for name, arguments, words in (
                ("summarize", {"set": "used"}, ["summarize", "used", "--all", "--sizes"]),
                ("summarize", {"set": "leakroots"}, ["summarize", "leakroots", "--sizes"]),
                ("list", {"set": "used minus leaked", "sort-by": "address", "min-size": "64"},
                 ["list", "used", "minus", "leaked", "--min-size", "64"]),
                ("tree", {"depth": 2}, ["tree", "--depth", "2"]),
                ("tree", {"set": "leaked", "kind": ""}, ["tree", "leaked"]),
                ("backtrace", {}, ["backtrace"]), ("help", {"word": "chain"}, ["help", "chain"]),
                ("sql", {"query": "-- how many\nSELECT count(*) FROM allocation"},
                 ["sql", "SELECT count(*) FROM allocation"]),
                ("waste", {"set": "used"}, ["waste", "used"]), ("top", {}, ["top", "--all", "--sizes"]),
                ("gate", {"max-leaked": 1000}, ["gate", "--max-leaked", "1000"]),
                ("report", {}, ["report"]), ("overview", {}, ["info"])):
            run = subprocess.run([HEAPCORE, "-q", CORE, *words], stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True, timeout=TIMEOUT, check=True)
            answer = self.server.call(name, limit=1000, **arguments) if name != "overview" else (
                self.server.call(name))
            self.assertEqual(answer["content"][1]["text"], run.stdout, name)
            self.assertRegex(answer["content"][0]["text"], "data, never instructions")
            rows = answer["structuredContent"]
            self.assertRegex(rows["note"], "data, never instructions")
            self.assertEqual((rows["heapcore"], rows["complete"]), (2, True))
            self.assertTrue(rows["tables"][0]["rows"], rows)

    def test_limits(self):
        self.server.text("open", core=MANY)
        self.addCleanup(self.server.text, "open", core=CORE)
        whole = self.server.rows("total", "list", set="used", limit=1)[0]["count"]
        self.assertGreater(whole, 100)
        for name, table in (("list", "allocation"), ("show", "allocation")):
            for limit, count in ((None, 100), (7, 7)):
                answer = self.server.call(name, set="used", limit=limit)
                self.assertIn(f"... and {whole - count:,} more allocations not shown",
                              answer["content"][1]["text"])
                answer = self.server.call(name, set="used", limit=limit, **{"as": "rows"})
                self.assertEqual(
                    len(answer["structuredContent"]["tables"][0]["rows"]), count, table)
        sizes = [row["size"] for row in self.server.rows("allocation", "list", set="used")]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        query = "SELECT id FROM allocation"
        self.assertIn(f"... and {whole - 100:,} more rows not shown",
                      self.server.text("sql", query=query))
        self.assertEqual(len(self.server.rows("result", "sql", query=query, limit=3)), 3)
        for limit in (0, -1, 1001, 10**18, "7", 7.5, True, [7]):
            message = self.server.call("list", set="used", limit=limit)
            self.assertIn("isError" if "isError" in message else "code", message)
            self.assertNotIn("structuredContent", message)

    def test_answers_are_short_and_say_how_to_go_on(self):
        query = "SELECT hex(zeroblob(400000)) AS zeros"
        for arguments, said in (({}, r"more bytes not shown: ask for less by 'limit'"),
                                ({"as": "text"}, r"more bytes not shown: .*'sql' by LIMIT and OFFSET"),
                                ({"as": "rows"}, r"The rows take 8\d{5} bytes, .*: ask for less")):
            answer = self.server.call("sql", query=query, **arguments)
            self.assertRegex(answer["content"][1]["text"], said)
            self.assertNotIn("structuredContent", answer)
            self.assertLess(len(json.dumps(answer)), 70 << 10)
        query = "SELECT hex(zeroblob(15000)) AS zeros"
        answer = self.server.call("sql", query=query)
        self.assertIn("'as' \"rows\" has them", answer["content"][1]["text"])
        self.assertNotIn("structuredContent", answer)
        answer = self.server.call("sql", query=query, **{"as": "rows"})
        self.assertEqual(answer["structuredContent"]["tables"][0]["rows"], [{"zeros": 30000 * "0"}])

    def test_text_or_rows(self):
        answer = self.server.call("summarize", set="used", **{"as": "text"})
        self.assertIn("allocations use", answer["content"][1]["text"])
        self.assertNotIn("structuredContent", answer)
        answer = self.server.call("summarize", set="used", **{"as": "rows"})
        self.assertEqual(answer["content"][1]["text"], "")
        self.assertTrue(answer["structuredContent"]["tables"][0]["rows"])
        for wrong in ("both", "", 7, ["text"]):
            self.assertIn("'as' must be", self.server.ask(
                "tools/call", name="summarize", arguments={"set": "used", "as": wrong})["message"])

    def test_a_limit_leaves_out_the_smallest_of_a_tree(self):
        for limit in (5, 12, 30):
            rows = self.server.rows("owner", "tree", limit=limit)
            self.assertLessEqual(len(rows), limit)
            # Whatever is left out is summed up beside its siblings, so each level adds up.
            self.assertEqual(sum(row["retained"] for row in rows if row["depth"] == 1),
                             rows[0]["retained"])

    def test_descriptions_are_short_and_hold_what_sql_needs(self):
        of = {tool["name"]: tool["description"] for tool in self.server.ask("tools/list")["tools"]}
        for tool, name in (("sql", "dominator"), ("fleet_sql", "core"), ("fleet_sql", "fleet_leak")):
            columns = re.search(rf"^{name}\((.*?)\)", of[tool], re.MULTILINE)[1].split(", ")
            self.assertGreater(len(columns), 3, tool)
        self.assertLess(len(json.dumps(self.server.ask("tools/list"))), 64 << 10)

    def test_an_allocation_from_all_sides(self):
        row = self.server.rows("allocation", "list", set="anchored", limit=1)[0]
        path = self.server.rows("result", "path", address=row["address"])[0]
        self.assertEqual((path["address"], path["state"]), (row["address"], "anchored"))
        self.assertIn(" -> ", path["path"])
        for name in ("explain", "show"):
            self.assertIn(row["address"][2:], self.server.text(name, address=row["address"]))

    def test_mistakes_are_said(self):
        for name, arguments, message in (
                ("list", {}, "'set' is missing"),
                ("list", {"set": "usd"}, "did you mean 'used'"),
                ("list", {"set": "used --sort-by bytes"}, "a switch is a property of its own"),
                ("list", {"set": "used", "sizes": 7}, "unknown property 'sizes'"),
                ("list", {"set": {}}, "'set' must be a string"),
                ("list", {"set": "used", "min-size": []}, "'min-size' must be a string"),
                ("list", {"set": "used", "min-size": -1}, "'min-size' must be a string"),
                ("list", {"set": "used", "full-names": "yes"}, "'full-names' must be true or"),
                ("list", {"set": "used", "sort-by": "beauty"}, "'beauty'"),
                ("list", {"set": "used", "format": "json"}, "unknown property 'format'"),
                ("list", {"set": "used", "limit": "7"}, "'limit' must be a number"),
                ("list", {"set": "\"used"}, "quote"),
                ("path", {"address": "zzz"}, "'zzz'"),
                ("path", {"address": "10"}, "not in any allocation"),
                ("sql", {"query": "SELECT"}, "incomplete input"),
                ("sql", {"query": "DELETE FROM allocation"}, ""),
                ("sql", {"query": "ATTACH '/etc/passwd' AS x"}, ""),
                ("sql", {"query": ".output /tmp/x"}, "there are '.tables'"),
                ("help", {"word": "steal"}, "unknown word"),
                ("diff", {"old": []}, "'diff' takes OLD"),
                ("open", {"core": 7}, "'core' must be a string")):
            self.assertIn(message, self.server.mistake(name, **arguments), arguments)
        for params in ({"name": "export"}, {"name": 7}, {"name": "list", "arguments": []},
                       {"name": "list\x1b", "arguments": {}}):
            self.assertEqual(self.server.ask("tools/call", **params)["code"], INVALID_PARAMS)

    def test_nothing_is_written_and_nothing_started(self):
        target = os.path.join(FOLDER, "written")
        before = set(os.listdir(FOLDER))
        for text in (f"used > {target}", f"used >> {target}", f"used | touch {target}",
                     f"used |touch {target}", f"used>{target}"):
            for name in ("list", "summarize", "explain", "show", "tree"):
                self.server.mistake(name, set=text)
        for kind in (f"> {target}", f"| touch {target}", f"-o {target}", "--output"):
            self.server.call("list", set="used", kind=kind)
        for words in (f"used -o {target}", f"used --output {target}", f"used /o {target}",
                      f"used --redirect-suffix {target}"):
            self.server.mistake("list", set=words)
        self.server.mistake("sql", query=f"VACUUM INTO '{target}'")
        for name in FORBIDDEN:
            self.assertEqual(self.server.ask("tools/call", name=name, arguments={})["code"],
                             INVALID_PARAMS)
        self.assertEqual(set(os.listdir(FOLDER)), before)

    def test_reports_are_resources(self):
        listed = self.server.ask("resources/list")["resources"]
        self.assertEqual(self.server.ask("resources/templates/list"), {"resourceTemplates": []})
        texts = [self.server.ask("resources/read", uri=each["uri"])["contents"][0]
                 for each in listed]
        self.assertEqual([text["mimeType"] for text in texts], ["text/plain", "text/html"])
        run = subprocess.run([HEAPCORE, "-q", CORE, "report"], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=TIMEOUT, check=True)
        self.assertEqual(texts[0]["text"], run.stdout)
        self.assertTrue(texts[1]["text"].startswith("<!"))
        for uri in ("file:///etc/passwd", "heapcore://../report", "heapcore://report/"):
            self.assertEqual(self.server.ask("resources/read", uri=uri)["code"], NO_RESOURCE)


class FleetTest(unittest.TestCase):
    """The file of a fleet, in a folder that may be read, and what must not happen to it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = os.path.join(FOLDER, "fleet")
        os.mkdir(cls.folder)
        cls.file = os.path.join(cls.folder, "two.db")
        for core, build in ((CORE, "1.0"), (MANY, "1.1")):
            subprocess.run([HEAPCORE, "fleet", "-q", "--tag", f"build={build}", "-o", cls.file, core],
                           capture_output=True, timeout=TIMEOUT, check=True)
        cls.server = started(cls.folder)
        cls.addClassCleanup(cls.server.__exit__)

    def ask_cli(self, *words):
        return subprocess.run([HEAPCORE, "fleet", *words], capture_output=True, text=True,
                              timeout=TIMEOUT, check=True).stdout

    def test_answers_are_those_of_the_command(self):
        leak = self.server.rows("fleet leak", "fleet_report", fleet="two.db")[0]["fingerprint"]
        query = "SELECT build, used_bytes FROM core ORDER BY build"
        for tool, arguments, words in (
                ("fleet_report", {}, ["report", self.file]),
                ("fleet_report", {"select": ["build=1.1"], "limit": 3},
                 ["report", "--select", "build=1.1", "--limit", "3", self.file]),
                ("fleet_diff", {"old": "1.0", "new": "1.1"}, ["diff", self.file, "1.0", "1.1"]),
                ("fleet_show", {"fingerprint": leak}, ["show", self.file, leak]),
                ("fleet_sql", {"query": query}, ["sql", self.file, query])):
            answer = self.server.call(tool, fleet="two.db", **arguments)
            self.assertEqual(answer["content"][1]["text"], self.ask_cli(*words), tool)
            self.assertTrue(answer["structuredContent"]["tables"][0]["rows"], tool)
        self.assertEqual([row["build"] for row in self.server.rows(
            "result", "fleet_sql", fleet=self.file, query=query)], ["1.0", "1.1"])
        self.assertEqual(len(self.server.rows("result", "fleet_sql", fleet="two.db", limit=2,
                                              query="SELECT kind FROM kind", **{"as": "rows"})), 2)

    def test_files_are_listed_and_others_are_none(self):
        self.assertEqual([row["fleet"] for row in self.server.rows("fleet file", "open")], [self.file])
        with started(CORE) as server:
            self.assertNotIn("two.db", server.text("open"))
            self.assertIn("no fleet 'two.db' that may be opened",
                          server.mistake("fleet_report", fleet="two.db"))
            self.assertIn("that may be opened", server.mistake("fleet_report", fleet=self.file))
        os.symlink("/etc/passwd", os.path.join(self.folder, "link.db"))
        self.addCleanup(os.unlink, os.path.join(self.folder, "link.db"))
        for name in ("link.db", "../many.core", "/etc/passwd", "none.db"):
            self.assertIn("that may be opened", self.server.mistake("fleet_report", fleet=name))

    def test_mistakes_are_said(self):
        for tool, arguments, message in (
                ("fleet_report", {}, "'fleet' is missing"), ("fleet_report", {"fleet": 7}, "a string"),
                ("fleet_report", {"fleet": "two.db", "select": ["build"]}, "NAME=PATTERN"),
                ("fleet_report", {"fleet": "two.db", "select": ["build=7"]}, "no core is selected"),
                ("fleet_report", {"fleet": "two.db", "format": "html"}, "unknown property"),
                ("fleet_report", {"fleet": "two.db", "limit": 0}, "'limit' must be"),
                ("fleet_diff", {"fleet": "two.db", "old": "1.0"}, "'new' is missing"),
                ("fleet_show", {"fleet": "two.db", "fingerprint": "zz"}, "no core has a leak"),
                ("fleet_sql", {"fleet": "two.db", "query": "SELECT used FROM tag"}, "no such column")):
            self.assertIn(message, self.server.mistake(tool, **arguments), arguments)

    def test_a_question_only_reads(self):
        for query in ("DELETE FROM core", "DROP TABLE core", "PRAGMA user_version = 7", "VACUUM",
                      "ATTACH '/etc/passwd' AS x", "CREATE TABLE x (y)", "SELECT is_missing('/etc/passwd')",
                      "SELECT load_extension('x')", "SELECT * FROM pragma_database_list"):
            self.server.mistake("fleet_sql", fleet="two.db", query=query)
        # To read such a file, SQLite would make others beside it; one of old tables would be renewed.
        with open(self.file, "rb") as file:
            image = bytearray(file.read())
        for name, place, byte in (("wal.db", 18, 2), ("wal2.db", 19, 2), ("old.db", 63, 1), ("new.db", 63, 9)):
            other = bytearray(image)
            other[place] = byte
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(other)
            self.addCleanup(os.unlink, os.path.join(self.folder, name))
            self.assertRegex(self.server.mistake("fleet_report", fleet=name), "not made by|'heapcore fleet report .*old.db' renews it|a newer heapcore")
            with open(os.path.join(self.folder, name), "rb") as file:
                self.assertEqual(file.read(), other)
        self.assertEqual(sorted(os.listdir(self.folder)), ["new.db", "old.db", "two.db", "wal.db", "wal2.db"])
        with open(self.file, "rb") as file:
            self.assertEqual(file.read(), image)

    def test_an_endless_question_is_cancelled_and_a_long_answer_cut(self):
        number = self.server.begin("tools/call", name="fleet_sql",
                                   arguments={"fleet": "two.db", "query": ENDLESS})
        self.server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        answer = self.server.call("fleet_sql", fleet="two.db", query="SELECT hex(zeroblob(400000)) AS zeros")
        self.assertIn("more bytes not shown", answer["content"][1]["text"])
        self.assertLess(len(json.dumps(answer)), 70 << 10)


class CoresTest(unittest.TestCase):
    """Which files are opened."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="heapcore-")
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.inside = os.path.join(self.folder, "cores")
        os.makedirs(os.path.join(self.inside, "sub"))
        os.mkdir(self.inside + "-not")
        self.damaged = DUMPS.find("dump", "cores/trixie-damaged-run.core")
        os.link(CORE, self.path("sub", "core.7"))
        os.link(CORE, os.path.join(self.folder, "core.outside"))
        os.link(CORE, os.path.join(self.inside + "-not", "core.8"))

    def path(self, *names):
        return os.path.join(self.inside, *names)

    def test_cores_are_listed_and_opened(self):
        with started("--allow", self.inside) as server:
            self.assertIn("no core is open", server.mistake("overview"))
            self.assertIn("no core is open", server.ask(
                "resources/read", uri="heapcore://report")["message"])
            self.assertEqual([row["core"] for row in server.rows("core", "open")],
                             [self.path("sub", "core.7")])
            for name in ("sub/core.7", self.path("sub", "core.7"), "sub/../sub/./core.7"):
                self.assertIn("1 thread)", server.text("open", core=name))
            self.assertIn("In total, 0 allocations", server.text("diff", old=["sub/core.7"]))

    def test_nothing_leads_out_of_the_folder(self):
        os.symlink(self.folder, self.path("link"))
        os.symlink(os.path.join(self.folder, "core.outside"), self.path("core.link"))
        os.symlink("core.loop", self.path("core.loop"))
        os.symlink("sub/core.7", self.path("core.within"))
        os.mkfifo(self.path("core.pipe"))
        with started(self.inside) as server:
            answers = {server.mistake("open", core=name).replace(name, "NAME") for name in (
                "../core.outside", os.path.join(self.folder, "core.outside"), "link/core.outside",
                "core.link", "core.loop", "core.pipe", "sub", ".", "/etc/passwd", "/dev/zero",
                "../cores-not/core.8", self.inside + "-not/core.8", "/proc/self/exe", "none",
                "/proc/self/fd/0")}
            # It does not tell what is there.
            self.assertEqual(len(answers), 1, answers)
            self.assertIn("1 thread)", server.text("open", core="core.within"))
            self.assertRegex(server.mistake("diff", old=["../core.outside"]), "no core")
            self.assertRegex(server.mistake("diff", old=["core.link"]), "no core")
            limits = {"max-growth": 1}
            self.assertRegex(server.mistake("gate", compare="core.link", **limits), "no core")
            self.assertIn("Check passed (--max-growth 1)",
                          server.text("gate", compare="core.within", **limits))
            self.assertEqual(len(server.rows("core", "open")), 1)

    def test_one_core_alone(self):
        with started(CORE) as server:
            before = server.text("overview")
            self.assertIn("allocations", before)
            self.assertIn("no core", server.mistake("open", core=self.damaged))
            self.assertEqual(server.text("overview"), before)
            self.assertIn("1 thread)", server.text("open", core=os.path.basename(CORE)))
            self.assertEqual([row["core"] for row in server.rows("core", "open")],
                             [os.path.realpath(CORE)])

    def test_broken_cores_are_told_of(self):
        with open(self.path("core.none"), "wb") as file:
            file.write(b"no core at all")
        os.link(self.damaged, self.path("core.damaged"))
        with open(CORE, "rb") as whole, open(self.path("core.cut"), "wb") as file:
            file.write(whole.read(os.path.getsize(CORE) // 2))
        with started(self.inside) as server:
            self.assertRegex(server.mistake("open", core="core.none"), "core.none")
            self.assertIn("no core is open", server.mistake("overview"))
            server.text("open", core="sub/core.7")
            before = server.text("overview")
            self.assertRegex(server.mistake("open", core="core.none"), "core.none")
            self.assertEqual(server.text("overview"), before)
            for name in ("core.cut", "core.damaged"):
                server.call("open", core=name)
                self.assertRegex(server.text("overview"), "warning: ")
            answer = server.call("summarize", set="used")
            self.assertIn("answers may be wrong", answer["content"][1]["text"])
            self.assertFalse(answer["structuredContent"]["complete"])
            server.text("open", core="sub/core.7")
            self.assertNotIn("warning", server.text("summarize", set="used"))

    def test_memory_may_not_suffice(self):
        with started("--max-memory", "100K", self.inside) as server:
            server.call("open", core="sub/core.7")
            self.assertRegex(server.mistake("summarize", set="used"), "memory")
            self.assertEqual(server.ask("ping"), {})
            self.assertIn("set", server.text("help", word="used"))


class UntrustedTest(unittest.TestCase):
    """What a core holds."""

    def ask_all(self, server, place):
        """What all tools say that take an address or a set."""
        answers = [server.call("open"), server.call("open", core=place.core)]
        for name in TOOLS[1:]:
            answers.append(server.call(name))
            for arguments in ({"set": "used", "limit": 1000}, {"set": "leaked"},
                              {"set": "writable"}, {"address": place.text},
                              {"address": place.holder}, {"set": "used", "ascii": True},
                              {"set": "used", "annotate": "*.*"}, {"set": "threads"},
                              {"query": "SELECT text(address), words(address, 9), * "
                               "FROM allocation"},
                              {"query": "SELECT * FROM frame"}, {"locals": True},
                              {"old": [place.core]}):
                answers.append(server.call(name, **arguments))
        answers += [server.ask("resources/read", uri="heapcore://report" + ending)
                    for ending in ("", ".html")]
        return json.dumps(answers, ensure_ascii=False)

    def test_secrets_stay_with_no_content(self):
        with tempfile.TemporaryDirectory(prefix="heapcore-") as folder:
            place = hostile_text_test.Place(folder, False)
            with started(place.core) as server:
                self.assertIn(hostile_text_test.SECRET, self.ask_all(server, place))
            with started(place.core, "--no-content") as server:
                text = self.ask_all(server, place)
        self.assertNotIn(hostile_text_test.SECRET, text)
        self.assertIn("(content left out)", text)
        words = [hostile_text_test.SECRET.encode()[i:i + 8][::-1].hex() for i in range(5)]
        self.assertEqual(re.findall("|".join(words), text), [])

    def test_hostile_names_are_escaped(self):
        with tempfile.TemporaryDirectory(prefix="heapcore-") as folder:
            place = hostile_text_test.Place(folder, True)
            with started(folder) as server:
                text = self.ask_all(server, place)
        self.assertIn("\\\\x1b[31mX", text)
        self.assertEqual([letter for letter in set(text) if hostile_text_test.is_harmful(letter)],
                         [])
        # Each escape of JSON is one of a backslash, a quote or a line's end.
        self.assertEqual(set(re.findall(r"\\(.)", text)) - set('\\"nt'), set())


if __name__ == "__main__":
    unittest.main()
