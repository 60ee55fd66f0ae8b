"""
Of a core with the stacks of many threads, which are mostly holes, little more is read than what
the threads have used.
"""

import ctypes
import mmap
import os
import unittest

from harness import LiveTest, ask, snap

THREADS, STACK, PAGE = 64, 8 << 20, 4096
MOST_PAGES = 12  # of a stack: its upper end
ENDS = (16 << 20) // PAGE

PROGRAM = f"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t all;

static void *wait(void *nothing)
{{
	void *volatile held = malloc(100);

	pthread_barrier_wait(&all);
	for (;;)
		pause();
	return held;
}}

int main(void)
{{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, {STACK});
	pthread_barrier_init(&all, NULL, {THREADS} + 1);
	for (int i = 0; i < {THREADS}; i++)
		pthread_create(&thread, &attributes, wait, NULL);
	pthread_barrier_wait(&all);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}}
"""


def cached_pages(path):
    """How many pages of the file are in memory, but for both ends: there are headers and data."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    size = os.path.getsize(path)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE) as memory:
        known = (ctypes.c_ubyte * (size // PAGE + 1))()
        start = ctypes.c_char.from_buffer(memory)
        try:
            if libc.mincore(ctypes.addressof(start), size, known) != 0:
                raise OSError(ctypes.get_errno(), "mincore")
        finally:
            del start
    return sum(byte & 1 for byte in known[ENDS:-ENDS])


def forget(path):
    """Have the kernel drop what it has of the file in memory."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class ReadAhead(LiveTest):
    def test_holes_of_stacks_are_not_read(self):
        process = self.start([self.compile("program", flags=("-pthread",), text=PROGRAM)])
        core = snap(process, self.path("core"))
        used = os.stat(core).st_blocks * 512 // PAGE
        forget(core)
        if cached_pages(core) > used // 4:
            return  # a file system in memory: nothing is read ahead
        ask(core, "count", "leaked")
        self.assertLess(cached_pages(core), used + THREADS * MOST_PAGES)


if __name__ == "__main__":
    unittest.main()
