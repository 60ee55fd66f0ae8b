#!/usr/bin/env python3
"""
The questions of docs/inside/sql-questions.md, asked of cores whose truth is known; and what SQL says
of values of Ruby, PHP and JavaScript.
"""

import os
import re
import shutil
import unittest

import harness

PYTHON = """
import os

class User:
    def __init__(self, name, age, shop):
        self.name, self.age, self.shop, self.tags = name, age, shop, []

class Shop:
    pass

shop = Shop()
shop.rate = 2.5
shop.users = {"anna": User("Anna of Oz", 41, shop), 7: User("Bert", 39, shop)}
shop.copies = ["a text that is there %d times" % (50 + 0 * i) for i in range(50)]
shop.long = "x" * 6000
shop.numbers = set(range(100000))

class Visitor:
    pass

class Guest(Visitor):
    pass

class Regular(Guest):
    pass

shop.visitors = [Visitor(), Guest(), Guest(), Regular()]
os.write(1, b"ready\\n")
os.read(0, 1)
"""

CPP = r"""
#include <list>
#include <map>
#include <string>
#include <vector>
#include <cstdio>
struct Item { long number, more; };
struct Order {
	virtual ~Order() {}
	std::string note;
	std::vector<Item> items;
	Order *next;
};
struct Shop {
	virtual ~Shop() {}
	std::map<int, Order *> orders;
	std::list<int> list;
};
struct Base { virtual ~Base() {} };
struct Visitor : Base { long time = 1; };
struct Guest : Visitor { long room = 2; };
struct Regular : Guest { long visits = 3; };
Base *visitors[] = { new Base, new Visitor, new Guest, new Guest, new Regular };
Shop *shop;
__attribute__((noinline)) static void fill()
{
	Order *last = nullptr;
	shop = new Shop;
	for (int i = 0; i < 5; i++) {
		Order *order = new Order;
		order->note = i == 3 ? "too late for the customer, who waits" : "all is well with this one, thanks";
		order->items.resize(i);
		order->next = last;
		last = order;
		shop->orders[i] = order;
		shop->list.push_back(i);
		if (i == 4)
			std::printf("largest %p\n", (void *)order);
	}
	shop->orders.erase(4);
}
int main()
{
	fill();
	std::puts("ready");
	std::fflush(stdout);
	return std::getchar();
}
"""

PERL = """
package User;
sub new { my ($class, $name) = @_; return bless { name => $name, age => 42, seen => undef }, $class }
package Visitor; sub new { return bless {}, shift }
package Guest; our @ISA = ("Visitor");
package Regular; our @ISA = ("Guest");
package main;
our @visitors = (Visitor->new, Guest->new, Guest->new, Regular->new);
our $shop = bless { users => { anna => User->new("Anna of Oz"), 7 => User->new("Bert") },
                    list => [1, "two", 3.5], name => "a shop", count => 12 }, "Shop";
our $large = "x" x 500000;
our $also = $shop;
$| = 1;
print "ready\\n";
<STDIN>;
"""

RUBY = """
class User
  def initialize(name) @name, @age, @rate, @tags, @seen, @state = name, 42, 2.5, ["red", "green"], nil, :busy end
end
class Visitor; end
class Guest < Visitor; end
class Regular < Guest; end
$visitors = [Visitor.new, Guest.new, Guest.new, Regular.new]
$users = { "anna" => User.new("Anna of Oz"), 7 => User.new("Bert"), symbol: 12 }
STDOUT.write("ready\\n")
STDOUT.flush
STDIN.read(1)
"""

PHP = """
class User {
    public $name; protected $age = 42; private $rate = 2.5; public $tags = ["red", "green"]; public $seen = null;
    public $more;
    function __construct($name) { $this->name = $name; }
}
class Visitor {} class Guest extends Visitor {} class Regular extends Guest {}
$visitors = [new Visitor, new Guest, new Guest, new Regular];
$text = str_repeat("far", 20);
$users = ["anna" => new User(sprintf("Anna of %s", "Oz")), 7 => new User("Bert"), "symbol" => 12];
$users["anna"]->more = &$text;
echo "ready\\n";
fgets(STDIN);
"""

