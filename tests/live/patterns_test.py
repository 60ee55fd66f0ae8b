#!/usr/bin/env python3
"""
Runs testdata/programs/containers.cpp, built in several ways, and checks that
each allocation it tells of has its pattern, and no other has it. Then takes
cores of programs in C, in which no container may be found.
"""

import collections
import os
import re
import shutil
import sys
import unittest

import harness

PROGRAM = os.path.join(harness.PROGRAMS, "containers.cpp")

LIBRARY = "__thread char local[9000]; char *get(void) { return local; }"
# A library that nothing else needs.
UNLOADED = "libutil.so.1"
VARIANTS = {
    "g++ -O0": ["g++", "-O0", "-g"],
    "g++ -O2, stripped": ["g++", "-O2", "-s"],
    "g++ -O2, fixed": ["g++", "-O2", "-no-pie"],
    "g++, copy on write": ["g++", "-O1", "-D_GLIBCXX_USE_CXX11_ABI=0"],
    "g++, library linked in": ["g++", "-O2", "-s", "-static-libstdc++"],
    "g++, i386": ["g++", "-m32", "-O0"],
    "clang++ -O0": ["clang++", "-O0"],
    "clang++ -O2, stripped": ["clang++", "-O2", "-s"],
    "clang++, libc++": ["clang++", "-stdlib=libc++", "-O1", "-s"],
}
CONTAINERS = {
    "LongString", "COWStringBody", "VectorBody", "ListNode",
    "ForwardListNode", "UnorderedMapOrSetBuckets", "UnorderedMapOrSetNode",
    "MapOrSetNode", "DequeMap", "DequeBlock", "SharedPtrControlBlock",
}
# What the libraries of C++ and C make for themselves, too.
ALSO_ELSEWHERE = {"LinkMap", "StdioFile", "StdioBuffer", "ThreadVector",
                  "ThreadLocalBlock"}
C_PROGRAMS = {
    "bash": ["bash", "-c", "declare -A a; for i in {1..999}; do a[$i]=x$i; "
             "done; echo ready; read line"],
    "sqlite3": ["sqlite3", "-cmd", "create table t(a); insert into t "
                "values(1); select 'ready';"],
}

ZLIB = """
import sys, zlib
packing = [zlib.compressobj(i % 9 + 1) for i in range(11)]
gone = [zlib.compressobj() for i in range(5)]
unpacking = [zlib.decompressobj() for i in range(7)]
packed = zlib.compress(bytes(range(256)) * 4000)
for stream in unpacking[:5]:
    stream.decompress(packed[:2000])
del gone
print('ready', flush=True)
sys.stdin.read()
"""

TLS = """
import ssl, sys
contexts = [ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) for i in range(7)]
for context in contexts:
    context.check_hostname = False
objects = [contexts[i % 7].wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO())
           for i in range(23)]
for one in objects:
    try:
        one.do_handshake()
    except ssl.SSLWantReadError:
        pass
print("ready", flush=True)
sys.stdin.read()
"""
LIBC = """
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct lines { char *line; size_t size; FILE *file; DIR *directory; };

int main(void)
{
	struct lines *lines = calloc(1, sizeof(*lines));
	char *line = NULL;
	size_t size = 0;

	lines->file = fopen("/proc/self/status", "r");
	lines->directory = opendir("/");
	getline(&line, &size, lines->file);
	getline(&lines->line, &lines->size, lines->file);
	puts("ready");
	fflush(stdout);
	for (;;) {
		pause();
		printf("%p %zu %p", (void *)line, size, (void *)lines);
	}
}
"""

LISTED = re.compile(r"Used allocation at 0x([0-9a-f]+) of size [\d,]+ \(0x([0-9a-f]+)\)$")
COUNTED = re.compile(r"(?m)^[\d,]+ allocations? uses? .*$")
GROUP = re.compile(r"Pattern %(\w+) has ([\d,]+) instances?")


def heapcore(*words):
    return harness.ask(*words, expected=(harness.FINE, harness.INCOMPLETE)).stdout


def found(core, patterns):
    """The allocations of each pattern, asked at once; each answer ends with a count."""
    words = [word for pattern in patterns for command in ("enumerate", "count")
             for word in ("-c", f"{command} used %{pattern}")]
    answers = COUNTED.split(heapcore(*words, core))[:-1]
    return {pattern: {int(line, 16) for line in answer.split()}
            for pattern, answer in zip(patterns, answers, strict=True)}


def summary(core):
    text = heapcore(core, "summarize", "used", "--all")
    return {name: harness.number(count)
            for name, count in GROUP.findall(text)}


