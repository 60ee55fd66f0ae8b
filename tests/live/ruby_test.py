#!/usr/bin/env python3
"""
Inside Ruby: a program has ObjectSpace.dump_all write down where each object is,
of what class, and what it refers to; then some of them are dropped.
"""

import collections
import json
import os
import re
import shutil
import struct
import unittest

import broken
import harness

# Stacks, stale words and the heads of pages hold some, and what these lead to; how many differs
# from run to run.
MOST_HELD = 0.1
DROPPED = 8000

PROGRAM = f"""
require "objspace"
require "json"

class User
  attr_reader :name
  def initialize(i) @name = "user number #{{i}} with a long name" end
end
class Admin < User
  include Comparable
  def <=>(other) 0 end
end
module Deep
  class Thing
    def initialize(i) @a = @b = @c = i; @table = {{ i => "x" * (i % 90) }} end
  end
  Point = Struct.new(:x, :y)
end
module Generated; end
400.times do |i|
  Generated.module_eval "def made_#{{i}}(a) [a, a].map {{ |x| x.to_s + '#{{i}}' }} end"
end
class User
  define_method(:defined) {{ |x| [x].each {{ |y| y + 1 }} }}
  def self.build(i) new(i) end
end
class Dropped
  def initialize(i) @number, @other = i, i end
end
$users = (0...3000).map {{ |i| User.new(i) }}
$admins = (0...500).map {{ |i| Admin.new(i) }}
$things = (0...1000).map {{ |i| Deep::Thing.new(i) }}
$points = (0...700).map {{ |i| Deep::Point.new(i, i.to_s) }}
nameless = Class.new
$nameless = (0...50).map {{ nameless.new }}
$single = (0...50).map {{ |i| o = Object.new; def o.one() 1 end; o }}
$other = (0...200).map do |i|
  [2 ** 70 + i, i * 1.1e300, Rational(i, 7), /a#{{i}}/, 1..i, proc {{ i }},
   "symbol #{{i}}".to_sym, Time.now, Mutex.new, i.to_s.each_char]
end

def deep(n, &block) n == 0 ? block.call : deep(n - 1, &block) end
def drop() (0...{DROPPED}).each {{ |i| Dropped.new(i) }}; nil end

def walk(owner, iseq, rows)
  rows << [owner, iseq.path, iseq.label, iseq.first_lineno, ObjectSpace.memsize_of(iseq)]
  iseq.each_child {{ |child| walk(owner, child, rows) }}
end
codes = []
[Generated, User, Gem::Version, Gem::Requirement, User.singleton_class].each do |owner|
  (owner.instance_methods(false) + owner.private_instance_methods(false)).each do |name|
    method = owner.instance_method(name)
    next if method.name != method.original_name
    iseq = RubyVM::InstructionSequence.of(method)
    walk(owner.inspect, iseq, codes) if iseq
  end
end
File.write(ARGV[0] + ".iseqs", JSON.generate(codes))
4.times {{ GC.start }}
GC.disable
Thread.new {{ deep(50) {{ drop }} }}.join
deep(200) {{ nil }}
File.open(ARGV[0], "w") {{ |file| ObjectSpace.dump_all(output: file, full: true) }}
puts "ready"
$stdout.flush
$stdin.read(1)
"""

# The debugger takes a core while the collector runs; getppid() says when that begins.
COLLECTS = """
require "objspace"
class User
  def initialize(i) @name, @tags, @a, @b, @c = "user %d with a long name" % i, [i, "tag %030d" % i], 1, 2, 3 end
end
$users = (0...1000).to_h { |i| ["key %d" % i, User.new(i)] }
4.times { GC.start }
GC.disable
600.times { |i| Regexp.new("dropped #{i}.*") }
File.open(ARGV[0], "w") { |file| ObjectSpace.dump_all(output: file, full: true) }
GC.enable
Process.ppid
ARGV[1] == "compact" ? GC.compact : GC.start
"""


