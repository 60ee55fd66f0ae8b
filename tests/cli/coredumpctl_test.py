"""
Cores that systemd-coredump keeps: found by asking a coredumpctl, which here is
a script that notes how it was called, or by the names of the files.
"""

import json
import lzma
import os
import subprocess
import tempfile
import unittest

HEAPCORE = os.environ["HEAPCORE"]
CORE = os.path.join(
    os.environ["SOURCE_DIR"], "testdata/cores/bookworm-small.core.xz")
FINE, WRONG_USAGE, NOT_ANALYSED = 0, 2, 3
TIMEOUT = 60
BOOT = "70be7df4eb504ee58d3b6ce1d2f8f7a1"

SCRIPT = """#!/bin/sh
for word; do printf '%s\\n' "$word" >> "$CALLS"; done
case "$*" in
*list*) cat "$LIST" ;;
*dump*) xzcat "$CORE"; exit "$STATUS" ;;
esac
"""


def entry(time, pid, state="present", program="/usr/bin/many"):
    return {"time": time * 1000000, "pid": pid, "uid": 0, "gid": 0, "sig": 11,
            "corefile": state, "exe": program, "size": 4096}


class CoredumpctlTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="heapcore-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_heapcore(self, *words, **environment):
        return subprocess.run(
            [HEAPCORE, *words, "count", "used"], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=TIMEOUT,
            env={**os.environ, **environment})

    def ask(self, match, entries, status=0):
        """Ask the script; returns how it was called, too."""
        os.makedirs(self.path("bin"), exist_ok=True)
        with open(self.path("bin/coredumpctl"), "w") as file:
            file.write(SCRIPT)
        os.chmod(self.path("bin/coredumpctl"), 0o755)
        with open(self.path("list"), "w") as file:
            json.dump(entries, file)
        run = self.run_heapcore(
            "--coredumpctl", match, CALLS=self.path("calls"),
            LIST=self.path("list"), CORE=CORE, STATUS=str(status),
            PATH=self.path("bin") + ":" + os.environ["PATH"])
        with open(self.path("calls")) as file:
            return run, file.read().splitlines()

    def test_newest_match_that_is_there_is_taken(self):
        run, calls = self.ask("many", [
            entry(1700000000, 11), entry(1700000300, 13, "missing"),
            entry(1700000200, 12), entry(1700000100, 10)])
        self.assertEqual(run.returncode, FINE, run.stderr)
        self.assertIn("allocations use", run.stdout)
        self.assertRegex(run.stderr, "/usr/bin/many, process 12, of 2023-11")
        self.assertEqual(calls[-5:], ["--quiet", "dump", "--", "12",
                                      "/usr/bin/many"])
        self.assertIn("many", calls)

    def test_match_is_neither_an_option_nor_shell(self):
        _, calls = self.ask("--output=/x; touch $HOME", [])
        self.assertEqual(calls[-2:], ["--", "--output=/x; touch $HOME"])

    def test_what_is_not_there_is_wrong_usage(self):
        for entries in ([], [entry(1700000000, 11, "missing")]):
            run, _ = self.ask("\x1b[31m", entries)
            self.assertEqual(run.returncode, WRONG_USAGE)
            self.assertIn("no core of '\\x1b[31m' is known", run.stderr)

    def test_failure_of_the_dump_is_told(self):
        run, _ = self.ask("many", [entry(1700000000, 11)], status=1)
        self.assertEqual(run.returncode, NOT_ANALYSED)
        self.assertIn("could not write all", run.stderr)

    def keep(self, command, process, seconds, content):
        folder = self.path("root/var/lib/systemd/coredump")
        os.makedirs(folder, exist_ok=True)
        name = f"core.{command}.0.{BOOT}.{process}.{seconds}000000.xz"
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)

    def test_files_are_found_by_their_names_below_a_sysroot(self):
        with open(CORE, "rb") as file:
            core = file.read()
        none = lzma.compress(b"no core")
        self.keep("many", 10, 1700000000, none)
        self.keep("many", 11, 1700000100, core)
        self.keep(r"my\x2eprog-with-a-", 12, 1700000200, core)
        self.keep("other", 13, 1700000300, none)
        root = ("--sysroot", self.path("root"), "--coredumpctl")
        for match, process in (("many", 11), ("/usr/bin/many", 11),
                               ("11", 11), ("my.prog-with-a-long-name", 12)):
            run = self.run_heapcore(*root, match)
            self.assertIn("allocations use", run.stdout, run.stderr)
            self.assertIn(f"process {process}, of", run.stderr)
        run = self.run_heapcore(*root, "nobody")
        self.assertEqual(run.returncode, WRONG_USAGE)
        self.assertIn("no core of 'nobody'", run.stderr)


if __name__ == "__main__":
    unittest.main()
