#!/usr/bin/env python3
"""
testdata/programs/regular.c has regular expressions, whose parts only the C
library has types of: these have names without its debug information.
"""

import unittest

from harness import LiveTest, addresses, snap, tables


class RegularExpressionsTest(LiveTest):
    def test_parts_have_types(self):
        program = self.compile("regular", "regular.c", flags=("-g", "-O2"))
        process = self.start([program])
        truth = {int(line, 16) for line in process.said if line.strip()}
        core = snap(process, self.path("core"))
        self.assertEqual(
            addresses("-q", core, "enumerate", "used", "struct re_dfa_t"), truth)
        named = {row["type"]: row["count"]
                 for row in tables("-q", core, "summarize", "used")["group"]
                 if row.get("type")}
        for part in ("re_token_t[]", "re_node_set[]", "struct re_dfastate_t",
                     "struct re_state_table_entry[]"):
            with self.subTest(part=part):
                self.assertGreater(named.get(part, 0), 0)


if __name__ == "__main__":
    unittest.main()
