"""
The bill of real programs: what is resident is what the kernel says, and next
to nothing is unexplained.

Programs in C++, Python and Ruby with some threads, cored by `heapcore snap`,
which notes what the kernel says, and by the kernel, whose cores have holes.
"""

import shutil
import sys
import unittest

import harness

# What a program may touch while it is looked at, and as it dies.
MOST_CHANGED = 128 << 10

CXX = r"""
#include <atomic>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>
int main()
{
	static std::map<int, std::string> kept;
	static std::atomic<int> started;
	std::vector<std::thread> threads;
	for (int i = 0; i < 100000; i++)
		kept[i] = std::string(i % 100, 'x');
	for (int i = 0; i < 100000; i += 3)
		kept.erase(i);
	for (int i = 0; i < 4; i++)
		threads.emplace_back([] {
			char *volatile block = new char[1000];
			started++;
			pause();
			delete[] block;
		});
	while (started < 4)
		std::this_thread::yield();
	puts("ready");
	fflush(stdout);
	pause();
}
"""

PYTHON = """
import threading, time
kept = {number: [str(number)] * 3 for number in range(100000)}
started = threading.Barrier(5)
def wait():
    started.wait()
    time.sleep(600)
for _ in range(4):
    threading.Thread(target=wait, daemon=True).start()
started.wait()
print("ready", flush=True)
time.sleep(600)
"""

RUBY = """
kept = {}
100000.times { |number| kept[number] = ["x#{number}", [number] * 5] }
threads = (1..4).map { Thread.new { sleep 600 } }
Thread.pass until threads.all? { |thread| thread.status == "sleep" }
puts "ready"
STDOUT.flush
sleep 600
"""


def areas_of(pid):
    """(is it anonymous, resident bytes) of each mapping."""
    areas = []
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                path = words[5] if len(words) > 5 else ""
                areas.append([path in ("", "[heap]", "[stack]"), 0])
            elif words[0] == "Rss:":
                areas[-1][1] = int(words[1]) * 1024
    return areas


def bill_of(core):
    tables = harness.tables(core, "bill")
    return tables["use"], tables["residency"][0]["told_by"]


class Bill(harness.LiveTest):
    def check_bill(self, rows, resident, among):
        """Those rows are resident as the kernel says; all are explained."""
        *uses, total = rows
        mapped = sum(row["mapped"] for row in uses)
        unexplained = sum(row["mapped"] for row in uses
                          if row["memory"] == "unexplained")
        found = sum(row["resident"] for row in uses if among(row))
        self.assertEqual(total["mapped"], mapped)
        self.assertLess(unexplained, mapped / 100)
        self.assertLess(abs(found - resident), MOST_CHANGED)

    def check_program(self, command):
        process = self.start(command)
        areas = areas_of(process.pid)
        rows, told_by = bill_of(harness.snap(process, self.path("snapped")))
        self.assertEqual(told_by, "smaps")
        self.check_bill(rows, sum(size for _, size in areas), lambda row: True)
        self.check_kernel_core(process, areas)

    def check_kernel_core(self, process, areas):
        rows, told_by = bill_of(harness.kernel_core(process, self.folder))
        self.assertEqual(told_by, "holes")
        self.check_bill(
            rows, sum(size for anonymous, size in areas if anonymous),
            lambda row: row["memory"] in ("glibc", "pymalloc", "ruby", "stacks",
                                          "other memory", "unexplained"))

    def test_program_in_cxx(self):
        self.check_program([self.compile(
            "program", flags=["-O1", "-pthread"], compiler="g++", text=CXX)])

    def test_python(self):
        self.check_program([sys.executable, "-c", PYTHON])

    def test_ruby(self):
        if not shutil.which("ruby"):
            self.skipTest("there is no ruby")
        self.check_program(["ruby", "-e", RUBY])


if __name__ == "__main__":
    unittest.main()