# Words that Ruby does not use, or that hold nothing, lead to objects of a class for each kind; some
# objects of each are in use.
PLANTED = 300
UNUSED = f"""
require "fiddle"
require "weakref"
KINDS = %w[Plain Popped Sliced Deleted Queued Sized Shifted Captured Small Value Key Ref Final Id Behind]
KINDS.each {{ |name| Object.const_set(name, Class.new {{ def initialize(i) @i = i end }}) }}
MAP, NOTHING = ObjectSpace::WeakMap.new, proc {{}}
$keys = Array.new({PLANTED}) {{ |i| "key #{{i}}" }}
$popped, $sliced, $shifted, $hash, $small = [], [], [], {{}}, []
$queue, $sized = Queue.new, SizedQueue.new(2 * {PLANTED})
$kept = KINDS.map {{ |name| Object.const_get(name).new(0) }}
$kept << ($text = "a text that is kept".freeze) << -("in" + "terned") << "kept_symbol".to_sym
MAP[$kept[9]] = $kept[10]
MAP[$kept[10]] = $kept[9]
$ref = WeakRef.new($kept[11])
ObjectSpace.define_finalizer($kept[12], NOTHING)
$kept[13].object_id
4.times {{ GC.start }}
GC.disable
def plant
  {PLANTED}.times do |i|
    Plain.new(i)
    $popped << Popped.new(i)
    $sliced << Sliced.new(i)
    $shifted << Shifted.new(i)
    $hash[i] = Deleted.new(i)
    $queue << Queued.new(i)
    $sized << Sized.new(i)
    MAP[$keys[i]] = Value.new(i)
    MAP[Key.new(i)] = $keys[i]
    ($refs ||= []) << WeakRef.new(Ref.new(i))
    ObjectSpace.define_finalizer(Final.new(i), NOTHING)
    Id.new(i).object_id
    "dropped_symbol_#{{i}}".to_sym
    captured = Captured.new(i)
    proc {{ captured }}
    $small << {{ 1 => i, 2 => Small.new(i) }}
    $small[-1].delete(2)
  end
  $sliced.slice!(0, {PLANTED})
  {PLANTED}.times do |i|
    $popped.pop
    $shifted.shift if i > 10
    $hash.delete(i) if i > 0
    $queue.pop
    $sized.pop
  end
  nil
end
# The words of these procs get the blocks of these texts, which are a word longer.
def plant_behind
  texts = Array.new({PLANTED}) do |i|
    "\\0" * 64 + [Fiddle.dlwrap(Behind.new(i))].pack("Q")[0, 7]
  end
  texts.each {{ |text| text.clear }}
  $procs = texts.map {{ |a| b = c = d = a; proc {{ [a, b, c, d] }} }}
  nil
end
def deep(n, &block) n == 0 ? block.call : deep(n - 1, &block) end
Thread.new {{ deep(50) {{ plant }} }}.join
deep(50) {{ plant_behind }}
deep(200) {{ nil }}
$kept << $small.size
puts "ready"
$stdout.flush
$stdin.read(1)
"""
# Of each kind, those that are in use.
IN_USE = {"Shifted": 11, "Deleted": 1}
# Where their layouts were tried, up to 3.1.
WEAK = {"Value", "Key", "Ref", "Final", "Id"}


