#!/usr/bin/env python3
"""
`heapcore soak`: what a service keeps more of at each request is named by who holds it, and a
healthy one passes.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest

import harness
from harness import FINE, FOUND, INCOMPLETE, USAGE

PYTHON = """
import sys

CACHE = {}
LAST = []

def work(number):
    noise = [str(i) * 100 for i in range(number * 37 % 101)]
    LAST[:] = [len(noise), {"number": number}]
    if sys.argv[2] == "cache":
        CACHE[f"user {number}"] = {"name": f"name {number}" * 9}
    cycle = []
    cycle.append(cycle)

for number in range(900):
    with open(sys.argv[1]) as requests:
        requests.readline()
    work(number)
    with open(sys.argv[3], "w") as answers:
        answers.write("done")
"""


CLASSES = """
#include <fstream>
#include <map>
#include <string>

struct Store {
    virtual ~Store() = default;
    std::map<int, std::string> names;
};

Store *store = new Store;

int main(int count, char **arguments)
{
    for (int number = 0; number < 900; number++) {
        std::string line;
        std::getline(std::ifstream(arguments[1]) >> std::ws, line);
        store->names[number] = "name";
        std::ofstream(arguments[2]) << "done";
    }
}
"""


CRYSTAL = """
CACHE = {} of Int32 => String

900.times do |number|
  File.open(ARGV[0], &.gets)
  CACHE[number] = "name #{number} " * 9
  File.write(ARGV[1], "done")
end
"""


RUBY = """
CACHE = {}
FINALIZER = proc { }
Thread.new { sleep }

def work(number)
  CACHE["user #{number}"] = "name #{number} " * 9 if ARGV[1] == "cache"
  Thread.new { 5.times { ObjectSpace.define_finalizer(Object.new, FINALIZER) } }.join
end

900.times do |number|
  File.open(ARGV[0]) { |requests| requests.gets }
  work(number)
  File.write(ARGV[2], "done")
end
"""


NODE = """
const fs = require("fs");
let number = 0;

globalThis.CACHE = new Map();

function work() {
    CACHE.set(`user ${number}`, { name: `name ${number++}`, orders: [number] });
    fs.writeFile(process.argv[2], "done", wait);
}

function wait() {
    fs.readFile(process.argv[1], work);
}

