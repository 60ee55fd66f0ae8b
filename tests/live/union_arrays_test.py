#!/usr/bin/env python3
"""
testdata/programs/union_arrays.c has arrays that only unions lead to. They are
called by the type of their elements where memory says that they are arrays,
and by none where they may be something else. union_slabs.c has nodes in slabs
that only unions and such arrays lead to; pool_pieces.c has them in pieces of
blocks, and only code says what leads to them; hash_heads.c has heads of lists
that a number counts, and arrays of pointers in pieces of blocks.
"""

import re
import shutil
import unittest

from harness import LiveTest


class UnionArraysTest(LiveTest):
    def check(self, *flags, compiler="gcc"):
        _, truth, found = self.typed("union_arrays", *flags, compiler=compiler)
        found.pop("char[]", None)
        truth.pop("?")
        for name in {*found, *truth}:
            with self.subTest(name=name, flags=flags):
                self.assertEqual(found.get(name, set()), truth.get(name, set()))

    def check_slabs(self, *flags, compiler="gcc"):
        _, truth, found = self.typed("union_slabs", *flags, compiler=compiler)
        for name in ("struct node", "union bucket"):
            truth[name] = truth.pop(f"slab of {name}")
            found[name] = set().union(*(found.get(slab, set()) for slab in (
                f"block with {name}", f"block, beginning with {name}",
                f"{name}[]")))
        for name in truth.keys() - {"?"}:
            with self.subTest(name=name, flags=flags):
                self.assertLessEqual(found[name], truth[name])
                self.assertGreater(len(found[name]), 0.99 * len(truth[name]))
        self.assertFalse(truth["?"] & set().union(*found.values()))

    def check_pieces(self, *flags, compiler="gcc"):
        _, truth, found = self.typed("pool_pieces", *flags, compiler=compiler)
        self.assertEqual(found["struct ends[]"], truth["struct ends[]"])
        pieces = set().union(*(
            addresses for name, addresses in found.items()
            if re.fullmatch("(block, beginning with |block with |part of )?"
                            r"struct (node|word|table)(\[\])?", name)))
        self.assertEqual(pieces, truth["pieces"])

    def check_heads(self, *flags, compiler="gcc"):
        _, truth, found = self.typed("hash_heads", *flags, compiler=compiler)
        for name in ("struct head[]", "struct head", "struct thing",
                     "block with struct value"):
            with self.subTest(name=name, flags=flags):
                self.assertLessEqual(truth[name], found[name])
        self.assertEqual(found["block, beginning with struct head"],
                         truth["uncounted"])
        self.assertLessEqual(found["struct note"], truth["struct note"])
        self.assertEqual(
            found.get("block with struct item", set())
            | found.get("block with struct dictionary", set()),
            truth["pieces"])

    def test_gcc(self):
        for flags in (("-g", "-O2"), ("-g", "-O0")):
            self.check(*flags)
            self.check_slabs(*flags)
            self.check_pieces(*flags)
            self.check_heads(*flags)

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_clang(self):
        self.check("-g", "-O2", compiler="clang")
        self.check_slabs("-g", "-O2", compiler="clang")
        self.check_pieces("-g", "-O2", compiler="clang")
        self.check_heads("-g", "-O2", compiler="clang")


if __name__ == "__main__":
    unittest.main()
