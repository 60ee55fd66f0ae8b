#!/usr/bin/env python3
"""Objects of Qt in a stripped program without type_infos have the names that Qt itself says."""

import collections
import os
import re
import shutil
import unittest

import harness

MOC = shutil.which("moc") or "/usr/lib/qt6/libexec/moc"
HEADER = """
#pragma once
#include <QtCore>
class Order : public QObject { Q_OBJECT public: using QObject::QObject; };
namespace shop { class Customer : public QObject { Q_OBJECT public: using QObject::QObject; }; }
struct Plain { virtual ~Plain() {} virtual int price() { return 5; } long numbers[5]; };
"""
PROGRAM = """
#include "shop.h"
#include <cstdio>
#include <unistd.h>
int main(int count, char **arguments)
{
	QObject *root = new QObject;
	static Plain *plain[30];
	for (int i = 0; i < 40; i++)
		new shop::Customer(new Order(root));
	for (Plain *&one : plain)
		one = new Plain;
	for (QObject *object : root->findChildren<QObject *>())
		puts(object->metaObject()->className());
	puts("ready");
	fflush(stdout);
	pause();
}
#include "moc_shop.cpp"
"""


def qt_flags():
    for package in ("Qt5Core", "Qt6Core"):
        found = harness.run("pkg-config", "--cflags", "--libs", package)
        if found.returncode == 0:
            return found.stdout.split()
    return None


@unittest.skipUnless(shutil.which("pkg-config") and qt_flags() and os.path.exists(MOC),
                     "there is no Qt to build with")
class QtTest(harness.LiveTest):
    def test_objects_have_the_names_that_qt_says(self):
        with open(self.path("shop.h"), "w") as file:
            file.write(HEADER)
        harness.run(MOC, self.path("shop.h"), "-o", self.path("moc_shop.cpp"))
        flags = ["-fPIC", "-O2", "-s", "-fno-rtti", "-I" + self.path(""), *qt_flags()]
        with open(self.path("shop.cpp"), "w") as file:
            file.write(PROGRAM)
        program = harness.build(self.path("shop"), "c++", self.path("shop.cpp"), *flags)
        process = self.start([program])
        core = harness.snap(process, self.path("core"))
        text = harness.ask(core, "summarize", "used", "--all").stdout
        named = {name: int(count) for name, count in
                 re.findall(r"Signature 0x\w+ \(([\w:]+)\) has (\d+) instances", text)}
        said = collections.Counter(process.said)
        self.assertEqual(said, {"Order": 40, "shop::Customer": 40})
        self.assertEqual({name: named.get(name) for name in said}, said)
        self.assertRegex(text, r"Signature 0x\w+ \(shop\+0x\w+\) has 30 instances")


if __name__ == "__main__":
    unittest.main()
