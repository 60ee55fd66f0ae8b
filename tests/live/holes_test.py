"""
A core that is nearly all holes is read in no time.

The program reserves 128 GB and touches one page of it. The kernel's core has the middle of
it, as a hole around that page; the test adds the rest as holes at the core's end.
"""

import os
import resource
import struct
import subprocess
import sys
import unittest

import harness

SOURCE = os.path.join(harness.ROOT, "tests/cli/programs/reserved.c")
RESERVED = 1 << 37
LEAST = 1 << 35
# Of ELF files of 64 bits: where the program headers are, and what they hold.
HEADERS_AT, COUNT_AT, HEADER = 32, 56, struct.Struct("<IIQQQQQQ")
PT_LOAD = 1


def add_holes(path):
    """Give the core the large mappings that the kernel left out, as zeros."""
    with open(path, "r+b") as file:
        start = file.read(COUNT_AT + 2)
        place, = struct.unpack_from("<Q", start, HEADERS_AT)
        count, = struct.unpack_from("<H", start, COUNT_AT)
        end = os.path.getsize(path)
        for at in range(place, place + count * HEADER.size, HEADER.size):
            kind, flags, _, *addresses, size, memory, align = HEADER.unpack(
                os.pread(file.fileno(), HEADER.size, at))
            if kind == PT_LOAD and size == 0 and memory >= LEAST:
                os.pwrite(file.fileno(), HEADER.pack(
                    kind, flags, end, *addresses, memory, memory, align), at)
                end += memory
        file.truncate(end)


class Holes(harness.LiveTest):
    def test_what_was_reserved_and_never_touched_costs_nothing(self):
        program = self.compile("reserved", SOURCE, flags=["-O1"])
        core = harness.kernel_core(self.start([program]), self.folder)
        if os.path.getsize(core) < 1 << 28:
            self.skipTest("the kernel writes a cut core here")
        add_holes(core)
        self.assertGreaterEqual(os.path.getsize(core), RESERVED)
        commands = ["list leaked", "summarize used", "explain used", "bill", "waste", "gate"]
        words = [word for command in commands for word in ("-c", command)]
        # To read 128 GB of zeros takes a minute of processor time.
        result = subprocess.run(
            [harness.HEAPCORE, *words, core], capture_output=True, text=True, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (30, 30)))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("of size 2,008 (0x7d8)", result.stdout)
        self.assertIn("\n1 allocation uses", result.stdout)
        self.assertIn("Gate failed: 1 allocation leaked (2,008 bytes)", result.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
