"""
heapcore doctor: it tells what the system lets it do, each limit only where there is one.
"""

import json
import os
import resource
import subprocess
import tempfile
import unittest

import harness

HEAPCORE = os.environ["HEAPCORE"]
FOUND, INCOMPLETE = 1, 3
TIMEOUT = 60


def limit_cores(size):
    def limit():
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (size, hard))
    return limit


def diagnoses(*before, cores=0, **variables):
    """What doctor says of each check, and its exit status."""
    result = subprocess.run(
        [*before, HEAPCORE, "--format", "json", "doctor"], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=TIMEOUT, check=False,
        preexec_fn=limit_cores(cores), env={**os.environ, **variables})
    if result.returncode == harness.EXIT_SKIPPED:
        raise unittest.SkipTest("no filter can be installed")
    rows = json.loads(result.stdout)["tables"][0]["rows"]
    return {row["of"]: row for row in rows}, result.returncode


class DoctorTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="heapcore-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def check(self, row, state, finding, change=None):
        self.assertEqual(row["state"], state)
        self.assertIn(finding, row["finding"])
        if change:
            self.assertIn(change, row["change"])
        else:
            self.assertIsNone(row["change"])

    def test_a_program_can_be_traced_here_and_nowhere_without_ptrace(self):
        found, _ = diagnoses()
        self.check(found["run, soak"], "ok", "can be traced")
        deny = harness.build(os.path.join(self.folder, "deny"), "cc", "-D_GNU_SOURCE",
                             os.path.join(os.path.dirname(__file__), "programs/deny.c"))
        # A sanitizer would have to trace heapcore itself.
        found, status = diagnoses(deny, "101", ASAN_OPTIONS="detect_leaks=0")
        self.check(found["run, soak"], "limited", "ptrace(2) is refused", "--cap-add=SYS_PTRACE")
        self.assertEqual(status, FOUND)

    def test_cores_of_the_kernel_have_a_size(self):
        with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as file:
            pattern = file.read().rstrip("\n")
        found, status = diagnoses(cores=0)
        if pattern.startswith("|"):
            self.check(found["cores by the kernel"], "ok", pattern[1:100])
            return
        self.check(found["cores by the kernel"], "limited", "is 0", "ulimit -c unlimited")
        self.assertEqual(status, FOUND)
        if resource.getrlimit(resource.RLIMIT_CORE)[1] != 0:
            found, _ = diagnoses(cores=resource.getrlimit(resource.RLIMIT_CORE)[1])
            self.check(found["cores by the kernel"], "ok", pattern)

    def test_what_the_kernel_leaves_out_is_said(self):
        for value, state in ("0x33", "ok"), ("0x11", "limited"):
            found, _ = diagnoses("sh", "-c", f'echo {value} > /proc/self/coredump_filter; '
                                 'exec "$0" "$@"')
            self.check(found["these cores"], state, value,
                       "coredump_filter" if state == "limited" else None)

    def test_cores_need_a_folder(self):
        found, _ = diagnoses(TMPDIR=self.folder)
        self.assertIn(f"free in {self.folder}", found["room for cores"]["finding"])
        found, status = diagnoses(TMPDIR=os.path.join(self.folder, "none"))
        self.check(found["room for cores"], "limited", "No such file", "export TMPDIR=")
        self.assertEqual(status, FOUND)

    def test_debug_information_has_a_source(self):
        found, _ = diagnoses(DEBUGINFOD_URLS="http://localhost:1")
        self.check(found["debug information"], "ok", "http://localhost:1")
        found, _ = diagnoses(DEBUGINFOD_URLS="")
        self.check(found["debug information"], "ok", "names no server", "export DEBUGINFOD_URLS=")

    def test_text_names_the_change_below_the_limit(self):
        result = harness.run(HEAPCORE, "doctor", env={**os.environ, "TMPDIR": "/nonexistent"})
        self.assertIn("limited: room for cores: /nonexistent: No such file or directory\n"
                      "    to change it: export TMPDIR=FOLDER\n", result.stdout)
        self.assertEqual(result.returncode, FOUND)

    def test_a_core_of_that_name_is_a_core(self):
        with open(os.path.join(self.folder, "doctor"), "w", encoding="utf-8") as file:
            file.write("no core")
        result = harness.run(HEAPCORE, "doctor", "count", "used", cwd=self.folder)
        self.assertNotIn("ptrace", result.stdout)
        self.assertEqual(result.returncode, INCOMPLETE)


if __name__ == "__main__":
    unittest.main()
