#!/usr/bin/env python3
"""
Objects of languages that the prompt completes where an address is, as the program calls them, and
what it suggests for a name that there is not.
"""

import os
import shutil
import unittest

import completed_kinds_test
import harness

PROGRAMS = {
    "python3": """
import time


class Order:
    def __init__(self):
        self.articles = ["article"]
        self.customer = "customer"


LISTENERS = [Order()]
order = Order()
MANY = {"key%d" % number: [number] for number in range(1000)}
print("ready", flush=True)
time.sleep(1e6)
""",
    "ruby": """
module App
  SESSIONS = { "first" => ["session"] }
end
$cache = { "a" => ["cached"] }
puts "ready"
$stdout.flush
sleep
""",
}


class CompletedObjectsTest(completed_kinds_test.CompletedTest):
    def core_of(self, language):
        if not shutil.which(language):
            self.skipTest(f"there is no {language}")
        script = os.path.join(self.folder, "program")
        with open(script, "w", encoding="utf-8") as file:
            file.write(PROGRAMS[language])
        process = harness.start([language, script], folder=self.folder)
        self.addCleanup(harness.end, process)
        return harness.snap(process, os.path.join(self.folder, language))

    def check(self, core, *pairs):
        self.start(core)
        for typed, line in pairs:
            with self.subTest(typed):
                self.assertEqual(self.complete(typed), line)

    def check_nearest(self, core, path, nearest):
        said = harness.ask("-q", core, "explain", path, expected=(2,)).stderr
        self.assertIn(f"unknown variable or object '{path}'", said)
        self.assertEqual(said.partition("; did you mean ")[2].strip(),
                         f"'{nearest}'?" if nearest else "")

    def test_python(self):
        core = self.core_of("python3")
        self.check(core,
                   ("explain __main__.LIST\t", "explain __main__.LISTENERS"),
                   ("show __main__.order.art\t", "show __main__.order.articles"),
                   ("list incoming __main__.LIST\t", "list incoming __main__.LISTENERS"),
                   ("count used __main__.LIST\t", "count used __main__.LIST"),
                   ("explain __main__.nosuch\t", "explain __main__.nosuch"),
                   # Too many to be shown.
                   ("explain __main__.MANY[\t", "explain __main__.MANY["))
        self.check_nearest(core, "__main__.LISTNERS", "__main__.LISTENERS")
        self.check_nearest(core, "__main__.order.artikles", "__main__.order.articles")
        self.check_nearest(core, "__main__.nothing", None)

    def test_ruby(self):
        core = self.core_of("ruby")
        self.check(core,
                   ("show $cac\t", "show $cache"),
                   ("explain App::SES\t", "explain App::SESSIONS"))
        self.check_nearest(core, "$cahce", "$cache")
        self.check_nearest(core, "App::SESIONS", "App::SESSIONS")


if __name__ == "__main__":
    unittest.main()
