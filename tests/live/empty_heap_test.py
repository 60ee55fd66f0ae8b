#!/usr/bin/env python3
"""
A program that never calls malloc(): with no allocation at all, no command fails. The sanitizers see
what is undefined then, as memset() of no memory.
"""

import platform
import unittest

import harness

# Without a C library, which allocates memory before main().
PROGRAM = r"""
static long call(long number, long first, long second, long third)
{
#ifdef __x86_64__
	long result;

	__asm__ volatile("syscall" : "=a"(result)
			 : "a"(number), "D"(first), "S"(second), "d"(third)
			 : "rcx", "r11", "memory");
	return result;
#else
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = first;
	register long x1 __asm__("x1") = second, x2 __asm__("x2") = third, x3 __asm__("x3") = 0;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
#endif
}

#ifdef __x86_64__
enum { WRITE = 1, WAIT = 271 }; /* ppoll() */
#else
enum { WRITE = 64, WAIT = 73 };
#endif

void _start(void)
{
	call(WRITE, 1, (long)"ready\n", 6);
	for (;;)
		call(WAIT, 0, 0, 0);
}
"""

FINE_OR_DOUBTED = (0, 3)  # it is said that no heap was found

COMMANDS = """
count used
summarize used
summarize leaked
summarize leakroots
list used
list leaked
describe used
explain leaked
tree used
objects
objects --retained
objects leaked --retained
bill
fragmentation
waste
list duplicates
list threads
sql 'SELECT count(*) FROM allocation'
sql 'SELECT count(*), sum(with_blocks) FROM object'
"""


@unittest.skipUnless(platform.machine() in ("x86_64", "aarch64"), "no system calls of this machine")
class EmptyHeap(harness.LiveTest):
    def test_without_allocations_no_command_fails(self):
        program = self.compile("empty", flags=("-static", "-nostdlib", "-fno-stack-protector"), text=PROGRAM)
        process = self.start([program])
        core = harness.snap(process, self.path("core"))
        harness.end(process)
        for command in COMMANDS.strip().split("\n"):
            with self.subTest(command=command):
                answer = harness.ask("-q", core, "-c", command, expected=FINE_OR_DOUBTED)
                self.assertNotIn("runtime error", answer.stderr)
        answer = harness.ask("-q", core, "count", "used", expected=FINE_OR_DOUBTED)
        self.assertEqual(answer.stdout, "0 allocations use 0 bytes.\n")


if __name__ == "__main__":
    unittest.main()
