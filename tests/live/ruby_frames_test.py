#!/usr/bin/env python3
"""
The methods and blocks of Ruby that threads and fibers are in, and their variables: as the program
says by Thread#backtrace_locations, by caller_locations in each fiber and by what it wrote down
itself.
"""

import json
import shutil
import unittest

import harness

PROGRAM = r"""
require "json"
require "objspace"

def place(object) JSON.parse(ObjectSpace.dump(object))["address"] rescue nil end

class Session
  def handle(request, *rest, limit: 3, **options)
    large, below, text = 123456789012, -7, "gr\u00fc\u00dfe"
    half, nothing, yes, name = 2.5, nil, true, :a_name
    items = [1,
             2, 3]
    $places["items"] = place(items)
    $places["request"] = place(request)
    $places["rest"] = place(rest)
    begin
      raise "no"
    rescue RuntimeError
      items.each do |item|
        twice = item * 2
        wait(items, twice) if item == 2
      end
    ensure
      yes
    end
  end

  KEPT = ["kept by a constant of the class that is self of build"]
  def self.build(count)
    $places["kept"] = place(KEPT)
    yield new
  end
end

module Deep
  class Worker < Session
    def run
      Session.build(1) { |session| session.handle("name", 1, 2, key: "value") }
    end
    define_method(:made) do |number|
      [number].map { |one| run }
    end
  end
end

def wait(items, number)
  $waits = true
  # Some lines, so that instructions are many.
  a = number + 1
  b = a + 2; c = b + 3; d = c + 4; e = d + 5; f = e + 6; g = f + 7; h = g + 8
  i = h + a + b + c + d + e + f + g; j = i + a + b + c + d + e + f + g + h
  $last = [a, b, c, d, e, f, g, h, i, j].sum + [a, b, c, d, e, f, g, h, i, j].max
  $last += [a, b, c, d, e, f, g, h, i, j].sum + [a, b, c, d, e, f, g, h, i, j].min
  sleep
end

def dive(depth)
  if depth > 0
    [dive(depth - 1),
     0]
  else
    sleep
  end
end

class Waiter
  def wait(depth)
    if depth > 0
      [depth].each { |one| wait(one - 1) }
    else
      stop
    end
  end

  def stop
    $fibers << caller_locations(0).map { |at| [at.label, at.path, at.lineno] } + [["", "", __LINE__ + 1]]
    Fiber.yield
  end
end

$places, $fibers = {}, []
ended, unborn = Fiber.new { 1 }, Fiber.new { 2 }
ended.resume
waiting = (0..3).map { |depth| Fiber.new { held = "held by a fiber alone"; $places["held"] = place(held)
                                           Waiter.new.wait(depth); held } }
waiting.each(&:resume)
by_thread = Thread.new { fiber = Fiber.new { Waiter.new.wait(5) }; fiber.resume; sleep }
numbers = [1, 2, 3].each
numbers.next
threads = [Thread.new { Deep::Worker.new.made(5) }, Thread.new { dive(20) }]
fibers = Thread.new { Fiber.new { inside = "in a fiber"; dive(2) }.resume }
threads << fibers
Thread.pass until $waits && by_thread.status == "sleep" && threads.all? { |thread| thread.status == "sleep" }
truth = threads.map do |thread|
  thread.backtrace_locations.map { |at| [at.label, at.path, at.lineno] }
end
File.write(ARGV[0], JSON.generate([truth, $fibers, $places]))
puts "ready"
$stdout.flush
$stdin.read(1)
"""

VALUES = {"large": "123456789012", "below": "-7", "text": '"gr\u00fc\u00dfe"', "half": "2.5",
          "nothing": "nil", "yes": "true", "name": ":a_name", "rest": "2 items",
          "options": "1 item", "items": "3 items", "request": '"name"', "limit": "3"}
CLASSES = {"large": "Integer", "text": "String", "half": "Float", "nothing": "NilClass",
           "yes": "TrueClass", "name": "Symbol", "items": "Array", "options": "Hash"}
# Innermost first, the methods in C among them.
FUNCTIONS = ["Kernel#sleep", "Object#wait", "block in Session#handle", "Array#each",
             "rescue in Session#handle", "Session#handle", "block in Deep::Worker#run",
             "Session.build", "Deep::Worker#run", "block (2 levels) in <class:Worker>", "Array#map",
             "block in <class:Worker>", "block in <main>"]


def label(function):
    """As Ruby has it up to 3.3: without the class."""
    head, separator, name = function.rpartition(" in ")
    if not name.startswith("<"):
        name = name.replace(".", "#").rpartition("#")[2]
    return head + separator + name


def read_frames(core, *words):
    """By thread, or by the fiber before them."""
    answer = harness.ask("-q", "--format", "json", core, "backtrace", *words).stdout
    frames, variables, fiber = {}, {}, None
    for table in json.loads(answer)["tables"]:
        for row in table["rows"]:
            fiber = row if table["name"] == "fiber" else fiber
            whose = fiber["fiber"] if fiber else row.get("thread")
            if table["name"] == "frame" and row["language"] == "ruby":
                if not fiber or fiber["state"] == "waiting":
                    frames.setdefault(whose, []).append(row)
            elif table["name"] == "local":
                variables.setdefault((whose, row["number"]), {})[row["name"]] = row
    return frames, variables


