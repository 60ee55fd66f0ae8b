#!/usr/bin/env python3
"""
Who allocated, as programs note it themselves: what heapcore reads from a core is what the program's
own profiler says.
"""

import ast
import os
import re
import shutil
import unittest

from harness import ask, environment, INCOMPLETE, LiveTest, rows, run, snap
from script_stacks_test import PYTHONS

TRACED = """
import gc, os, sys, tracemalloc

gc.disable()
tracemalloc.start(4)

import decimal

def texts(count):
    return {f"word {i}": (i, str(i) * 3) for i in range(count)}

class Node:
    def __init__(self, number):
        self.number, self.next = number, None

kept = [[bytearray(1000 + i) for i in range(500)], texts(3000), [Node(i) for i in range(2000)]]
# What take_snapshot() begins with. It makes tuples, and those that were freed and are taken again
# count as allocated there: so all of these are taken before.
tuples = [tuple([None] * size) for size in range(1, 20) for number in range(2000)]
traces = tracemalloc._get_traces()
child = os.fork()
if child == 0:
    inner = reversed if sys.version_info >= (3, 7) else list # the innermost call first
    sums = {}
    for trace in tracemalloc.Snapshot(traces, 4).traces:
        key = " < ".join(f"{os.path.basename(frame.filename)}:{frame.lineno}"
                         for frame in inner(trace.traceback))
        line = list(inner(trace.traceback))[0]
        for one in (key, f"{line.filename}:{line.lineno}"):
            total = sums.setdefault(one, [0, 0])
            total[0] += trace.size
            total[1] += 1
    with open(sys.argv[1], "w") as truth:
        print(sums, file=truth)
    print("ready", flush=True)
    os._exit(0)
os.read(0, 1)
"""


def profile(core, *words, **options):
    return {row["allocated_by"]: [row["bytes"], row["allocations"]]
            for row in rows("profile", "-q", core, "profile", *words, **options)}


class TracemallocTest(LiveTest):
    def check(self, python):
        core, truth = self.core_of_script(python, TRACED)
        with open(truth, encoding="utf-8") as file:
            sums = ast.literal_eval(file.read())
        # Lines that allocate or free once these are taken.
        moving = [f"program:{number}" for number, line in enumerate(TRACED.splitlines(), 1)
                  if re.match(r"traces = |child = |os\.read", line)]
        for found in (profile(core), profile(core, "--by", "line")):
            self.assertGreater(len(found), 5)
            for place, total in found.items():
                if not any(line in place for line in moving):
                    self.assertEqual(total, sums.pop(place), place)
        left = [place for place in sums if not any(line in place for line in moving)]
        self.assertEqual(left, [])

    def test_profile_is_the_snapshot_of_tracemalloc(self):
        # Tables are of one form up to 3.8, and of another from 3.9 on.
        for python in [path for path in PYTHONS if re.search(r"^/usr|/3\.(8|13)\.", path)]:
            with self.subTest(python):
                self.check(python)

    def test_exports_write_holders_on_request(self):
        core, _ = self.core_of_script("/usr/bin/python3", """
import sys, tracemalloc
tracemalloc.start(4)
kept = [bytearray(1000) for number in range(1000)]
print("ready", flush=True)
sys.stdin.read()
""")
        files = []
        for options in (), ("--holders",):
            files.append(self.path(f"heaptrack{len(files)}"))
            ask("-q", core, "export", "heaptrack", *options, "-o", files[-1])
        with open(files[0], encoding="utf-8", errors="replace") as callers, open(
                files[1], encoding="utf-8", errors="replace") as holders:
            self.assertNotIn("globals of python", callers.read())
            self.assertIn("globals of python", holders.read())


SAMPLED = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int mallctl(const char *, void *, size_t *, void *, size_t);
static void *kept[2000];
static int count;

