#!/usr/bin/env python3
"""
What heapcore says of a program does not depend on where its memory lies: programs of several
allocators, in each layout in which an answer was wrong once, and in some that are chosen anew.
"""

import collections
import os
import random
import shutil
import tempfile
import unittest

import harness
import layouts
import preloaded

ANEW = 3
FLAGS = harness.FLAGS.split()
CHOSEN = [*layouts.FAILED, *random.Random(layouts.SEED).sample(layouts.ALL, ANEW)]


def truth_of(path):
    """The addresses of each word of truth."""
    told = collections.defaultdict(set)
    with open(path, encoding="ascii") as file:
        for line in file.read().splitlines()[:-1]:
            word, address = line.split()[:2]
            told[word].add(int(address, 16))
    return told


class LayoutsTest(harness.LiveTest):
    def in_each(self, command, ask, **variables):
        """Call ask with a core of the program, and its truth, in each layout."""
        for layout in CHOSEN:
            with self.subTest(layout=str(layout)), tempfile.TemporaryDirectory() as folder:
                truth = os.path.join(folder, "truth")
                with harness.started(command, truth=truth, folder=folder, layout=layout,
                                     **variables) as process:
                    core = harness.snap(process, os.path.join(folder, "core"))
                ask(core, truth_of(truth))

    def check(self, core, told, own=0):
        """own: so many blocks a library of the program loses itself."""
        leaked = harness.addresses(core, "enumerate", "leaked")
        self.assertEqual(len(told["lost"]), 90)
        self.assertEqual(told["lost"] - leaked, set())
        self.assertLessEqual(len(leaked), len(told["lost"]) + own)
        self.assertLessEqual(told["kept"], harness.addresses(core, "enumerate", "anchored"))
        if told["risk"]:
            self.assertEqual(harness.addresses(core, "enumerate", "atrisk"), told["risk"])

    def neighbours(self, name, *flags, compiler="cc"):
        return [self.compile(name, "neighbours.c", "truth.c", flags=[*FLAGS, *flags],
                             compiler=compiler)]

    def test_leaks_of_malloc(self):
        self.in_each(self.neighbours("neighbours"), self.check)

    def test_leaks_of_a_static_program(self):
        self.in_each(self.neighbours("static", "-static"), self.check)

    @unittest.skipUnless(os.path.exists("/usr/include/gc/gc.h"), "there is no libgc-dev")
    def test_leaks_and_risks_with_the_boehm_collector(self):
        self.in_each(self.neighbours("collected", "-DWITH_GC", "-lgc"), self.check)

    def test_leaks_of_libraries_with_a_malloc(self):
        program = self.neighbours("neighbours")
        for library, own in (("libjemalloc.so.2", 0), ("libtcmalloc_minimal.so.4", 1),
                             ("libmimalloc.so.2", 0)):
            if preloaded.is_there(library):
                self.in_each(program, lambda *core, own=own: self.check(*core, own=own),
                             LD_PRELOAD=library)

    @unittest.skipUnless(shutil.which("musl-gcc"), "there is no musl-gcc")
    def test_leaks_of_musl(self):
        self.in_each(self.neighbours("musl", compiler="musl-gcc"), self.check)

    def test_blocks_of_the_home_made_allocator(self):
        more = os.path.join(os.environ.get("BUILD_DIR") or os.path.join(harness.ROOT, "build"),
                            "heapcore_more")
        program = self.compile("homemade", "homemade.c", "truth.c", flags=FLAGS)

        def check(core, told):
            self.assertEqual(
                {int(line, 16) for line in
                 harness.run(more, core, "enumerate", "leaked").stdout.split()}, told["lost"])

        self.in_each([program], check)

    @unittest.skipUnless(shutil.which("crystal"), "there is no crystal")
    def test_nothing_is_leaked_by_a_program_in_crystal(self):
        program = harness.build_crystal(self.path("hello"), 'STDOUT.puts "ready"\nSTDOUT.flush\nsleep\n')
        for number, layout in enumerate(CHOSEN):
            with self.subTest(layout=str(layout)), harness.ended(
                    harness.launch([program], layout=layout)) as process:
                harness.wait_for_line(process, "ready")
                core = harness.snap(process, self.path(f"core{number}"))
                self.assertEqual(harness.addresses(core, "enumerate", "leaked"), set())


if __name__ == "__main__":
    unittest.main()
