#!/usr/bin/env python3
"""
No allocator's heap is taken for another's: in a core of a program with one of them, only that one
is seen, beside libc's own.
"""

import shutil
import unittest

import harness
import preloaded

LIBRARIES = {"jemalloc": ("libjemalloc.so.2",),
             "tcmalloc": ("libtcmalloc_minimal.so.4",),
             "mimalloc": ("libmimalloc.so.2", "libmimalloc.so.3"),
             "glibc": ("libc.so.6",)}
OTHERS = {"boehm", "musl", "pymalloc", "ruby", *LIBRARIES} - {"glibc"}


class Foreign(preloaded.PreloadedTest):
    def check_only(self, name):
        core, _ = self.snapped("late")
        with self.subTest(allocator=name):
            seen = {row["memory"] for row in harness.tables(core, "bill")["use"]}
            self.assertIn(name, seen)
            self.assertEqual(seen & OTHERS - {name}, set())

    def test_each_is_seen_where_it_is(self):
        for name, libraries in LIBRARIES.items():
            self.library = preloaded.first_there(*libraries)
            if self.library:
                self.check_only(name)

    @unittest.skipUnless(shutil.which("musl-gcc"), "there is no musl-gcc")
    def test_musl_is_seen_where_it_is(self):
        for flags in ((), ("-static",)):
            self.library = ""
            self.program = self.compile("musl", "other_malloc.c", "truth.c", compiler="musl-gcc",
                                        flags=[*harness.FLAGS.split(), *flags])
            self.check_only("musl")


if __name__ == "__main__":
    unittest.main()
