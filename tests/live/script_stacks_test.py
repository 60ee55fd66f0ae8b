#!/usr/bin/env python3
"""
Who allocated what leaked, where a script called the library that lost it: its calls stand among
those of machine code, with file and line.
"""

import collections
import glob
import json
import os
import shutil
import subprocess
import sys
import unittest

import harness
from harness import LiveTest

LIBRARY = """
#include <stdlib.h>
void lose(void) { void *volatile lost = malloc(3333); lost = NULL; }
void call_back(void (*function)(void)) { function(); }
"""

PYTHON = """
import ctypes, sys, threading
library = ctypes.CDLL(sys.argv[1])

def lose_one():
    library.lose()              # innermost

class Shop:
    def order(self):
        for i in range(3):
            lose_one()          # of order

def through_c():
    library.call_back(ctypes.CFUNCTYPE(None)(Shop().order)) # through

Shop().order()                  # plainly
through_c()                     # by way of C
threads = [threading.Thread(target=Shop().order) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

RUBY = """
require 'fiddle'
LIBRARY = Fiddle.dlopen(ARGV[0])
LOSE = Fiddle::Function.new(LIBRARY['lose'], [], Fiddle::TYPE_VOID)

def lose_one
  LOSE.call # innermost
end

class Shop
  def order
    3.times do # times
      lose_one # of block
    end
  end
end

Shop.new.order # plainly
4.times.map { Thread.new { Shop.new.order } }.each(&:join) # of thread
"""

PHP = """<?php
$library = FFI::cdef("void lose(void);", $argv[1]);
function lose_one() {
    global $library;
    $library->lose(); # innermost
}
class Shop {
    public function order() {
        for ($i = 0; $i < 3; $i++)
            lose_one(); # of order
    }
}
(new Shop)->order(); # plainly
array_map(function ($one) { (new Shop)->order(); }, [1]); # by way of C
"""

PERL = """
use DynaLoader; use List::Util;
my $library = DynaLoader::dl_load_file($ARGV[0]);
DynaLoader::dl_install_xsub("main::lose", DynaLoader::dl_find_symbol($library, "lose"));
sub lose_one {
    lose(); # innermost
}
package Shop;
sub order {
    for my $i (1 .. 3) {
        main::lose_one(); # of order
    }
}
package main;
Shop::order(); # plainly
List::Util::first { Shop::order(); 1 } 1; # by way of C
"""


def version_of(python):
    return tuple(map(int, subprocess.check_output([python, "-V"], text=True).split()[1]
                     .split(".")[:2]))


PYTHONS = sorted(filter(os.path.exists, {"/usr/bin/python3", *glob.glob(
    os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))}), key=version_of)


def pythons():
    """All, or the system's, the oldest and the newest."""
    return PYTHONS if harness.ALL_VARIANTS else [
        python for python in PYTHONS if python in ("/usr/bin/python3", PYTHONS[0], PYTHONS[-1])]


def line_of(script, mark):
    return next(number for number, line in enumerate(script.splitlines(), 1)
                if line.endswith(f"# {mark}"))


