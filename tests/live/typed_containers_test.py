#!/usr/bin/env python3
"""
testdata/programs/typed_containers.cpp says where it makes plain structures, to
which containers and wrappers of the standard library lead: all of them have
their type by debug information, with libstdc++ and libc++, and nothing else has,
such as what a std::optional or std::any refers to that was reset.
"""

import re
import shutil
import unittest

import harness
from harness import LiveTest, addresses, addresses_said, ask, core_of, needs_i386

PLACES = 17


# Containers of so many elements that each is known by its count.
NAMED = r"""
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>
#include <stdio.h>
#include <unistd.h>

struct Node { int number; };

static struct World {
	std::map<std::string, Node *> by_name;
	std::set<int> numbers;
	std::unordered_map<int, Node> nodes;
	std::unordered_set<double> doubles;
	std::list<Node> list;
	std::forward_list<Node> forward;
	std::vector<std::vector<Node *>> rows;
	std::deque<Node> queue;
	std::vector<std::function<int()>> calls;
#ifdef MULTI
	std::multimap<std::string, Node *> several;
#endif
} world;

int main(void)
{
	static Node node;

	for (int i = 0; i < 11; i++)
		world.by_name[std::to_string(i)] = &node;
	for (int i = 0; i < 12; i++)
		world.numbers.insert(i);
	for (int i = 0; i < 13; i++)
		world.nodes[i].number = i;
	for (int i = 0; i < 14; i++)
		world.doubles.insert(i);
	for (int i = 0; i < 15; i++)
		world.list.push_back({ i });
	for (int i = 0; i < 16; i++)
		world.forward.push_front({ i });
	for (int i = 0; i < 17; i++)
		world.rows.push_back({ &node, &node, &node });
	for (int i = 0; i < 18 * 512 / (int)sizeof(Node); i++)
		world.queue.push_back({ i });
	for (int i = 0; i < 20; i++)
		world.calls.push_back([rows = world.rows, i] { return i + (int)rows.size(); });
#ifdef MULTI
	for (int i = 0; i < 19; i++)
		world.several.emplace("same", &node);
#endif
	puts("ready");
	fflush(stdout);
	pause();
}
"""
LAMBDA = "world.calls.push_back([rows = world.rows, i] { return i + (int)rows.size(); });"
NAMES = {
    "std::map<std::string, Node *> node": 11,
    "std::set<int> node": 12,
    "std::unordered_map<int, Node> node": 13,
    "std::unordered_set<double> node": 14,
    "std::list<Node> node": 15,
    "std::forward_list<Node> node": 16,
    "std::vector<Node *> body": 17 + 20 * 17,
    f"(lambda of line {1 + [*map(str.strip, NAMED.splitlines())].index(LAMBDA)})": 20,
}


def has_libcxx():
    """Whether clang has the headers of libc++."""
    return shutil.which("clang++") and harness.run(
        "clang++", "-stdlib=libc++", "-fsyntax-only", "-include", "map", "-x",
        "c++", "/dev/null").returncode == 0


class TypedContainersTest(LiveTest):
    def check(self, *flags, compiler="g++"):
        program = self.compile("typed_containers", "typed_containers.cpp",
                               compiler=compiler,
                               flags=("-std=c++17", "-g", *flags))
        process = self.start([program])
        truth = addresses_said(process)
        self.assertEqual(len(truth), PLACES)
        core = core_of(process, self.folder, flags)
        found = addresses("-q", core, "enumerate", "used", "shop::Leaf")
        for where, made in truth.items():
            with self.subTest(where=where, flags=flags, compiler=compiler):
                self.assertEqual(made - found, set())
        self.assertEqual(found, set().union(*truth.values()))
        return core

    def test_gcc(self):
        if harness.ALL_VARIANTS:
            self.check("-O0")
        core = self.check("-O2")
        # A name is taken as it is printed.
        names = re.findall(r"Type (std::.*list<.*) has 1 instance ",
                           ask("-q", core, "summarize", "used", "--all").stdout)
        self.assertEqual(len(names), 1)
        self.assertEqual(
            len(addresses("-q", core, "enumerate", "used", names[0])), 1)

    def test_i386(self):
        needs_i386("g++")
        self.check("-O1", "-m32")

    @unittest.skipUnless(has_libcxx(), "no libc++")
    def test_libcxx(self):
        self.check("-O2", "-stdlib=libc++", compiler="clang++")

    def names(self, *flags, compiler="g++"):
        """The counts of kinds, and the core."""
        program = self.compile("named", compiler=compiler, text=NAMED,
                               flags=("-x", "c++", "-std=c++17", "-g", "-O1", *flags))
        core = core_of(self.start([program]), self.folder, flags)
        return {row["type"]: row["count"]
                for row in harness.rows("group", core, "summarize", "used") if row["type"]}, core

    def check_names(self, *flags, **options):
        counts, core = self.names(*flags, **options)
        for name, count in NAMES.items():
            # libc++ stores a call in an object of its own class.
            if "lambda" in name and "compiler" in options:
                continue
            with self.subTest(name=name, flags=flags):
                self.assertEqual(counts.get(name), count)
                # What is printed can be typed.
                self.assertEqual(len(addresses("-q", core, "enumerate", "used", name)), count)
        return counts

    def test_parts_of_containers_have_their_names(self):
        counts = self.check_names()
        self.assertIn(counts["std::deque<Node> block"], (18, 19))
        self.assertFalse(any("multi" in name for name in counts if name))

    def test_nodes_below_the_first_are_one_step(self):
        _, core = self.names()
        folded = 0
        for node in addresses("-q", core, "enumerate", "used", "std::set<int> node"):
            # A summary finds types, so the steps have them.
            said = ask(core, "-c", "summarize used", "-c", f"explain {node:x}").stdout
            root, first, *others = re.findall(r"^  \d+\. .*", said, re.M)
            # Members that only the library knows say nothing.
            self.assertRegex(root, r"^  1\. world\.numbers \(named\), static address 0x\w+$")
            self.assertRegex(first, r"^  2\. -> std::set<int> node 0x\w+, 40 bytes$")
            self.assertNotIn("_M_", "".join(others))
            self.assertLessEqual(len(others), 1, others)
            folded += bool(others) and bool(re.search(r" \(x\d+\)$", others[0]))
        self.assertGreater(folded, 0)

    @unittest.skipUnless(has_libcxx(), "no libc++")
    def test_parts_of_containers_of_libcxx_have_their_names(self):
        self.check_names("-stdlib=libc++", compiler="clang++")

    def test_containers_whose_nodes_are_alike(self):
        counts, _ = self.names("-DMULTI")
        self.assertEqual(counts["std::map or its multi form<std::string, Node *> node"], 30)
        self.assertEqual(counts["std::set<int> node"], 12)


if __name__ == "__main__":
    unittest.main()
