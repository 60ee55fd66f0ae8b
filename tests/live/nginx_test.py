#!/usr/bin/env python3
"""
The blocks of nginx's pools, of requests and of connections, are those that its own debug log says
it took and did not free.
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

CLIENTS, REQUESTS = 60, 40
CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/log debug;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_header_timeout 1h;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{ listen unix:{folder}/socket; }}
}}
"""
EVENT = re.compile(r"(?:(?:malloc|posix_memalign): ([0-9A-F]+):(\d+)|free: ([0-9A-F]+))")


def is_debug(nginx):
    return "--with-debug" in harness.run(nginx, "-V").stderr


@unittest.skipUnless(shutil.which("nginx") and is_debug("nginx"),
                     "there is no nginx that can write a debug log")
class NginxTest(harness.LiveTest):
    def read_log(self):
        with open(self.path("log")) as file:
            return file.read()

    def serve(self):
        """A server with clients that are not done with their requests, or say nothing."""
        with open(self.path("nginx.conf"), "w") as file:
            file.write(CONFIGURATION.format(folder=self.path("")))
        process = subprocess.Popen(["nginx", "-c", self.path("nginx.conf"), "-e",
                                    self.path("early")], stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + harness.TIMEOUT
        while not os.path.exists(self.path("pid")) and time.monotonic() < deadline:
            time.sleep(0.05)
        for number in range(CLIENTS):
            client = socket.socket(socket.AF_UNIX)
            self.addCleanup(client.close)
            client.connect(self.path("socket"))
            if number < REQUESTS:
                client.sendall(b"GET /%d HTTP/1.1\r\nHost: shop\r\n" % number)
        while (self.read_log().count('http header: "Host: shop"') < REQUESTS
               or self.read_log().count(" accept: ") < CLIENTS) and time.monotonic() < deadline:
            time.sleep(0.05)
        return process

    def capture(self):
        """The log behind the first client, and a core of when it was so long."""
        process = self.serve()
        deadline = time.monotonic() + harness.TIMEOUT
        before, log = None, self.read_log()
        while before != log and time.monotonic() < deadline:
            before = log
            core = harness.snap(process, self.path("core"))
            log = self.read_log()
        return log[log.index(" accept on "):], core

    def test_blocks_of_pools_are_those_of_the_log(self):
        log, core = self.capture()
        taken = {}
        for address, size, freed in EVENT.findall(log):
            if freed:
                taken.pop(int(freed, 16), None)
            else:
                taken[int(address, 16)] = int(size)
        rows = json.loads(harness.ask(core, "sql", "SELECT address, class, size FROM allocation "
                                      "WHERE class LIKE 'nginx pools of %'", "--format", "json")
                          .stdout)["tables"][0]["rows"]
        found = {int(row["address"], 16): row for row in rows}
        self.assertEqual(set(found), set(taken))
        for address, size in taken.items():
            self.assertIn(found[address]["size"] - size, range(32))
        requests = {address for address, size in taken.items() if size == 4096}
        self.assertGreaterEqual(len(requests), REQUESTS)
        self.assertEqual({address for address, row in found.items()
                          if row["class"] == "nginx pools of requests"}, requests)
        self.assertRegex(harness.ask(core, "tree").stdout, "nginx pools of requests\n")
        slim = harness.run(harness.HEAPCORE, "slim", core, "-o", self.path("slim"))
        self.assertEqual(slim.returncode, 0, slim.stderr)
        self.assertEqual(harness.ask(self.path("slim"), "objects").stdout,
                         harness.ask(core, "objects").stdout)

    def test_program_of_that_name_without_pools_has_none(self):
        program = self.compile("nginx", "plain.c", "truth.c")
        core = harness.snap(self.start([program], truth=self.path("truth")), self.path("core"))
        self.assertIn("0 objects", harness.ask(core, "objects").stdout)


if __name__ == "__main__":
    unittest.main()
