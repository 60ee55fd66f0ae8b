#!/usr/bin/env python3
"""
GLib's slices: testdata/programs/gslice.c writes down what became of them, and heapcore must find
the same in its cores; with GLib 2.76 and later there are none.
"""

import unittest

import harness
import preloaded
import truth

NO_GLIB = 77
SWITCH = "G_SLICE=always-malloc"


class Slices(harness.LiveTest):
    def setUp(self):
        super().setUp()
        self.program = self.compile("gslice", "gslice.c", "truth.c",
                                    flags=harness.FLAGS.split() + ["-ldl"])
        self.path_of_truth = self.path("truth")
        if harness.run(self.program, env={"HEAPCORE_TRUTH_EXIT": "1", "HEAPCORE_TRUTH": self.path(
                "nothing")}).returncode == NO_GLIB:
            raise harness.Skipped("there is no GLib with slices")

    def taken(self, *arguments, **variables):
        """A core, and the truth about it."""
        process = self.start([self.program, *arguments], truth=self.path_of_truth, **variables)
        core = harness.gcore(process, self.folder)
        return core, truth.Truth(self.path_of_truth)

    def test_what_is_used_and_leaked_is_as_the_program_says(self):
        core, known = self.taken()
        used, leaked = (preloaded.sizes(core, name) for name in ("used", "leaked"))
        slices = {int(row["address"], 16) for row in harness.tables(
            core, "list", "used")["allocation"] if int(row["address"], 16) in known.used()}
        self.assertEqual(slices, set(known.used()))
        self.assertEqual({start: used[start] for start in known.used()}, known.used())
        self.assertEqual([hex(start) for start in known.freed if start in used], [])
        lost = set(known.lost)
        self.assertEqual(set(leaked) - lost, set())
        self.assertLessEqual(len(lost - set(leaked)), len(lost) // preloaded.LOST_BY_STALE_WORD)

    def test_without_slices_malloc_has_the_same(self):
        core, known = self.taken(G_SLICE="always-malloc")
        leaked = preloaded.sizes(core, "leaked")
        self.assertEqual(set(leaked) - set(known.lost), set())
        self.assertNotIn("gslice", harness.ask(core, "list", "arenas").stdout)

    def test_damage_is_said_of_the_slice_it_came_from(self):
        for how, words in (("after-free", "overwritten after they were freed: 1, the first at"),
                           ("twice", "freed twice, as lists have them twice: 1, the first at")):
            with self.subTest(how=how):
                core, known = self.taken(how)
                result = harness.ask(core, "count", "used", expected=(harness.INCOMPLETE,))
                self.assertIn(f"{words} {known.damaged[0]:#x};", result.stderr)
                self.assertIn(SWITCH, result.stderr)


if __name__ == "__main__":
    unittest.main()
