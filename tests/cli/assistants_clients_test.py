"""
heapcore mcp with the official client and inspector, which scripts/test --viewers installs.
"""

import json
import os
import shutil
import subprocess
import unittest

import assistants_test
import session_test

HEAPCORE = os.environ["HEAPCORE"]
SOURCE_DIR = os.environ["SOURCE_DIR"]
MODULES = os.path.join(SOURCE_DIR, "build", "npm", "node_modules")
CLIENT = os.path.join(SOURCE_DIR, "tests/cli/assistants_client.cjs")
INSPECTOR = os.path.join(MODULES, "@modelcontextprotocol/inspector-cli/build/index.js")
TIMEOUT = 120


@unittest.skipIf("sanitize" in os.environ["BUILD_DIR"],
                 "others are enough: this is about other programs")
@unittest.skipUnless(shutil.which("node"), "there is no node")
@unittest.skipUnless(os.path.exists(INSPECTOR), "there is no @modelcontextprotocol of npm")
class ClientsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dumps = session_test.Dumps()
        cls.addClassCleanup(cls.dumps.close)
        cls.core = cls.dumps.find("program", "retained")
        cls.folder = cls.dumps.folder.name

    def node(self, *words):
        run = subprocess.run(["node", *words], stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, timeout=TIMEOUT, check=False,
                             cwd=os.path.dirname(INSPECTOR))  # it reads ../package.json
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def inspect(self, *words):
        return self.node(INSPECTOR, HEAPCORE, "mcp", self.core, "--method", *words)

    def test_client_of_version_1(self):
        self.check_client("sdk", assistants_test.NEWEST, assistants_test.NO_RESOURCE)

    def test_client_of_version_2(self):
        version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
        if int(version.stdout[1:].split(".")[0]) < 20:
            self.skipTest("there is no node of version 20")
        self.check_client("client", assistants_test.STATELESS, assistants_test.INVALID_PARAMS)

    def check_client(self, which, version, no_resource):
        seen = self.node(CLIENT, MODULES, which, HEAPCORE, self.folder, self.core)
        self.assertEqual((seen["version"], seen["errors"]), (version, []))
        self.assertEqual(seen["tools"], assistants_test.TOOLS)
        self.assertEqual(seen["cores"], 1)
        for text in (seen["opened"], seen["report"]):
            self.assertIn(", 1 thread)", text)
        self.assertGreater(seen["leaked"], 0)
        self.assertTrue(seen["mistake"]["isError"])
        self.assertIn("enough", seen["stopped"])
        self.assertEqual(seen["progress"], sorted(set(seen["progress"])))
        self.assertEqual(seen["one"], [{"one": 1}])
        self.assertEqual((seen["none"], seen["steal"]),
                         (no_resource, assistants_test.INVALID_PARAMS))

    def test_inspector(self):
        tools = self.inspect("tools/list")["tools"]
        self.assertEqual([tool["name"] for tool in tools], assistants_test.TOOLS)
        answer = self.inspect("tools/call", "--tool-name", "list", "--tool-arg", "set=used",
                              "--tool-arg", "limit=3", "--tool-arg", "full-names=true")
        self.assertEqual(len(answer["structuredContent"]["tables"][0]["rows"]), 3)
        uris = [each["uri"] for each in self.inspect("resources/list")["resources"]]
        page = self.inspect("resources/read", "--uri", uris[1])["contents"][0]
        self.assertTrue(page["text"].startswith("<!"))
        self.assertEqual(self.inspect("resources/templates/list")["resourceTemplates"], [])


if __name__ == "__main__":
    unittest.main()
