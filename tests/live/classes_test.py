#!/usr/bin/env python3
"""
Runs testdata/programs/classes.cpp, built in many ways, and checks that every
class is found as many times as the program says, and no other; that the name
of a class narrows a set to it and to what is derived from it, however it is
spelt; and that names are there whenever anything has them: the core, the
binary, its symbols.
"""

import collections
import os
import re
import shutil
import sys
import unittest

import harness
from harness import number

PROGRAM = os.path.join(harness.PROGRAMS, "classes.cpp")
# Anonymous and file-backed, private and shared, headers, huge pages.
WHOLE_CORE = "0x7f"

# What a variant is for, beside how it is compiled.
GONE = "the program is gone when its core, a whole one, is analysed"
SYMBOLS_ONLY = "without type information"

VARIANTS = {
    "g++ -O0": ["g++", "-O0"],
    "g++ -O2, stripped": ["g++", "-O2", "-s"],
    "g++ -O2, fixed": ["g++", "-O2", "-no-pie", "-fno-pie"],
    "g++, fixed, stripped": ["g++", "-O0", "-no-pie", "-s"],
    "g++, static": ["g++", "-O2", "-static"],
    "g++, static, stripped": ["g++", "-O0", "-static", "-s"],
    "g++, static PIE": ["g++", "-O2", "-static-pie", "-s"],
    "g++, library linked in": ["g++", "-O2", "-s", "-static-libstdc++"],
    "g++, writable vtables": ["g++", "-O2", "-s", "-Wl,-z,norelro"],
    "g++, fixed, writable": ["g++", "-O0", "-s", "-no-pie",
                             "-Wl,-z,norelro"],
    "g++, old strings": ["g++", "-O1", "-D_GLIBCXX_USE_CXX11_ABI=0"],
    "g++, gone": ["g++", "-O2", "-s"],
    "g++, only symbols": ["g++", "-O2", "-fno-rtti"],
    "g++, i386": ["g++", "-m32", "-O2", "-static", "-s"],
    "g++, i386, only symbols": ["g++", "-m32", "-O2", "-fno-rtti"],
    "clang++ -O0": ["clang++", "-O0"],
    "clang++ -O2, stripped": ["clang++", "-O2", "-s"],
    "clang++ -O2, fixed": ["clang++", "-O2", "-no-pie"],
    "clang++, static": ["clang++", "-O2", "-static", "-s"],
    "clang++, gone": ["clang++", "-O0", "-s"],
    "clang++, libc++": ["clang++", "-O2", "-s", "-stdlib=libc++"],
}
USUAL = ("g++ -O0", "g++ -O2, stripped", "g++, fixed, stripped", "g++, static, stripped",
         "g++, writable vtables", "g++, old strings", "g++, gone", "g++, only symbols", "g++, i386",
         "clang++ -O2, fixed", "clang++, libc++")
PURPOSES = {
    "g++, gone": GONE,
    "clang++, gone": GONE,
    "g++, only symbols": SYMBOLS_ONLY,
    "g++, i386, only symbols": SYMBOLS_ONLY,
}

TOLD = re.compile(r"(class|base) (\d+) (.*)")
LISTED = re.compile(r"0x[0-9a-f]+ +([\d,]+) +[\d,]+  class +(.*)")
COUNTED = re.compile(r"([\d,]+) allocations? uses?")
MAP_IN_FULL = {
    True: "Holder<std::map<int, std::__cxx11::basic_string<char, "
          "std::char_traits<char>, std::allocator<char> >, std::less<int>, "
          "std::allocator<std::pair<int const, std::__cxx11::basic_string<"
          "char, std::char_traits<char>, std::allocator<char> > > > > >",
    False: "Holder<std::map<int,std::string>>",
}


class Truth:
    """How many objects there are of classes, alone and with derived ones."""

    def __init__(self, process):
        self.classes, self.with_derived = {}, {}
        for match in map(TOLD.match, process.said):
            counts = (self.classes if match[1] == "class"
                      else self.with_derived)
            counts[match[3]] = int(match[2])
        for name, count in self.classes.items():
            self.with_derived.setdefault(name, count)


