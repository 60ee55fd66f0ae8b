#!/usr/bin/env python3
"""
What testdata/programs/freed.c does to a block after it was freed is said of that block, and of no
other; the rest of a small heap is read all the same.
"""

import unittest

import harness
import preloaded
import truth

KEPT = 50
GLIBC = (
    ("link", "The free block at {:#x} of size 0x28 was written to after it was freed"),
    ("key", "the free block at {:#x} was written to after it was freed, as it lacks the key"),
    ("end", "the free block at {:#x} of size 0x7d8 was written to after it was freed, at its end"),
    ("twice", "the free block at {:#x} was freed twice, as it is in"),
)
LINK = ("link", "whose link was overwritten after they were freed: 1, the first at {:#x};")
TWICE = ("twice", "that were freed twice, as lists have them twice: 1, the first at {:#x};")
LIBRARIES = {
    # It has no links.
    "libjemalloc.so.2": (TWICE,),
    "libtcmalloc.so.4": (LINK, TWICE),
    "libtcmalloc_minimal.so.4": (LINK, TWICE),
    "libmimalloc.so.2": (LINK, TWICE),
}
BLAMED = ("after it was freed", "after they were freed", "freed twice", "overrun")


class Freed(harness.LiveTest):
    def setUp(self):
        super().setUp()
        self.program = self.compile("freed", "freed.c", "truth.c", flags=harness.FLAGS.split())

    def told(self, how, library=""):
        """What is said of a core, the block that it should be of, and how many are in use."""
        path = self.path("truth")
        process = self.start([self.program, how], truth=path, LD_PRELOAD=library)
        core = harness.gcore(process, self.folder)
        harness.end(process)
        result = harness.ask(core, "enumerate", "used", expected=(harness.FINE, harness.INCOMPLETE))
        return result, truth.Truth(path).damaged

    def check(self, how, words, library=""):
        with self.subTest(how=how, library=library):
            result, damaged = self.told(how, library)
            self.assertEqual(result.returncode, harness.INCOMPLETE, result.stderr)
            self.assertIn(words.format(damaged[0]), result.stderr)
            self.assertEqual(sum(word in line for line in result.stderr.splitlines()
                                 for word in BLAMED), 1, result.stderr)
            self.assertGreaterEqual(len(result.stdout.splitlines()), KEPT)

    def check_nothing(self, library=""):
        with self.subTest(library=library):
            result, _ = self.told("nothing", library)
            self.assertFalse([word for word in BLAMED if word in result.stderr], result.stderr)

    def test_damage_in_glibc_is_said_of_its_block(self):
        self.check_nothing()
        for how, words in GLIBC:
            self.check(how, words)

    def test_damage_in_other_allocators_is_said_of_its_block(self):
        for library, cases in LIBRARIES.items():
            if not preloaded.is_there(library):
                continue
            self.check_nothing(library)
            for how, words in cases:
                self.check(how, words, library)


if __name__ == "__main__":
    unittest.main()
