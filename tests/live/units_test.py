#!/usr/bin/env python3
"""
How full pools and pages of slots are, against what the interpreters say of
themselves, and which objects keep those that are nearly empty.
"""

import collections
import os
import re
import shutil
import unittest

import harness
import php_programs
import python_test

EACH = 4000

# What waits must not allocate once the program has written down what it has.
PYTHON = f"""
import os, signal, sys

class Kept:
    __slots__ = ("a", "b", "c")

kept = [Kept() for i in range(200000)]
kept[:] = kept[::{EACH}]
pause, ready, output = signal.pause, b"ready\\n", os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for one in kept:
    os.write(output, b"kept %x\\n" % id(one))
os.dup2(output, 2)
sys._debugmallocstats()
os.write(1, ready)
pause()
"""

RUBY = f"""
class Kept; end
# Another thread's stack is gone in the end, with what is left on it.
kept = Thread.new {{ Array.new(200000) {{ Kept.new }}.each_slice({EACH}).map(&:first) }}.value
4.times {{ GC.start }}
slots = ObjectSpace.count_objects
pages = GC.stat(:heap_allocated_pages)
File.write(ARGV[0], "pages #{{pages}} slots #{{slots[:TOTAL]}} free #{{slots[:FREE]}} kept #{{kept.size}}")
STDOUT.write("ready\\n")
STDOUT.flush
sleep
"""

# Of 64 objects of a block, one is kept.
COLLECTED = r"""
#include <gc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 64000, EACH = 64 };

static void *all[COUNT], *kept[COUNT / EACH];

int main(int argc, char **argv)
{
	GC_init();
	for (int i = 0; i < COUNT; i++)
		all[i] = memset(GC_malloc(48), 0, 48);
	for (int i = 0; i < COUNT; i += EACH)
		kept[i / EACH] = all[i];
	memset(all, 0, sizeof(all));
	for (int i = 0; i < 3; i++)
		GC_gcollect();
	for (int i = 0; i < COUNT / EACH; i++)
		printf("%p\n", kept[i]);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
"""

# Of the texts of a chunk of 2 MiB, one is kept.
PHP = """
$texts = [];
for ($i = 0; $i < 20000; $i++)
    $texts[] = str_repeat(chr(65 + $i % 26), 2000);
$kept = [];
for ($i = 0; $i < 20000; $i += 1000)
    $kept[] = $texts[$i];
unset($texts);
"""


def units(core):
    """The tables of `fragmentation`; units by their kind and the size of blocks."""
    tables = harness.tables("-q", core, "fragmentation", "--limit", "0")
    return tables, {(row["unit"], row["blocks_of"]): row
                    for row in tables["unit"]}


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