wait();
"""


class SoakTest(harness.LiveTest):
    def setUp(self):
        super().setUp()
        self.requests, self.answers = self.path("requests"), self.path("answers")
        os.mkfifo(self.requests)
        os.mkfifo(self.answers)
        # Where the service has ended, nobody opens the other end.
        self.every = (f"timeout 9 sh -c 'echo work > {shlex.quote(self.requests)}; "
                      f"read line < {shlex.quote(self.answers)}; true'")

    def service(self, what):
        program = harness.build(self.path("soak"), "gcc", "-g", "-O1", "-D_GNU_SOURCE",
                                os.path.join(harness.PROGRAMS, "soak.c"))
        return [program, self.requests, what, self.answers]

    def python(self, what):
        return [sys.executable, "-c", PYTHON, self.requests, what, self.answers]

    def soak(self, command, *options):
        return harness.run(harness.HEAPCORE, "soak", "--every", self.every, *options, "--",
                           *command, env={**os.environ, "TMPDIR": self.folder})

    def check(self, result, status):
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout.splitlines()

    def test_what_is_kept_is_named_by_its_holder(self):
        lines = self.check(self.soak(self.service("keep")), FOUND)
        self.assertEqual(lines, [
            "registry (soak): +1 x struct job an iteration, 280 bytes in 5",
            "Gate failed: 1 kind grows in each of 5 iterations.",
        ])

    @unittest.skipIf(harness.SANITIZED, "the sanitizer has a malloc of its own")
    def test_who_allocated_what_grows_is_said(self):
        sarif, kept = self.path("gate.sarif"), self.path("kept")
        lines = self.check(self.soak(self.service("keep"), "--stacks", "-o", sarif, "--keep", kept),
                           FOUND)
        self.assertRegex(lines[0], r"^registry \(soak\): \+1 x struct job an iteration, 280 bytes "
                                   r"in 5, allocated by \w+ \(soak\.c:\d+\)$")
        with open(sarif, encoding="utf-8") as file:
            self.assertIn(json.dumps(f"{lines[0]}."), file.read())
        self.assertEqual([name for name in os.listdir(self.folder) if "recorder" in name], [])
        result = harness.run(harness.HEAPCORE, f"{kept}/6.core", "diff", f"{kept}/1.core",
                             "--by", "caller")
        self.assertRegex(result.stdout, r"\+5 .* \w+ \(soak\.c:\d+\)")
        result = harness.run(harness.HEAPCORE, "soak", "--every", "1s", "--stacks", "--pid", "1")
        self.assertIn("not for --pid", result.stderr)

    def test_growth_in_changing_sizes_is_its_holders(self):
        lines = self.check(self.soak(self.service("mixed")), FOUND)
        self.assertIn("notes (soak): +1 ", lines[0])

    def test_what_is_lost_at_each_request_is_said(self):
        lines = self.check(self.soak(self.service("lose")), FOUND)
        self.assertRegex(lines[0], r"^leaked: \+1 x .*200.* an iteration, 1,\d\d\d bytes in 5$")
        self.assertEqual(len(lines), 2)

    def test_cache_that_fills_and_stops_is_no_growth(self):
        options = ("--warm-up", "11", "--snapshots", "5")
        lines = self.check(self.soak(self.service("fill"), *options), FINE)
        self.assertEqual(lines, ["Gate passed: 0 kinds grow in each of 4 iterations."])

    def test_service_with_nothing_but_noise_passes(self):
        self.check(self.soak(self.service("nothing")), FINE)

    def test_cache_in_python_is_named_by_its_path(self):
        lines = self.check(self.soak(self.python("cache")), FOUND)
        self.assertRegex(lines[0], r"^__main__\.CACHE \(dict\): \+1 x dict an iteration, "
                                   r"\d,\d\d\d bytes with what they hold in 5$")
        self.assertEqual(len(lines), 2, lines)

    def test_class_that_keeps_more_is_named_by_its_variable(self):
        program = harness.build(self.path("classes"), "g++", "-g", "-O1", "-x", "c++", "-",
                                text=CLASSES)
        lines = self.check(self.soak([program, self.requests, self.answers]), FOUND)
        self.assertRegex(lines[0], r"^store \(Store\): \+1 x .* an iteration, ")

    @unittest.skipUnless(shutil.which("crystal"), "there is no Crystal")
    def test_cache_in_crystal_is_named_by_its_constant(self):
        program = harness.build_crystal(self.path("cache"), CRYSTAL)
        lines = self.check(self.soak([program, self.requests, self.answers]), FOUND)
        self.assertRegex(lines[0], r"^CACHE \(Hash\(Int32, String\)\): \+1 x String an iteration, ")

    @unittest.skipUnless(shutil.which("node"), "there is no Node.js")
    def test_cache_in_node_is_named_by_its_path(self):
        lines = self.check(self.soak(["node", "-e", NODE, self.requests, self.answers],
                                     "--warm-up", "4", "--iterations", "4"), FOUND)
        self.assertRegex("\n".join(lines), r"(?m)^globalThis\.CACHE.*: \+1 x Object an iteration, ")

    def ruby(self, what):
        return ["/usr/bin/ruby", "-e", RUBY, self.requests, what, self.answers]

    @unittest.skipUnless(os.path.exists("/usr/bin/ruby"), "there is no Ruby")
    def test_cache_in_ruby_is_named_by_its_path(self):
        lines = self.check(self.soak(self.ruby("cache")), FOUND)
        self.assertRegex(lines[0], r"^CACHE \(Hash\): \+2 x String an iteration, ")
        self.assertEqual(len(lines), 2, lines)

    @unittest.skipUnless(os.path.exists("/usr/bin/ruby"), "there is no Ruby")
    def test_finalizers_in_ruby_that_wait_for_its_collector_are_no_growth(self):
        self.check(self.soak(self.ruby("nothing")), FINE)

    def test_python_without_one_passes(self):
        self.check(self.soak(self.python("nothing")), FINE)

    def test_service_that_ends_is_not_judged(self):
        result = self.soak(self.service("end"))
        self.check(result, INCOMPLETE)
        self.assertIn("ended after 2 snapshots", result.stderr)

    def test_process_that_runs_is_looked_at(self):
        with harness.ended(subprocess.Popen(self.service("keep"))) as process:
            result = harness.run(harness.HEAPCORE, "soak", "--every", self.every, "--iterations",
                                 "3", "--pid", str(process.pid))
            lines = self.check(result, FOUND)
            self.assertIsNone(process.poll())
        self.assertIn("registry (soak): +1 x struct job an iteration, 168 bytes in 3", lines)

    def test_snapshots_are_kept_only_if_asked_for(self):
        self.soak(self.service("keep"), "--iterations", "2")
        self.assertFalse([name for name in os.listdir(self.folder) if "core" in name])
        kept = self.path("kept")
        self.soak(self.service("keep"), "--iterations", "2", "--keep", kept)
        self.assertEqual(sorted(os.listdir(kept)), ["1.core", "2.core", "3.core"])
        cores = [os.path.join(kept, name) for name in sorted(os.listdir(kept))]
        result = harness.run(harness.HEAPCORE, "gate", cores[2], "--growing", cores[0],
                             "--growing", cores[1])
        self.assertIn("registry (soak): +1 x struct job an iteration",
                      self.check(result, FOUND)[0])

    def test_what_is_accepted_passes(self):
        rules, baseline = self.path("rules"), self.path("baseline.json")
        with open(rules, "w", encoding="utf-8") as file:
            file.write("class:struct job\n")
        lines = self.check(self.soak(self.service("keep"), "--suppress", rules), FINE)
        self.assertIn("; suppressed by class:struct job", lines[0])
        self.check(self.soak(self.service("keep"), "--baseline", baseline, "--update-baseline"),
                   FINE)
        lines = self.check(self.soak(self.service("keep"), "--baseline", baseline), FINE)
        self.assertIn("; 1 in the baseline", lines[0])

    def test_reports_for_machines_have_what_grows(self):
        junit, sarif = self.path("gate.xml"), self.path("gate.sarif")
        self.soak(self.service("keep"), "-o", f"junit:{junit}", "-o", sarif)
        with open(junit, encoding="utf-8") as file:
            self.assertIn('message="registry (soak): +1 x struct job an iteration, 280 bytes in 5"',
                          file.read())
        with open(sarif, encoding="utf-8") as file:
            results = json.load(file)["runs"][0]["results"]
        self.assertEqual([result["message"]["text"] for result in results],
                         ["registry (soak): +1 x struct job an iteration, 280 bytes in 5."])

    def test_nothing_is_started_where_snapshots_have_no_room(self):
        mark = self.path("mark")
        result = harness.run(harness.HEAPCORE, "soak", "--every", "1s", "--", "touch", mark,
                             env={**os.environ, "TMPDIR": self.path("absent")})
        self.check(result, INCOMPLETE)
        self.assertIn("temporary file", result.stderr)
        self.assertFalse(os.path.exists(mark))

    def test_command_that_fails_is_said(self):
        result = harness.run(harness.HEAPCORE, "soak", "--every", "exit 7", "--pid",
                             str(os.getpid()))
        self.check(result, INCOMPLETE)
        self.assertIn("status 7", result.stderr)

    def test_interrupt_ends_the_program_and_the_command(self):
        mark = self.path("mark")
        every = f"touch {shlex.quote(mark)}; sleep 977; true"
        with harness.ended(subprocess.Popen(
                [harness.HEAPCORE, "soak", "--every", every, "--", "sleep", "978"],
                stderr=subprocess.PIPE, text=True)) as process:
            while not os.path.exists(mark):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            # Their end of the pipe is closed only once all have ended.
            process.communicate(timeout=harness.TIMEOUT)
            self.assertEqual(process.returncode, 130)

    def test_wrong_usage(self):
        for words in ((), ("--every", "1s"), ("--every", "1s", "--snapshots", "2", "--", "true"),
                      ("--every", "1s", "--pid", "1", "--", "true"),
                      ("--every", "1s", "--", "/nonexistent/program"),
                      ("--every", "1s", "--likely", "--", "true"),
                      ("--every", "1s", "--pid", "many")):
            self.check(harness.run(harness.HEAPCORE, "soak", *words), USAGE)


if __name__ == "__main__":
    unittest.main()
