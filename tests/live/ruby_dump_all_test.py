#!/usr/bin/env python3
"""
export dump_all: a program in Ruby writes ObjectSpace.dump_all itself, and what heapcore writes of
its core is compared to that, object by object.
"""

import collections
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import harness

PROGRAM = r"""
require "objspace"
require "set"

class User
  def initialize(i) @name = "user number #{i} with a long name"; @tags = [i.to_s, :tag, nil] end
  def self.build(i) new(i) end
end
module Mixed; def mixed() 1 end; end
class Admin < User
  include Mixed
  @@all = []
  def initialize(i) super; @a = @b = @c = @d = i.to_s; @@all << self end
end
class Text < String; end
Point = Struct.new(:x, :y)
Many = Struct.new(:a, :b, :c, :d, :e)
nameless = Class.new { def self.x() 1 end }
class User; define_method(:defined) { nameless } end

$users = (0...500).to_h { |i| ["u#{i}", User.new(i)] }
$admins = (0...100).map { |i| Admin.new(i) }
$points = (0...50).map { |i| [Point.new(i.to_s, [i]), Many.new(1, i.to_s, 2, 3, [])] }
$procs = (0...50).map { |i| text = "captured #{i}"; proc { text } }
$lambdas = (0...50).map { |i| list = [i]; lambda { |x| list << x } }
$methods = (0...20).map { |i| $users["u#{i}"].method(:defined) }
$single = (0...20).map { o = Object.new; def o.one() 1 end; o }
$nameless = (0...5).map { nameless.new }
$noted = (0...20).map { |i| t = Text.new("t#{i}"); t.instance_variable_set(:@note, "note #{i}"); t }
$lists = (0...20).map { |i| t = [i]; t.instance_variable_set(:@note, "note #{i}"); t }
$shared = (0...20).map { |i| s = "shared #{i} " * 20; [s, s[10..], s.dup] }
$big = (0...200).map(&:to_s)
$part = $big[10..]
$other = (0...20).map do |i|
  [2 ** 70 + i, i * 1.1e300, Rational(i, 7), Complex(i, 2.5e300), /a#{i}/, "a".."b#{i}",
   "symbol #{i}".to_sym, i.to_s.each_char, "abc#{i}".match(/b/), Set.new([i.to_s]), Random.new(i),
   Hash.new { |h, k| h[k] = i }, Hash.new("default #{i}"), { a: i.to_s, b: [i] }, "gr\u00fc\u00df #{i}",
   {}.compare_by_identity.merge!("k" => i.to_s), "\xff#{i}".b, "line\n\"#{i}\"\t\0"]
end
$file = File.open($0)
class Wide
  211.times { |i| define_method("wide_#{i}") { i } }
  223.times { |i| const_set("WIDE_#{i}", i) }
end
ObjectSpace.trace_object_allocations_start
def made(i) ["made #{i}", i.to_s] end
$traced = (0...300).map { |i| made(i) }
ObjectSpace.trace_object_allocations_stop
4.times { GC.start }
GC.disable
File.open(ARGV[0], "w") { |file| ObjectSpace.dump_all(output: file, full: true) }
File.write(ARGV[0] + ".symbols", Symbol.all_symbols.size)
puts "ready"
$stdout.flush
$stdin.read(1)
"""

# All of their references are known. What C code has, and the stacks of threads, are searched.
EXACT = ("ARRAY", "BIGNUM", "COMPLEX", "FLOAT", "HASH", "MATCH", "OBJECT", "RATIONAL", "REGEXP",
         "STRING", "STRUCT", "SYMBOL")
# Caches of calls change between the dump and the core.
NEARLY = ("CLASS", "MODULE", "ICLASS", "IMEMO")
MOST_OTHERS = 0.03
COMPARED = {
    "STRING": ("embedded", "shared", "fstring", "bytesize", "encoding"),
    "SYMBOL": ("bytesize",), "ARRAY": ("length", "shared"), "HASH": ("size", "default"),
    "CLASS": ("superclass", "name"), "MODULE": ("superclass", "name"), "ICLASS": ("superclass",),
    "OBJECT": ("ivars",), "DATA": ("struct",), "IMEMO": ("imemo_type",),
}
FOR_ALL = ("type", "frozen", "slot_size")
JQ = {
    "of each type": 'select(.address) | .type',
    "of class User": 'select(.type == "OBJECT" and .class == $class) | .address',
    "old": 'select(.flags.old) | .address',
    "that refer to it": 'select(.references and (.references | index($user))) | .address',
}