class Truth:
    """What the program told: the allocations of each pattern."""

    def __init__(self, path, core):
        self.patterns = collections.defaultdict(set)
        blocks = [tuple(int(number, 16) for number in match.groups())
                  for match in map(LISTED.match,
                                   heapcore(core, "list", "used").splitlines())
                  if match]
        with open(path, encoding="ascii") as file:
            for line in file:
                if line != "ready\n":
                    name, address = line.split()
                    self.add(name, int(address, 16), blocks)

    def add(self, name, address, blocks):
        low, high = 0, len(blocks)
        while high - low > 1:
            middle = (low + high) // 2
            if blocks[middle][0] <= address:
                low = middle
            else:
                high = middle
        start, size = blocks[low]
        if not start <= address < start + size:
            raise AssertionError(f"{name} at {address:x} is not allocated")
        self.patterns[name].add(start)


class ContainersTest(harness.LiveTest):
    """The truth of containers.cpp against what heapcore finds."""

    def build(self, words):
        if "-m32" in words:
            harness.needs_i386("g++")
        try:
            harness.build(self.path("containers"), *words, "-std=c++17", "-pthread", PROGRAM,
                          "-ldl")
        except RuntimeError:
            if "libc++" in " ".join(words):
                self.skipTest("there is no libc++")
            raise

    def check(self, words):
        if not shutil.which(words[0]):
            self.skipTest(f"there is no {words[0]}")
        self.build(words)
        library = self.compile("library.so", text=LIBRARY, flags=[
            "-shared", "-fPIC", *(["-m32"] if "-m32" in words else [])])
        process = self.start(
            [self.path("containers"), library, UNLOADED],
            truth=self.path("truth"))
        core = harness.gcore(process, self.folder)
        truth = Truth(self.path("truth"), core)
        counts, got = summary(core), found(core, truth.patterns)
        for name, wanted in truth.patterns.items():
            with self.subTest(pattern=name):
                self.compare(name, wanted, got[name], counts)
        for name in CONTAINERS - set(truth.patterns):
            self.assertNotIn(name, counts)

    def compare(self, name, wanted, got, counts):
        # A summary calls them by the class of what they hold, or by their container's name.
        self.assertLessEqual(counts.get(name, 0), len(got))
        missing = [f"{address:x}" for address in sorted(wanted - got)]
        self.assertEqual(missing, [], f"not found, of {len(wanted)}")
        if name not in ALSO_ELSEWHERE:
            wrong = [f"{address:x}" for address in sorted(got - wanted)]
            self.assertEqual(wrong, [], f"found beside {len(wanted)}")


def add_variant(name, words):
    def test(self):
        self.check(words)

    word = re.sub(r"\W+", "_", name.replace("+", "x"))
    setattr(ContainersTest, f"test_{word}", test)


for variant, compiler in harness.variants(
        VARIANTS, "g++ -O0", "g++ -O2, stripped", "g++, copy on write", "g++, i386",
        "clang++, libc++").items():
    add_variant(variant, compiler)


class CProgramsTest(harness.LiveTest):
    """There is nothing of C++ in a program written in C."""

    def counts(self, words):
        if not shutil.which(words[0]):
            self.skipTest(f"there is no {words[0]}")
        return summary(harness.gcore(self.start(words), self.folder))

    def check(self, words):
        counts = self.counts(words)
        self.assertEqual(CONTAINERS & set(counts), set(), counts)

    def test_bash(self):
        self.check(C_PROGRAMS["bash"])

    def test_sqlite3(self):
        self.check(C_PROGRAMS["sqlite3"])

    def test_python(self):
        self.check([sys.executable, "-c", "import sys, json, decimal\n"
                    "kept = [{i: str(i)} for i in range(20000)]\n"
                    "print('ready', flush=True)\nsys.stdin.read()"])

    def test_openssl(self):
        """Exactly as many as were made, in a library without symbols."""
        counts = self.counts([sys.executable, "-c", TLS])
        self.assertEqual((counts.get("SSL_CTX"), counts.get("SSL")), (7, 23))

    def test_zlib(self):
        """States as many as streams that were made and not freed, and what each has."""
        counts = self.counts([sys.executable, "-c", ZLIB])
        self.assertEqual([counts.get(name) for name in
                          ("DeflateState", "InflateState", "ZlibBuffer")], [11, 7, 11 * 4 + 5])

    def test_libc(self):
        """A line, a file, a directory and a cache, held by several."""
        program = self.compile("libc", flags=["-O1"], text=LIBC)
        counts = self.counts([program])
        self.assertEqual(counts, {
            "DirectoryStream": 1, "GetdelimLine": 2, "StdioBuffer": 2,
            "StdioFile": 1, "ThreadCache": 1,
        })


if __name__ == "__main__":
    unittest.main()
