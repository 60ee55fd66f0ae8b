#!/usr/bin/env python3
"""
testdata/programs/shapes.c has structures to which no pointer with a type
leads: their own words tell what they are, unless two types have one shape.
"""

import unittest

from harness import LiveTest, addresses, addresses_by_type, addresses_said, ask, snap


class ShapesTest(LiveTest):
    def test_shape_names_the_type(self):
        for level in ("-O0", "-O2"):
            with self.subTest(level=level):
                process = self.start([self.compile(
                    "shapes" + level, "shapes.c", flags=("-g", level))])
                truth = addresses_said(process)
                core = snap(process, self.path("core" + level))
                named = addresses_by_type(core)
                self.assertEqual(named["struct symbol"], truth["struct symbol"])
                self.assertNotIn("struct plus", named)
                self.assertNotIn("struct minus", named)
                self.assertEqual(addresses("-q", core, "enumerate", "leaked"), set())
                self.assertIn("by its pointers", ask(
                    "-q", core, "describe", f"{min(truth['struct symbol']):x}").stdout)


if __name__ == "__main__":
    unittest.main()
