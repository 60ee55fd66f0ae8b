#!/usr/bin/env python3
"""
A process whose threads wait in system calls goes on waiting when it was looked
into, by `snap` and by -p. What its core says of a thread is of that one alone.
"""

import select
import struct
import subprocess
import unittest

import harness

# Its only thread cannot be stopped until the child ends.
BORROWED = """
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	char byte;

	if (vfork() == 0) {
		/* No buffer may be left in the parent's memory. */
		if (write(1, "ready\\n", 6) == 6 && read(0, &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	puts("went on");
	fflush(stdout);
	pause();
}
"""
# Each thread waits in a call that is to fill memory with addresses in it, the fourth but a part, and
# the fifth memory of the heap; how many blocks of which size only these lead to.
FILLED = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#define COUNT 64
static int pair[2];
static void fill(void **blocks, size_t size)
{
	for (int i = 0; i < COUNT; i++)
		blocks[i] = malloc(size);
}
static void *wait_for_events(void *unused)
{
	struct epoll_event events[4 * COUNT];
	int poll = epoll_create1(0);
	memset(events, 0, sizeof(events));
	fill((void **)events, 1000);
	for (;;)
		epoll_wait(poll, events, 4 * COUNT, -1);
	return unused;
}
static void *wait_for_bytes(void *unused)
{
	void *blocks[COUNT];
	fill(blocks, 2000);
	for (;;)
		if (read(pair[0], blocks, sizeof(blocks)) < 0)
			return unused;
}
static void *wait_for_message(void *unused)
{
	void *blocks[COUNT];
	struct iovec part = { blocks, sizeof(blocks) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	fill(blocks, 3000);
	for (;;)
		recvmsg(pair[0], &message, 0);
	return unused;
}
static void *wait_for_some(void *unused)
{
	void *blocks[COUNT];
	fill(blocks, 4000);
	for (;;)
		if (recv(pair[0], blocks, 8 * sizeof(*blocks), 0) < 0)
			return unused;
}
static void *wait_with_heap(void *unused)
{
	void **blocks = malloc(COUNT * sizeof(*blocks));
	fill(blocks, 5000);
	for (;;)
		if (read(pair[0], blocks, COUNT * sizeof(*blocks)) < 0)
			return unused;
}
int main(void)
{
	static void *(*const waits[])(void *) = { wait_for_events, wait_for_bytes,
		wait_for_message, wait_for_some, wait_with_heap };
	pthread_t thread;
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		pthread_create(&thread, NULL, waits[i], NULL);
	puts("ready");
	fflush(stdout);
	pause();
}
"""
# One of each may be in a register, or in what a function left on its stack.
LOST = {1000: 64, 2000: 64, 3000: 64, 4000: 8, 5000: 64}
NT_PRSTATUS = 1
# Where a note of a thread has its number, and the time that it computed.
ID_OFFSET, TIME_OFFSET = 32, 48


def thread_times(path):
    """{thread: seconds of processor time}, from the core's notes."""
    with open(path, "rb") as file:
        header = file.read(64)
        start, = struct.unpack_from("<Q", header, 32)
        file.seek(start)
        _, _, offset, _, _, size, _, _ = struct.unpack("<IIQQQQQQ",
                                                       file.read(56))
        file.seek(offset)
        notes = file.read(size)
    times = {}
    while notes:
        name_size, size, kind = struct.unpack_from("<III", notes)
        begin = 12 + (name_size + 3) // 4 * 4
        if kind == NT_PRSTATUS and notes[12:16] == b"CORE":
            thread, = struct.unpack_from("<i", notes, begin + ID_OFFSET)
            user, user_micros, system, system_micros = struct.unpack_from(
                "<4q", notes, begin + TIME_OFFSET)
            times[thread] = (user + system +
                             (user_micros + system_micros) / 1e6)
        notes = notes[begin + (size + 3) // 4 * 4:]
    return times


class LateTest(harness.LiveTest):
    def test_a_thread_that_could_not_be_stopped_is_not_stopped_later(self):
        program = self.start([self.compile("borrowed", text=BORROWED)])
        looking = subprocess.Popen(
            [harness.HEAPCORE, "-p", str(program.pid)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(looking.communicate)
        looking.stdin.write("count used\n")
        looking.stdin.flush()
        # Nothing comes where it may not be traced.
        if looking.stdout.readline():
            program.stdin.close()
            said, *_ = select.select([program.stdout], [], [], harness.TIMEOUT)
            self.assertTrue(said, "the program stands still")
        self.assertIsNone(looking.poll())


class WaitingTest(harness.LiveTest):
    def setUp(self):
        super().setUp()
        self.core = self.path("core")
        self.program = self.start([self.compile(
            "waiting", "waiting.c", flags=harness.FLAGS.split())])
        self.pid = str(self.program.pid)

    def look(self, *words):
        result = harness.run(harness.HEAPCORE, *words)
        if "may not be traced" in result.stderr:
            self.skipTest(result.stderr)
        self.assertEqual(result.returncode, 0, result)

    def test_memory_that_the_kernel_is_to_fill_holds_nothing(self):
        process = self.start([self.compile("filled", compiler="gcc", flags=["-pthread", "-w"],
                                           text=FILLED)])
        harness.settle(process)
        harness.snap(process, self.core)
        for size, lost in LOST.items():
            total = harness.tables("-q", self.core, "count", "leaked", "--min-size", str(size),
                                   "--max-size", str(size + 24))["total"][0]
            self.assertIn(total["count"], range(lost - 2, lost + 1), size)

    def test_calls_go_on_when_the_process_was_looked_into(self):
        for _ in range(3):
            self.look("snap", self.pid, "-o", self.core)
        self.look("-p", self.pid, "count", "used")
        said, _ = self.program.communicate(timeout=harness.TIMEOUT)
        results = dict(line.split() for line in said.splitlines())
        self.assertGreaterEqual(len(results), 10)
        # A container may refuse some calls; never this one.
        self.assertEqual(results["epoll_wait"], "done")
        self.assertEqual(set(results.values()) - {"unavailable"}, {"done"},
                         results)

    def test_the_time_of_a_thread_is_its_own(self):
        self.look("snap", self.pid, "-o", self.core)
        times = thread_times(self.core)
        # Clock ticks are counted, a hundred a second.
        self.assertGreater(times.pop(int(self.pid)), 0.2)
        self.assertGreaterEqual(len(times), 5)
        self.assertLess(max(times.values()), 0.1)


if __name__ == "__main__":
    unittest.main()