class Units(harness.LiveTest):
    def check_keepers(self, tables, class_name, kept):
        """All that is kept has a keeper; objects of the class are some."""
        nearly, keepers = tables["nearly empty"], tables["keeper"]
        self.assertEqual(len(nearly), 1)
        self.assertEqual(sum(row["kept"] for row in keepers), nearly[0]["free"])
        self.assertEqual(sum(row["allocations"] for row in keepers),
                         nearly[0]["allocations"])
        self.assertLessEqual(sum(row["alone"] for row in keepers),
                             nearly[0]["free"])
        row = next(row for row in keepers if row["kind"] == class_name)
        self.assertLessEqual(row["allocations"], kept)
        self.assertGreater(row["allocations"], kept // 2)
        self.assertGreater(row["alone"], 0)
        return row

    @unittest.skipUnless(os.path.exists(python_test.SYSTEM),
                         "no python3 of the system")
    def test_pools_and_arenas_are_as_python_prints_them(self):
        core, path = self.core_of_script(python_test.SYSTEM, PYTHON)
        truth = read(path)
        tables, found = units(core)
        pools = {int(size): tuple(map(int, rest)) for size, *rest in re.findall(
            r"^ +\d+ +(\d+) +(\d+) +(\d+) +(\d+)$", truth, re.M)}
        self.assertGreater(len(pools), 20)
        self.assertEqual(
            {size: (row["count"], row["used"] // size, row["free"] // size)
             for (kind, size), row in found.items() if kind == "pool"}, pools)
        arenas = found["arena", None]
        self.assertEqual(arenas["count"], int(re.search(
            r"# arenas allocated current += +(\d+)", truth)[1]))
        self.assertEqual(arenas["used"], int(re.search(
            r"# bytes in allocated blocks += +([\d,]+)", truth)[1].replace(
                ",", "")))
        kept = {int(address, 16) for address in re.findall(r"kept (\w+)", truth)}
        row = self.check_keepers(tables, "__main__.Kept", len(kept))
        such_as = int(row["such_as"], 16)
        self.assertIn(min(abs(one - such_as) for one in kept), (0, 16, 32))

    @unittest.skipUnless(shutil.which("ruby"), "there is no ruby")
    def test_pages_are_as_ruby_counts_them(self):
        core, path = self.core_of_script("ruby", RUBY)
        truth = collections.defaultdict(int)
        words = read(path).split()
        truth.update(zip(words[::2], map(int, words[1::2])))
        tables, found = units(core)
        self.assertEqual({kind for kind, _ in found}, {"page"})
        self.assertEqual(sum(row["count"] for row in found.values()),
                         truth["pages"])
        slots = sum((row["used"] + row["free"]) // row["blocks_of"]
                    for row in found.values())
        self.assertEqual(slots, truth["slots"])
        self.check_keepers(tables, "Kept", truth["kept"])

    @unittest.skipUnless(os.path.exists("/usr/include/gc.h"), "there is no libgc-dev")
    def test_blocks_of_a_collector_that_one_object_keeps(self):
        program = self.compile("collected", text=COLLECTED, flags=["-lgc"])
        process = self.start([program])
        core = harness.snap(process, self.path("core"))
        harness.end(process)
        blocks = collections.Counter(
            int(line, 16) >> 12 for line in process.said if line.startswith("0x"))
        tables, found = units(core)
        # Some have blocks for the next size.
        rows = [row for row in found.values() if row["unit"] == "block"]
        self.assertGreaterEqual(sum(row["count"] for row in rows), len(blocks))
        self.assertGreaterEqual(sum(row["used"] for row in rows), 64 * sum(blocks.values()))
        for row in rows:
            self.assertEqual(row["used"] + row["free"], row["count"] * (
                4096 // row["blocks_of"]) * row["blocks_of"])
        nearly = sum(count <= 6 for count in blocks.values())
        self.assertGreater(nearly, len(blocks) // 2)
        self.assertGreaterEqual(sum(row["nearly_empty"] for row in rows), 0.95 * nearly)
        self.assertEqual(sum(row["kept"] for row in tables["keeper"]),
                         tables["nearly empty"][0]["free"])
        self.assertGreaterEqual(sum(row["allocations"] for row in tables["keeper"]),
                                0.95 * nearly)


class PhpUnits(php_programs.PhpTest):
    def test_chunks_and_runs_of_php(self):
        core, said = self.core_of(PHP)
        tables, found = units(core)
        chunks = found["chunk", None]
        self.assertEqual(chunks["count"], said["real"] >> 21)
        self.assertLess(abs(chunks["used"] - said["usage"]), 1000)
        self.assertGreater(chunks["nearly_empty"], chunks["count"] // 2)
        run = found["run", 2048]
        self.assertEqual((run["used"] + run["free"]) // 2048, 8 * run["count"])
        row = next(row for row in tables["nearly empty"] if row["memory"] == "zend")
        self.assertEqual((row["unit"], row["units"]), ("chunk", chunks["nearly_empty"]))
        keepers = tables["keeper"]
        self.assertEqual(sum(keeper["kept"] for keeper in keepers), row["free"])
        self.assertEqual(keepers[0]["kind"], "string")


if __name__ == "__main__":
    unittest.main()
