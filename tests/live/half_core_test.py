#!/usr/bin/env python3
"""
A core that could not be written to its end: on a full disk, or when heapcore is
killed meanwhile. Nothing stands under its name, and no rest elsewhere.
"""

import os
import subprocess
import unittest

import harness

SANITIZERS = os.environ.get("ASAN_OPTIONS", "")
FULL = ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh"]


class HalfCoreTest(harness.LiveTest):
    def setUp(self):
        super().setUp()
        self.accident = self.compile(
            "accident.so", "accident.c",
            flags=["-D_GNU_SOURCE", "-shared", "-fPIC"])
        self.sleeper = subprocess.Popen(["sleep", "600"])
        self.addCleanup(harness.end, self.sleeper)
        self.cores = self.path("cores")
        os.mkdir(self.cores)
        self.core = os.path.join(self.cores, "core")
        with open(self.core, "w", encoding="ascii") as file:
            file.write("of an earlier run")

    def commands(self):
        pid = str(self.sleeper.pid)
        return {
            "snap": [harness.HEAPCORE, "snap", pid, "-o", self.core],
            "zstd": [harness.HEAPCORE, "snap", "--zstd", pid, "-o", self.core],
            "run": [harness.HEAPCORE, "run", f"--core={self.core}", "--",
                    "true"],
        }

    def look(self, command, accident=None):
        more = {} if not accident else {
            "LD_PRELOAD": self.accident, "ACCIDENT": accident,
            "ASAN_OPTIONS": f"{SANITIZERS}:verify_asan_link_order=0"}
        result = harness.run(*command, env={**os.environ, **more})
        if "may not be traced" in result.stderr:
            self.skipTest(result.stderr)
        return result

    def test_a_full_disk_is_said_and_leaves_nothing(self):
        for accident in (None, "nameless"):
            for name, command in self.commands().items():
                if name == "zstd":
                    continue  # what it writes is too small
                with self.subTest(command=name, accident=accident):
                    result = self.look([*FULL, *command], accident)
                    self.assertEqual(result.returncode, 3, result)
                    self.assertIn(f"{self.core}: the core cannot be written: "
                                  "File too large", result.stderr)
                    self.assertEqual(os.listdir(self.cores), [])

    def test_of_a_killed_one_nothing_stays(self):
        for name, command in self.commands().items():
            with self.subTest(command=name):
                result = self.look(command, "killed")
                self.assertNotEqual(result.returncode, 0, result)
                self.assertEqual(os.listdir(self.cores), [])

    def test_a_complete_core_takes_the_place_of_the_former(self):
        for accident in (None, "nameless"):
            for name, command in self.commands().items():
                with self.subTest(command=name, accident=accident):
                    result = self.look(command, accident)
                    self.assertEqual(result.returncode, 0, result)
                    self.assertEqual(os.listdir(self.cores), ["core"])
                    self.assertEqual(os.stat(self.core).st_mode & 0o777, 0o600)
                    harness.ask("-c", "count used", self.core)


if __name__ == "__main__":
    unittest.main()
