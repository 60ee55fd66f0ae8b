#!/usr/bin/env python3
"""
The heap of jemalloc: testdata/programs/jemalloc.c, run with libjemalloc.so.2, writes down what
became of its blocks, and heapcore must find the same in its cores.
"""

import os
import shutil
import socket
import subprocess
import time
import unittest

import harness
import truth

LIBRARY = "libjemalloc.so.2"
SETTINGS = ("", "narenas:4", "tcache:false", "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:1000",
            "retain:false,lg_tcache_max:20")
# What libc and libstdc++ allocate for themselves.
MOST_UNLISTED = 16
# Of so many lost blocks, one may be held by what a stack or a reused block kept of its address:
# threads do not run the same way twice.
LOST_BY_STALE_WORD = 100
# Of the cache of a thread in 5.3.0, as allocated.
STACK = 28672
TRIALS = 5


def has_jemalloc():
    """Whether a program can be run with it."""
    result = harness.run("env", f"LD_PRELOAD={LIBRARY}", "true")
    return result.returncode == 0 and not result.stderr


def sizes(core, name):
    rows = harness.tables(core, "list", name)["allocation"]
    return {int(row["address"], 16): row["size"] for row in rows}


@unittest.skipUnless(has_jemalloc(), "there is no libjemalloc2")
class Jemalloc(harness.LiveTest):
    def setUp(self):
        super().setUp()
        self.program = self.compile("jemalloc", "jemalloc.c", "truth.c",
                                    flags=harness.FLAGS.split())

    def run_program(self, *arguments, settings=""):
        """A process that waits, and the truth about it."""
        path = self.path("truth")
        if os.path.exists(path):
            os.unlink(path)
        process = self.start([self.program, *arguments], truth=path, LD_PRELOAD=LIBRARY,
                             MALLOC_CONF=settings)
        return process, truth.Truth(path)

    def check(self, core, known):
        used, leaked = sizes(core, "used"), sizes(core, "leaked")
        expected = {**known.kept, **known.lost}
        self.assertEqual({start: used.get(start) for start in expected}, expected)
        self.assertEqual([hex(start) for start in known.freed if start in used], [])
        self.assertLess(len(used) - len(expected), MOST_UNLISTED)
        self.assertEqual({**known.lost, **leaked}, known.lost)
        self.assertLessEqual(len(known.lost) - len(leaked), len(known.lost) // LOST_BY_STALE_WORD)

    def test_what_is_used_and_leaked_is_as_the_program_says(self):
        for when in ("early", "late"):
            for settings in SETTINGS:
                with self.subTest(when=when, settings=settings):
                    process, known = self.run_program(when, settings=settings)
                    core = harness.snap(process, self.path(f"core-{process.pid}"))
                    harness.end(process)
                    self.check(core, known)

    def test_cores_of_gdb_and_of_the_kernel_are_read(self):
        process, known = self.run_program("late")
        self.check(harness.gcore(process, self.folder), known)
        self.check(harness.kernel_core(process, self.folder), known)


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
        rows = harness.tables(core, "bill")["use"]
        uses = {row["use"]: row for row in rows if row["memory"] == "jemalloc"}
        # What threads cache is not used, but jemalloc counts it; and the stacks of the caches,
        # which are its own: one for each of five threads at most.
        stacks = allocated - uses["used"]["mapped"] - uses["tcache"]["mapped"]
        self.assertIn(stacks, [STACK * count for count in range(1, 6)])
        self.assertEqual(sizes(core, "leaked"), {})


if __name__ == "__main__":
    unittest.main()
