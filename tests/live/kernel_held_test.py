"""
Blocks that no heap, stack or static variable refers to, but the kernel: they
are not leaked, and one beside them is. A core that cannot tell says so.
"""

import contextlib
import os
import sys
import tempfile
import unittest

import harness

OURS = ("snap", "pid", "run")


class KernelHeld(harness.LiveTest):
    def setUp(self):
        super().setUp()
        self.program = self.compile("kernel_held", "kernel_held.c", "truth.c",
                                    flags=harness.FLAGS.split())

    def truth(self):
        """The addresses of kept blocks, and of lost ones."""
        told = {"kept": set(), "lost": set()}
        with open(self.path("truth"), encoding="ascii") as file:
            for line in file:
                word, *rest = line.split()
                if rest:
                    told[word].add(int(rest[0], 16))
        return told["kept"], told["lost"]

    def core(self, way, *arguments):
        """A core, or -p, of the program that holds blocks like that."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path("truth"))
        if way == "run":
            command = harness.still([self.program, *arguments])
            result = harness.run(
                harness.HEAPCORE, "run", "-q", "--core",
                self.path("run.core"), "-c", "count used", "--", *command,
                env=harness.environment(HEAPCORE_TRUTH=self.path("truth"),
                                        HEAPCORE_TRUTH_EXIT="1"))
            if result.returncode == harness.EXIT_SKIPPED:
                raise harness.Skipped("not with this kernel")
            self.assertEqual(result.returncode, harness.FINE, result.stderr)
            return [self.path("run.core")]
        process = self.start([self.program, *arguments],
                             truth=self.path("truth"))
        if way == "pid":
            return ["-p", str(process.pid)]
        if way == "snap":
            return [harness.snap(process, self.path("snap.core"))]
        if way == "gcore":
            return [harness.gcore(process, self.folder)]
        return [harness.kernel_core(process, self.folder)]

    def check(self, ways, *arguments):
        for way in ways:
            with self.subTest(way=way, of=arguments):
                core = self.core(way, *arguments)
                _, lost = self.truth()
                self.assertEqual(
                    harness.addresses(*core, "enumerate leaked"), lost)

    def check_doubt(self, ways, said, *arguments):
        for way in ways:
            with self.subTest(way=way, of=arguments):
                core = self.core(way, *arguments)
                result = harness.ask(*core, "count leaked",
                                     expected=[harness.INCOMPLETE])
                self.assertIn(said, result.stderr)

    def test_shared_file_is_captured(self):
        self.check(OURS, "file", self.path("shared"))

    def test_shared_memory_is_captured(self):
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
            self.check(OURS, "file", file.name)

    def test_core_without_the_shared_file_says_so(self):
        path = self.path("shared")
        self.check_doubt(["kernel"], "65,536 bytes of writable shared file "
                         f"mappings, such as {path}, are not in the core",
                         "file", path)
        self.check_doubt(["gcore"], "65,536 bytes of mapped files, such as "
                         f"{path}, are not in the core", "file", path)

    def test_file_that_is_only_read_raises_no_doubt(self):
        with open(self.path("read"), "wb") as file:
            file.write(bytes(65536))
        for way in (*OURS, "kernel"):
            core = self.core(way, "reads", self.path("read"))
            harness.ask(*core, "count leaked")

    def test_memory_without_rights_is_read(self):
        self.check([*OURS, "gcore", "kernel"], "no-rights")


if __name__ == "__main__":
    sys.exit(unittest.main())
