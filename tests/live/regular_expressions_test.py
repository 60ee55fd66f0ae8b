#!/usr/bin/env python3
"""
testdata/programs/regular.c has regular expressions, whose parts only the C
library has types of: these have names without its debug information. What is
lost of them was allocated by the functions that called regcomp() or regexec().
"""

import re
import unittest

from harness import LiveTest, addresses, ask, snap, tables


class RegularExpressionsTest(LiveTest):
    def core(self, *flags):
        """A core, and what the program said of it: addresses by word."""
        program = self.compile("regular", "regular.c", flags=("-g", "-O2", *flags))
        process = self.start([program])
        said = {}
        for line in process.said:
            *words, address = line.split() or [""]
            if re.fullmatch("[0-9a-f]{8,}", address):
                said.setdefault(" ".join(words), set()).add(int(address, 16))
        return snap(process, self.path("core")), said

    def named(self, core, lost):
        """The functions that heapcore names, by address."""
        said = ask("-q", *(word for address in lost
                           for word in ("-c", f"describe {address:x}")), core)
        names = {}
        for part in re.split(r"^Address ", said.stdout, flags=re.M)[1:]:
            by = re.search(r"^It was allocated by (?:one of )?(.*?)\.?$", part, re.M)
            names[int(part.split()[0], 16)] = set(re.findall(
                r"\w+(?= \(regular|,|$| or others)", by[1].replace(", by its size", "")
            )) if by else set()
        return names

    def test_parts_have_types(self):
        core, said = self.core()
        self.assertEqual(
            addresses("-q", core, "enumerate", "used", "struct re_dfa_t"),
            said[""] | said["lost"])
        named = {row["type"]: row["count"]
                 for row in tables("-q", core, "summarize", "used")["group"]
                 if row.get("type")}
        for part in ("re_token_t[]", "re_node_set[]", "struct re_dfastate_t",
                     "struct re_state_table_entry[]"):
            with self.subTest(part=part):
                self.assertGreater(named.get(part, 0), 0)

    def test_lost_parts_have_callers(self):
        core, said = self.core()
        lost = addresses("-q", core, "enumerate", "leaked")
        self.assertLess(said["lost"] | said["note"], lost)
        named = self.named(core, lost)
        callers = {"compile_rules", "lose_rules"}
        for address in said["lost"]:
            self.assertEqual(named[address], callers)
        for address in said["note"]:
            self.assertEqual(named[address], {"make_note"})
        others = {address for address in lost - said["note"] if named[address]}
        for address in others:
            self.assertLessEqual(callers, named[address])
        self.assertGreater(len(others), 5 * len(said["lost"]))

    def test_where_too_many_call_the_library_it_is_named(self):
        core, said = self.core("-DMANY")
        lost = addresses("-q", core, "enumerate", "leaked")
        by = {address: ask("-q", core, "describe", f"{address:x}").stdout
              for address in lost}
        library = {address for address in lost if re.search(
            r"^It was allocated by (one of )?the C library's regular expressions"
            r"(, keep_pair)? or others, by its size\.$", by[address], re.M)}
        self.assertTrue(library)
        self.assertFalse(library & (said["lost"] | said["note"]))
        for address in said["note"]:
            self.assertIn("allocated by make_note", by[address])


if __name__ == "__main__":
    unittest.main()
