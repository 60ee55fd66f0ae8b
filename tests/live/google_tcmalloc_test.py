#!/usr/bin/env python3
"""
The heap of Google's tcmalloc: testdata/programs/other_malloc.c, run with its library, writes down
what became of its blocks; heapcore must find the same in its cores. No distribution has the
library: scripts/google-tcmalloc-matrix builds several versions, and runs this with each.
"""

import os
import unittest

import harness
import preloaded

LIBRARY = os.environ.get("GOOGLE_TCMALLOC", "libgoogle_tcmalloc.so")
# glibc takes the restartable sequences for itself: then threads have caches, else processors.
SETTINGS = ({}, {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"})


@unittest.skipUnless(preloaded.is_there(LIBRARY), "there is no library of Google's tcmalloc")
class GoogleTcmalloc(preloaded.PreloadedTest):
    library = LIBRARY

    def test_what_is_used_and_leaked_is_as_the_program_says(self):
        for when in ("early", "late"):
            for settings in SETTINGS:
                with self.subTest(when=when, settings=settings):
                    self.check(*self.snapped(when, **settings))

    def test_cores_of_gdb_and_of_the_kernel_are_read(self):
        self.check_other_cores()


SAMPLED = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tcmalloc/malloc_extension.h"

static void *kept[4000];
static int count;

static __attribute__((noinline)) void images(int number)
{
	for (int i = 0; i < number; i++)
		kept[count++] = calloc(1, 70000 + i);
	asm volatile("");
}

/* What older versions call a rate. */
template <typename Extension> auto sample(int bytes)
	-> decltype(Extension::SetProfileSamplingInterval(bytes))
{
	Extension::SetProfileSamplingInterval(bytes);
}
template <typename Extension> void sample(long bytes)
{
	Extension::SetProfileSamplingRate(bytes);
}

int main(int, char **arguments)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	FILE *file = fopen(arguments[1], "w");
	sample<tcmalloc::MallocExtension>(1000);
	for (int i = 0; i < 100; i++)
		free(malloc(1 << 20));
	images(200);
	for (int i = 0; i < 200; i += 2)
		free(kept[i]);
	static char text[1 << 20];
	size_t length = 0;
	auto profile = tcmalloc::MallocExtension::SnapshotCurrent(tcmalloc::ProfileType::kHeap);
	profile.Iterate([&](const tcmalloc::Profile::Sample &sample) {
		length += snprintf(text + length, sizeof(text) - length, "%zu\\n",
				   (size_t)sample.requested_size);
	});
	write(fileno(file), text, length);
	puts("ready");
	return pause();
}
"""
HEADERS = os.environ.get("GOOGLE_TCMALLOC_HEADERS", "")


@unittest.skipUnless(HEADERS, "there are no headers of Google's tcmalloc")
class Sampled(harness.LiveTest):
    def test_profile_is_its_own_snapshot(self):
        dump = self.path("dump")
        program = self.compile("sampled", text=SAMPLED, compiler="g++", flags=(
            "-std=c++20", "-g", "-O1", "-w", "-fno-omit-frame-pointer",
            *[f"-I{path}" for path in HEADERS.split(":")],
            "-x", "none", LIBRARY, "-Wl,--unresolved-symbols=ignore-all"))
        core = harness.snap(self.start([program, dump]), self.path("core"))
        with open(dump, encoding="ascii") as file:
            said = [int(line) for line in file if int(line) >= 70000]
        images = [row for row in harness.rows("profile", "-q", core, "profile")
                  if row["allocated_by"].startswith("images(int) (")]
        self.assertGreater(len(said), 1)
        self.assertEqual([[row["bytes"], row["allocations"]] for row in images],
                         [[sum(said), len(said)]])


if __name__ == "__main__":
    unittest.main()
