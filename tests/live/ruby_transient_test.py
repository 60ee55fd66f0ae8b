#!/usr/bin/env python3
"""
The transient heap of Ruby up to 3.2: what young objects hold is theirs, and is dropped with them.
"""

import json
import shutil
import unittest

import harness

# Stacks and stale words hold some, and what these lead to.
MOST_HELD = 0.1
DROPPED = 4000
KEPT = 2000

PROGRAM = f"""
require "objspace"
exit 77 if RUBY_VERSION >= "3.3"
class Dropped
  def initialize(i) @number = i end
end
Many = Struct.new(:a, :b, :c, :d, :e)
4.times {{ GC.start }}
GC.disable
$arrays = (0...{KEPT}).map {{ |i| [i.to_s, "kept \#{{i}}", nil, i, [i]] }}
$hashes = (0...{KEPT}).map {{ |i| {{ a: "pair \#{{i}}", "b" => i.to_s }} }}
$structs = (0...{KEPT}).map {{ |i| Many.new(i.to_s, i, nil, :d, [i]) }}
def deep(n, &block) n == 0 ? block.call : deep(n - 1, &block) end
def drop() (0...{DROPPED}).each {{ |i| [Dropped.new(i), i, i, i, Dropped.new(i)] }}; nil end
Thread.new {{ deep(50) {{ drop }} }}.join
deep(200) {{ nil }}
File.open(ARGV[0], "w") {{ |file| ObjectSpace.dump_all(output: file) }}
puts "ready"
$stdout.flush
$stdin.read(1)
"""


def load(lines):
    rows = map(json.loads, lines)
    return {row["address"]: row for row in rows if "address" in row}


@unittest.skipUnless(shutil.which("ruby"), "there is no ruby")
class Transient(harness.LiveTest):
    def setUp(self):
        super().setUp()
        version = harness.run("ruby", "-e", "print RUBY_VERSION").stdout
        if version >= "3.3":
            self.skipTest("Ruby has no transient heap from 3.3 on")
        self.core, self.truth = self.core_of_script("ruby", PROGRAM)

    def total(self, *words):
        return harness.tables("-q", self.core, "count", *words)["total"][0]

    def test_what_young_objects_hold_is_theirs(self):
        with open(self.truth, encoding="utf-8", errors="replace") as file:
            wanted = load(file)
        text = harness.ask("-q", self.core, "export", "dump_all").stdout
        found = load(text.splitlines())
        classes = {row["address"]: row.get("name") for row in wanted.values()
                   if row["type"] == "CLASS"}
        compared = 0
        for address, row in wanted.items():
            is_young = not row.get("flags", {}).get("old")
            if row["type"] in ("ARRAY", "HASH", "STRUCT") and is_young \
                    and classes.get(row.get("class")) in ("Array", "Hash", "Many") \
                    and row.get("length", 5) == 5 and row.get("size", 2) == 2:
                compared += 1
                self.assertEqual(set(row.get("references", ())),
                                 set(found[address].get("references", ())), row)
                self.assertEqual(row["memsize"], found[address]["memsize"], row)
        self.assertGreater(compared, 3 * KEPT)

    def test_what_was_dropped_is_garbage(self):
        self.assertGreater(self.total("garbage", "Dropped")["count"],
                           2 * DROPPED * (1 - MOST_HELD))
        self.assertEqual(self.total("garbage", "Many")["count"], 0)
        self.assertEqual(self.total("leaked", "Many")["count"], 0)

    def test_pieces_are_used_or_free(self):
        arena = next(row for row in harness.tables("-q", self.core, "list", "arenas")["arena"]
                     if row["kind"] == "ruby-transient")
        self.assertGreater(arena["used"], 3 * KEPT + DROPPED * (1 - MOST_HELD))
        self.assertLess(arena["used_bytes"] + arena["free_bytes"], arena["size"])
        self.assertGreater(self.total("used", "%RubyArrayElements")["count"], KEPT)

    def test_side_file_has_the_arena_of_pieces(self):
        harness.ask("-q", "--side-file", self.core, "bill")
        harness.ask("-q", "--side-file", "--verify-side-file", self.core)

    def test_damage_does_no_harm(self):
        for path in harness.damage(self.core, self.path("damaged"), 10000):
            harness.ask("-q", path, "bill", expected=(harness.FINE, harness.INCOMPLETE))


if __name__ == "__main__":
    unittest.main()