NODE = """
class User {
  constructor(name) { this.name = name; this.age = 42; this.rate = 2.5; this.tags = ["red", "green"]; this.seen = null; this.state = true; }
}
globalThis.users = new Map([["anna", new User("Anna of Oz")], [7, new User("Bert")], ["symbol", 12]]);
require("fs").writeSync(1, "ready\\n");
require("fs").readSync(0, Buffer.alloc(1));
"""

TEXT = "a text that is there 50 times"
ANSWERS = {
    1: [("Anna of Oz",)],
    2: [(6000,)],
    3: [("Anna of Oz",)],
    4: [(2,)],
    5: [("set", 100000)],
    6: [(TEXT, 50)],
    7: [("copies", "list"), ("long", "str"), ("numbers", "set"), ("rate", "float"), ("users", "dict"),
        ("visitors", "list")],
    8: [("__main__.User", "shop")],
    9: [("__main__.shop.users['anna']",)],
    10: [("__main__.Guest", 2), ("__main__.Regular", 1), ("__main__.Shop", 1), ("__main__.User", 2),
         ("__main__.Visitor", 1)],
    11: [("__main__.Shop",)],
    12: [("too late for the customer, who waits",)],
    14: [(5,)],
    15: [("Shop", "Order", 4)],
    16: [("%LongString", 1), ("Order", 1), ("std::vector<Item> body", 1)],
    17: [(1 + 4 + 5 + 3 * 4 - 1,)],  # itself, nodes, orders with a text and elements, of which one has none
    18: [("std::list<int> node", 5), ("std::map<int, Order *> node", 4)],
    19: [("Shop", 1), ("User", 2)],
    20: [("Anna of Oz",)],
    21: [("{count}", 12), ("{name}", "a shop")],
    22: [("[0]", 1), ("[1]", "two"), ("[2]", 3.5)],
    23: [("string", 500000)],
    26: [("__main__.Guest", 2), ("__main__.Regular", 1), ("__main__.Visitor", 1)],
    24: [("$main::shop", "kept by a count of 2 references")],
}


def questions():
    path = os.path.join(os.environ["SOURCE_DIR"], "docs/inside/sql-questions.md")
    with open(path, encoding="utf-8") as file:
        text = "\n".join(re.findall(r"```sql\n(.*?)```", file.read(), re.DOTALL))
    found = re.split(r"^-- (\d+)\. .*\n", text, flags=re.MULTILINE)[1:]
    return {int(number): query.strip().rstrip(";") for number, query in zip(found[::2], found[1::2])}


