"""
A browser without a window, for tests: it opens a page, evaluates JavaScript in
it, and keeps what the page complained about and asked the network for.
"""

import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile

PROGRAM = shutil.which("chromium")
TIMEOUT = 60


class Browser:
    """Chromium, spoken to by its DevTools protocol over a pair of pipes."""

    def __init__(self, width=1200, height=900):
        self.folder = tempfile.mkdtemp()
        to_it, self.into = os.pipe()
        self.out_of, from_it = os.pipe()

        def place_pipes():
            """It reads descriptor 3 and writes 4; others are not inherited."""
            high = fcntl.fcntl(from_it, fcntl.F_DUPFD_CLOEXEC, 5)
            os.dup2(to_it, 3)
            os.set_inheritable(3, True)
            os.dup2(high, 4)

        self.process = subprocess.Popen(
            [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu",
             "--remote-debugging-pipe", f"--window-size={width},{height}",
             f"--user-data-dir={self.folder}", "about:blank"],
            close_fds=False, preexec_fn=place_pipes, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_it)
        os.close(from_it)
        self.number = 0
        self.buffer = b""
        self.events = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")
        self.session = self.call("Target.attachToTarget", flatten=True,
                                 targetId=target["targetId"])["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        os.close(self.into)
        self.process.wait(TIMEOUT)
        os.close(self.out_of)
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self):
        """The next message of the browser."""
        while b"\0" not in self.buffer:
            if not select.select([self.out_of], [], [], TIMEOUT)[0]:
                raise TimeoutError("the browser says nothing")
            more = os.read(self.out_of, 1 << 20)
            if not more:
                raise EOFError("the browser ended")
            self.buffer += more
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def call(self, method, **parameters):
        """Have it do something, and wait for the result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.into, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        """Open a file, and wait until it is loaded."""
        self.go("file://" + path)

    def go(self, url):
        """Open what is at an address, and wait until it is loaded and drawn once."""
        first = len(self.events)
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired"
                      for event in self.events[first:]):
            self.events.append(self.read())
        # A page that fits itself to its width does so in the first frame, which may come later.
        self.run("new Promise((done) => requestAnimationFrame(() => "
                 "requestAnimationFrame(() => done(null))))")

    def run(self, script):
        """The value of an expression; what it throws is an error."""
        result = self.call("Runtime.evaluate", expression=script,
                           returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def key(self, name):
        """Press a key, such as ArrowDown, where the focus is."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def complaints(self):
        """What the page threw, or had on the console."""
        return [event for event in self.events if event.get("method") in
                ("Runtime.exceptionThrown", "Runtime.consoleAPICalled",
                 "Log.entryAdded")]

    def requests(self):
        """What was asked for by the page, itself included."""
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]
