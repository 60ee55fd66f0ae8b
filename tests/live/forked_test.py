#!/usr/bin/env python3
"""
The child of a program with threads has the memory of all threads and only one
of them. What the others held, and their caches, is not lost.
"""

import contextlib
import glob
import json
import os
import signal
import unittest

import harness
import truth

THREADS = ("threads.c", "truth.c")


class Forked(harness.LiveTest):
    def test_what_vanished_threads_had_is_as_they_left_it(self):
        program = self.compile("threads", *THREADS,
                               flags=harness.FLAGS.split())
        told = self.path("truth")
        parent = self.start([program, "fork"], truth=told)
        [child] = children_of(parent.pid)
        core = self.path("core")
        harness.ask("snap", "-q", "-o", core, str(child))
        os.kill(child, signal.SIGKILL)
        self.assertEqual(truth.check(harness.HEAPCORE, core, told), [])
        stacks = harness.tables(core, "list", "stacks")["stack"]
        kinds = [stack["kind"] for stack in stacks]
        self.assertEqual(kinds.count("vanished thread"), 5)

    def test_what_a_daemon_lost_is_hidden_by_no_frame_of_daemon(self):
        """Nor by kill()'s; of both processes."""
        program = self.compile("daemon", flags=harness.FLAGS.split(), text=DAEMON)
        for end in "return", "kill":
            result = harness.run(harness.HEAPCORE, "run", "--quiet", "--follow-forks",
                                 "--stacks=never", "--", program, end)
            self.assertEqual(result.stderr.count("Gate failed: 1 allocation leaked (72 bytes)"), 2,
                             result.stderr)

    def test_the_child_s_gate_has_only_what_the_child_lost(self):
        program = self.compile("forked", flags=harness.FLAGS.split(),
                               text=PROGRAM)
        report = self.path("report")
        result = harness.run(
            harness.HEAPCORE, "run", "--quiet", "--follow-forks", "--format",
            "json", "--log-file", report, "--", program)
        self.assertEqual(result.returncode, harness.FOUND, result.stderr)
        with open(report, encoding="utf-8") as file:
            documents = decode_all(file.read())
        gates = [table["rows"][0] for document in documents
                 for table in document["tables"] if table["name"] == "gate"]
        # The child ends first.
        self.assertEqual([gate["leaks"] for gate in gates], [1, 0])
        self.assertEqual([gate["bytes"] for gate in gates], [3000, 0])


def children_of(parent):
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            # Behind the name, which may hold anything: the state, the parent.
            words = file.read().rsplit(b")", 1)[1].split()
            if int(words[1]) == parent:
                yield int(path.split("/")[2])


def decode_all(text):
    decoder, documents = json.JSONDecoder(), []
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        documents.append(document)
        text = text[end:]
    return documents


DAEMON = """
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) void spread(int depth, void *block)
{
	void *volatile words[24];
	for (int i = 0; i < 24; i++)
		words[i] = block;
	if (depth > 0)
		spread(depth - 1, block);
	words[0] = NULL;
}
__attribute__((noinline)) void lose(void)
{
	spread(80, malloc(66));
}
int main(int count, char **arguments)
{
	lose();
	if (daemon(0, 0) < 0)
		return 3;
	if (strcmp(arguments[1], "kill") == 0)
		kill(getpid(), SIGTERM);
	return 0;
}
"""
PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, BLOCKS = 20 };
static pthread_barrier_t barrier;
static __thread char *volatile local;

static __attribute__((noinline)) void fill_cache(void)
{
	char *volatile blocks[BLOCKS];

	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = malloc(24 + 40 * i);
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
}

static void *work(void *argument)
{
	char *volatile held = malloc(1000);

	local = malloc(2000);
	fill_cache();
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	return held ? argument : NULL;
}

static __attribute__((noinline)) void lose(void)
{
	char *volatile lost = malloc(3000);

	memset((void *)lost, 1, 100);
}

static __attribute__((noinline)) void scrub(void)
{
	volatile char stack[1 << 15];

	memset((char *)stack, 0, sizeof(stack));
}

int main(void)
{
	pthread_t thread;
	pid_t child;

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, work, NULL);
	pthread_barrier_wait(&barrier);
	child = fork();
	if (child == 0) {
		lose();
		scrub();
		/* Registers that calls need not keep. */
		close(-1);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	_exit(0);
}
"""


if __name__ == "__main__":
    unittest.main()