class Truth:
    """What dump_all says: objects by address; those without a type are free."""

    def __init__(self, path):
        self.objects, self.free, self.roots = {}, set(), set()
        with open(path, encoding="utf-8", errors="replace") as file:
            for row in map(json.loads, file):
                if row["type"] == "ROOT":
                    self.roots.update(row.get("references", ()))
                elif row["type"] == "NONE":
                    self.free.add(row["address"])
                elif row["type"] != "SHAPE":
                    self.objects[row["address"]] = row

    def reachable(self):
        found, pending = set(), list(self.roots)
        while pending:
            address = pending.pop()
            if address in found or address not in self.objects:
                continue
            found.add(address)
            row = self.objects[address]
            pending += row.get("references", ())
            pending.append(row.get("class"))
        return found

    def class_of(self, row):
        """The name that heapcore is to give the object; None: one without a class."""
        if row["type"] == "IMEMO":
            return "imemo_" + row.get("imemo_type", "?")
        if row["type"] == "CLASS":
            return "Class" if "class" in row else None
        if row["type"] == "ICLASS":
            return "T_ICLASS"
        address = row.get("class")
        kind = self.objects.get(address)
        while kind and (kind.get("singleton") or kind["type"] == "ICLASS"):
            address = kind["superclass"]
            kind = self.objects.get(address)
        if kind is None:
            return None
        return kind.get("name") or f"#<Class:0x{int(address, 16):016x}>"


def rows(core, *words, name="allocation"):
    return harness.tables("-q", core, *words)[name]


def short(address):
    return f"{int(address, 16):#x}"


def addresses(core, *words):
    return {short(row["address"]) for row in rows(core, "list", *words)}


