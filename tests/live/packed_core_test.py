"""
What a packed core says of resident memory, against the core itself.

Packing turns holes of the file into zeros, and unpacking zeros into holes. In
a core by heapcore or gdb, holes mean no more than zeros, so nothing is lost. In
one by the kernel they tell what was resident: once packed, an answer says what
it may be at most.
"""

import collections
import gzip
import re
import shutil
import unittest

from harness import LiveTest, ask, gcore, kernel_core, snap, tables

# Cleared and in memory: variables, blocks in use and freed ones. Never touched:
# the rest of the heap and of a large block.
PROGRAM = r"""
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 64, SIZE = 64 << 10, LARGE = 8 << 20 };

static char cleared[1 << 20];
static char *blocks[BLOCKS], *large;

int main(void)
{
	mallopt(M_MMAP_THRESHOLD, 4 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	mallopt(M_TOP_PAD, 4 << 20);
	large = malloc(LARGE);
	memset(large, 0, LARGE / 4);
	memset(cleared, 0, sizeof(cleared));
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(SIZE);
		memset(blocks[i], i % 2, SIZE);
	}
	for (int i = 0; i < BLOCKS; i++)
		if (i % 4 > 1)
			free(blocks[i]);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
"""

ANONYMOUS = ("glibc", "stacks", "other memory")


def fates(core):
    """The bytes of free memory by what would become of them."""
    sums = collections.Counter()
    for row in tables(core, "fragmentation", "--quick")["fate"]:
        sums[re.split("[:,]", row["free_memory"])[0]] += row["bytes"]
    return sums


def residency(core):
    return tables(core, "bill")["residency"][0]


def anonymous_uses(core):
    return [(row["memory"], row["use"], row["mapped"], row["resident"])
            for row in tables(core, "bill")["use"]
            if row["memory"] in ANONYMOUS]


class PackedCore(LiveTest):
    def started(self):
        return self.start([self.compile("program", text=PROGRAM)])

    def pack(self, core):
        packed = self.path("packed.gz")
        with open(core, "rb") as file, gzip.open(packed, "wb", 1) as to:
            shutil.copyfileobj(file, to)
        return packed

    def assert_same_answers(self, core):
        packed = self.pack(core)
        for words in (("bill", "--all"), ("fragmentation",)):
            self.assertEqual(ask(core, *words).stdout,
                             ask(packed, *words).stdout)

    def test_core_by_heapcore_says_the_same_packed(self):
        core = snap(self.started(), self.path("core"))
        self.assert_same_answers(core)
        self.assertEqual(residency(core)["told_by"], "smaps")

    def test_core_that_heapcore_packs_says_the_same(self):
        process = self.started()
        core = snap(process, self.path("core"))
        packed = snap(process, self.path("core.zst"), "--zstd")
        self.assertEqual(fates(core), fates(packed))
        # Of files, the kernel may have more in memory by now.
        self.assertEqual(anonymous_uses(core), anonymous_uses(packed))

    def test_core_by_gdb_says_the_same_packed(self):
        core = gcore(self.started(), self.folder)
        self.assert_same_answers(core)
        self.assertEqual(residency(core)["told_by"], "contents")
        self.assertNotIn("not in memory", fates(core))

    def test_core_by_the_kernel_says_what_it_may_be_at_most(self):
        core = kernel_core(self.started(), self.folder)
        packed = self.pack(core)
        exact, bounds = residency(core), residency(packed)
        self.assertEqual(exact["told_by"], "holes")
        self.assertEqual(bounds["told_by"], "contents")
        self.assertLess(bounds["resident"], exact["resident"])
        self.assertGreater(bounds["most"], exact["resident"])
        self.assertIn("A packed core", ask(packed, "bill").stdout)
        exact, bounds = fates(core), fates(packed)
        self.assertEqual(exact["zeros"], 0)
        self.assertEqual(bounds["not in memory"], 0)
        self.assertLess(bounds["can be given back"], exact["can be given back"])
        self.assertEqual(bounds["can be given back"] + bounds["zeros"],
                         exact["can be given back"] + exact["not in memory"])


if __name__ == "__main__":
    unittest.main()
