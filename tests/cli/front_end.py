"""
What the tests of the front end share: a core to work on, runs of heapcore,
and a terminal to run it in.
"""

import os
import pty
import re
import select
import subprocess
import tempfile
import time

import harness

HEAPCORE = os.environ["HEAPCORE"]
SOURCE = os.path.join(os.environ["SOURCE_DIR"], "tests/cli/programs/many.c")
HELD = 40000
LOST = 3
TIMEOUT = 60
CONTROL_C = "\x03"
CONTROL_D = "\x04"


def make_core(folder):
    """Build the program, run it, and take its core into the folder."""
    program = harness.build(os.path.join(folder, "many"), "cc", "-O0", "-g", SOURCE)
    core = os.path.join(folder, "core.1")
    with harness.started([program]) as process:
        os.rename(harness.gcore(process, folder), core)
    return core


class Workplace:
    """A folder with a core, core.1, in which heapcore is run."""

    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="heapcore-")
        self.folder = self.temporary.name
        self.core = make_core(self.folder)
        self.environment = {
            **os.environ,
            "HOME": self.folder,
            "XDG_STATE_HOME": self.path("state"),
            "TERM": "xterm",
            "NO_COLOR": "1",  # so that a terminal's answers are those of a pipe
            "PAGER": "cat",
            "INPUTRC": "/dev/null",
        }

    def close(self):
        self.temporary.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        mode = "wb" if isinstance(content, bytes) else "w"
        with open(self.path(name), mode) as file:
            file.write(content)
        return name

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def run(self, *arguments, text="", **options):
        """Run heapcore with the text on its standard input."""
        if isinstance(text, str):
            text = text.encode()
        if "stdout" not in options:
            options["stdout"] = subprocess.PIPE
        run = subprocess.run(
            [HEAPCORE, *arguments], input=text, stderr=subprocess.PIPE,
            cwd=self.folder, env=self.environment, timeout=TIMEOUT,
            check=False, **options,
        )
        run.output = (run.stdout or b"").decode()
        run.errors = run.stderr.decode()
        return run

    def start(self, *arguments):
        """Start heapcore as the leader of a session, to be interrupted."""
        return subprocess.Popen(
            [HEAPCORE, *arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
            env=self.environment, start_new_session=True,
        )

    def terminal(self, *arguments):
        return Terminal([HEAPCORE, *arguments], self.folder, self.environment)


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, command, folder, environment):
        self.seen = ""
        self.process, self.file = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execve(command[0], command, environment)

    def send(self, text):
        os.write(self.file, text.encode())

    def expect(self, pattern):
        """Wait for the pattern, and return what came until its end."""
        end = time.monotonic() + TIMEOUT
        while not (match := re.search(pattern, self.seen)):
            left = max(0, end - time.monotonic())
            if not select.select([self.file], [], [], left)[0]:
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")
            if not self._read():
                raise AssertionError(f"ended with {self.seen!r}")
        text, self.seen = self.seen[: match.end()], self.seen[match.end():]
        return text

    def command(self, line, prompt="heapcore> "):
        """Type a line, and return what came until the next prompt."""
        self.send(line + "\n")
        return self.expect(re.escape(prompt))

    def _read(self):
        try:
            data = os.read(self.file, 65536)
        except OSError:
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)

    def wait(self):
        """
        Wait for the end, and return the exit status. What was typed while a
        command ran may be lost; so Ctrl-D is typed again where nothing happens.
        """
        while True:
            if not select.select([self.file], [], [], 1)[0]:
                self.send(CONTROL_D)
            elif not self._read():
                break
        os.close(self.file)
        status = os.waitpid(self.process, 0)[1]
        return os.waitstatus_to_exitcode(status)
