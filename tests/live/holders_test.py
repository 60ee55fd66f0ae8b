#!/usr/bin/env python3
"""
What holds most of the memory is named as the program names it: a map that is a global variable, a
list, tables below a table, a cache and a list of Python. Each program says how many bytes each of
them holds.
"""

import shutil
import textwrap
import unittest

from harness import LiveTest, ask, rows, run, snap, tables

CXX = """
#include <map>
#include <regex>
#include <string>
int main() { std::map<std::string, std::regex> all; return all.empty(); }
"""
WRAP = 'python held = [gdb.objfiles(), gdb.lookup_static_symbol("main")]'
WAIT = 'python import time; print("ready", flush=True); time.sleep(1e6)'
PYTHON = """
import collections, sqlite3, sys, time


class Listener:
    def __init__(self, number):
        self.name = "listener %d" % number
        self.queue = [number] * 20


def size(*objects):
    return sum((sys.getsizeof(each) + 15) // 16 * 16 for each in objects)


CACHE, LISTENERS, EVENTS = {}, [], collections.deque()
TABLES = sqlite3.connect(":memory:")
TABLES.execute("CREATE TABLE rows (number, text)")
TABLES.executemany("INSERT INTO rows VALUES (?, ?)", ((n, "text" * 10) for n in range(20000)))
with open(sys.argv[1], "w") as truth:
    for number in range(20000):
        CACHE["key %d" % number] = ("value %d" % number) * 10
    held = size(CACHE) + sum(size(*both) for both in CACHE.items())
    print("CACHE", held, file=truth)
    for number in range(20000):
        LISTENERS.append(Listener(number))
        EVENTS.append([number] * 40)
    held = size(LISTENERS) + sum(size(each.name, each.queue) for each in LISTENERS)
    print("LISTENERS", held, file=truth)


def serve():
    batch = ["text %d" % number * 4 for number in range(1000)]
    with open(sys.argv[1], "a") as truth:
        print("batch", size(batch) + size(*batch), file=truth)
    print("ready", flush=True)
    time.sleep(1e6)


serve()
"""

TASKS = """
import asyncio, sys


async def fetch(size):
    data = bytearray(size)
    await asyncio.sleep(1e6)
    return data


async def handle(number):
    other = [number]
    await fetch(500000)
    return other


async def main():
    tasks = [asyncio.create_task(handle(number)) for number in range(30)]
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    await asyncio.gather(*tasks)

asyncio.run(main())
"""

NESTED = """
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct item { struct item *next; char text[100]; };
static __attribute__((noinline)) int serve(struct item *volatile middle, int calls)
{
	struct item *volatile own = middle;
	if (calls)
		return serve(middle->next, calls - 1) + (own != NULL);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
int main(void)
{
	struct item *volatile first = NULL;
	size_t held = 0;
	for (int i = 0; i < 10000; i++) {
		struct item *item = calloc(1, sizeof(*item));
		held += malloc_usable_size(item);
		item->next = first;
		first = item;
	}
	printf("held %zu\\n", held);
	return serve(first->next->next, 5) + (first != NULL);
}
"""


def rows_of(query, core):
    return rows("result", "-q", core, "sql", query)


