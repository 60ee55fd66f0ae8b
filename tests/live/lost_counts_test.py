#!/usr/bin/env python3
"""
Counts of references that are more than the holders: each lost reference that a program planted is
found, and nothing else, though holders are on stacks, in containers, in tagged words, and weak.
"""

import sys
import unittest

from harness import LiveTest, addresses, ask, rows, snap

SHARED = r"""
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <unistd.h>
#include <vector>

struct doc : std::enable_shared_from_this<doc> { std::vector<int> numbers; char text[64]; };
struct big { long values[30]; };
static std::vector<std::weak_ptr<doc>> cache;
static std::vector<std::shared_ptr<doc>> held;
static std::map<int, std::shared_ptr<big>> by_number;
static std::vector<std::function<long()>> callbacks;

template <class T> static void lose(const std::shared_ptr<T> &pointer)
{
	alignas(8) static char raw[sizeof(pointer)];
	new (raw) std::shared_ptr<T>(pointer);
	memset(raw, 0, sizeof(raw));
}
static void __attribute__((noinline)) fill()
{
	for (int i = 0; i < 4000; i++) {
		auto made = std::make_shared<doc>();
		std::shared_ptr<big> other(new big());
		if (i % 8 == 0) {
			lose(made);
			printf("%p\n", *((void **)&made + 1));
		}
		if (i % 8 == 4) {
			lose(other);
			printf("%p\n", *((void **)&other + 1));
		}
		cache.push_back(made);
		held.push_back(made);
		by_number[i] = other;
		callbacks.push_back([made, other] { return other->values[0] + made->text[0]; });
	}
	held.resize(2000);
	callbacks.resize(3000);
}
int main()
{
	fill();
	std::shared_ptr<doc> here = held[1];
	puts("ready");
	fflush(stdout);
	pause();
	return here->text[0];
}
"""

PYTHON = r"""
import ctypes, sys, time
class Order:
    def __init__(self, number): self.number, self.lines = number, [number, {}]
orders = [Order(number) for number in range(5000)]
lists = [[str(number)] for number in range(5000)]
for made in orders[::10] + lists[::10]:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    print(hex(id(made)))
del made
print("ready", flush=True)
time.sleep(600)
"""


class LostCountsTest(LiveTest):
    def core_of(self, *command):
        """A core, and the addresses that the program wrote down."""
        process = self.start(list(command))
        return snap(process, self.path("core")), {int(line, 16) for line in process.said}

    def test_shared_pointers(self):
        program = self.compile("shared", compiler="c++", flags=("-O1",), text=SHARED)
        core, planted = self.core_of(program)
        found = addresses("-q", core, "enumerate", "lostcount")
        self.assertEqual(found - planted, set())
        self.assertEqual(len(planted), 1000)
        self.assertEqual(planted - found, set())
        self.assertRegex(ask("-q", core, "describe", "lostcount", "--limit", "1").stdout,
                         r"kept by a count of \d references, of which \d were found: lost 1\.")
        lost = rows("result", "-q", core, "sql", "SELECT * FROM lost_count")
        self.assertEqual({row["count"] - row["found"] for row in lost}, {1})

    def test_objects_of_python(self):
        core, planted = self.core_of(sys.executable, "-c", PYTHON)
        found = addresses("-q", core, "enumerate", "lostcount")
        objects = {address + offset for address in found for offset in (0, 16, 32)}
        self.assertEqual(len(planted), 1000)
        self.assertLessEqual(len(planted - objects), 5)
        self.assertLessEqual(len(found), 1000)


if __name__ == "__main__":
    unittest.main()
