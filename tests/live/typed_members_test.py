#!/usr/bin/env python3
"""
testdata/programs/typed_members.cpp says which plain structures it makes, to which
only members of C++ objects and elements of containers lead. All of them have
their types by debug information, however the program was compiled.
"""

import collections
import shutil
import unittest

from harness import ALL_VARIANTS, LiveTest, addresses, ask, core_of, needs_i386

# Only std::string's text and vectors' elements are made besides.
FLAGS = ("-std=c++17", "-g")


class TypedMembersTest(LiveTest):
    def core(self, *flags, compiler):
        program = self.compile("typed_members", "typed_members.cpp",
                               compiler=compiler, flags=(*FLAGS, *flags))
        process = self.start([program])
        truth = collections.defaultdict(list)
        for line in process.said:
            address, _, name = line.strip().partition(" ")
            if name:
                truth[name].append(int(address, 16))
        return core_of(process, self.folder, flags), truth

    def check(self, *flags, compiler="g++"):
        core, truth = self.core(*flags, compiler=compiler)
        self.assertEqual(len(truth), 6)
        for name, made in truth.items():
            with self.subTest(name=name, flags=flags, compiler=compiler):
                self.assertEqual(
                    addresses("-q", core, "enumerate", "used", name), set(made))
        return core, truth

    def test_gcc(self):
        if ALL_VARIANTS:
            self.check("-O0")
        core, truth = self.check("-O2")
        # The last ones belong to an object that only a "void *" leads to.
        self.assertIn(
            "It is of type shop::Route (typed: by hidden[1]->route, ",
            ask("-q", core, "describe", f"{truth['shop::Route'][-1]:x}").stdout)

    def test_i386(self):
        needs_i386("g++")
        self.check("-O2", "-m32")

    @unittest.skipUnless(shutil.which("clang++"), "no clang++")
    def test_clang(self):
        if ALL_VARIANTS:
            self.check("-O2", compiler="clang++")
        self.check("-O0", compiler="clang++")

    def test_without_debug_information(self):
        core, truth = self.core("-O2", "-g0", compiler="g++")
        for name in truth:
            self.assertIn("unknown", ask("-q", core, "count", "used", name,
                                         expected=(2,)).stderr)


if __name__ == "__main__":
    unittest.main()
