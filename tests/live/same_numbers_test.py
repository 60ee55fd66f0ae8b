#!/usr/bin/env python3
"""
The same numbers stand in the first screen, in the commands' text and tables, in the page, in SQL
and in exports: what is used, what leaked, and what the largest holders hold, of programs in C++,
Python and Ruby.
"""

import re
import shutil
import unittest

from harness import LiveTest, ask, rows, snap, tables
from report_test import Page

PYTHON = """
import sys, time

CACHE = {"key %d" % number: "value %d" % number * 10 for number in range(20000)}
LISTENERS = [["listener %d" % number] for number in range(20000)]
print("ready", flush=True)
time.sleep(1e6)
"""

RUBY = """
$cache = {}
20000.times { |number| $cache["key #{number}"] = "value #{number}" * 10 }
module App
  LISTENERS = Array.new(20000) { |number| ["listener #{number}" * 5] }
end
puts "ready"
$stdout.flush
sleep
"""

# Of each language: the holders as the first screen says them, and as a frame of an export.
HOLDERS = {
    "C++": {"sessions (holders)": "sessions (holders)",
            "members (holders)": "members (holders)"},
    "Python": {"__main__.CACHE (dict)": "dict (__main__.CACHE)",
               "__main__.LISTENERS (list)": "list (__main__.LISTENERS)"},
    "Ruby": {"$cache (Hash)": "Hash ($cache)",
             "App::LISTENERS (Array)": "Array (App::LISTENERS)"},
}


def number(text):
    return int(text.replace(",", ""))


def matched(pattern, text):
    """The numbers that the text has in the groups of the pattern."""
    found = re.search(pattern, text, re.MULTILINE)
    assert found, (pattern, text)
    return tuple(number(each) for each in found.groups() if each)


def sets(table):
    return {row["set"]: (row["allocations"], row["bytes"]) for row in table}


class Views:
    """What each view of a core says."""

    def __init__(self, core, page):
        self.core = core
        self.screen = ask("-q", core, "info").stdout
        self.info = tables("-q", core, "info")
        with open(page, encoding="utf-8") as file:
            self.page = Page(file.read())
        self.tree = tables("-q", core, "tree", "--depth", "12", "--top", "50")["owner"]
        self.tree_text = ask("-q", core, "tree", "--depth", "12", "--top", "50").stdout
        self.svg = ask("-q", core, "export", "svg").stdout

    def sql(self, query):
        return [tuple(row.values()) for row in rows("result", "-q", self.core, "sql", query)]

    def folded(self, *words):
        """Paths and their bytes."""
        lines = ask("-q", self.core, "export", "folded", *words).stdout.splitlines()
        return [(path.split(";"), int(size))
                for path, _, size in (line.rpartition(" ") for line in lines)]

    def counted(self, words):
        row = tables("-q", self.core, *words)["total"][0]
        return row["count"], row["bytes"]

    def used(self):
        """Allocations and bytes in use; some views have bytes alone."""
        size, count = matched(r"^Heap: ([\d,]+) bytes, ([\d,]+) allocations", self.screen)
        return {
            "the first screen": (count, size),
            "info": sets(self.info["set"])["used"],
            "page": sets(self.page.rows("set"))["used"],
            "count": self.counted(["count", "used"]),
            "summarize": self.counted(["summarize", "used"]),
            "sql": self.sql("SELECT count(*), sum(size) FROM allocation "
                            "WHERE state NOT LIKE 'free%'")[0],
            "tree": (count, self.tree[0]["retained"]),
            "export": (count, sum(size for _, size in self.folded())),
        }

    def leaked(self):
        leaked = matched(r"^Heap: .* allocations(?:; ([\d,]+) bytes leaked)?", self.screen)
        count, size = self.counted(["count", "leaked"])
        return {
            "the first screen": (count, leaked[0] if leaked else 0),
            "info": sets(self.info["set"])["leaked"],
            "page": sets(self.page.rows("set"))["leaked"],
            "count": (count, size),
            "summarize": self.counted(["summarize", "leaked"]),
            "sql": self.sql("SELECT count(*), coalesce(sum(size), 0) FROM allocation "
                            "WHERE state = 'leaked'")[0],
            "export": (count, sum(size for _, size in self.folded("leaked"))),
        }

    def held(self, holder, frame):
        """The bytes that the holder holds."""
        suspect = next(row for row in self.info["suspect"] if row["owner"] == holder)
        path = holder.split(" ")[0]
        if "(" + path + ")" not in frame:
            sql = self.sql(f"SELECT retained FROM variable WHERE name = '{holder}'")
            tree = [row for row in self.tree if (row["depth"], row["owner"]) == (1, holder)]
        else:
            sql = self.sql("SELECT retained FROM allocation WHERE address = " + suspect["example"])
            tree = [row for row in self.tree if row["path"] == path]
        return {
            "the first screen": matched(rf"^ *([\d,]+) +\d+ % +{re.escape(holder)}",
                                        self.screen)[0],
            "info": suspect["retained"],
            "page": next(row["retained"] for row in self.page.rows("suspect")
                         if row["owner"] == holder),
            "tree": tree[0]["retained"],
            "tree, as text": matched(rf"^ *([\d,]+) .* {re.escape(frame)}$", self.tree_text)[0],
            "the page's tree": next(
                row["retained"] for row in self.page.rows("owner") if row["owner"] == frame),
            "sql": sql[0][0],
            "folded": sum(size for names, size in self.folded() if frame in names),
            "svg": matched(rf"<title>{re.escape(frame)}\n([\d,]+) bytes in ", self.svg)[0],
        }


class SameNumbersTest(LiveTest):
    def core_of(self, language):
        if language == "C++":
            # It loses some, too.
            process = self.start([self.compile("holders", "holders.cpp", compiler="c++",
                                               flags=("-g", "-O1")), "lost"])
            return snap(process, self.path("core"))
        interpreter, text = {"Python": ("python3", PYTHON), "Ruby": ("ruby", RUBY)}[language]
        if not shutil.which(interpreter):
            self.skipTest(f"there is no {interpreter}")
        return self.core_of_script(interpreter, text)[0]

    def check(self, language):
        core = self.core_of(language)
        ask("-q", "report", core, "-o", self.path("page.html"))
        views = Views(core, self.path("page.html"))
        questions = {"used": views.used(), "leaked": views.leaked()}
        for holder, frame in HOLDERS[language].items():
            questions[holder] = views.held(holder, frame)
        for question, answers in questions.items():
            with self.subTest(question):
                self.assertEqual(answers, dict.fromkeys(answers, answers["info"]))

    def test_cxx(self):
        self.check("C++")

    def test_python(self):
        self.check("Python")

    def test_ruby(self):
        self.check("Ruby")


if __name__ == "__main__":
    unittest.main()