def compile_program(name, folder):
    path = os.path.join(folder, "classes")
    parts = [harness.build(f"{path}-{part}.o", *VARIANTS[name], *define, "-c", PROGRAM)
             for part, define in (("one", []), ("more", ["-DMORE"]))]
    return harness.build(path, *VARIANTS[name], *parts)


def take_core(name, folder):
    """The core of a program compiled so, and what the program told."""
    path = compile_program(name, folder)
    with harness.started([path]) as process:
        if PURPOSES.get(name) == GONE:
            with open(f"/proc/{process.pid}/coredump_filter", "w",
                      encoding="ascii") as file:
                file.write(WHOLE_CORE)
        core = harness.gcore(process, folder)
    if PURPOSES.get(name) == GONE:
        os.unlink(path)
    return core, Truth(process)


class Core:
    """The answers of heapcore on a core."""

    def __init__(self, path):
        self.path = path

    def run(self, *words):
        """The answers to commands, each given as text."""
        commands = [word for command in words for word in ("-c", command)]
        return harness.ask("-q", *commands, self.path,
                           expected=(harness.FINE, harness.INCOMPLETE)).stdout

    def classes(self):
        counts = collections.Counter()
        for line in self.run("list signatures").splitlines():
            match = LISTED.match(line)
            if match:
                counts[match[2]] += number(match[1])
        return dict(counts)

    def counts(self, names):
        """How many used allocations each class names, asked at once."""
        lines = self.run(*[f"count used '{name}'" for name in names]).splitlines()
        return {name: number(COUNTED.match(line)[1])
                for name, line in zip(names, lines, strict=True)}


class ClassesTest(harness.LiveTest):
    def check(self, name):
        if not shutil.which(VARIANTS[name][0]):
            self.skipTest(f"there is no {VARIANTS[name][0]}")
        if "i386" in name:
            harness.needs_i386("g++")
        try:
            path, truth = take_core(name, self.folder)
        except RuntimeError as error:
            if "libc++" in name or "static" in name:
                self.skipTest(f"cannot be built here: {error}")
            raise
        self.check_core(Core(path), truth, name)

    def check_core(self, core, truth, name):
        self.assertEqual(core.classes(), truth.classes)
        if PURPOSES.get(name) == SYMBOLS_ONLY:
            truth.with_derived = truth.classes
        self.assertEqual(core.counts(truth.with_derived), truth.with_derived)
        self.check_spellings(core, name)
        self.check_summary(core, truth)

    def check_spellings(self, core, name):
        new_strings = "libc++" not in name and "old" not in name
        full = MAP_IN_FULL[new_strings]
        self.assertEqual(core.counts([full]), {full: 15})
        names = core.run("summarize used --all --full-names")
        self.assertNotIn("std::map<int, std::string>", names)
        if new_strings:
            self.assertIn(f"({full}) has 15 instances", names)

    def check_summary(self, core, truth):
        """Also of those that are in two parts of the program."""
        lines = core.run("summarize used --all").splitlines()
        for name, count in truth.classes.items():
            head = (f"Multiple signatures for {name} have a total of {count} "
                    if "anonymous" in name else f"({name}) has {count} ")
            self.assertEqual(sum(head in line for line in lines), 1, head)
        place = next(i for i, line in enumerate(lines)
                     if line.startswith("Multiple"))
        self.assertRegex(lines[place + 1], "^   Signature 0x[0-9a-f]+ has 18 ")
        self.assertRegex(lines[place + 2], "^   Signature 0x[0-9a-f]+ has 17 ")


def add_tests():
    for name in harness.variants(VARIANTS, *USUAL):
        method = "test_" + re.sub(r"\W+", "_", name.replace("++", "pp"))
        setattr(ClassesTest, method,
                lambda self, name=name: self.check(name))


add_tests()


if __name__ == "__main__":
    sys.exit(unittest.main())