def load(lines):
    """Objects by address, and what the roots refer to."""
    objects, roots = {}, set()
    for row in map(json.loads, lines):
        if row["type"] == "ROOT":
            roots.update(row.get("references", ()))
        elif row["type"] not in ("NONE", "SHAPE"):
            objects[row["address"]] = row
    return objects, roots


def references(row, objects):
    """Without those to what is no object any more, and to itself, which tell nothing."""
    found = set(row.get("references", ()))
    # Up to 3.1, the first of the internal objects is taken for a class.
    if row["type"] == "IMEMO" and row["imemo_type"] != "callcache":
        found.add(row.get("class"))
    return {address for address in found if address in objects and address != row["address"]}


def reachable(objects, roots):
    found, pending = set(), list(roots)
    while pending:
        address = pending.pop()
        if address in found or address not in objects:
            continue
        found.add(address)
        pending += objects[address].get("references", ())
        pending.append(objects[address].get("class"))
    return found


@unittest.skipUnless(shutil.which("ruby"), "there is no ruby")
class DumpAll(harness.LiveTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="heapcore-test-")
        cls.addClassCleanup(folder.cleanup)
        script, cls.truth, cls.core = (os.path.join(folder.name, name)
                                       for name in ("program", "truth", "core"))
        with open(script, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        with harness.started(["ruby", script, cls.truth]) as process:
            harness.snap(process, cls.core)
        with open(cls.truth, encoding="utf-8", errors="replace") as file:
            cls.wanted, cls.roots = load(file)
        cls.found, cls.found_roots = cls.exported()

    @classmethod
    def exported(cls, *words, options=()):
        text = harness.ask("-q", *options, cls.core, "export", "dump_all", *words).stdout
        return load(text.splitlines())

    def test_objects_are_as_the_program_says(self):
        self.assertGreater(len(self.wanted), 10000)
        self.assertEqual(set(self.wanted) - set(self.found), set())
        wrong = collections.Counter()
        has_superclass = any("superclass" in row for row in self.wanted.values())
        for address, row in self.wanted.items():
            keys = FOR_ALL + COMPARED.get(row["type"], ())
            if row["type"] != "IMEMO":
                keys += ("class",)
            # Up to 2.7 it is left out, and a singleton class has a name, that of Class.
            if not has_superclass:
                keys = set(keys) - {"superclass", "name"}
            for key in keys:
                # What programs cannot see may be of the class that its name is.
                if row.get(key) != self.found[address].get(key) and (key == "type" or "class" in row):
                    wrong[row["type"], key] += 1
        self.assertEqual(wrong, collections.Counter())

    def test_values_are_the_texts(self):
        wrong, compared = [], 0
        for address, row in self.wanted.items():
            if row["type"] in ("STRING", "SYMBOL") and row.get("value"):
                compared += 1
                if self.found[address].get("value") != row["value"]:
                    wrong.append((row, self.found[address]))
            elif row["type"] == "FLOAT":
                # As digits, which Ruby writes more or less of.
                pair = [f"{float(text):g}" for text in (row["value"], self.found[address]["value"])]
                self.assertEqual(*pair)
        self.assertGreater(compared, 4000)
        self.assertEqual(wrong, [])
        found, _ = self.exported(options=("--no-content",))
        self.assertEqual([row for row in found.values() if "value" in row], [])

    def test_references_are_those_that_ruby_marks(self):
        count, wrong, examples = collections.Counter(), collections.Counter(), {}
        for address, row in self.wanted.items():
            wanted = references(row, self.wanted)
            given = references(self.found[address], self.wanted)
            count[row["type"]] += 1
            if wanted != given:
                wrong[row["type"]] += 1
                examples[row["type"]] = (row, wanted - given, given - wanted)
        for kind in EXACT:
            self.assertEqual((kind, wrong[kind]), (kind, 0), examples.get(kind))
        for kind in NEARLY:
            self.assertLess(wrong[kind], MOST_OTHERS * count[kind] + 3, (kind, examples.get(kind)))

    def test_it_says_where_objects_were_made(self):
        keys = ("file", "line", "method", "generation")
        # In the place of what died since, Ruby takes another object for the one that was traced.
        traced = {address: row for address, row in self.wanted.items()
                  if "line" in row and row["type"] in ("ARRAY", "STRING")}
        self.assertGreater(len(traced), 900)
        for address, row in traced.items():
            self.assertEqual([self.found[address].get(key) for key in keys],
                             [row.get(key) for key in keys], (row, self.found[address]))
        self.assertEqual([row for address, row in self.found.items()
                          if "generation" in row and address in self.wanted
                          and "generation" not in self.wanted[address]], [])

    def test_roots_lead_to_all_that_is_in_use(self):
        old = {address for address in reachable(self.wanted, self.roots)
               if self.wanted[address].get("flags", {}).get("old")}
        self.assertGreater(len(old), 10000)
        missed = old - reachable(self.found, self.found_roots)
        self.assertEqual([self.wanted[address] for address in list(missed)[:3]], [])

    def test_memory_is_about_what_ruby_says(self):
        for kind in ("STRING", "OBJECT", "SYMBOL", "FLOAT"):
            wanted = sum(row.get("memsize", 0) for row in self.wanted.values()
                         if row["type"] == kind)
            given = sum(self.found[address]["memsize"] for address, row in self.wanted.items()
                        if row["type"] == kind)
            self.assertTrue(0.8 * wanted < given < 1.5 * wanted, (kind, wanted, given))

    def words(self, address, count):
        said = harness.ask("-q", self.core, "dump", hex(address), str(8 * count)).stdout
        return [int(word, 16) for line in said.splitlines() for word in line.split()[1:]]

    def counts(self, pattern, word, shift=0):
        """How many entries each table has, which that word says."""
        return [self.words(table, word + 1)[word] >> shift for table in
                harness.addresses("-q", self.core, "enumerate", "used", "%" + pattern)]

    def test_tables_of_the_interpreter_are_named(self):
        with open(self.truth + ".symbols", encoding="ascii") as file:
            self.assertEqual(self.counts("RubySymbols", 2), [int(file.read())])
        frozen = sum(bool(row.get("fstring")) for row in self.wanted.values())
        self.assertEqual(self.counts("RubyFrozenStrings", 2), [frozen])
        (objects,) = self.counts("RubyGenericVariables", 2)
        self.assertGreaterEqual(objects, 40)
        by_name = self.counts("RubyIdTable", 0, 32)
        self.assertEqual([by_name.count(of_wide) for of_wide in (211, 223)], [1, 1])

    def test_a_set_narrows_it(self):
        users, _ = self.exported("used", "User")
        self.assertEqual({row["type"] for row in users.values()}, {"OBJECT"})
        self.assertEqual(len(users), 600)

    @unittest.skipUnless(shutil.which("jq"), "there is no jq")
    def test_queries_of_jq_find_the_same(self):
        path = self.path("exported")
        harness.ask("-q", self.core, "export", "dump_all", "-o", path)
        user = next(address for address, row in self.wanted.items() if row.get("name") == "User")
        one = next(address for address, row in self.wanted.items() if row.get("class") == user)
        for what, query in JQ.items():
            said = []
            for dump in (self.truth, path):
                run = subprocess.run(["jq", "-r", "--arg", "class", user, "--arg", "user", one,
                                      query, dump], check=True, capture_output=True, text=True)
                lines = set(run.stdout.split())
                said.append(lines if what == "of each type" else lines & set(self.wanted))
            with self.subTest(what=what):
                self.assertGreater(len(said[0]), 0)
                self.assertEqual(said[0] - {"NONE", "SHAPE"}, said[1])

    def test_damage_does_no_harm(self):
        for path in harness.damage(self.core, self.path("damaged"), 10000):
            text = harness.ask("-q", path, "export", "dump_all",
                               expected=(harness.FINE, harness.INCOMPLETE)).stdout
            self.assertGreater(len(load(text.splitlines())[0]), 1000)

    def test_without_ruby_it_is_refused(self):
        with harness.ended(harness.launch(["sleep", "1000"])) as process:
            core = harness.snap(process, self.path("other"))
        said = harness.ask("-q", core, "export", "dump_all", expected=(harness.USAGE,)).stderr
        self.assertIn("has none", said)


if __name__ == "__main__":
    unittest.main()
