#!/usr/bin/env python3
"""
Runs a program for i386 and checks that heapcore finds in its cores what is there.
"""

import unittest

import harness

FLAGS = [*harness.FLAGS.split(), "-m32"]


def can_compile(folder):
    """Whether gcc has what it takes for i386."""
    result = harness.run("gcc", "-m32", "-x", "c", "-o", f"{folder}/empty", "-",
                         input="#include <stdlib.h>\nint main(void) { return 0; }\n", stdin=None)
    return result.returncode == 0


class I386Test(harness.LiveTest):
    """Cores of 32-bit words, by gdb and by the kernel."""

    def setUp(self):
        super().setUp()
        if not can_compile(self.folder):
            self.skipTest("there is no gcc for i386")

    def start_truth(self, name):
        self.compile(name, f"{name}.c", "truth.c", flags=FLAGS)
        process = self.start(harness.still([self.path(name)]), truth=self.path("truth"))
        harness.settle(process)
        return process

    def check_program(self, core, process):
        """Modules have their files, and threads their stacks."""
        modules = harness.tables("-q", core, "list", "modules")["module"]
        files = {row["path"].split("/")[-1]: row["file"] for row in modules}
        self.assertEqual(files["small"], "used")
        self.assertEqual(files["libc.so.6"], "used")
        self.assertEqual(files["ld-linux.so.2"], "used")
        threads = harness.tables("-q", core, "list", "threads")["thread"]
        self.assertEqual(len(threads), 2)
        self.assertEqual(threads[0]["thread"], process.pid)
        for row in threads:
            self.assertLess(int(row["stack_start"], 16), int(row["stack_pointer"], 16))
            self.assertLess(int(row["stack_pointer"], 16), int(row["stack_end"], 16))
            self.assertEqual(row["in_module"], "small")

    def test_program(self):
        process = self.start_truth("small")
        self.check_program(harness.gcore(process, self.folder), process)
        self.check_program(harness.kernel_core(process, self.folder), process)


if __name__ == "__main__":
    unittest.main()
