#!/usr/bin/env python3
"""
testdata/programs/deleted.c has entries whose pointers are all null: they have
the type of the others in their table, but none where numbers stand in it, too.
So have lost ones, unless other blocks of their size look the same.
"""

import unittest

from harness import LiveTest, addresses, snap, tables


class DeletedTest(LiveTest):
    def check(self, flag, *arguments):
        """A core, and what leaked in it by its type."""
        program = self.compile("deleted", "deleted.c", flags=("-g", flag))
        process = self.start([program, *arguments])
        said = {}
        for line in process.said:
            if line.count(" ") == 1:
                word, address = line.split()
                said.setdefault(word, set()).add(int(address, 16))
        core = snap(process, self.path("core"))
        self.assertEqual(
            addresses("-q", core, "enumerate", "used", "struct entry") - said["lost"],
            said["entry"] | said.get("other", set()))
        self.assertLessEqual(said["lost"], addresses("-q", core, "enumerate", "leaked"))
        return {row["type"]: row["count"]
                for row in tables("-q", core, "summarize", "leaked")["group"]
                if row.get("type")}, len(said["lost"])

    def test_deleted_entries_are_known_by_others(self):
        for flag in "-O0", "-O2":
            named, lost = self.check(flag)
            self.assertEqual(named, {"probably struct entry": lost})

    def test_numbers_that_look_the_same(self):
        named, _ = self.check("-O2", "mixed")
        self.assertEqual(named, {})


if __name__ == "__main__":
    unittest.main()
