#!/usr/bin/env python3
"""
Real programs, and testdata/programs/names.cpp, and what their allocations are
called: names that people would use, and none that is made up of numbers that
look like addresses.
"""

import collections
import shutil
import subprocess
import unittest

from harness import LiveTest, addresses, ask, number, snap, tables

RUBY = """
require "objspace"
$made = (1..1000).map { |i| eval "lambda { |x| x + #{i} }" }
2.times { GC.start }
puts ObjectSpace.count_imemo_objects[:imemo_iseq], "ready"
$stdout.flush
sleep
"""
TLS = """
import ssl
context = ssl.create_default_context()
print("ready", flush=True)
input()
"""


class NamesTest(LiveTest):
    def core(self, *command, **options):
        """The core of a program that says when it is ready."""
        process = self.start(command, **options)
        return process.said, snap(process, self.path("core"))

    @unittest.skipUnless(shutil.which("ruby"), "no ruby")
    def test_code_of_ruby_is_no_signature(self):
        said, core = self.core("ruby", "-e", RUBY)
        found = addresses("-q", core, "enumerate", "used",
                          "%RubyInstructions")
        self.assertEqual(len(found), number(said[0]))
        text = ask("-q", core, "describe", f"{min(found):x}").stdout
        self.assertIn("It is the instructions of the iseq at 0x", text)
        self.assertRegex(text, r", which has [\d,]+ words")

    def test_what_has_no_symbols_is_one_group(self):
        """Errors and algorithms of OpenSSL, whose library is stripped."""
        core = self.core("python3", "-c", TLS)[1]
        lines = ask("-q", core, "summarize", "used").stdout.splitlines()
        self.assertLess(sum("(libcrypto" in line and "has 1 instance " in line
                            for line in lines), 20)
        self.assertTrue(any("data of libcrypto.so" in line for line in lines))
        found = addresses("-q", core, "enumerate", "used",
                          "strings of libssl.so.3")
        text = ask("-q", core, "describe", f"{min(found):x}").stdout
        self.assertRegex(text, r'\(strings of libssl\.so\.3: "\w')

    def check_counts(self, core, counts):
        for name, count in counts.items():
            answer = ask("-q", core, "count", "used", name).stdout
            self.assertEqual(number(answer.split()[0]), count, name)

    def check_program(self, *flags, compiler="g++"):
        program = self.compile("names", "names.cpp", compiler=compiler,
                               flags=flags)
        truth = self.path("truth")
        process = self.start([program], truth=truth)
        core = snap(process, self.path("core"))
        counts, blocks = {}, collections.defaultdict(set)
        with open(truth, encoding="ascii") as file:
            for line in file.read().splitlines()[:-1]:
                kind, value = line.split()
                if kind in ("text", "empty"):
                    blocks[kind].add(int(value, 16))
                elif kind == "slab":
                    slabs = int(value)
                elif kind != "kind_mark" or "-s" not in flags:
                    counts[kind] = int(value)
        self.check_counts(core, counts)
        unsigned = addresses("-q", core, "enumerate", "used", "-")
        self.assertLessEqual(blocks["text"], unsigned)
        if "-s" not in flags:
            self.assertLessEqual(blocks["empty"], unsigned)
        names = {row["name"]: row["count"]
                 for row in tables("-q", core, "summarize", "used")["group"]
                 if row.get("name")}
        self.assertEqual(sum(count for name, count in names.items()
                             if name.startswith("slab, beginning with Cut<")),
                         slabs)
        self.assertEqual({name: names.get(name)
                          for name in ("Response", "Derived", "Window")},
                         {"Response": 2000, "Derived": 300, "Window": 50})

    def test_signatures_tell_what_is_there(self):
        self.check_program("-g", "-O1")

    def test_signatures_of_a_stripped_program(self):
        self.check_program("-O2", "-s")

    def test_signatures_of_libcxx(self):
        try:
            self.check_program("-O1", "-stdlib=libc++", compiler="clang++")
        except (FileNotFoundError, subprocess.CalledProcessError):
            self.skipTest("there is no libc++")


if __name__ == "__main__":
    unittest.main()
