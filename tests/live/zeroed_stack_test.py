#!/usr/bin/env python3
"""
A thread that stands in a function with a large array of zeros has a stack all
the same, and an analysis that can be trusted.
"""

import unittest

import harness

CRASHED = 128 + 11

PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static __attribute__((noinline)) void *crash(void *argument)
{
	double histogram[16384];

	memset(histogram, 0, sizeof(histogram));
	__asm__ volatile("" ::"r"(histogram) : "memory");
	*(volatile int *)NULL = 0;
	return argument;
}

int main(int argc, char **argv)
{
	static void *volatile held;
	pthread_t thread;

	held = malloc(100);
	if (argc == 1 || !argv[1])
		crash(NULL);
	pthread_create(&thread, NULL, crash, NULL);
	pthread_join(thread, NULL);
	return held != NULL;
}
"""


class ZeroedStack(harness.LiveTest):
    def check(self, *arguments):
        program = self.compile("zeroed", flags=harness.FLAGS.split(),
                               text=PROGRAM)
        core = self.path("core")
        result = harness.run(harness.HEAPCORE, "run", f"--core={core}", "--",
                             program, *arguments)
        self.assertNotIn("all zeros", result.stderr)
        self.assertEqual(result.returncode, CRASHED)
        harness.ask(core, "count", "leaked")

    def test_of_the_main_thread(self):
        self.check()

    def test_of_a_thread_s_own_stack(self):
        self.check("thread")


if __name__ == "__main__":
    unittest.main()
