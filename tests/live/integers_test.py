#!/usr/bin/env python3
"""
Addresses that Python and Ruby keep as integers, as ctypes and Fiddle hand them
out, hold what is there. What they dropped is lost.
"""

import os
import shutil
import sys
import unittest

import harness

KEPT, LOST = 500, 400
# What is asked of malloc, which both sizes fill.
KEPT_SIZE, LOST_SIZE = 1000, 1208
# A register or a stack may hold the address that was handed out last.
MOST_HELD = LOST // 40

PYTHON = f"""
import ctypes, sys, threading
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
kept, table = [], {{}}

def work():
    for i in range({KEPT} // 2):
        kept.append(libc.malloc({KEPT_SIZE}))
        table[i] = libc.malloc({KEPT_SIZE})
    for _ in range({LOST}):
        libc.malloc({LOST_SIZE})

if "thread" in sys.argv:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
else:
    work()
print("ready", flush=True)
sys.stdin.read()
"""

RUBY = f"""
require "fiddle"
Pair = Struct.new(:first, :second)

def keep(kept, table)
  ({KEPT} / 4).times do |i|
    kept << Fiddle.malloc({KEPT_SIZE})
    kept << [Fiddle.malloc({KEPT_SIZE})]
    kept << Pair.new(i, Fiddle.malloc({KEPT_SIZE}))
    table[i] = Fiddle.malloc({KEPT_SIZE})
  end
end

def lose
  ({LOST} / 2).times do |i|
    [i, Fiddle.malloc({LOST_SIZE})]
    Pair.new(i, Fiddle.malloc({LOST_SIZE}))
  end
end

kept, table = [], {{}}
keep(kept, table)
lose
GC.start
100_000.times {{ Object.new }}
GC.start
puts "ready"
$stdout.flush
sleep
"""


def count(core, words, size):
    found = harness.addresses("-q", core, "enumerate", *words, "--size",
                              str(size))
    return len(found)


class Integers(harness.LiveTest):
    def check(self, what, *command):
        process = self.start(command)
        core = harness.snap(process, self.path("core"))
        harness.end(process)
        self.assertEqual(count(core, ["leaked"], KEPT_SIZE), 0)
        self.assertGreaterEqual(count(core, ["leaked"], LOST_SIZE),
                                LOST - MOST_HELD)
        held = harness.addresses("-q", core, "enumerate", "integeranchored",
                                 "--size", str(KEPT_SIZE))
        if not what:
            return
        # Others are held by stale words as well.
        self.assertGreater(len(held), KEPT // 2)
        # The program has others of that size.
        text = harness.ask("-q", core, "explain", "integeranchored", "--all", "--size",
                           str(KEPT_SIZE)).stdout
        self.assertGreater(text.count(f"held as an integer: {what} 0x"),
                           KEPT // 2)

    @unittest.skipUnless(os.path.exists("/usr/bin/python3"), "no python3")
    def test_of_the_systems_python(self):
        script = self.write(PYTHON)
        self.check("Python int", "/usr/bin/python3", script, "thread")
        # In low addresses, a short int is an address as it is.
        self.check(None, "/usr/bin/python3", script)

    @unittest.skipIf(sys.executable == "/usr/bin/python3", "done already")
    def test_of_the_python_that_runs_this(self):
        self.check("Python int", sys.executable, self.write(PYTHON), "thread")

    @unittest.skipUnless(shutil.which("ruby"), "there is no ruby")
    def test_of_ruby(self):
        self.check("Ruby Integer", "ruby", self.write(RUBY))

    def write(self, text):
        path = self.path("script")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


if __name__ == "__main__":
    unittest.main()
