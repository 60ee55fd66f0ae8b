"""
Blocks that no heap, stack or static variable refers to, but the kernel: they
are not leaked, and one beside them is. A core that cannot tell says so.
"""

import contextlib
import os
import re
import shutil
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

    def source(self, text):
        with open(self.path("source.c"), "w", encoding="ascii") as file:
            file.write(text)
        return self.path("source.c")

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
            self.assertIn(result.returncode,
                          (harness.FINE, harness.INCOMPLETE), result.stderr)
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

    def test_what_epoll_hands_back_is_held(self):
        self.check(OURS, "epoll")

    def test_stacks_for_signals_are_held(self):
        self.check(["run"], "stack")
        self.check(["run"], "stack", "thread")
        kept, _ = self.truth()
        said = harness.ask(self.path("run.core"),
                           "explain kernelanchorpoints --all").stdout
        for address in kept:
            self.assertRegex(said, r"the kernel \(alternate signal stack\) of "
                             rf"thread \d+\n  2\. -> .*0x{address:x}, ")

    def test_stack_is_known_by_its_size_where_the_core_does_not_tell(self):
        for way in ("snap", "pid", "kernel", "gcore"):
            with self.subTest(way=way):
                core = self.core(way, "stack", "thread")
                _, lost = self.truth()
                result = harness.ask(*core, "enumerate leaked")
                self.assertIn("the program calls sigaltstack(), and the core does not record "
                              "its argument: 2 unreferenced blocks of 8,200 bytes, first at 0x",
                              result.stderr)
                self.assertEqual({int(line, 16)
                                  for line in result.stdout.split()}, lost)
                said = harness.ask(*core, "explain kernelanchored --all").stdout
                self.assertIn("1. the kernel (alternate signal stack, by its size)", said)

    def test_more_blocks_of_that_size_than_threads_are_lost(self):
        core = self.core("snap", "many-stacks")
        kept, lost = self.truth()
        result = harness.ask(*core, "enumerate leaked")
        self.assertEqual({int(line, 16) for line in result.stdout.split()},
                         kept | lost)
        self.assertNotIn("sigaltstack", result.stderr)
        self.check(["run"], "many-stacks")

    def test_block_of_that_size_is_lost_where_nobody_calls_sigaltstack(self):
        self.program = self.compile(
            "lost", os.path.join(harness.PROGRAMS, "truth.c"),
            flags=["-g", "-O1", "-D_GNU_SOURCE", "-x", "c", "-I",
                   harness.PROGRAMS, self.source("""
#include "truth.h"

static OUT_OF_LINE void lose(void)
{
        truth_lost(truth_block(8192));
}

int main(void)
{
        truth_open();
        lose();
        truth_ready();
}
""")])
        self.check(["snap", "kernel"])

    def test_stack_of_a_forked_child_is_held_and_one_given_back_is_not(self):
        result = harness.run(
            harness.HEAPCORE, "run", "-q", "--follow-forks", "-c",
            "count leaked", "-c", "count kernelanchored", "--",
            self.program, "stack-changes",
            env=harness.environment(HEAPCORE_TRUTH="/dev/null",
                                    HEAPCORE_TRUTH_EXIT="1"))
        self.assertEqual(re.findall(r"^(\d+) alloc", result.stderr, re.M),
                         ["1", "1", "3", "0"], result.stderr)

    @unittest.skipUnless(shutil.which("crystal"), "there is no Crystal")
    def test_hello_world_in_crystal_leaks_nothing(self):
        program = harness.build_crystal(self.path("hello"), 'puts "hi"\n')
        result = harness.run(harness.HEAPCORE, "run", "--", program)
        self.assertEqual(result.returncode, harness.FINE, result.stderr)
        self.assertEqual(result.stdout, "hi\n")

    @unittest.skipUnless(os.path.exists("/proc/self/timers"),
                         "the kernel does not tell of timers")
    def test_value_of_a_timer_is_held(self):
        self.check(OURS, "timer")

    def test_value_of_a_pending_signal_is_held(self):
        self.check(OURS, "signal")

    def test_explanation_names_the_file(self):
        core = self.core("snap", "epoll")
        said = harness.ask(*core, "explain kernelanchored --all").stdout
        self.assertRegex(said, r"1\. the kernel \(epoll \d+, file \d+\)\n")
        kept, _ = self.truth()
        for query in ("kernelanchored", "kernelanchorpoints"):
            self.assertEqual(
                harness.addresses(*core, f"enumerate {query}"), kept)

    def test_requests_in_flight_are_held(self):
        self.check(OURS, "ring")

    def test_requests_that_nobody_can_know_raise_doubt(self):
        self.check_doubt(OURS, "requests in flight that the kernel does "
                         "not report", "full-ring")
        self.check_doubt(["kernel", "gcore"], "uses io_uring", "ring")


if __name__ == "__main__":
    sys.exit(unittest.main())