@unittest.skipIf(harness.SANITIZED, "the sanitizer has a malloc of its own")
class ScriptStacksTest(LiveTest):
    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def library(self, *flags):
        return self.compile("lose.so", text=LIBRARY, flags=("-shared", "-fPIC", "-O0", *flags))

    def run_gate(self, *command, formats=()):
        """What `run` says, as JSON, and as text."""
        report = self.path("report.json")
        others = [word for name in formats for word in ("-o", f"{name}:{self.path(name)}")]
        result = harness.run(harness.HEAPCORE, "run", "-o", report, *others, "--", *command,
                             stdin=subprocess.DEVNULL, cwd=self.folder)
        self.assertEqual(result.returncode, harness.FOUND, result.stderr)
        with open(report, encoding="utf-8") as file:
            return json.load(file)["tables"], result.stderr

    def stacks(self, tables, *files):
        """How many roots have which calls in these files, as ("f", "script.py:12")."""
        calls, found = collections.defaultdict(list), collections.Counter()
        for table in tables:
            for row in table["rows"]:
                source = os.path.basename(row.get("source") or "")
                if table["name"] == "leak call" and source.partition(":")[0] in files:
                    calls[row["fingerprint"], row["stack"]].append((row["function"], source))
        for table in tables:
            for row in table["rows"]:
                if table["name"] == "leak stack":
                    found[tuple(calls[row["fingerprint"], row["stack"]])] += row["count"]
        return found

    def check_python(self, python, has_classes):
        script = self.write("shop.py", PYTHON)
        order, module = "Shop.order" if has_classes else "order", "<module>"
        tables, text = self.run_gate(python, script, self.library())

        def calls(*pairs):
            return tuple((name, f"shop.py:{line_of(PYTHON, mark)}") for name, mark in pairs)
        inner = ("lose_one", "innermost"), (order, "of order")
        self.assertEqual(dict(self.stacks(tables, "shop.py")), {
            calls(*inner, (module, "plainly")): 3,
            calls(*inner, ("through_c", "through"), (module, "by way of C")): 3,
            calls(*inner): 12,
        })
        self.assertIn(f"allocated by lose_one (shop.py:{line_of(PYTHON, 'innermost')})", text)
        at = [text.index(f"    {name} ") for name in ("call_back", "through_c")]
        self.assertLess(*at)
        self.assertIn(f"    {order} ", text[:at[0]])

    def test_forges_show_the_line_of_the_script(self):
        """Unless the library's own line is known, which is where the leak is."""
        script = self.write("shop.py", PYTHON)
        for flags, line in ((), f"shop.py:{line_of(PYTHON, 'innermost')}"), (("-g",), "%3Cstdin%3E:3"):
            with self.subTest(flags):
                self.run_gate(sys.executable, script, self.library(*flags), formats=("sarif",))
                with open(self.path("sarif"), encoding="utf-8") as file:
                    places = [place["physicalLocation"] for run in json.load(file)["runs"]
                              for result in run["results"] for place in result["locations"]]
                self.assertEqual([f"{os.path.basename(place['artifactLocation']['uri'])}:"
                                  f"{place['region']['startLine']}" for place in places], [line])

    def test_python(self):
        for python in pythons():
            with self.subTest(python):
                self.check_python(python, version_of(python) >= (3, 11))

    def check_script(self, interpreter, name, script, *stacks):
        """Each stack is pairs of a function and the mark of its line."""
        path = self.write(name, script)
        tables, text = self.run_gate(interpreter, path, self.library())
        self.assertEqual(set(self.stacks(tables, name)), {
            tuple((function, f"{name}:{line_of(script, mark)}") for function, mark in stack)
            for stack in stacks})
        self.assertRegex(text, rf"allocated by lose_one \({name}:{line_of(script, 'innermost')}\)")

    @unittest.skipUnless(shutil.which("ruby"), "there is no ruby")
    def test_ruby(self):
        inner = ("lose_one", "innermost"), ("block in order", "of block")
        self.check_script(
            "ruby", "shop.rb", RUBY,
            (*inner, ("order", "times"), ("<main>", "plainly")),
            (*inner, ("order", "times"),
             ("block (2 levels) in <main>", "of thread")))

    @unittest.skipUnless(shutil.which("php"), "there is no php")
    def test_php(self):
        inner = ("lose_one", "innermost"), ("Shop::order", "of order")
        self.check_script("php", "shop.php", PHP, (*inner, ("{main}", "plainly")),
                          (*inner, ("{closure}", "by way of C"), ("{main}", "by way of C")))

    @unittest.skipUnless(shutil.which("perl"), "there is no perl")
    def test_perl(self):
        inner = ("lose_one", "innermost"), ("order", "of order")
        self.check_script(
            "perl", "shop.pl", PERL, (*inner, ("main program", "plainly")),
            (*inner, ("__ANON__", "by way of C"), ("main program", "by way of C")))


if __name__ == "__main__":
    unittest.main()
