#!/usr/bin/env python3
"""
Counts of references that are more than the holders: each lost reference that a program planted is
found, and nothing else, though holders are on stacks, in containers, in tagged words, and weak.
"""

import ctypes.util
import shutil
import sys
import unittest

from harness import LiveTest, addresses, ask, rows, run, snap

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

RUST = r"""
use std::collections::HashMap;
use std::io::Write;
use std::rc::Rc;
use std::sync::{Arc, Weak};
struct Order { id: u64, lines: Vec<u64>, before: Weak<Order> }
struct Note { text: String }
trait Say { fn say(&self) -> usize; }
impl Say for Note { fn say(&self) -> usize { self.text.len() } }
fn main() {
    let mut orders: Vec<Arc<Order>> = Vec::new();
    let mut notes: HashMap<u64, Rc<Note>> = HashMap::new();
    let mut says: Vec<Rc<dyn Say>> = Vec::new();
    for id in 0..4000u64 {
        let before = orders.last().map(Arc::downgrade).unwrap_or_default();
        let order = Arc::new(Order { id, lines: vec![id], before });
        let note = Rc::new(Note { text: format!("note {}", id) });
        if id % 8 == 0 {
            std::mem::forget(order.clone());
            println!("{:#x}", Arc::as_ptr(&order) as usize - 16);
        }
        if id % 8 == 4 {
            std::mem::forget(note.clone());
            println!("{:#x}", Rc::as_ptr(&note) as usize - 16);
        }
        orders.push(order);
        says.push(note.clone());
        notes.insert(id, note);
    }
    println!("ready");
    std::io::stdout().flush().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(600));
    let first = &orders[0];
    println!("{}", says[0].say() + first.id as usize + first.lines.len()
             + first.before.strong_count() + notes.len());
}
"""

# A member of the name alone is no count of holders: usage.
INTRUSIVE = r"""
#include <atomic>
#include <cstdio>
#include <map>
#include <unistd.h>
#include <vector>
struct counted {
	virtual ~counted() {}
	void add() { ref_count_++; }
	void release() { if (--ref_count_ == 0) delete this; }
	std::atomic<int> ref_count_{0};
};
struct view : counted { int numbers[10] = {}; };
struct plain {
	void add() { refs++; }
	void release() { if (--refs == 0) delete this; }
	int refs = 0;
	long values[6] = {};
};
template <class T> struct reference {
	reference(T *other = nullptr) : pointer(other) { if (pointer) pointer->add(); }
	reference(const reference &other) : reference(other.pointer) {}
	reference &operator=(const reference &other)
	{
		other.pointer->add();
		if (pointer) pointer->release();
		pointer = other.pointer;
		return *this;
	}
	~reference() { if (pointer) pointer->release(); }
	T *pointer;
};
struct usage { int refs; char name[60]; };
static std::vector<reference<view>> views;
static std::map<int, reference<plain>> plains;
static std::vector<usage *> usages;
static void __attribute__((noinline)) fill()
{
	/* What a vector left when it grew is in bytes that other objects do not write. */
	views.reserve(10000);
	for (int i = 0; i < 4000; i++) {
		reference<view> made(new view);
		reference<plain> other(new plain);
		views.insert(views.end(), i % 3 + 1, made);
		plains[i] = plains[-i] = other;
		if (i % 8 == 0) { made.pointer->add(); printf("%p\n", (void *)made.pointer); }
		if (i % 8 == 4) { other.pointer->add(); printf("%p\n", (void *)other.pointer); }
		usages.push_back(new usage{i % 7, ""});
	}
}
int main()
{
	fill();
	puts("ready");
	fflush(stdout);
	pause();
	return usages[0]->refs;
}
"""

GLIB = r"""
import ctypes, time
objects, menus = ctypes.CDLL("libgobject-2.0.so.0"), ctypes.CDLL("libgio-2.0.so.0")
objects.g_object_ref.argtypes = [ctypes.c_void_p]
makers = menus.g_menu_new, menus.g_cancellable_new
for maker in makers:
    maker.restype = ctypes.c_void_p
kept = (ctypes.c_void_p * 4000)()
for number in range(4000):
    kept[number] = makers[number % 2]()
    if number % 4 < 1:
        objects.g_object_ref(kept[number])
        print(hex(kept[number]))
print("ready", flush=True)
time.sleep(600)
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
# C code keeps the address of the characters alone, as numpy does of docstrings: nothing is lost.
texts = [f"text that is kept {number}" for number in range(100)]
places = [id(text) + sys.getsizeof("") - 1 for text in texts]
for text in texts:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(text))
kept = (ctypes.c_void_p * 99)(*places[1:])
ctypes.c_void_p.in_dll(ctypes.CDLL(None), "optarg").value = places[0]
del texts, text, places
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
        text = ask("-q", "report", core).stdout
        self.assertRegex(text, r"\nCounts that are more than their holders \(summarize lostcount.*\n"
                               r".*doc.* has 500 instances")
        lost = rows("result", "-q", core, "sql", "SELECT * FROM lost_count")
        self.assertEqual({row["count"] - row["found"] for row in lost}, {1})

    def check(self, core, planted, least=990, headers=(0,)):
        """At least so many of what was planted are found, behind one of these headers."""
        found = addresses("-q", core, "enumerate", "lostcount")
        objects = {address + header for address in found for header in headers}
        self.assertEqual(len(planted), 1000)
        self.assertGreaterEqual(len(planted & objects), least)
        self.assertEqual(len(found), len(planted & objects))

    def test_boxes_of_rust(self):
        if not shutil.which("rustc"):
            self.skipTest("there is no rustc")
        with open(self.path("boxes.rs"), "w", encoding="utf-8") as file:
            file.write(RUST)
        run("rustc", "-g", "-O", "-o", self.path("boxes"), self.path("boxes.rs"))
        self.check(*self.core_of(self.path("boxes")))

    def test_counts_in_objects(self):
        self.check(*self.core_of(self.compile("intrusive", compiler="c++", flags=("-g", "-O1"),
                                              text=INTRUSIVE)))

    def test_objects_of_glib(self):
        if not ctypes.util.find_library("gio-2.0"):
            self.skipTest("there is no libgio")
        core, planted = self.core_of("/usr/bin/python3", "-c", GLIB)
        self.check(core, planted, headers=(0, 24, 32))

    def test_objects_of_python(self):
        self.check(*self.core_of(sys.executable, "-c", PYTHON), headers=(0, 16, 32))


if __name__ == "__main__":
    unittest.main()
