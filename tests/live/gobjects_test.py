#!/usr/bin/env python3
"""Objects of GLib's GObject have the name of their type, also lost ones, without symbols."""

import ctypes
import unittest

import harness

ACCOUNTS, ORDERS, LOST = 300, 507, 7


class GObjectsTest(harness.LiveTest):
    def setUp(self):
        super().setUp()
        try:
            ctypes.CDLL("libgobject-2.0.so.0")
        except OSError as error:
            raise harness.Skipped("there is no GObject") from error
        program = self.compile("gobjects", "gobjects.c", flags=["-O1", "-ldl"])
        process = self.start([program])
        self.core = harness.snap(process, self.path("core"))

    def count(self, *words):
        return int(harness.ask(self.core, "count", *words).stdout.split()[0])

    def test_each_type_has_its_objects(self):
        self.assertEqual(self.count("used", "HeapAccount"), ACCOUNTS)
        self.assertEqual(self.count("used", "HeapOrder"), ORDERS)

    def test_what_leaked_has_its_type(self):
        self.assertEqual(self.count("leaked", "HeapOrder"), LOST)
        self.assertEqual(self.count("leaked"), LOST)

    def test_classes_and_types_are_named_apart(self):
        self.assertEqual(self.count("used", "class of HeapOrder"), 1)
        text = harness.ask(self.core, "summarize", "used", "--all").stdout
        self.assertRegex(text, r"(?m)\(GType\) has \d\d+ instances")


if __name__ == "__main__":
    unittest.main()