@unittest.skipUnless(shutil.which("ruby"), "there is no ruby")
class Ruby(harness.LiveTest):
    def core_of(self):
        core, truth = self.core_of_script("ruby", PROGRAM)
        return core, Truth(truth)

    def test_objects_have_the_names_of_their_classes(self):
        core, truth = self.core_of()
        found = {short(row["address"]): row for row in rows(core, "list", "used")}
        wrong = collections.Counter()
        for address, row in truth.objects.items():
            name = found[address]["name"] if address in found else "missed"
            wanted = truth.class_of(row)
            if name != wanted and (wanted or not name.startswith("T_")):
                wrong[row["type"], wanted, name] += 1
        self.assertGreater(len(truth.objects), 30000)
        self.assertEqual(wrong, collections.Counter())

    def test_code_is_counted_by_class_path_and_label(self):
        core, truth = self.core_of()
        found = harness.tables("-q", core, "summarize", "iseqs")
        labels = {(row["class"], row["path"], row["label"]): row for row in found["code label"]}
        wanted, bytes_wanted = collections.Counter(), collections.Counter()
        with open(self.path("truth.iseqs"), encoding="utf-8") as file:
            for owner, path, label, _, size in json.load(file):
                key = owner, path, re.sub(r"(?<![(0-9])[0-9]+", "N", label)
                wanted[key] += 1
                bytes_wanted[key] += size
        self.assertEqual(found["total code"][0]["iseqs"],
                         sum(row.get("imemo_type") == "iseq" for row in truth.objects.values()))
        self.assertGreater(len(wanted), 40)
        self.assertEqual({key: labels[key]["iseqs"] if key in labels else 0 for key in wanted},
                         dict(wanted))
        # Ruby leaves out a table of lines, and what malloc() rounds up.
        for key, size in bytes_wanted.items():
            self.assertGreater(labels[key]["bytes"], 0.8 * size, key)
        # What a program generates without end is one line.
        first = found["code"][0]
        self.assertEqual((first["class"], first["iseqs"], first["labels"]), ("Generated", 800, 2))
        self.assertLess(first["bytes"], 1.6 * sum(
            size for key, size in bytes_wanted.items() if key[0] == "Generated"))

    def check_blocks(self, core):
        """Blocks that are nothing else are counted by the class of their objects."""
        groups = rows(core, "summarize", "used", name="group")
        classes = {row["class"]: row["with_blocks"] - row["bytes"]
                   for row in rows(core, "objects", name="class")}
        blocks = {row["blocks_of"]: row["bytes"] for row in groups if row["blocks_of"]}
        self.assertGreater(blocks["imemo_iseq"], 0.1 * classes["imemo_iseq"])
        self.assertGreater(len(blocks), 10)
        for name, size in blocks.items():
            self.assertLessEqual(size, classes[name], name)
        unknown = sum(row["bytes"] for row in groups if row["group"] == "Unrecognized allocations")
        self.assertLess(unknown, 0.2 * sum(blocks.values()))

    def test_slots_are_used_or_free(self):
        core, truth = self.core_of()
        arenas = [row for row in rows(core, "list", "arenas", name="arena")
                  if row["allocator"] == "ruby" and row["kind"] != "ruby-transient"]
        used = sum(row["used"] for row in arenas)
        # 2.7 leaves one out.
        self.assertAlmostEqual(used + sum(row["free"] for row in arenas),
                               len(truth.objects) + len(truth.free), delta=1)
        # Those made since.
        self.assertLess(used - len(truth.objects), 1000)

    def test_objects_are_found_by_class_and_base(self):
        core, _ = self.core_of()
        for name, count in (("User", 3500), ("Admin", 500), ("Deep::Thing", 1000),
                            ("Deep::Point", 700), ("Dropped", DROPPED)):
            total = rows(core, "count", "used", name, name="total")[0]
            self.assertEqual((name, total["count"]), (name, count))
        comparable = addresses(core, "used", "Comparable")
        self.assertLess(addresses(core, "used", "Admin"), comparable)
        self.assertFalse(comparable & addresses(core, "used", "Deep::Thing"))
        self.check_blocks(core)

    def test_what_no_root_leads_to_is_garbage(self):
        core, truth = self.core_of()
        lost = addresses(core, "garbage") | addresses(core, "leaked") | \
            addresses(core, "heldbygarbage")
        # What stacks held may be gone since; that is young.
        old = {address for address in truth.reachable()
               if truth.objects[address].get("flags", {}).get("old")}
        self.assertGreater(len(old), 20000)
        self.assertEqual(lost & old, set())
        total = rows(core, "count", "garbage", "Dropped", name="total")[0]
        self.assertGreater(total["count"], DROPPED * (1 - MOST_HELD))
        for name in ("User", "Admin", "Deep::Thing", "Deep::Point"):
            total = rows(core, "count", "garbage", name, name="total")[0]
            self.assertEqual((name, total["count"]), (name, 0))

    def test_unused_words_and_weak_references_hold_nothing(self):
        core, _ = self.core_of_script("ruby", UNUSED)
        version = harness.run("ruby", "-e", "print RUBY_VERSION").stdout
        kinds = re.search("%w\\[(.*)\\]", UNUSED)[1].split()
        found = {name: rows(core, "count", "garbage", name, name="total")[0]["count"]
                 for name in kinds}
        used = {name: rows(core, "count", "used", name, name="total")[0]["count"]
                for name in kinds}
        for name in kinds:
            planted = PLANTED - IN_USE.get(name, 0)
            self.assertEqual((name, used[name]), (name, PLANTED + 1))
            self.assertLessEqual(found[name], planted, name)
            if version < "3.2" or name not in WEAK:
                self.assertGreater(found[name], planted * (1 - MOST_HELD), name)
        if version < "3.2":
            symbols = rows(core, "count", "garbage", "Symbol", name="total")[0]
            self.assertGreater(symbols["count"], PLANTED * (1 - MOST_HELD))
            self.assertLessEqual(symbols["count"], PLANTED)

    def check_collecting(self, function, calls, *words):
        script, truth, core = self.path("collects"), self.path(function), self.path("gcore")
        with open(script, "w", encoding="utf-8") as file:
            file.write(COLLECTS)
        result = harness.run(
            "gdb", "-nx", "-batch", "-ex", "set breakpoint pending on", "-ex", "set debuginfod enabled off",
            "-ex", "tbreak getppid", "-ex", "run", "-ex", f"break {function}", "-ex", f"ignore 2 {calls}",
            "-ex", "continue", "-ex", f"gcore {core}", "-ex", "kill", "--args", "ruby", script, truth, *words)
        if not os.path.exists(core):
            raise harness.Skipped(f"gdb took no core in {function}(): {result.stdout[-300:]}")
        truth = Truth(truth)
        old = {address for address in truth.reachable()
               if truth.objects[address].get("flags", {}).get("old")}
        self.assertGreater(len(old), 5000)
        sets = {which: {short(row["address"]): row["name"] for row in rows(core, "list", which)}
                for which in ("used", "garbage", "leaked")}
        self.assertEqual(old - set(sets["used"]), set())
        # What nothing refers to any more, because all who did know where it went, is garbage.
        lost = {address for which in ("leaked", "garbage")
                for address, name in sets[which].items() if name != "T_MOVED"}
        self.assertEqual(lost & old, set())
        # Ruby has a few of its own, but no text of an object is among them.
        self.assertLess(len(sets["leaked"]), 100)
        self.assertEqual([list(sets[which].values()).count("User") for which in ("used", "garbage")],
                         [1000, 0])
        if "compact" in words:
            self.check_moves(core, truth, [address for address in old if sets["used"][address] == "T_MOVED"])
        self.check_damage(core, truth.objects, set(sets["leaked"]))
        os.remove(core)

    def check_moves(self, core, truth, moved):
        """What was moved says where it is now, and as what."""
        moved = sorted(moved)[:200]
        answers = harness.ask("-q", core, *(word for address in moved
                                            for word in ("-c", f"describe {address}"))).stdout.split("\n\n")
        now = [re.search(r"left of the (.*) that is now at (0x\w+)$", answer) for answer in answers if answer]
        self.assertGreater(len(moved), 50)
        self.assertEqual([found and found[1] for found in now],
                         [truth.class_of(truth.objects[address]) for address in moved])
        self.assertEqual({found[2] for found in now} - addresses(core, "used"), set())
        offset = broken.Core(core).offset(int(moved[0], 16))
        with open(core, "r+b") as file:
            file.seek(offset + 8)
            file.write(struct.pack("<2Q", int(now[0][2], 16) + 8, 2 ** 64 - 8))
        answer = harness.ask("-q", core, "explain", moved[0]).stdout
        self.assertIn("T_MOVED", answer)
        self.assertNotIn("is now", answer)

    def check_damage(self, core, objects, leaked):
        """Without heads of pages, objects are not counted, and what they hold is not leaked."""
        words = broken.Core(core)
        with open(core, "r+b") as file:
            # Of 16 KiB, and from Ruby 3.2 on of 64.
            for page in {int(address, 16) & -size for address in objects for size in (0x4000, 0x10000)}:
                try:
                    offset = words.offset(page)
                    head, = struct.unpack("<Q", words.read(page, 8))
                    start = struct.unpack("<12Q", words.read(head, 96))
                except ValueError:
                    continue
                if any(page < word <= page + 0x200 for word in start):
                    file.seek(offset)
                    file.write(bytes(8))
        self.assertIn("no objects of ruby were found", harness.ask(core, "objects").stderr)
        self.assertIn("Ruby is loaded, but no pages",
                      harness.ask(core, "list", "leaked").stderr)
        self.assertLessEqual(addresses(core, "leaked"), leaked)

    @unittest.skipUnless(shutil.which("gdb"), "there is no gdb")
    def test_core_amid_a_collection_loses_nothing(self):
        for case in (("rb_gc_mark_movable", 20), ("onig_free", 200), ("rb_gc_location", 500, "compact")):
            with self.subTest(case=case):
                self.check_collecting(*case)

    def test_nothing_is_at_risk(self):
        core, _ = self.core_of()
        self.assertEqual(rows(core, "count", "atrisk", name="total")[0]["count"], 0)

    def test_side_file_brings_all_of_it_back(self):
        core, _ = self.core_of()
        answers = [harness.ask("--side-file", "-q", core, "list", words).stdout
                   for words in ("used", "garbage", "leaked", "free", "arenas")
                   for _ in range(2)]
        self.assertEqual(answers[::2], answers[1::2])


if __name__ == "__main__":
    unittest.main()
