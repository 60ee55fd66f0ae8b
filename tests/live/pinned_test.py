"""
A Ruby program that frees every second one of 100,000 blocks stays as large as it
was: `fragmentation` names the other half, which pins the pages.
"""

import shutil
import sys
import unittest

import harness

BLOCKS = 100_000
ASKED = 1024
# Of a block of malloc, and of the room for it between two others.
SIZE = 0x408
ROOM = SIZE + 8
# What the interpreter may have allocated of the same size.
MOST_OTHERS = 1000

PROGRAM = f"""
require "fiddle"
blocks = Array.new({BLOCKS}) {{ Fiddle.malloc({ASKED}) }}
blocks.each_with_index {{ |block, i| Fiddle.free(block) if i.odd? }}
puts "ready"
$stdout.flush
sleep
"""


@unittest.skipUnless(shutil.which("ruby"), "there is no ruby")
class HalfFreed(harness.LiveTest):
    def test_what_is_left_of_freed_neighbours_pins_their_memory(self):
        core = harness.gcore(self.start(["ruby", "-e", PROGRAM]), self.folder)
        tables = harness.tables(core, "fragmentation")
        bill = harness.tables(core, "bill")["pinned"][0]
        total, first = tables["total free"][0], tables["pinning"][0]
        self.assertEqual(first["size"], SIZE)
        self.assertEqual(first["kind"],
                         "unrecognized")
        self.assertGreaterEqual(first["allocations"], BLOCKS // 2)
        self.assertLess(first["allocations"], BLOCKS // 2 + MOST_OTHERS)
        self.assertGreater(first["pinned"], 0.98 * BLOCKS // 2 * ROOM)
        self.assertGreater(first["alone"], 0.98 * first["pinned"])
        self.assertLessEqual(first["pinned"], bill["pinned"])
        self.assertLessEqual(first["allocations"], bill["allocations"])
        self.assertLessEqual(bill["pinned"], total["pinned"])
        self.assertLess(total["given_back"], total["pinned"] / 4)


if __name__ == "__main__":
    sys.exit(unittest.main())
