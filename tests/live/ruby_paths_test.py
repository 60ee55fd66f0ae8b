#!/usr/bin/env python3
"""
How a program in Ruby reaches its objects: it evaluates the paths that heapcore says of its core,
and each must lead to the object that was asked for.
"""

import json
import shutil
import unittest

import harness

PROGRAM = r"""
require "objspace"
require "json"

class Session
  LIMITS = { rate: ["10 a second", "20 a second"] }
  @@all = []
  @cache = { "first" => "cached" }
  def initialize(number)
    @number = "number #{number}"
    @basket = ["article #{number}", "another #{number}"]
    @seen = { number => "seen #{number}" }
    @when = "when #{number}"
    @@all << self if number < 3
  end
end

class Small
  def initialize(number) @only = "only #{number}" end
end

class Derived < Small
  def initialize(number)
    super
    @more, @another, @last = "more", "another", "last #{number}"
  end
end

class Dynamic; end

def make_proc(text, number)
  list = ["listed #{text}"]
  hidden = "outer #{text}"
  [number].map { |one| hidden = "seen #{text}"; proc { |x; list| [text, hidden, one, list = x] } }[0]
end

def make_binding(held)
  also = ["also #{held}"]
  binding
end

module Deep
  module Inside
    NAMES = ["deep #{1}", "deep #{2}"]
    HIDDEN = ["hidden #{1}"]
    private_constant :HIDDEN
  end
  Point = Struct.new(:x, :y)
  Pair = Class.new(Struct.new(:left, :right))
  Many = Struct.new(:a, :b, :c, :d, :e)
end

module App
  SESSIONS = (0...300).to_h { |i| ["s#{i}", Session.new(i)] }
  SMALL = (0...100).map { |i| Small.new(i) }
  DERIVED = (0...100).map { |i| Derived.new(i) }
  DYNAMIC = Dynamic.new
  60.times { |i| DYNAMIC.instance_variable_set("@field#{i}", "value #{i}") }
  POINTS = (0...20).map { |i| Deep::Point.new("x #{i}", ["y #{i}"]) }
  PAIRS = (0...20).map { |i| Deep::Pair.new("left #{i}", "right #{i}") }
  MANY = Deep::Many.new("m a", "m b", "m c", "m d", "m e")
  RANGE = Range.new("from #{1}", "to #{2}")
  KEYS = { "text" => "by text", :name => "by symbol", 17 => "by number", -3 => "by negative",
           "quote\"d" => "by quoted", "back\\slash" => "by slash", "\#{no}" => "by hash",
           "gr\u00fc\u00df" => "by umlauts", "with space" => "by spaced", "\x00\xff".b => "by binary",
           [1, 2] => "by array", nil => "by nil", true => "by true", 2.5 => "by float",
           :"with space" => "by odd symbol", ("made " + ARGV[0]).to_sym => "by made symbol",
           ("m" + "ade").to_sym => "by dynamic", "utf".encode("UTF-16LE") => "by wide",
           "x" * 300 => "by long" }
  GONE = (0...40).to_h { |i| ["g#{i}", "kept #{i}"] }
  30.times { |i| GONE.delete("g#{i}") }
  DEFAULT = Hash.new("default #{1}")
  SMALL_HASH = { a: "small a", b: "small b", c: "small c" }
  SMALL_HASH.delete(:a)
  NAMELESS = Class.new { @own = "of a nameless #{1}" }.new
  IDENTITY = {}.compare_by_identity
  IDENTITY["same" + ARGV[0]] = "by identity"
  PROC = make_proc("in a proc", 3)
  BINDING = make_binding("in a binding #{1}")
  METHOD = Small.new("of a method").method(:itself)
  SINGLE = Object.new
  SINGLE.singleton_class.instance_variable_set(:@own, "of one #{1}")
  NOTED = "noted #{1}"
  NOTED.instance_variable_set(:@note, "a note #{1}")
  CHAIN = (0...300).inject(nil) { |inner, _| [inner] }
  SHIFTED = (0...100).map { |i| "shifted #{i}" }
  SHIFTED.shift(40)
end

# An object of a class for itself, which only what it is named after holds.
def held(name)
  Object.const_set("HeldBy#{name}", Class.new { def initialize; @bytes = "b" * 100; end; def go; end }).new
end

def proc_of(name)
  object = held(name)
  proc { object }
end

module Holders
  QUEUE = Queue.new
  QUEUE << 1 << held("Queue")
  SIZED = SizedQueue.new(9)
  SIZED << held("Sized")
  FINALIZED = Object.new
  ObjectSpace.define_finalizer(FINALIZED, proc_of("Finalizer"))
  at_exit(&proc_of("Ending"))
  trap("USR2", held("Signal").method(:go).to_proc)
  def self.start
    ready = Queue.new
    thread = Thread.new do
      Thread.current[:local] = held("Local")
      Thread.current.thread_variable_set(:variable, held("Variable"))
      ready << 1
      sleep
    end
    ready.pop
    thread
  end
  WAITING = start
  ENDED = Thread.new { held("Value") }
  ENDED.join
  SINGLE = Object.new
  SINGLE.define_singleton_method(:one, &proc_of("Single"))
  class Defined; end
  Defined.define_method(:another, &proc_of("Defined"))
  CURRIED = held("Curried").method(:go).to_proc.curry
  COMPOSED = proc { 1 } >> proc_of("Composed")
  def self.numbers
    object = held("Enumerator")
    Enumerator.new { |yielder| yielder << object }
  end
  ENUMERATOR = numbers
  LAZY = (1..3).lazy.map(&proc_of("Lazy"))
end

$users = [["user of a global"]]
$stdout.sync = true

def evaluate(path)
  path = path.gsub(/\.(@@\w+)/, '.class_variable_get(:\1)').gsub(/\.(@\w+)/, '.instance_variable_get(:\1)')
  object = eval(path)
  address = ObjectSpace.dump(object)[/"address":"(0x\h+)"/, 1]
  address ? { address: address.hex } : { value: object.inspect }
rescue Exception => error
  { error: error.message }
end

puts "ready"
$stdin.each_line { |path| puts JSON.generate(evaluate(path.chomp)) }
"""