static void *small(size_t size)
{
	return memset(malloc(size), 1, size);
}
static void orders(int number)
{
	for (int i = 0; i < number; i++)
		kept[count++] = small(40 + i % 3 * 100);
}
static void images(int number)
{
	for (int i = 0; i < number; i++)
		kept[count++] = calloc(1, 70000 + i);
}
int main(int argument_count, char **arguments)
{
	orders(1000);
	images(20);
	for (int i = 0; i < 1000; i += 2)
		free(kept[i]);
	mallctl("prof.dump", NULL, NULL, &arguments[1], sizeof(arguments[1]));
	write(1, "ready\\n", 6);
	return pause();
}
"""
LIBRARY = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"


@unittest.skipUnless(os.path.exists(LIBRARY), "there is no jemalloc")
class JemallocTest(LiveTest):
    """Every allocation is sampled, so that no figure is an estimate."""

    def profile_of(self, settings):
        dump = self.path("dump")
        program = self.compile("sampled", text=SAMPLED,
                               flags=("-g", "-O0", "-x", "none", LIBRARY))
        process = self.start([program, dump], MALLOC_CONF=settings)
        return snap(process, self.path("core")), dump

    def test_profile_is_the_dump_of_jemalloc(self):
        core, dump = self.profile_of("prof:true,lg_prof_sample:0")
        with open(dump, encoding="ascii") as file:
            said = re.findall(r"(?m)^@.*\n *t\*: (\d+): (\d+) ", file.read())
        found = profile(core)
        self.assertCountEqual([(count, size) for size, count in found.values()],
                              [(int(count), int(size)) for count, size in said])
        calls = {place.split(" (")[0]: place for place in found}
        self.assertRegex(calls["small"], r"^small \(.*\) < orders \(.*\) < main ")
        self.assertRegex(calls["images"], r"^images \(.*\) < main ")
        self.assertEqual(found[calls["small"]][1], 500)

    def test_without_a_sampler_nothing_is_noted(self):
        core, _ = self.profile_of("prof:false")
        self.assertEqual(profile(core), {})
        self.assertIn("nothing in this process noted", ask(core, "profile").stderr)


GPERFTOOLS = "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4"
SPANS = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>

class MallocExtension {
public:
	static MallocExtension *instance();
	void GetHeapSample(std::string *text);
};
static void *kept[1000];
static int count;

static void *small(size_t size)
{
	return memset(malloc(size), 1, size);
}
static void orders(int number)
{
	for (int i = 0; i < number; i++)
		kept[count++] = small(40 + i % 3 * 100);
}
static void images(int number)
{
	for (int i = 0; i < number; i++)
		kept[count++] = calloc(1, 70000 + i);
}
int main(int, char **arguments)
{
	free(malloc(64 << 20)); /* it reads its settings late, and samples behind 16 MB */
	orders(600);
	images(20);
	for (int i = 0; i < 600; i += 2)
		free(kept[i]);
	std::string text;
	text.reserve(1 << 22);
	MallocExtension::instance()->GetHeapSample(&text);
	int file = creat(arguments[1], 0600);
	write(file, text.data(), text.size());
	write(1, "ready\\n", 6);
	return pause();
}
"""


@unittest.skipUnless(os.path.exists(GPERFTOOLS), "there is no tcmalloc of gperftools")
class TcmallocTest(LiveTest):
    def test_profile_is_the_heap_sample_of_tcmalloc(self):
        dump = self.path("dump")
        program = self.compile("spans", text=SPANS, compiler="g++",
                               flags=("-g", "-O0", "-x", "none", GPERFTOOLS))
        process = self.start([program, dump], TCMALLOC_SAMPLE_PARAMETER="1")
        core = snap(process, self.path("core"))
        with open(dump, encoding="ascii") as file:
            count, size = re.match(r"heap profile: *(\d+): *(\d+) ", file.read()).groups()
        totals = profile(core)
        self.assertEqual([sum(total[0] for total in totals.values()),
                          sum(total[1] for total in totals.values())], [int(size), int(count)])
        found = {place.split("(")[0].strip(): total for place, total in totals.items()}
        self.assertEqual(found["small"], [100 * (40 + 140 + 240), 300])
        self.assertEqual(found["images"], [sum(range(70000, 70020)), 20])


GO = """
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"time"
)

type order struct {
	number int
	text   [200]byte
}

var kept []*order
var passing []byte

//go:noinline
func orders(count int) {
	for i := 0; i < count; i++ {
		made := &order{number: i}
		if i%2 == 0 {
			kept = append(kept, made)
		}
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	runtime.MemProfileRate = RATE
	/* The next sample was chosen by the rate before. */
	for i := 0; i < 64; i++ {
		passing = make([]byte, 1<<20)
	}
	passing = nil
	kept = make([]*order, 0, 5000)
	orders(6000)
	debug.SetGCPercent(-1)
	runtime.GC()
	file, _ := os.Create(os.Args[1])
	pprof.Lookup("heap").WriteTo(file, 1)
	file.Close()
	fmt.Println("ready")
	for {
		time.Sleep(time.Hour)
	}
}
"""


@unittest.skipUnless(shutil.which("go"), "there is no go")
class GoTest(LiveTest):
    def check(self, rate):
        source, dump = self.path("orders.go"), self.path("dump")
        with open(source, "w", encoding="utf-8") as file:
            file.write(GO.replace("RATE", str(rate)))
        built = run("go", "build", "-o", self.path("orders"), source,
                    env=environment(GOCACHE=self.path("cache")))
        self.assertEqual(built.returncode, 0, built.stderr)
        core = snap(self.start([self.path("orders"), dump]), self.path("core"))
        with open(dump, encoding="utf-8") as file:
            text = file.read()
        count, size = re.match(r"heap profile: (\d+): (\d+) ", text).groups()
        # Its objects are no allocations, which makes answers incomplete.
        totals = profile(core, expected=(INCOMPLETE,))
        self.assertEqual([sum(total[0] for total in totals.values()),
                          sum(total[1] for total in totals.values())], [int(size), int(count)])
        said = [(int(count), int(size)) for count, size in
                re.findall(r"(?m)^(\d+): (\d+) \[.*@ 0x", text) if int(count)]
        made = [total for place, total in totals.items()
                if re.match(r"main\.orders \(orders.go:\d+\) < main\.main ", place)]
        self.assertEqual(len(made), 1)
        self.assertIn((made[0][1], made[0][0]), said)
        return made[0]

    def test_profile_is_that_of_pprof(self):
        self.assertEqual(self.check(1), [3000 * 208, 3000])
        self.check(4096)


if __name__ == "__main__":
    unittest.main()