def by_label(frames):
    return [[(label(row["function"]), row.get("source"), row.get("line")) for row in rows]
            for rows in frames.values()]


def address(value):
    return int(value, 16) if isinstance(value, str) else value


@unittest.skipUnless(shutil.which("ruby"), "there is no ruby")
class Frames(harness.LiveTest):
    def cored(self):
        core, path = self.core_of_script("ruby", PROGRAM)
        with open(path, encoding="utf-8") as file:
            return core, *json.load(file)

    def test_frames_are_those_of_the_program(self):
        core, truth, fibers, places = self.cored()
        frames, variables = read_frames(core, "--locals")
        found = by_label(frames)
        if not any(row[0].startswith("rescue in ") for rows in truth for row in rows):
            # From 3.4 on, the place in them is that of the method around.
            found = [[row if not last[0].startswith("rescue in ") else (row[0], *last[1:])
                      for last, row in zip([("",), *rows], rows)
                      if not row[0].startswith("rescue in ")] for rows in found]
        for wanted in truth:
            # What is in C has the place of what called it in Ruby.
            labels = [label(frame[0]) for frame in wanted]
            same = [frames for frames in found if [frame[0] for frame in frames] == labels]
            self.assertEqual(len(same), 1, (labels, [[frame[0] for frame in frames]
                                                     for frames in found]))
            for frame, expected in zip(same[0], wanted):
                if frame[1]:
                    self.assertEqual(frame[1:], tuple(expected[1:]), expected)
        answer = harness.ask("-q", core, "describe", "used", "%RubyStack").stdout
        self.assertIn("It is the values and frames of the object at 0x", answer)
        self.check_the_fibers(core, fibers, places.pop("held"))
        answer = harness.ask("-q", core, "explain", places.pop("kept")).stdout
        self.assertIn("The program reaches it as Session::KEPT\n", answer)
        self.check_the_deep_one(core, frames, variables, places)

    def check_the_fibers(self, core, truth, held):
        """They wrote that down one line before they waited in Fiber.yield."""
        frames, variables = read_frames(core, "--fibers", "--locals")
        found = [rows[1:] for rows in by_label(frames) if rows[0][0] == "yield"]
        expected = []
        for *rows, place in truth:
            rows[0][2] = place[2]
            expected.append([(label(name), path, line) for name, path, line in rows])
        # Array#each is in C, or in Ruby with the place of what called it.
        self.assertEqual(*(sorted([row for row in rows if row[0] != "each"] for rows in all_rows)
                           for all_rows in (found, expected)))
        # The enumerator's, and the first ones of two threads.
        self.assertGreaterEqual(len(frames), len(truth) + 2)
        place = f"0x{int(held, 16):x}"
        self.assertIn(int(held, 16), [address(row["address"]) for known in variables.values()
                                      for name, row in known.items() if name == "held"])
        answer = harness.ask("-q", core, "explain", place).stdout
        self.assertIn("The program reaches it as block (2 levels) in <main>.<locals>.held", answer)
        self.assertIn("  1. block (2 levels) in <main>.<locals>.held: String 0x", answer)
        self.assertIn("stack address 0x",
                      harness.ask("-q", core, "explain", place, "--all").stdout)

    def check_the_deep_one(self, core, frames, variables, places):
        thread, rows = next((thread, rows) for thread, rows in frames.items()
                            if len(rows) > 1 and rows[1]["function"] == "Object#wait")
        self.assertEqual([row["function"] for row in rows], FUNCTIONS)
        number = FUNCTIONS.index("Session#handle")
        known = variables[thread, number]
        self.assertEqual({name: known[name].get("value") for name in VALUES}, VALUES)
        self.assertEqual({name: known[name]["class"] for name in CLASSES}, CLASSES)
        self.assertEqual({name: address(known[name]["address"]) for name in places},
                         {name: int(place, 16) for name, place in places.items()})
        block = variables[thread, FUNCTIONS.index("block in Session#handle")]
        self.assertEqual({name: (row["class"], row.get("value")) for name, row in block.items()},
                         {"self": ("Session", None),
                          "item": ("Integer", "2"), "twice": ("Integer", "4")})
        row = harness.tables("-q", core, "sql", "SELECT path(address) AS path FROM allocation "
                             f"WHERE address = {address(known['options']['address'])}")["result"][0]
        self.assertEqual(row["path"], "Session#handle.<locals>.options")

    def test_contents_are_left_out_on_request(self):
        core, *_ = self.cored()
        text = harness.ask("-q", "--no-content", core, "backtrace", "--locals").stdout
        self.assertIn("request = String at 0x", text)
        self.assertNotIn('"name"', text)

    def test_damage_does_no_harm(self):
        core, *_ = self.cored()
        for path in harness.damage(core, self.path("damaged"), 10000):
            harness.ask("-q", path, "backtrace", "--locals",
                        expected=(harness.FINE, harness.INCOMPLETE))


if __name__ == "__main__":
    unittest.main()
