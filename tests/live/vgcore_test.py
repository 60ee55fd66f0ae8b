#!/usr/bin/env python3
"""
The core that valgrind writes of a program that crashed under it: whose malloc was at work is said,
and nothing is said of cores that the kernel or gdb wrote of the same program.
"""

import glob
import shutil
import unittest

import harness

PROGRAM = """
#include <stdlib.h>
#include <unistd.h>

static void *volatile kept;

int main(int count, char **arguments)
{
	kept = malloc(1000);
	if (count > 1) {
		write(1, "ready\\n", 6);
		return pause();
	}
	*(volatile int *)8 = 1;
	return 0;
}
"""
SAID = "the program ran under valgrind"


@unittest.skipUnless(shutil.which("valgrind"), "there is no valgrind")
class Vgcore(harness.LiveTest):
    def test_valgrind_is_named(self):
        program = self.compile("crashes", text=PROGRAM)
        harness.run("sh", "-c", 'ulimit -c unlimited; cd "$0"; exec valgrind -q "$1"',
                    self.folder, program)
        cores = glob.glob(self.path("vgcore.*"))
        self.assertEqual(len(cores), 1)
        answer = harness.ask(cores[0], "count", "used", expected=(harness.INCOMPLETE,))
        self.assertIn(SAID, answer.stderr)
        screen = harness.ask("-q", cores[0], expected=(harness.INCOMPLETE,)).stdout
        self.assertIn("\nNo leak was found; whether there are any is not known.\n", screen)
        self.assertNotIn("Nothing leaked", screen)

    def test_it_is_not_named_without_it(self):
        program = self.compile("waits", text=PROGRAM)
        core = harness.gcore(self.start([program, "on"]), self.folder)
        self.assertNotIn(SAID, harness.ask(core, "count", "used").stderr)
        self.assertIn("\nNothing leaked.\n", harness.ask("-q", core).stdout)


if __name__ == "__main__":
    unittest.main()