class Questions(harness.LiveTest):
    def ask(self, core, query, *options):
        return [tuple(row.values()) for row in harness.tables("-q", *options, core, "sql", query)["result"]]

    def check(self, core, numbers):
        for number in numbers:
            with self.subTest(number=number):
                self.assertEqual(sorted(self.ask(core, questions()[number]), key=str),
                                 sorted(ANSWERS[number], key=str))

    def core_of(self, interpreter, text):
        return self.core_of_script(interpreter, text)[0]

    def check_instances(self, core, prefix=""):
        """A class and its subclasses; of the last, nothing but itself; of an unknown one, nothing."""
        query = questions()[26].replace("__main__.Visitor", "{}")
        for name, found in (("Visitor", [("Guest", 2), ("Regular", 1), ("Visitor", 1)]),
                            ("Regular", [("Regular", 1)]), ("Nobody", [])):
            self.assertEqual(self.ask(core, query.format(prefix + name)), found, name)

    def test_there_are_twenty_six(self):
        self.assertEqual(list(questions()), list(range(1, 27)))

    @unittest.skipUnless(os.path.exists("/usr/bin/python3"), "no python3 of the system")
    def test_python(self):
        core = self.core_of("/usr/bin/python3", PYTHON)
        self.check(core, (*range(1, 12), 26))
        left_out = self.ask(core, "SELECT DISTINCT value FROM object WHERE class = 'str'", "--no-content")
        self.assertEqual(left_out, [("(content left out)",)])
        names = self.ask(core, "SELECT DISTINCT name FROM item WHERE class = '__main__.User'", "--no-content")
        self.assertEqual(names, [("[...]",)])

    def test_cpp(self):
        program = self.compile("shop", text=CPP, compiler="g++", flags=("-g", "-O0"))
        process = self.start([program])
        largest = int(process.said[0].split()[1], 16)
        core = harness.core_of(process, self.folder, ("-g",))
        self.check(core, (12, 14, 15, 16, 17, 18))
        self.assertEqual(self.ask(core, questions()[13]), [(f"{largest:#x}", 4)])
        query = "SELECT class, count(*) FROM allocation WHERE instance_of(id, '{}') GROUP BY class ORDER BY class"
        self.assertEqual(self.ask(core, query.format("Visitor")), [("Guest", 2), ("Regular", 1), ("Visitor", 1)])
        self.assertEqual(self.ask(core, query.format("Regular")), [("Regular", 1)])
        self.assertEqual(self.ask(core, "SELECT sum(instance_of(id, 'Guest')), sum(instance_of(id, kind)),"
                                        " instance_of(-1, 'Guest'), instance_of(NULL, 'Guest') FROM allocation"
                                        " WHERE class = 'Regular'"), [(1, 1, 0, None)])

    @unittest.skipUnless(shutil.which("perl"), "there is no perl")
    def test_perl_and_any_process(self):
        core = self.core_of("perl", PERL)
        self.check(core, range(19, 25))
        self.check_instances(core)
        threads, libc, writable_code, process = self.ask(core, questions()[25])[0]
        self.assertEqual((threads, libc, writable_code), (1, 1, 0))
        self.assertGreater(process, 0)

    def check_user(self, core, names, keys):
        """What a User has, and what is under the keys, in the words of each language."""
        anna, = {row[0] for row in self.ask(
            core, "SELECT id FROM item WHERE value = 'Anna of Oz' AND name IN ('name', '@name')")}
        found = {name: more for name, *more in self.ask(
            core, f"SELECT name, value, length FROM item WHERE id = {anna}")}
        self.assertEqual([found[name] for name in names],
                         [["Anna of Oz", 10], [42, None], [2.5, None], [None, 2], [None, None]])
        rows = self.ask(core, "SELECT id, name, value, target FROM item WHERE id ="
                        f" (SELECT id FROM item WHERE name = '{keys[0]}' AND target = {anna})".replace(keys[0], keys[0].replace("'", "''")))
        users = {name: (value, target) for _, name, value, target in rows}
        self.assertEqual([users[key][0] for key in keys], [None, None, 12])
        self.assertEqual(users[keys[0]][1], anna)
        self.assertEqual(self.ask(core, f"SELECT class, length FROM object WHERE id = {rows[0][0]}")[0][1], 3)

    @unittest.skipUnless(shutil.which("ruby"), "there is no ruby")
    def test_ruby(self):
        core = self.core_of("ruby", RUBY)
        self.check_user(core, ("@name", "@age", "@rate", "@tags", "@seen"), ('["anna"]', "[7]", "[:symbol]"))
        self.check_instances(core)
        self.assertEqual(self.ask(core, "SELECT DISTINCT class, value FROM item WHERE name = '@state'"),
                         [("Symbol", "busy")])

    @unittest.skipUnless(shutil.which("php"), "there is no php")
    def test_php(self):
        core = self.core_of("php", f"<?php {PHP}")
        self.check_user(core, ("name", "age", "rate", "tags", "seen"), ("['anna']", "[7]", "['symbol']"))
        self.check_instances(core)
        self.assertEqual(self.ask(core, "SELECT value FROM item WHERE name = 'more' AND length IS NOT NULL"),
                         [("far" * 20,)])

    @unittest.skipUnless(shutil.which("node"), "there is no node")
    def test_node(self):
        core = self.core_of("node", NODE)
        self.check_user(core, ("name", "age", "rate", "tags", "seen"), ("get('anna')", "get(7)", "get('symbol')"))


if __name__ == "__main__":
    unittest.main()
