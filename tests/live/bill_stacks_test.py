"""
The bill of stacks, and of what only looks like them: memory that no call has used, buffers between
guard pages, threads that have ended, pages that were given back.
"""

import unittest

from harness import LiveTest, ask, snap, tables

PAGE, KILOBYTE, MEGABYTE = 1 << 12, 1 << 10, 1 << 20
STACK, THREADS, BUFFERS, BUFFER = 512 * KILOBYTE, 4, 6, 256 * KILOBYTE
LAZY = 8 * MEGABYTE

PROGRAM = rf"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum {{ PAGE = {PAGE}, STACK = {STACK}, THREADS = {THREADS}, LAZY = {LAZY} }};

static pthread_barrier_t all;
static int lock_fails;

/* Fill the lower half of the thread's own stack: no call was ever there. */
static void *fill(void *how)
{{
	pthread_attr_t attributes;
	size_t size;
	void *start;

	pthread_getattr_np(pthread_self(), &attributes);
	pthread_attr_getstack(&attributes, &start, &size);
	if (*(char *)how == 'l')
		lock_fails |= mlock(start, size / 2);
	for (size_t i = 0; i < size / 2; i += PAGE)
		((volatile char *)start)[i] = 0;
	pthread_barrier_wait(&all);
	for (;;)
		pause();
}}

static void *call_deep(void *nothing)
{{
	volatile char deep[STACK / 2];

	for (size_t i = 0; i < sizeof(deep); i += 64)
		deep[i] = 1;
	pthread_barrier_wait(&all);
	for (;;)
		pause();
	return nothing;
}}

static void *end(void *nothing)
{{
	return nothing;
}}

static void start_threads(void *(*function)(void *), void *argument, int join)
{{
	pthread_t threads[THREADS];
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_barrier_init(&all, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], &attributes, function, argument);
	if (function != end)
		pthread_barrier_wait(&all);
	for (int i = 0; i < join; i++)
		pthread_join(threads[i], NULL);
	memset(threads, 0, sizeof(threads));
}}

/* Memory between two guard pages, to which nothing refers afterwards. */
static char *make_guarded(size_t size)
{{
	char *start = mmap(NULL, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(start + PAGE, size, PROT_READ | PROT_WRITE);
	return start + PAGE;
}}

static char *kept[2];

/* One that only another one refers to, which is kept; and those that nothing refers to. */
static void make_buffers(void)
{{
	kept[0] = make_guarded({BUFFER});
	*(char **)kept[0] = make_guarded({BUFFER});
	**(char **)kept[0] = 'k';

	for (int i = 0; i < {BUFFERS}; i++)
		memset(make_guarded({BUFFER}), 'k', {BUFFER});
}}

static ucontext_t here, there;

static void suspend(void)
{{
	swapcontext(&there, &here);
}}

/* Its context is overwritten, so only its guard pages and its contents tell of the stack. */
static void make_fiber(void)
{{
	getcontext(&there);
	there.uc_stack.ss_sp = make_guarded({BUFFER});
	there.uc_stack.ss_size = {BUFFER};
	makecontext(&there, suspend, 0);
	swapcontext(&here, &there);
	memset(&there, 0, sizeof(there));
	memset(&here, 0, sizeof(here));
}}

static void give_back(void)
{{
	for (int i = 0; i < 2; i++) {{
		kept[i] = mmap(NULL, LAZY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);
		memset(kept[i], 7, LAZY);
	}}
	madvise(kept[0], LAZY, MADV_FREE);
}}

int main(int count, char **arguments)
{{
	char *what = arguments[1];

	switch (*what) {{
	case 'l':
	case 'z': start_threads(fill, what, 0); break;
	case 'd': start_threads(call_deep, NULL, 0); break;
	case 'e': start_threads(end, NULL, THREADS / 2); sleep(1); break;
	case 'j':
		for (int i = 0; i < 5; i++)
			start_threads(end, NULL, 0);
		sleep(1);
		break;
	case 'b': make_buffers(); break;
	case 'f': make_fiber(); break;
	case 'g': give_back(); break;
	}}
	if (lock_fails)
		puts("lock fails");
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}}
"""

ENTRY = "unused now, was used"


class BillStacks(LiveTest):
    def bill(self, what):
        """The rows by use, of a bill in which each byte counts once."""
        program = self.compile("program", flags=("-pthread", "-O1"), text=PROGRAM)
        self.process = self.start([program, what])
        core = snap(self.process, self.path("core"))
        *rows, total = tables(core, "bill")["use"]
        for amount in "mapped", "resident":
            self.assertEqual(sum(row[amount] for row in rows), total[amount])
        return {row["use"]: row for row in rows}

    def resident(self, bill, name):
        return bill[name]["resident"] if name in bill else 0

    def test_calls_were_never_where_pages_are_zeros(self):
        bill = self.bill("zeros")
        self.assertGreaterEqual(self.resident(bill, "unused zeros"), THREADS * (STACK // 2))
        self.assertLess(self.resident(bill, ENTRY), THREADS * STACK // 4)

    def test_locked_stacks_are_said_to_be(self):
        bill = self.bill("locked")
        if "lock fails" not in self.process.said:
            self.assertGreaterEqual(self.resident(bill, "unused zeros, locked"),
                                    THREADS * (STACK // 2))
        self.assertLess(self.resident(bill, ENTRY), THREADS * STACK // 4)

    def test_calls_that_were_deep_are_told(self):
        bill = self.bill("deep")
        self.assertGreaterEqual(self.resident(bill, "in use, with TLS") +
                                self.resident(bill, ENTRY), THREADS * (STACK // 2))
        self.assertLess(self.resident(bill, "unused zeros"), THREADS * STACK // 4)

    def test_ended_threads_count_once(self):
        bill = self.bill("ended")
        self.assertEqual(bill["of ended threads"]["count"], THREADS // 2)
        self.assertEqual(bill["of threads never joined"]["count"], THREADS // 2)
        self.assertNotIn("neither joined", ask(self.path("core"), "list", "stacks").stderr)

    def test_threads_that_nobody_joined_are_said(self):
        lost = 5 * THREADS
        self.assertEqual(self.bill("joined by nobody")["of threads never joined"]["count"], lost)
        result = ask(self.path("core"), "list", "stacks")
        self.assertIn(f"{lost} threads have ended and were neither joined nor detached: their "
                      "stacks, ", result.stderr)
        self.assertEqual(result.stdout.count("unjoined thread"), lost)

    def test_guarded_buffers_are_no_stacks(self):
        bill = self.bill("buffers")
        self.assertNotIn("stacks, by guard pages", bill)
        self.assertEqual(bill["no pointer leads there"]["count"], BUFFERS)
        self.assertEqual(bill["no pointer leads there"]["mapped"], BUFFERS * BUFFER)
        self.assertEqual(bill["held by other memory"]["mapped"], BUFFER)

    def test_stack_of_the_program_is_one(self):
        self.assertEqual(self.bill("fiber")["stacks, by guard pages"]["mapped"], BUFFER)

    def test_pages_given_back_have_a_row(self):
        bill = self.bill("given back")
        # The kernel may not have come to the last ones yet.
        self.assertGreater(bill["given back by MADV_FREE"]["mapped"], LAZY * 9 // 10)
        self.assertGreaterEqual(bill["of program"]["resident"], LAZY)


if __name__ == "__main__":
    unittest.main()
