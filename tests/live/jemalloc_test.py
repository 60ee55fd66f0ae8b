#!/usr/bin/env python3
"""
The heap of jemalloc: testdata/programs/other_malloc.c, run with libjemalloc.so.2, writes down what
became of its blocks, and heapcore must find the same in its cores.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

import harness
import preloaded

LIBRARY = "libjemalloc.so.2"
SETTINGS = ("", "narenas:4", "tcache:false", "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:1000",
            "retain:false,lg_tcache_max:20", "hpa:true")
# Of the cache of a thread in 5.3.0, as allocated.
STACK = 28672
TRIALS = 5
# At the signal, allocated.c answers.
RUBY = """
require "json"
$kept = {}
20000.times do |i|
  $kept[i.to_s] = [i.to_s * (1 + i % 50), { a: i, "b" => [i] * 5 }]
  JSON.parse(JSON.generate($kept[i.to_s]))
  $kept.delete((i - 3000).to_s) if i % 3 == 0
end
Process.kill(ARGV[0].to_i, $$)
sleep
"""


@unittest.skipUnless(preloaded.is_there(LIBRARY), "there is no libjemalloc2")
class Jemalloc(preloaded.PreloadedTest):
    library = LIBRARY

    def test_what_is_used_and_leaked_is_as_the_program_says(self):
        for when in ("early", "late"):
            for settings in SETTINGS if harness.ALL_VARIANTS or when == "late" else SETTINGS[:1]:
                with self.subTest(when=when, settings=settings):
                    core, known = self.snapped(when, MALLOC_CONF=settings)
                    self.check(core, known)

    def test_cores_of_gdb_and_of_the_kernel_are_read(self):
        self.check_other_cores()


class Redis:
    """A server in a folder of its own, and one connection to it."""

    def __init__(self, folder):
        path = os.path.join(folder, "socket")
        self.process = harness.launch(
            ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder,
             "--daemonize", "no", "--loglevel", "warning"], folder, stdout=subprocess.DEVNULL)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(harness.TIMEOUT)
        deadline = time.monotonic() + harness.TIMEOUT
        while not os.path.exists(path) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def end(self):
        self.file.close()
        self.socket.close()
        harness.end(self.process)

    def send(self, *words):
        parts = b"".join(b"$%d\r\n%s\r\n" % (len(word), word)
                         for word in (word.encode() for word in words))
        self.socket.sendall(b"*%d\r\n%s" % (len(words), parts))

    def receive(self):
        """A reply that is a line or a text."""
        line = self.file.readline().decode().strip()
        if line[0] != "$":
            return line
        return self.file.read(int(line[1:]) + 2).decode()

    def ask(self, *words):
        self.send(*words)
        return self.receive()

    def fill(self, count):
        for number in range(count):
            text = str(number * 7919 % count)
            self.send("SET", "text:" + text, "x" * (number % 700))
            self.send("HSET", "hash:" + text[:2], text, "y" * (number % 90))
            self.send("ZADD", "sorted", text, "member:" + text)
            self.send("DEL", "text:" + text[::-1])
            for _ in range(4):
                self.receive()

    def allocated(self):
        """What jemalloc says, which the server asks ten times a second; once it is the same."""
        before = None
        deadline = time.monotonic() + harness.TIMEOUT
        while time.monotonic() < deadline:
            fields = dict(line.split(":", 1) for line in self.ask("INFO", "all").splitlines()
                          if ":" in line)
            now = int(fields["allocator_allocated"])
            if now == before:
                return now
            before = now
            time.sleep(0.5)
        raise AssertionError("redis-server's memory does not settle")


def check_allocated(test, core, allocated):
    """
    What threads cache is not used, but jemalloc counts it; and the stacks of the caches, which are
    its own: one for each of five threads at most.
    """
    rows = harness.tables(core, "bill")["use"]
    uses = {row["use"]: row["mapped"] for row in rows if row["memory"] == "jemalloc"}
    stacks = allocated - uses["used"] - uses["tcache"]
    test.assertIn(stacks, [STACK * count for count in range(1, 6)])


@unittest.skipUnless(shutil.which("redis-server"), "there is no redis-server")
class OfRedis(harness.LiveTest):
    def settled_core(self, redis):
        """What jemalloc counts, and a core with the same: nothing was freed meanwhile."""
        for number in range(TRIALS):
            before = redis.allocated()
            core = harness.snap(redis.process, self.path(f"core-{number}"))
            if redis.allocated() == before:
                return before, core
        raise AssertionError("redis-server's memory does not settle")

    def test_all_bytes_are_those_that_jemalloc_counts(self):
        redis = Redis(self.folder)
        self.addCleanup(redis.end)
        if "jemalloc" not in redis.ask("INFO", "memory"):
            raise harness.Skipped("redis-server has another malloc")
        redis.fill(30000)
        allocated, core = self.settled_core(redis)
        check_allocated(self, core, allocated)
        self.assertEqual(preloaded.sizes(core, "leaked"), {})


@unittest.skipUnless(shutil.which("ruby") and not preloaded.FOLDER and preloaded.is_there(LIBRARY),
                     "there is no ruby, or no libjemalloc2 for it")
class OfRuby(harness.LiveTest):
    def test_all_bytes_are_those_that_jemalloc_counts(self):
        library = self.compile("allocated.so", "allocated.c", flags=["-shared", "-fPIC"])
        process = self.start(["ruby", "-e", RUBY, str(signal.SIGRTMIN + 5)],
                             LD_PRELOAD=f"{library} {preloaded.path_of(LIBRARY)}")
        allocated = harness.places_said(process)["allocated"]
        check_allocated(self, harness.snap(process, self.path("core")), allocated)


if __name__ == "__main__":
    unittest.main()
