#!/usr/bin/env python3
"""
AddressSanitizer: of a program built with it, heapcore has the allocations and the freed blocks in
quarantine that the program wrote down, the leaks that LeakSanitizer counts, and the stacks that the
sanitizer has.
"""

import platform
import re
import shutil
import unittest

from harness import ask, environment, HEAPCORE, LiveTest, rows, run, snap

PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, used)) void *
struct node { struct node *next; };
static struct node *kept;
static struct { uintptr_t hidden; size_t size; } blocks[4096];
static int count;

static size_t random_size(int number)
{
	size_t size = (size_t)number * 2654435761U % 3000 + sizeof(struct node);
	return number % 97 == 0 ? size * 1000 : number % 31 == 0 ? size * 50 : size;
}
FUNCTION small(size_t size) { return memset(malloc(size), 1, size); }
FUNCTION cleared(size_t size) { return memset(calloc(1, size), 1, size); }
FUNCTION grown(size_t size) { return memset(realloc(malloc(16), size), 1, size); }
FUNCTION aligned(size_t size)
{
	void *block = NULL;
	posix_memalign(&block, size % 2 ? 64 : 4096, size);
	return memset(block, 1, size);
}
FUNCTION make(int number)
{
	static void *(*const makers[])(size_t) = { small, cleared, grown, aligned };
	void *block = makers[number % 4](random_size(number));
	blocks[count].hidden = ~(uintptr_t)block;
	blocks[count++].size = random_size(number);
	return block;
}
FUNCTION keep(int number)
{
	struct node *node = make(number);
	node->next = kept;
	return kept = node;
}
FUNCTION lose(int number)
{
	struct node *first = make(number), *second = make(number + 1);
	memset(first, 0, sizeof(*first));
	second->next = first;
	return NULL;
}
FUNCTION drop(int number) { free(make(number)); return NULL; }
FUNCTION work(void)
{
	for (int i = 0; i < 1500; i++)
		i % 3 == 0 ? keep(i) : i % 5 == 0 ? lose(i) : drop(i);
	return NULL;
}
FUNCTION forget(void) { char area[1 << 16]; return memset(area, 0, sizeof(area)) ? 0 : kept; }
static void say(uintptr_t block, size_t size, const char *what)
{
	void *calls[64];
	int thread, number = (int)__asan_get_alloc_stack((void *)block, calls, 64, &thread);
	printf("%s %#lx %zu ", what, (unsigned long)block, size);
	for (int i = 0; i < number; i++) {
		Dl_info info;
		if (dladdr((char *)calls[i] - 1, &info) && info.dli_sname)
			printf("%s ", info.dli_sname);
	}
	printf("\n");
}
int main(int argument_count, char **arguments)
{
	work();
	forget();
	__lsan_do_recoverable_leak_check();
	for (int i = 0; i < count; i++) {
		uintptr_t block = ~blocks[i].hidden;
		say(block, blocks[i].size, __asan_address_is_poisoned((void *)block) ? "freed" : "used");
	}
	printf("ready\n");
	fflush(stdout);
	pause();
}
"""

LOST = r"""
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) void *make(void) { return memset(malloc(40), 1, 40); }
__attribute__((noinline)) void order(void) { void *volatile block = make(); block = 0; }
int main(void)
{
	for (int i = 0; i < 5; i++) order();
	return 0;
}
"""

FLAGS = "-fsanitize=address", "-fno-omit-frame-pointer", "-g", "-O1", "-rdynamic"
BUILDS = {"gcc": (), "gcc with all of it": ("-static-libasan",), "clang": ()}
CALLS = "small", "cleared", "grown", "aligned", "make", "keep", "lose", "drop", "work", "main"


def short(calls):
    """The functions of the program, as a chain that has them has more of the C library."""
    return [name for name in calls if name in CALLS]


@unittest.skipUnless(platform.machine() == "x86_64", "there is no x86-64")
class AsanTest(LiveTest):
    def core_of(self, build):
        compiler = build.split()[0]
        if not shutil.which(compiler):
            self.skipTest(f"there is no {compiler}")
        program = self.compile("sanitized", compiler=compiler, text=PROGRAM,
                               flags=(*FLAGS, *BUILDS[build]))
        # Frames of fake stacks that have ended would hold what their variables had.
        process = self.start([program], ASAN_OPTIONS=f"log_path={self.path('said')}:"
                                                     "detect_stack_use_after_return=0")
        truth = [line.split() for line in process.said if line.split()[0] in ("used", "freed")]
        return snap(process, self.path("core")), truth, self.path(f"said.{process.pid}")

    def check_blocks(self, core, truth):
        for kind in "used", "free":
            found = {row["address"]: row["size"]
                     for row in rows("allocation", "-q", core, "list", kind)}
            said = {line[1]: int(line[2]) for line in truth if line[0].startswith(kind[:4])}
            self.assertGreater(len(said), 400)
            self.assertEqual({block: found.get(block) for block in said}, said)
            if kind == "used": # the C library's, such as a buffer of stdout
                self.assertLess(len(found) - len(said), 8)
        quarantine, = (row for row in rows("use", "-q", core, "bill")
                       if row["use"] == "quarantine")
        self.assertGreaterEqual(quarantine["count"], sum(line[0] == "freed" for line in truth))

    def check_leaks(self, core, report):
        with open(report, encoding="utf-8") as file:
            said, = re.findall(r"SUMMARY: AddressSanitizer: (\d+) byte.* in (\d+) alloc", file.read())
        total, = rows("total", "-q", core, "count", "leaked")
        self.assertEqual([total["bytes"], total["count"]], [int(number) for number in said])

    def check_stacks(self, core, truth):
        said, found = {}, {}
        for line in truth:
            if line[0] == "used":
                total = said.setdefault(" < ".join(short(line[3:])), [0, 0])
                total[0] += int(line[2])
                total[1] += 1
        for row in rows("profile", "-q", core, "profile"):
            self.assertEqual(row["noted_by"], "AddressSanitizer")
            chain = short(call.split(" (")[0] for call in row["allocated_by"].split(" < "))
            if len(chain) > 1:
                total = found.setdefault(" < ".join(chain), [0, 0])
                total[0] += row["bytes"]
                total[1] += row["allocations"]
        self.assertEqual(found, said)
        self.assertGreater(len(said), 4)

    def test_leaks_have_the_stacks_without_a_second_run(self):
        program = self.compile("lost", compiler="gcc", text=LOST, flags=FLAGS)
        core = self.path("core")
        said = run(HEAPCORE, "run", "--core", core, "--", program,
                   env=environment(ASAN_OPTIONS="detect_leaks=0")).stderr
        self.assertNotIn("once more", said)
        self.assertRegex(said, r"5 of 5 were allocated by\n +make at .*:4 .*\n"
                               r" +order at .*:5 .*\n +main at .*:8 ")
        self.assertIn("allocated by make (<stdin>:4)", said)
        leak, = rows("leak roots", "-q", core, "summarize", "leakroots")
        self.assertEqual(leak["allocated_by"], "make (<stdin>:4)")

    def test_blocks_leaks_and_stacks_are_those_of_the_sanitizer(self):
        for build in BUILDS:
            with self.subTest(build):
                core, truth, report = self.core_of(build)
                said = ask(core, "info").stderr
                self.assertNotIn("not supported", said)
                # Shadow memory that was never written is no reason for a doubt.
                self.assertNotIn("are not in the core", said)
                self.check_blocks(core, truth)
                self.check_leaks(core, report)
                self.check_stacks(core, truth)


if __name__ == "__main__":
    unittest.main()
