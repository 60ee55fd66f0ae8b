#!/usr/bin/env python3
"""
Runs programs for aarch64 by qemu, which writes cores of them, and checks that heapcore finds in
these what the programs say is there, and what it finds in a program for this machine.
"""

import os
import re
import shutil
import unittest

import harness
import truth

QEMU, ROOT = "qemu-aarch64", "/usr/aarch64-linux-gnu"
PREFIX = "aarch64-linux-gnu-"
LIBRARIES = ("ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6")
ADDRESS = re.compile(r"\b0x[0-9a-f]{7,}\b")


class Aarch64Test(harness.LiveTest):
    """What qemu's cores lack: names of mapped files, code, thread pointers."""

    def setUp(self):
        for name in (QEMU, PREFIX + "gcc", PREFIX + "g++"):
            if not shutil.which(name):
                self.skipTest(f"there is no {name}")
        super().setUp()

    def core(self, name, **variables):
        """The core of the program, with its truth beside it."""
        process = self.start([QEMU, "-L", ROOT, self.path(name)], truth=self.path("truth"),
                             **variables)
        harness.settle(process)
        return harness.qemu_core(process, self.folder)

    def sysroot(self, name):
        """A folder with the program and its libraries where qemu had them."""
        root = self.path("root")
        os.makedirs(os.path.join(root, "lib"))
        for library in LIBRARIES:
            shutil.copy(os.path.join(ROOT, "lib", library), os.path.join(root, "lib"))
        os.makedirs(root + self.folder)
        shutil.copy(self.path(name), root + self.folder)
        return root

    def compile_truth(self, name, *flags):
        self.compile(name, f"{name}.c", "truth.c", compiler=PREFIX + "gcc",
                     flags=[*harness.FLAGS.split(), *flags])

    def check_truth(self, name, *flags, **variables):
        self.compile_truth(name, *flags)
        core = self.core(name, **variables)
        self.assertEqual(truth.check(harness.HEAPCORE, core, self.path("truth")), [])
        return core

    def test_static(self):
        self.check_truth("small", "-static-pie")

    def test_dynamic_with_calls_and_modules(self):
        core = self.check_truth("small", "-mbranch-protection=pac-ret")
        words = "--sysroot", self.sysroot("small"), core
        calls = harness.ask(*words, "describe", "threads").stdout
        main, other = calls.split("Thread ")[1:]
        self.assertRegex(main, r"(?s)truth_announce\(\).* main\(\) at .*small\.c:\d+")
        self.assertRegex(other, r"(?s)truth_sleep\(\).* run\(\) at .*small\.c:\d+")
        for stack in main, other:
            self.assertIn("on the stack from", stack)
        modules = harness.tables("-q", *words, "list", "modules")["module"]
        self.assertEqual([row["file"] for row in modules if row["path"] == "/lib/libc.so.6"],
                         ["used"])

    def test_stacks_of_ended_threads_are_dead(self):
        core = self.check_truth("threads")
        stacks = harness.tables("-q", core, "list", "stacks")["stack"]
        ended = [row for row in stacks if row["kind"] in ("finished thread", "unjoined thread")]
        self.assertGreater(len(ended), 1)

    def test_top_bytes_of_pointers(self):
        self.check_truth("tagged_pointers", "-static-pie")

    def test_memory_tags(self):
        """With them, blocks have 8 bytes less than heapcore says; what is leaked is the same."""
        self.compile_truth("rings")
        core = self.core("rings", GLIBC_TUNABLES="glibc.mem.tagging=1")
        said = truth.Truth(self.path("truth"))
        self.assertEqual(harness.addresses("-q", core, "enumerate", "leaked"), set(said.lost))

    def test_another_build_of_the_program_is_not_taken(self):
        self.compile_truth("small")
        core, root = self.core("small"), self.sysroot("small")
        self.compile_truth("small", "-O0")
        shutil.copy(self.path("small"), root + self.folder)
        modules = harness.tables("-q", "--sysroot", root, core, "list", "modules")["module"]
        self.assertNotEqual([row["file"] for row in modules
                             if row["path"] == self.path("small")], ["used"])

    def test_types_and_containers_are_those_of_this_machine(self):
        answers = []
        for compiler in PREFIX + "g++", "g++":
            self.compile("containers", "containers.cpp", compiler=compiler,
                         flags=["-std=gnu++17", "-g", "-O2", "-pthread"])
            if compiler == "g++":
                process = self.start([self.path("containers")], truth=self.path("truth"))
                words = (harness.gcore(process, self.folder),)
            else:
                core = self.core("containers")
                words = "--sysroot", self.sysroot("containers"), core
            text = harness.ask("-q", *words, "summarize", "used").stdout
            answers.append({ADDRESS.sub("ADDRESS", line) for line in text.splitlines()
                            if line.startswith(("Pattern", "Type", "Signature"))})
        self.assertEqual(answers[0], answers[1])
        self.assertGreater(len(answers[0]), 10)


if __name__ == "__main__":
    unittest.main()
