"""heapcore serve, and requests as a browser sends them."""

import http.client
import json
import re
import signal
import subprocess
import time
import urllib.parse

from harness import HEAPCORE, environment

DEADLINE = 60  # seconds, for what takes none


class Server:
    """heapcore serve, and requests as a browser sends them."""

    def __init__(self, *words, **variables):
        self.process = subprocess.Popen(
            [HEAPCORE, "serve", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=environment(**variables))
        self.line = self.process.stdout.readline()
        found = re.fullmatch(r"http://([^/]*):(\d+)/\?token=([0-9a-f]{32})\n", self.line)
        if found:
            self.address, self.port, self.token = found[1], int(found[2]), found[3]
            self.host = f"{self.address}:{self.port}"
            self.cookie = f"heapcore_{self.port}={self.token}"

    def request(self, path, method="GET", headers=None, body=None):
        """The status, the headers and the text of an answer; a header of None is left out."""
        connection = http.client.HTTPConnection(self.address, self.port, timeout=DEADLINE)
        sent = {"Host": self.host, "Cookie": self.cookie, **(headers or {})}
        try:
            connection.request(method, path, body,
                               {name: value for name, value in sent.items() if value is not None})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def get(self, path, expected=200, **arguments):
        status, _, text = self.request(path + "?" + urllib.parse.urlencode(arguments))
        if status != expected:
            raise AssertionError(f"{path} {arguments}: status {status}\n{text}")
        return json.loads(text)

    def run(self, command, expected=200, **arguments):
        """The document as commands write it: without the kinds of columns."""
        answer = self.get("/api/run", expected, command=command, **arguments)
        for table in answer.get("tables", []):
            kinds = table.pop("kinds")
            if any(list(row) != list(kinds) for row in table["rows"]):
                raise AssertionError(f"{command}: {kinds} are not those of {table}")
        return answer

    def wait_until_ready(self):
        end = time.monotonic() + DEADLINE
        while not self.get("/api/state")["ready"]:
            if time.monotonic() > end:
                raise AssertionError("the core was not analysed")
            time.sleep(0.05)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def stop(self, number=signal.SIGINT):
        """The exit status, and what was said beside the address."""
        self.process.send_signal(number)
        out, error = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, out + error
