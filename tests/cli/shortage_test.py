"""
Each allocation fails once, and from each one on all do: heapcore says that
memory is short and ends with status 3, or gives the answer that it gives
otherwise. Limits on the address space are met the same way.

libdw and capstone's cs_open() can tell nobody that they lack memory: they crash
then, or find nothing. What they were called for is looked at less closely.
"""

import os
import resource
import subprocess
import tempfile
import unittest

import front_end
import harness

NOT_ANALYSED = 3
SOURCE = os.path.join(os.environ["SOURCE_DIR"],
                      "tests/cli/programs/shortage.c")
MEGABYTE = 1 << 20
STRICT = (
    ("count", "used"),
    ("summarize", "leaked"),
    ("describe", "leakroots"),
    ("gate", "--format=sarif"),
)
# What these show depends on names, by libdw.
LENIENT = (("describe", "threads"),)
# This adds to its rows that it failed.
FACTS = ("facts", "--format=json")


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


class Attempt:
    """One allocation that failed, and what came of it."""

    def __init__(self, folder, number):
        self.status = int(read(folder, f"{number}.status"))
        self.output = read(folder, f"{number}.out")
        self.errors = read(folder, f"{number}.err")
        self.chain = read(folder, f"{number}.chain")

    def by_library(self):
        return any(name in self.chain for name in (b"/libdw", b"/libelf", b"/libcapstone"))

    def problem(self, status, output, strict):
        if os.WIFSIGNALED(self.status):
            return "" if self.by_library() else "it is killed by a signal"
        found = os.WEXITSTATUS(self.status)
        if found == NOT_ANALYSED:
            return "" if b"memory" in self.errors else "it does not say why"
        if found != status:
            return f"it ends with status {found}"
        if strict and not self.by_library() and self.output != output:
            return "its output is another, and it does not say why"
        return ""


@unittest.skipIf("sanitize" in os.environ["BUILD_DIR"],
                 "the sanitizers have allocations of their own")
class ShortageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = front_end.Workplace()
        cls.addClassCleanup(cls.place.close)
        cls.library = harness.build(cls.place.path("shortage.so"), "cc", "-shared", "-fPIC",
                                    "-D_GNU_SOURCE", SOURCE)

    def fail_each(self, command, strict, **environment):
        with tempfile.TemporaryDirectory(dir=self.place.folder) as folder, \
                open(os.path.join(folder, "out"), "wb") as output, \
                open(os.path.join(folder, "err"), "wb") as errors:
            status = subprocess.run(
                [front_end.HEAPCORE, self.place.core, *command],
                stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                env={**self.place.environment, **environment,
                     "LD_PRELOAD": self.library, "SHORTAGE_FOLDER": folder},
                check=False).returncode
            self.assertIn(status, (0, 1), read(folder, "err"))
            expected, number = read(folder, "out"), 0
            while os.path.exists(os.path.join(folder, f"{number + 1}.status")):
                number += 1
                attempt = Attempt(folder, number)
                self.assertEqual(
                    attempt.problem(status, expected, strict), "",
                    f"{command}, allocation {number}:\n"
                    + attempt.errors.decode() + attempt.chain.decode())
        self.assertGreater(number, 50)

    def test_one_allocation_fails(self):
        # The gate counts and finds what leaked, too.
        for command in STRICT if harness.ALL_VARIANTS else STRICT[-2:]:
            self.fail_each(command, True)
        for command in (*LENIENT, FACTS):
            self.fail_each(command, False)

    def test_all_allocations_fail_from_one_on(self):
        for command in STRICT if harness.ALL_VARIANTS else STRICT[-1:]:
            self.fail_each(command, True, SHORTAGE_LASTS="1")

    def test_limits_on_the_address_space(self):
        """From too little for the core itself to plenty."""
        core = self.place.core
        answers, told = 0, 0
        for command in (*STRICT[1:], *LENIENT):
            whole = subprocess.run([front_end.HEAPCORE, core, *command],
                                   capture_output=True, check=False)
            for limit in range(8, 150, 20):
                size = limit * MEGABYTE
                run = subprocess.run(
                    [front_end.HEAPCORE, core, *command],
                    capture_output=True, check=False,
                    preexec_fn=lambda: resource.setrlimit(
                        resource.RLIMIT_AS, (size, size)))
                text = f"{limit} MB, {command}: {run.stderr.decode()}"
                if run.returncode == whole.returncode:
                    self.assertEqual(run.stdout, whole.stdout, text)
                    answers += 1
                elif run.returncode == 127:
                    self.assertIn(b"shared librar", run.stderr, text)
                else:
                    self.assertEqual(run.returncode, NOT_ANALYSED, text)
                    self.assertIn(b"memory", run.stderr, text)
                    told += 1
        self.assertGreater(answers, 0)
        self.assertGreater(told, 0)


if __name__ == "__main__":
    unittest.main()
