#!/usr/bin/env python3
"""
Blocks of HAProxy's pools have the names and counts that its own statistics give them: a word
behind each leads to its pool. What scripts in it refer to is its own.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import time
import unittest

import harness

CLIENTS = 120
CONFIGURATION = """
global
  stats socket {control} mode 600 level admin
  nbthread 1
  {more}
defaults
  mode http
  timeout client 1h
  timeout server 1h
  timeout connect 1h
frontend front
  bind {front}
  default_backend back
backend back
  server one {back}
"""
POOL = re.compile(r"Pool (\S+) \((\d+) bytes\) : \d+ allocated \(\d+ bytes\), (\d+) used")
# Nothing in their blocks is an address of a function or table, which would say more.
PLAIN = ("stream", "session", "http_txn", "h1c", "h1s", "sedesc", "sockaddr")


def connect(path):
    one = socket.socket(socket.AF_UNIX)
    one.connect(path)
    return one


@unittest.skipUnless(shutil.which("haproxy"), "there is no haproxy")
class PoolsTest(harness.LiveTest):
    def ask_statistics(self, control):
        """The blocks that each pool has handed out."""
        control.sendall(b"show pools\n")
        answer = b""
        while not answer.endswith(b"\n> "):
            answer += control.recv(1 << 16)
        return {name: int(used) for name, _, used in POOL.findall(answer.decode())}

    def serve(self, pools, more=""):
        """A proxy with clients that wait for an answer, and its control socket."""
        paths = {name: self.path(name) for name in ("control", "front", "back")}
        with open(self.path("proxy.cfg"), "w") as file:
            file.write(CONFIGURATION.format(more=more, **paths))
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        server.bind(paths["back"])
        server.listen(CLIENTS)
        process = subprocess.Popen(["haproxy", "-db", "-dM" + pools, "-f", self.path("proxy.cfg")],
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + harness.TIMEOUT
        while not os.path.exists(paths["front"]) and time.monotonic() < deadline:
            time.sleep(0.05)
        for number in range(CLIENTS):
            client = connect(paths["front"])
            self.addCleanup(client.close)
            client.sendall(b"GET /%d HTTP/1.1\r\nHost: shop\r\n\r\n" % number)
        control = connect(paths["control"])
        self.addCleanup(control.close)
        control.sendall(b"prompt\n")
        control.recv(1 << 16)
        while (self.ask_statistics(control)["http_txn"] < CLIENTS
               and time.monotonic() < deadline):
            time.sleep(0.05)
        return process, control

    def count(self, pools):
        """
        What HAProxy says of its pools, and heapcore. Requests that it has read may still be on
        their way to the server: the core counts if HAProxy says the same before and after it.
        """
        process, control = self.serve(pools)
        deadline = time.monotonic() + harness.TIMEOUT
        truth, after = None, self.ask_statistics(control)
        while truth != after and time.monotonic() < deadline:
            truth = after
            core = harness.snap(process, self.path("core"))
            after = self.ask_statistics(control)
        rows = json.loads(harness.ask(core, "summarize", "used", "--all", "--format", "json")
                          .stdout)["tables"][0]["rows"]
        found = {row["identity"].strip('"'): row["count"] for row in rows
                 if (row["identity"] or "").startswith('"')}
        return truth, found

    def test_blocks_have_the_names_of_their_pools(self):
        truth, found = self.count("no-merge,no-cache")
        self.assertEqual({name: found.get(name) for name in PLAIN},
                         {name: truth[name] for name in PLAIN})
        for name, count in found.items():
            self.assertLessEqual(count, truth[name], name)

    def test_blocks_without_marks_have_no_names(self):
        self.assertEqual(self.count("no-merge,no-cache,no-tag")[1], {})

    def test_what_scripts_refer_to_is_the_programs_own(self):
        if "Built with Lua" not in harness.run("haproxy", "-vv").stdout:
            self.skipTest("this haproxy has no Lua")
        with open(self.path("shop.lua"), "w") as file:
            file.write("numbers = {1, 2, 3}\n")
        process, _ = self.serve("no-merge", "lua-load " + self.path("shop.lua"))
        core = harness.snap(process, self.path("core"))
        text = harness.ask(core, "summarize", "used", "--all").stdout
        self.assertRegex(text, r"Class Server has \d+ instances")
        self.assertRegex(text, "Blocks of (table|lua_State) have|%LuaHash has")
        self.assertNotRegex(text, "Blocks of (Server|Proxy|Listener)")


if __name__ == "__main__":
    unittest.main()