class HoldersTest(LiveTest):
    def core_of_holders(self, *flags):
        process = self.start([self.compile("holders", "holders.cpp", compiler="c++",
                                           flags=flags)])
        truth = dict(line.split() for line in process.said)
        return (snap(process, self.path("core")),
                {owner: int(size) for owner, size in truth.items()})

    def check_variables(self, *flags):
        core, truth = self.core_of_holders(*flags)
        found = [(row["owner"], (row["retained"], row["count"]))
                 for row in rows("suspect", "-q", core, "report")]
        held = dict(found)
        orders = next(owner for owner in held if owner.startswith("orders"))
        self.assertEqual(held[orders], (truth["orders"], 20000))
        self.assertEqual(held["sessions (holders)"], (truth["sessions"], 10000))
        # A map in an object: many of its nodes have no node alone above them.
        self.assertIn((truth["members"], 15000), held.values())
        below = {row for owner, row in found if owner.endswith(" in tables (holders)")}
        self.assertEqual(below, {(truth["first"], 2000), (truth["second"], 2000)})
        # All other views have the same bytes.
        tree = {row["owner"]: row["retained"] for row in tables("-q", core, "tree")["owner"]
                if row["depth"] == 1}
        sql = {row["name"]: row["retained"]
               for row in rows_of("SELECT name, retained FROM variable", core)}
        for owner in (orders, "sessions (holders)", "tables (holders)"):
            self.assertEqual(tree[owner], sql[owner], owner)
        self.assertEqual(sql[orders], truth["orders"])

    def test_variables_with_debug_information(self):
        self.check_variables("-g", "-O1")

    def test_variables_without_debug_information(self):
        self.check_variables("-O1")

    def test_a_stripped_program(self):
        core, truth = self.core_of_holders("-O1", "-s")
        held = [row["retained"] for row in rows("suspect", "-q", core, "report")]
        self.assertIn(truth["sessions"], held)
        self.assertIn(truth["first"], held)

    def test_a_frame_holds_what_those_that_it_calls_refer_to(self):
        for flags in ("-g", "-O0"), ("-O0",):
            process = self.start([self.compile("nested", flags=flags, text=NESTED)])
            held = int(process.said[0].split()[1])
            core = snap(process, self.path("core"))
            found = rows_of("SELECT name, retained FROM variable WHERE kind = 'stack' "
                            "ORDER BY retained DESC", core)
            self.assertEqual(found[0], {"name": f"main() of thread {process.pid}",
                                        "retained": held})
            self.assertFalse([row for row in found[1:] if row["retained"]])

    def test_what_a_library_has_for_itself_comes_last(self):
        text = """
            #include <cstdio>
            #include <map>
            #include <string>
            std::map<int, std::string> orders;
            int main()
            {
                for (int i = 0; i < 200; i++)
                    orders[i] = std::string(40, 'a');
                puts("ready");
                fflush(stdout);
                getchar();
            }
        """
        core = snap(self.start([self.compile("small", flags=("-g", "-O1"), compiler="c++",
                                             text=text)]), self.path("core"))
        found = rows("suspect", "-q", core, "report")
        self.assertTrue(found[0]["owner"].startswith("orders"))
        self.assertIn("%ExceptionPool", found[-1]["owner"])
        self.assertGreater(found[-1]["retained"], found[0]["retained"])
        lines = ask("-q", core, "info").stdout.splitlines()
        self.assertEqual([line.endswith("library's own") for line in lines
                          if "%ExceptionPool" in line], [True])
        self.assertFalse([line for line in lines if "own" in line and "orders" in line])

    def test_what_the_program_refers_to_is_not_the_c_librarys(self):
        text = """
            #include <stdio.h>
            #include <stdlib.h>
            char *buffer;
            int main(void)
            {
                buffer = malloc(500000);
                setvbuf(stdout, buffer, _IOFBF, 500000);
                puts("ready");
                fflush(stdout);
                getchar();
            }
        """
        core = snap(self.start([self.compile("buffered", flags=("-g", "-O1"), text=text)]),
                    self.path("core"))
        held = {row["name"]: row["retained"]
                for row in rows_of("SELECT name, retained FROM variable", core)}
        self.assertGreater(held["buffer (buffered)"], 499999)

    def test_a_block_in_one_of_its_size_is_not_all_that_is_in_it(self):
        text = """
            #include <stdio.h>
            #include <stdlib.h>
            void **outer;
            int main(void)
            {
                void **inner = malloc(16), **by_name = malloc(5000 * 8),
                     **by_number = malloc(5000 * 8);
                outer = malloc(16);
                outer[0] = inner;
                inner[0] = by_name;
                inner[1] = by_number;
                for (int i = 0; i < 5000; i++)
                    by_name[i] = by_number[4999 - i] = malloc(48);
                puts("ready");
                fflush(stdout);
                getchar();
            }
        """
        core = snap(self.start([self.compile("pair", text=text)]), self.path("core"))
        lines = [line for line in ask("-q", core, "info").stdout.splitlines() if "outer" in line]
        self.assertTrue(lines[0].endswith("5,000 of 56 bytes"), lines)

    def views_of_sharers(self, *flags):
        """What holds each list: in the tree, the report, and variables of SQL."""
        process = self.start([self.compile("sharers", "sharers.c", flags=flags)])
        truth = {name: int(size) for name, size in (line.split() for line in process.said)}
        core = snap(process, self.path("core"))
        tree = {row["owner"]: row["retained"] for row in tables("-q", core, "tree")["owner"]
                if row["depth"] == 1}
        held = {row["owner"]: row["retained"] for row in rows("suspect", "-q", core, "report")}
        sql = {row["name"]: row["retained"]
               for row in rows_of("SELECT name, retained FROM variable", core)}
        return truth, tree, held, sql

    def test_a_narrow_screen_names_one_that_shares(self):
        text = """
            #include <stdio.h>
            #include <stdlib.h>
            void **orders_by_customer_number, **orders_by_number_of_article, **orders_of_today;
            int main(void)
            {
                orders_by_customer_number = orders_by_number_of_article = orders_of_today =
                    malloc(5000 * 8);
                for (int i = 0; i < 5000; i++)
                    orders_of_today[i] = malloc(48);
                puts("ready");
                fflush(stdout);
                getchar();
            }
        """
        core = snap(self.start([self.compile("narrow", text=text)]), self.path("core"))
        self.assertRegex(ask("-q", core, "info").stdout,
                         r"% +(shared by )?orders_\w+ and others  5,000 of 56 bytes\n")

    def test_what_several_variables_share_names_them(self):
        truth, tree, held, sql = self.views_of_sharers("-g", "-O1")
        three = "shared by direct, table and behind (sharers)"
        two = "shared by words and exported (sharers)"
        five, = (name for name in tree if name.endswith(" and 3 more"))
        self.assertRegex(five, r"^shared by (five|of_five)\w*, (five|of_five)\w* \(sharers\)")
        named = {name.partition(", ")[2]: bytes for name, bytes in held.items()}
        for name, list_name in ((three, "three"), (five, "five"), (two, "exported")):
            name = self.ordered(name, tree)
            self.assertEqual(tree[name], truth[list_name])
            self.assertEqual(named[name], truth[list_name])
        self.assertEqual(sql["direct (sharers)"] if "direct (sharers)" in sql else 0, 0)

    def test_what_no_variable_owns_is_a_row_of_its_own(self):
        text = """
            #include <stdio.h>
            #include <stdlib.h>
            struct node { struct node *next, *last; char text[1000]; };
            struct node *first, *other;
            char *alone;
            int main(void)
            {
                for (int i = 0; i < 1000; i++) {
                    struct node *node = calloc(1, sizeof(*node));
                    node->next = first ? first : node;
                    node->last = first ? first->last : node;
                    node->next->last = node->last->next = first = node;
                    if (i == 500)
                        other = node;
                }
                alone = malloc(100000);
                puts("ready");
                fflush(stdout);
                getchar();
            }
        """
        core = snap(self.start([self.compile("ring", text=text)]), self.path("core"))
        held = {row["owner"]: row for row in rows("suspect", "-q", core, "report")}
        shared, = (row for owner, row in held.items() if owner.startswith("shared by "))
        self.assertEqual((shared["count"], shared["retained"]), (1000, 1000 * 1016))
        self.assertRegex(shared["owner"], r"^shared by (first|other) \(ring\) and others$")
        self.assertIn("alone (ring)", held)
        for row in rows("suspect", "-q", self.core_of_holders("-O1")[0], "report"):
            self.assertNotIn("shared by ", row["owner"])

    def test_what_many_small_blocks_have_in_common_is_named_if_it_is_most(self):
        program = self.compile("many_sharers", "many_sharers.c", flags=["-O1"])
        for percent, is_named in (100, True), (80, True), (60, False), (0, False):
            with self.subTest(percent=percent):
                process = self.start([program, str(percent)])
                core = snap(process, self.path(f"core.{percent}"))
                held = {row["owner"]: row["retained"]
                        for row in rows("suspect", "-q", core, "report")}
                owner, = (owner for owner in held if owner.startswith("shared by "))
                self.assertRegex(owner, r"^shared by (names|numbers) \(many_sharers\) and others$"
                                        if is_named else "^shared by several roots$")
                self.assertEqual(held[owner], int(process.said[0]))
                self.assertRegex(ask("-q", core, "info").stdout,
                                 r"% +shared by (names|numbers) and others  20,000 of 504 bytes\n"
                                 if is_named else "% +shared by several roots  20,000 of 504 ")

    @staticmethod
    def ordered(name, names):
        """The one of the names that has the same variables, whose order addresses decide."""
        words = sorted(name.replace(",", "").split())
        return next(each for each in names if sorted(each.replace(",", "").split()) == words)

    def test_a_list_is_one_step_of_a_way(self):
        process = self.start([self.compile("sharers", "sharers.c", flags=["-g", "-O1"])])
        core = snap(process, self.path("core"))
        # The nodes of the longest list, the last of which was made first.
        query = ("SELECT printf('%x', address) AS last FROM allocation "
                 "WHERE kind = 'struct node' AND state = 'anchored' ORDER BY address LIMIT 1")
        last = rows_of(query, core)[0]["last"]
        self.assertIn(" -> struct node -> struct node.next (x7999)",
                      rows_of(f"SELECT path(0x{last}) AS path", core)[0]["path"])
        text = ask("-q", core, "explain", last).stdout
        self.assertRegex(text, r"  2\. -> struct node 0x\w+, \d+ bytes\n"
                               rf"  3\. next -> struct node 0x{last}, \d+ bytes \(x7,999\)\n\n")
        # Those of many are read off distances, and have gaps.
        text = ask("-q", core, "explain", "used", "--size", "0x68", "--limit", "9000").stdout
        self.assertRegex(text, r"\(x10\)\n\.\.\. 7,9\d\d more allocations in between\n"
                               r"  \d+\. next -> struct node 0x\w+, 104 bytes \(x10\)")

    def test_a_named_variable_owns_what_nameless_words_of_its_module_lead_to(self):
        truth, tree, held, sql = self.views_of_sharers("-O1", "-rdynamic", "-s")
        for view in (tree, held, sql):
            self.assertEqual(view["exported (sharers)"], truth["exported"])

    def test_python(self):
        core, truth = self.core_of_script("python3", PYTHON)
        with open(truth, encoding="utf-8") as file:
            truth = {name: int(size) for name, size in (line.split() for line in file)}
        # By the object or, where a text of the interpreter looks like its address, by its table.
        held = {row["owner"].split()[0]: row for row in rows("suspect", "-q", core, "report")}
        self.assertAlmostEqual(held["__main__.CACHE"]["retained"] / truth["CACHE"], 1, delta=0.02)
        listeners = held["__main__.LISTENERS"]
        self.assertEqual(listeners["kind"], "__main__.Listener")
        # The table of pymalloc's arenas refers to a few that begin a pool.
        self.assertAlmostEqual(listeners["count"] / 20000, 1, delta=0.01)
        self.assertGreater(listeners["retained"], truth["LISTENERS"] * 0.99)
        events = held["__main__.EVENTS"]
        self.assertEqual(events["kind"], "list")
        self.assertAlmostEqual(events["count"] / 20000, 1, delta=0.01)
        # What sqlite3 keeps in blocks of its own is of the object that has it.
        self.assertTrue([owner for owner in held.values()
                         if owner["owner"].endswith(" in __main__.TABLES")], held)
        self.check_tree_of_python(core, truth)

    def test_what_many_tasks_hold_is_one_row_with_the_way_through_their_calls(self):
        process = self.start(["/usr/bin/python3", "-c", TASKS])
        row = rows("suspect", "-q", snap(process, self.path("core")), "report")[0]
        # An old word behind the documentation of a type may refer into one, too.
        self.assertGreater(row["retained"], 29 * 500000)
        self.assertLess(row["retained"], 30 * 505000)
        self.assertRegex(row["owner"], r"^(29|30) bytearray such as .*\['tasks'\]\[\d+\]\.get_coro\(\)"
                                       r"\.cr_await\.cr_frame\.f_locals\['data'\]$")

    def test_a_list_of_lists_is_no_link_of_a_chain(self):
        script = """
            import time
            class Node:
                __slots__ = ("next", "words")
            ROWS = [[number + 0.5] * 4 for number in range(9000)]
            FIRST = None
            for number in range(7000):
                node = Node()
                node.next, node.words, FIRST = FIRST, [number] * 30, node
            del node
            print("ready", flush=True)
            time.sleep(1e6)
        """
        core, _ = self.core_of_script("python3", textwrap.dedent(script))
        held = {row["owner"].split()[0]: (row["kind"], row["count"])
                for row in rows("suspect", "-q", core, "report")}
        self.assertIn(held["__main__.ROWS"], [("list", count) for count in range(8990, 9001)])
        self.assertIn(held["__main__.FIRST"],
                      [("__main__.Node", count) for count in range(6990, 7001)])

    def test_perl(self):
        """Entries count, however many a chain of the hash has; keys are of the table of all keys."""
        script = """
            our %cache; $cache{"session $_"} = "value $_" x 9 for 1 .. 40000;
            my $closure = do { my @held = map { "held $_" x 9 } 1 .. 30000; sub { scalar @held } };
            $| = 1; print "ready\\n"; sleep 600; print $closure->();
        """
        core, _ = self.core_of_script("perl", textwrap.dedent(script))
        held = {row["owner"]: row for row in rows("suspect", "-q", core, "info")}
        for name, count in ("%main::cache", 40000), ("$closure->(my @held)", 30000):
            row, = [row for owner, row in held.items() if owner.startswith(f"{name} (")]
            self.assertEqual(row["kind"], "string")
            self.assertAlmostEqual(row["count"] / count, 1, delta=0.001)
        keys = held["globals of perl (<shared keys>)"]
        self.assertEqual(keys["kind"], "%PerlSharedKey")
        self.assertGreaterEqual(keys["count"], 40000)

    def test_a_list_of_subclasses_holds_no_class(self):
        """Each object has a class of its own, which Ruby lists without keeping it."""
        script = """
            CACHE = (1..5000).to_h { |i| o = Object.new; o.define_singleton_method(:id) { i }; [i, o] }
            $stdout.sync = true; puts "ready"; sleep 600
        """
        core, _ = self.core_of_script("ruby", textwrap.dedent(script))
        row, = [row for row in rows("suspect", "-q", core, "info") if row["owner"].startswith("CACHE ")]
        self.assertEqual(row["kind"], "Object")
        # The table of call caches, of 1,023 entries, has as many of them as well.
        self.assertGreater(row["count"], 3900)
        self.assertGreater(row["retained"], 3900 * 500)

    def test_what_several_globals_share_is_named_by_one(self):
        script = """
            import sys, time, types
            class Job:
                def __init__(self, before):
                    self.before, self.behind = before, None
            sys.modules["queue_of_jobs"] = module = types.ModuleType("queue_of_jobs")
            module.first = last = Job(None)
            for number in range(20000):
                job = Job(last)
                last.behind, last = job, job
            del module, job
            print("ready", flush=True)
            time.sleep(1e6)
        """
        core, _ = self.core_of_script("python3", textwrap.dedent(script))
        held = rows("suspect", "-q", core, "info")[0]
        self.assertIn(held["owner"], ("globals of python (__main__.last)",
                                      "globals of python (queue_of_jobs.first)"))
        self.assertEqual((held["kind"], held["count"]), ("__main__.Job", 20001))

    def check_tree_of_python(self, core, truth):
        """Each has a row of its own, with its table, below the module that it is a global of."""
        rows = tables("-q", core, "tree", "--depth", "5")["owner"]
        at = {row["path"]: row for row in rows if row["path"]}
        self.assertIn("globals of python", [row["owner"] for row in rows if row["depth"] == 1])
        for name, count in (("CACHE", 2), ("LISTENERS", 2)):
            row = at[f"__main__.{name}"]
            self.assertEqual((row["depth"], row["allocations"]), (4, count))
            self.assertGreater(row["retained"], truth[name] * 0.99)
        # So it is in exports.
        lines = [line.rpartition(" ") for line
                 in ask("-q", core, "export", "folded").stdout.splitlines()]
        for name, kind in ("CACHE", "dict"), ("LISTENERS", "list"):
            held = sum(int(size) for path, _, size in lines
                       if f"{kind} (__main__.{name})" in path.split(";"))
            self.assertEqual(held, at[f"__main__.{name}"]["retained"])
        # What only a running function has is a root of its own, and not a global.
        held = {row["name"]: row["retained"] for row in
                rows_of("SELECT name, retained FROM variable WHERE kind = 'stack'", core)}
        self.assertGreater(held["serve.<locals>.batch"], truth["batch"] * 0.99)

    def test_objects_hold_nothing_of_the_program_that_embeds_their_language(self):
        """gdb reads the symbols of a program; whether scripts look at these makes no difference."""
        if not shutil.which("gdb") or run("gdb", "-nx", "-batch", "-ex", "python 1").stderr:
            self.skipTest("there is no gdb with Python")
        program = self.compile("read", text=CXX, compiler="c++", flags=("-g", "-O0"))
        held = []
        for words in ([], ["-ex", WRAP]):
            process = self.start(["gdb", "-q", "-nx", "-readnow", *words, "-ex", WAIT, program])
            core = snap(process, self.path("core"))
            table, = tables("-q", core, "sql", "SELECT name, retained FROM variable").values()
            held.append({row["name"]: row["retained"] for row in table})
        alone, wrapped = (each["globals of python"] for each in held)
        self.assertAlmostEqual(wrapped / alone, 1, delta=0.15)
        self.assertGreater(held[1]["static data of gdb"], alone / 2)


if __name__ == "__main__":
    unittest.main()
