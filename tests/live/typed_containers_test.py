#!/usr/bin/env python3
"""
testdata/programs/typed_containers.cpp says where it makes plain structures, to
which containers and wrappers of the standard library lead: all of them have
their type by debug information, with libstdc++ and libc++, and nothing else has,
such as what a std::optional or std::any refers to that was reset.
"""

import re
import shutil
import unittest

import harness
from harness import LiveTest, addresses, addresses_said, ask, core_of, needs_i386

PLACES = 17


def has_libcxx():
    """Whether clang has the headers of libc++."""
    return shutil.which("clang++") and harness.run(
        "clang++", "-stdlib=libc++", "-fsyntax-only", "-include", "map", "-x",
        "c++", "/dev/null").returncode == 0


class TypedContainersTest(LiveTest):
    def check(self, *flags, compiler="g++"):
        program = self.compile("typed_containers", "typed_containers.cpp",
                               compiler=compiler,
                               flags=("-std=c++17", "-g", *flags))
        process = self.start([program])
        truth = addresses_said(process)
        self.assertEqual(len(truth), PLACES)
        core = core_of(process, self.folder, flags)
        found = addresses("-q", core, "enumerate", "used", "shop::Leaf")
        for where, made in truth.items():
            with self.subTest(where=where, flags=flags, compiler=compiler):
                self.assertEqual(made - found, set())
        self.assertEqual(found, set().union(*truth.values()))
        return core

    def test_gcc(self):
        self.check("-O0")
        core = self.check("-O2")
        # A name is taken as it is printed.
        names = re.findall(r"Type (std::.*list<.*) has 1 instance ",
                           ask("-q", core, "summarize", "used", "--all").stdout)
        self.assertEqual(len(names), 1)
        self.assertEqual(
            len(addresses("-q", core, "enumerate", "used", names[0])), 1)

    def test_i386(self):
        needs_i386("g++")
        self.check("-O1", "-m32")

    @unittest.skipUnless(has_libcxx(), "no libc++")
    def test_libcxx(self):
        self.check("-O2", "-stdlib=libc++", compiler="clang++")


if __name__ == "__main__":
    unittest.main()