# In the order of the program.
EXPECTED = [
    "App", "Deep::Inside", "Deep::Point", "Session.@@all", "Session.@cache", 'Session.@cache["first"]',
    "Session::LIMITS", "Session::LIMITS[:rate]", "Session::LIMITS[:rate][1]", "Deep::Inside::NAMES[1]",
    "Deep::Inside.const_get(:HIDDEN)[0]", 'App::SESSIONS["s7"].@basket[1]',
    'App::SESSIONS["s7"].@number', 'App::SESSIONS["s7"].@seen[7]', 'App::SESSIONS["s299"].@when',
    "App::SMALL[3].@only", "App::DERIVED[3].@only", "App::DERIVED[99].@last", "App::DYNAMIC.@field0",
    "App::DYNAMIC.@field59", "App::POINTS[19].x", "App::POINTS[19].y[0]", "App::PAIRS[3].right",
    "App::MANY.a", "App::MANY.e", "App::RANGE.begin", "App::RANGE.end", 'App::KEYS["text"]',
    "App::KEYS[:name]", "App::KEYS[17]", "App::KEYS[-3]", 'App::KEYS["quote\\"d"]',
    'App::KEYS["back\\\\slash"]', 'App::KEYS["\\#{no}"]', 'App::KEYS["gr\u00fc\u00df"]',
    'App::KEYS["with space"]', "App::KEYS[nil]", "App::KEYS[true]", "App::KEYS[:made]",
    "App::KEYS.values[9]", "App::KEYS.values[10]", "App::KEYS.keys[10]", "App::KEYS.values[13]",
    "App::KEYS.values[17]", "App::KEYS.values[18]", 'App::GONE["g33"]', "App::DEFAULT.default",
    "App::SMALL_HASH[:b]", "App::SMALL_HASH[:c]", "App::NAMELESS.class", "App::NAMELESS.class.@own",
    "App::IDENTITY.values[0]", "App::PROC.binding.local_variable_get(:text)",
    "App::PROC.binding.local_variable_get(:hidden)",
    "App::PROC.binding.local_variable_get(:list)[0]",
    "App::BINDING.local_variable_get(:held)", "App::BINDING.local_variable_get(:also)[0]",
    "App::METHOD.receiver", "App::METHOD.receiver.@only", "App::SINGLE.singleton_class",
    "App::SINGLE.singleton_class.@own", "App::NOTED.@note", "App::SHIFTED[59]", "$users", "$users[0][0]",
]
HELD = {
    "Queue": "QUEUE.<items>[1]", "Sized": "SIZED.<items>[0]",
    "Finalizer": "<finalizer>.binding.local_variable_get(:object)",
    "Ending": "<at_exit>.binding.local_variable_get(:object)", "Signal": "<trap>.<inside>.receiver",
    "Local": "WAITING[:local]", "Variable": "WAITING.thread_variable_get(:variable)",
    "Value": "ENDED.value",
    "Single": "SINGLE.singleton_class.instance_method(:one).<block>.binding.local_variable_get(:object)",
    "Defined": "Defined.instance_method(:another).<block>.binding.local_variable_get(:object)",
    "Curried": "CURRIED.<inside>[0].<inside>.receiver",
    "Composed": "COMPOSED.<inside>[0].binding.local_variable_get(:object)",
    "Enumerator": "ENUMERATOR.<inside>.<inside>.binding.local_variable_get(:object)",
    "Lazy": "LAZY.<inside>[0].<inside>.binding.local_variable_get(:object)",
}
# Steps of C code, the middles of long paths, and variables of running methods.
NO_EXPRESSIONS = (" ... ", "<")
# What is not reached so has the way of addresses.
NO_PATH = " -> "
OF_THE_PROGRAM = {"Session": 300, "Small": 101, "Derived": 100, "Dynamic": 1, "Deep::Point": 20,
                  "Deep::Many": 1, "Deep::Pair": 20}


