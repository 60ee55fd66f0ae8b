#!/usr/bin/env python3
"""
Variables, and their members, that the prompt completes where an address is.
"""

import os
import unittest

import completed_kinds_test
import harness


class CompletedVariablesTest(completed_kinds_test.CompletedTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        sources = [os.path.join(harness.PROGRAMS, name)
                   for name in ("variables.c", "variables_other.c", "truth.c")]
        program = harness.build(os.path.join(cls.folder, "variables"), "gcc", "-g", *sources)
        process = harness.start([program], folder=cls.folder)
        cls.addClassCleanup(harness.end, process)
        cls.core = harness.snap(process, os.path.join(cls.folder, "core"))

    def check(self, *pairs):
        self.start(self.core)
        for typed, line in pairs:
            with self.subTest(typed):
                self.assertEqual(self.complete(typed), line)

    def test_names_are_completed(self):
        self.check(("dump serv\t 8", "dump server 8"),
                   ("dump *entrie\t 8", "dump *entries 8"),
                   ("explain first_of\t", "explain first_of_mine"),
                   ("list incoming entrie\t", "list incoming entries"),
                   ("let mine = chain entrie\t 0", "let mine = chain entries 0"))

    def test_members_are_completed(self):
        self.check(("dump server.net\t 8", "dump server.network 8"),
                   ("dump server.db[1].di\t->us\t 8", "dump server.db[1].dict->used 8"),
                   ("dump &server.curr\t->di\t 8", "dump &server.current->dict 8"),
                   ("dump (*entries).ne\t 8", "dump (*entries).next 8"),
                   ("dump \"entries->ne\t 8", "dump \"entries->next\" 8"),
                   ("list incoming entries->ke\t", "list incoming entries->key"),
                   ("dump entries.wit\t 8", "dump entries.within 8"))

    def test_elsewhere_they_are_not(self):
        self.check(("dump server serv\t", "dump server serv"),
                   ("count used entrie\t", "count used entrie"),
                   ("list chain entries entrie\t", "list chain entries entrie"),
                   ("dump nosuch.x\t 8", "dump nosuch.x 8"),
                   ("explain us\t", "explain used"))


if __name__ == "__main__":
    unittest.main()
