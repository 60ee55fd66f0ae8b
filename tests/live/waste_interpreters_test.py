#!/usr/bin/env python3
"""
Programs in Python and Ruby make containers, and write down where the memory of
each is and how much of it is spare, as the interpreter itself tells or shows
it. heapcore has to find the same.
"""

import json
import os
import shutil
import subprocess
import unittest

import harness

# How many more a dict takes in before its size changes is seen on a copy that
# was made the same way.
PYTHON = """
import ctypes, sys

def word(address):
    return ctypes.c_size_t.from_address(address).value

def room(make):
    copy, count, size = make(), 0, 0
    size = sys.getsizeof(copy)
    while sys.getsizeof(copy) == size:
        copy[f"more {count}"] = count
        count += 1
    return count - 1

lists = [[None] * 100 for i in range(9)]
for i, one in enumerate(lists):
    for j in range(17 * i):
        one.append(j)
for one in lists:
    spare = sys.getsizeof(one) - sys.getsizeof([]) - 8 * len(one)
    print("%PythonListItems", hex(word(id(one) + 24)), spare)
makes = [lambda n=n, kind=kind: {kind(k): k for k in range(n)}
         for kind, n in ((str, 90), (str, 150), (str, 700), (int, 90),
                         (int, 600))]
dicts = [make() for make in makes]
for make, one in zip(makes, dicts):
    entry = 16 if "0" in one else 24
    print("%PythonDictEntries", hex(word(id(one) + 32)), entry * room(make))
print("ready", flush=True)
sys.stdin.read()
"""
# A Hash does not tell its capacity: a power of two. Its table is part of it from
# 3.3 on, where slots hold texts of up to 616 bytes, too.
RUBY = """
require "fiddle"
require "objspace"

def word(address)
  Fiddle::Pointer.new(address)[0, 8].unpack1("Q")
end

arrays = (1..9).map { |i| (0...(20 * i)).each_with_object([]) { |j, a| a << j } }
strings = (1..9).map { |i| s = String.new(capacity: 700 * i); s << "x" * (420 * i) }
hashes = [20, 33, 100, 300].map { |n| Hash[(0...n).map { |k| [k, k] }] }
# Ruby keeps what young objects hold in memory of its own, up to 3.2.
4.times { GC.start }
slot = ObjectSpace.memsize_of([])
arrays.each do |one|
  spare = ObjectSpace.memsize_of(one) - slot - 8 * one.size
  puts "%RubyArrayElements #{word(Fiddle.dlwrap(one) + 32).to_s(16)} #{spare}"
end
strings.each do |one|
  spare = ObjectSpace.memsize_of(one) - slot - one.bytesize - 1
  puts "%RubyStringText #{word(Fiddle.dlwrap(one) + 24).to_s(16)} #{spare}"
end
hashes.each do |one|
  power = 1
  power *= 2 while power < one.size
  table = Fiddle.dlwrap(one) + 24
  table = word(table - 8) if RUBY_VERSION < "3.3"
  puts "%RubyHashEntries #{word(table + 48).to_s(16)} #{24 * (power - one.size)}"
end
puts "ready"
STDOUT.flush
STDIN.read
"""


def told(process):
    """What the program says: pattern, address and spare bytes."""
    for line in process.said:
        name, address, spare = line.split()
        yield name, int(address, 16), int(spare)


def spare_bytes(core, addresses):
    """Of each allocation, with its type."""
    words = ["-q", "--format", "ndjson"]
    for address in addresses:
        words += ["-c", f"waste spare allocation {address:x}"]
    output = harness.ask(*words, core).stdout
    found, row = [], None
    for line in map(json.loads, output.splitlines()):
        if line["row"] == "waste by type":
            row = line
        elif line["row"] == "total waste":
            found.append((row["kind"] if row else None, line["bytes"]))
            row = None
    return found


class InterpretersTest(harness.LiveTest):
    def check(self, command):
        process = self.start(command)
        truth = list(told(process))
        found = spare_bytes(harness.gcore(process, self.folder),
                            [address for _, address, _ in truth])
        self.assertEqual(len(found), len(truth))
        for (name, address, spare), one in zip(truth, found):
            self.assertEqual(one, (name if spare else None, spare),
                             f"{name} {address:x}")
        return len(truth)

    def test_python(self):
        python = "/usr/bin/python3"
        if not os.path.exists(python):
            self.skipTest("no python3 of the system")
        version = subprocess.run(
            [python, "-c", "import sys; print(*sys.version_info[:2])"],
            check=True, capture_output=True, text=True).stdout.split()
        if not (3, 11) <= tuple(map(int, version)) <= (3, 13):
            self.skipTest("dicts are laid out in another way")
        self.assertEqual(self.check([python, "-c", PYTHON]), 14)

    def test_ruby(self):
        ruby = shutil.which("ruby")
        if not ruby:
            self.skipTest("no ruby")
        self.assertEqual(self.check([ruby, "-e", RUBY]), 22)


if __name__ == "__main__":
    unittest.main()