def quoted(names):
    return ", ".join(f"'{name}'" for name in names)


@unittest.skipUnless(shutil.which("ruby"), "there is no ruby")
class Paths(harness.LiveTest):
    def setUp(self):
        super().setUp()
        script = self.path("program")
        with open(script, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        self.process = self.start(["ruby", script, "word"])
        self.core = harness.snap(self.process, self.path("core"))

    def evaluate(self, path):
        self.process.stdin.write(path + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def paths(self, where):
        """Address and path of the objects that have one, and how many there are."""
        rows = harness.tables(self.core, "sql", "SELECT address, path(address) AS path "
                              f"FROM allocation WHERE {where}")["result"]
        return [(int(str(row["address"]), 0), row["path"]) for row in rows
                if row.get("path") and NO_PATH not in row["path"]], len(rows)

    def check(self, paths):
        """All paths that are expressions lead to their object; return how many are."""
        right = 0
        for address, path in paths:
            if not any(part in path for part in NO_EXPRESSIONS):
                self.assertEqual((path, self.evaluate(path)), (path, {"address": address}))
                right += 1
        return right

    def test_all_that_the_program_made_has_a_path(self):
        paths, count = self.paths(f"class IN ({quoted(OF_THE_PROGRAM)})")
        self.assertEqual(count, sum(OF_THE_PROGRAM.values()))
        self.assertEqual(self.check(paths), count)
        texts = {path for _, path in paths}
        for path in ('SESSIONS["s299"]', "SMALL[99]", "DERIVED[0]", "DYNAMIC", "POINTS[19]", "MANY"):
            self.assertIn("App::" + path, texts)
        typed = ['App::SESSIONS["s299"]', "App::SMALL[99]", "App::DERIVED[0]", "App::DYNAMIC"]
        starts = {path: address for address, path in paths}
        self.assertEqual(harness.addresses_typed(self.core, typed, self.path("typed")),
                         [starts[path] for path in typed])

    def test_paths_lead_to_their_objects(self):
        paths, _ = self.paths("class IN ('Range', 'Module') "
                              "OR (class IN ('Class', 'Hash', 'Array') AND address % 3 = 0) "
                              "OR (class = 'String' AND address % 23 = 0)")
        self.assertGreater(self.check(paths), 100)

    def test_objects_of_each_kind_are_gone_into(self):
        places = [self.evaluate(path).get("address") for path in EXPECTED]
        paths, _ = self.paths(f"address IN ({', '.join(map(str, places))})")
        paths = dict(paths)
        self.assertEqual([paths.get(place) for place in places], EXPECTED)

    def test_what_c_code_holds_has_a_path(self):
        rows = harness.tables(self.core, "sql", "SELECT class, path(address) AS path FROM object "
                              "WHERE class LIKE 'HeldBy%'")["result"]
        self.assertEqual({row["class"]: row["path"].removeprefix("Holders::") for row in rows},
                         {"HeldBy" + name: path for name, path in HELD.items()})
        for path in "Holders::WAITING[:local]", "Holders::ENDED.value":
            self.assertIn("address", self.evaluate(path))

    def test_contents_are_left_out_on_request(self):
        address = hex(self.evaluate('App::SESSIONS["s7"]')["address"])
        said = harness.ask("-q", "--no-content", self.core, "explain", address).stdout
        self.assertIn("The program reaches it as App::SESSIONS[...]\n", said)

    def test_a_slim_core_has_the_same_paths(self):
        """All but for symbols that the program made, and numbers."""
        slim = self.path("slim.core")
        harness.ask("slim", "-q", self.core, "-o", slim)
        question = "SELECT address, class, path(address) AS path FROM object"
        whole, without = (harness.tables(core, "--no-content", "sql", question)["result"]
                          for core in (self.core, slim))
        self.assertEqual(len(whole), len(without))
        differ = [(row, other) for row, other in zip(whole, without) if row != other]
        self.assertEqual(differ, [])
        self.assertGreater(len([row for row in without if "App::" in (row["path"] or "")]), 1000)

    def test_the_best_way_is_in_the_words_of_the_program(self):
        address = self.evaluate('App::SESSIONS["s7"]')["address"]
        said = harness.ask("-q", self.core, "explain", hex(address)).stdout
        steps = [line for line in said.splitlines() if line.startswith("  ")]
        self.assertRegex(steps[0], r"^  1\. \w+: \w+ 0x")
        self.assertRegex(steps[-1], rf'-> App::SESSIONS\["s7"\]: \S+ 0x{address:x}, ')
        said = harness.ask("-q", self.core, "explain", hex(address), "--all").stdout
        self.assertRegex(said, r"\n  1\. .*(static|stack) address ")

    def test_the_tree_names_examples(self):
        rows = harness.tables(self.core, "tree", "--depth", "6", "--top", "50")["owner"]
        paths = [row["path"] for row in rows if row.get("path")]
        self.assertTrue([path for path in paths if path.startswith("App::")], paths)

    def test_damage_does_no_harm(self):
        for path in harness.damage(self.core, self.path("damaged"), 10000):
            harness.ask("-q", path, "tree", expected=(harness.FINE, harness.INCOMPLETE))
            # The name of the class may be damaged: then there is none of that name.
            harness.ask("-q", path, "explain", "used", "Session", "--limit", "20",
                        expected=(harness.FINE, harness.INCOMPLETE, harness.USAGE))


if __name__ == "__main__":
    unittest.main()
