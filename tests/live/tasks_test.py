#!/usr/bin/env python3
"""
Tasks of event loops, coroutines and fibers: what each waits for, those that await each other and
what each retains are as the program says.
"""

import ast
import re
import shutil
import unittest

from harness import ask, end, LiveTest, rows, run, snap, tables
from script_stacks_test import PYTHONS

PROGRAM = """
import asyncio, sys

class OwnTask(asyncio.Task):
    pass

async def fetch(number):
    data = bytearray(1_000_000 + number)
    await asyncio.sleep(3600)
    return data

class Wrapped:
    def __await__(self):
        return (yield from fetch(7).__await__())

async def handler(number):
    await fetch(number)

async def wrapped():
    await Wrapped()

async def numbers():
    yield 1
    await asyncio.Event().wait()

async def consume():
    async for one in numbers():
        pass

async def fails():
    return 1

async def runs():
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(handler(number), name=f"request {number}") for number in range(9)]
    tasks += [loop.create_task(wrapped()), loop.create_task(consume()), OwnTask(handler(20)),
              loop.create_task(fails())]
    waits = loop.create_task(asyncio.wait(tasks[:2]))
    tasks.append(waits)
    await asyncio.sleep(0.05)
    tasks.append(loop.create_task(wait_for(waits), name="waits for waits"))
    await asyncio.sleep(0.05)
    write(asyncio.all_tasks(), tasks)
    print("ready", flush=True)
    sys.stdin.read()

async def wait_for(task):
    await task

def chain(waiting):
    while waiting is not None:
        for kind in "cr", "gi", "ag":
            if hasattr(waiting, kind + "_frame"):
                frame = getattr(waiting, kind + "_frame")
                yield f"{frame.f_code.co_name}:{frame.f_lineno}"
                waiting = getattr(waiting, kind + ("_yieldfrom" if kind == "gi" else "_await"))
                break
        else:
            return

def write(alive, kept):
    said = {}
    for task in alive:
        waiter = getattr(task, "_fut_waiter", None)
        said[id(task)] = (task.get_name(), type(task).__name__, id(waiter) if waiter else None,
                          list(chain(task.get_coro()))[::-1])
    with open(sys.argv[1], "w") as truth:
        print(said, file=truth)

asyncio.run(runs())
"""

# Coroutines of C++ that wait for each other and for an event, whose frames it writes down.
COROUTINES = r"""
#include <coroutine>
#include <cstdio>
#include <utility>
#include <vector>

struct Task {
	struct promise_type {
		std::coroutine_handle<> waiter;
		Task get_return_object()
		{
			return Task{ std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_always initial_suspend() { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		void return_void() {}
		void unhandled_exception() {}
	};
	std::coroutine_handle<promise_type> handle;
	explicit Task(std::coroutine_handle<promise_type> own) : handle(own) {}
	Task(Task &&other) : handle(std::exchange(other.handle, {})) {}
	~Task() { if (handle) handle.destroy(); }
	bool await_ready() { return false; }
	std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter)
	{
		handle.promise().waiter = waiter;
		return handle;
	}
	void await_resume() {}
};

struct Event {
	std::vector<std::coroutine_handle<>> waiting;
	bool await_ready() { return false; }
	void await_suspend(std::coroutine_handle<> handle) { waiting.push_back(handle); }
	void await_resume() {}
} event;

Task fetch(int size)
{
	std::vector<char> data(size, 'x');
	co_await event;
	std::printf("%c", data[0]);
}

Task handler(int size) { co_await fetch(size); }
Task ends() { co_return; }

std::vector<Task> tasks;

int main()
{
	for (int i = 0; i < 9; i++) {
		tasks.push_back(handler(100000 + i));
		tasks.back().handle.resume();
		std::printf("%p %p %d\n", tasks.back().handle.address(),
			    event.waiting.back().address(), 100000 + i);
	}
	tasks.push_back(ends());
	tasks.back().handle.resume();
	std::printf("ready\n");
	std::fflush(stdout);
	std::getchar();
}
"""

# Each Fiber alone holds what its block has; one object is held by two.
FIBERS = """
$shared = nil
class Held; def initialize(size) @bytes = "x" * size; end; end
def wait_in(number, shared)
  held = Held.new(1_000_000 * number)
  Fiber.yield number
  [held, shared]
end
shared = Held.new(5_000_000)
$fibers = (1..4).map { |i| object = i > 2 ? shared : nil; Fiber.new { wait_in(i, object) } }
shared = nil
$fibers.each(&:resume)
$ended = Fiber.new { 1 }
$ended.resume
require "objspace"
File.write(ARGV[0], $fibers.map { |one| ObjectSpace.dump(one)[/0x\h+/] }.join("\n"))
puts "ready"
$stdout.flush
$stdin.read
"""

# Of timers and async functions, those that were cleared or have ended do not wait.
NODE = """
const fs = require('fs');
class Held { constructor() { this.list = []; for (let i = 0; i < 1000; i++) this.list.push({ i }); } }
async function fetch() { const held = new Held(); await new Promise(() => {}); return held; }
async function handler() { return await fetch(); }
async function ends() { await 1; }
exports.all = [];
for (let i = 0; i < 5; i++) exports.all.push(handler());
ends();
function tick() {}
function cleared() {}
for (let i = 0; i < 3; i++) setTimeout(tick, 1e6 + i);
clearTimeout(setTimeout(cleared, 1e6));
exports.ended = setTimeout(() => setImmediate(() => {
  const count = process.getActiveResourcesInfo().filter((kind) => kind == 'Timeout').length;
  fs.writeFileSync(process.argv[2], String(count));
  console.log('ready');
}), 1);
"""


GREENLETS = """
import gevent, gevent.event, greenlet, sys, traceback
main = greenlet.getcurrent()
class Own(greenlet.greenlet):
    def run(self):
        inner(7)
def inner(number):
    data = bytearray(100_000 + number)
    main.switch()
def numbers(number):
    yield inner(number)
def outer(number):
    try:
        raise KeyError(number)
    except KeyError:
        next(numbers(number))
def nested():
    other = greenlet.greenlet(outer)
    kept.append(other)
    other.switch(3)
    inner(4)
event = gevent.event.Event()
def worker():
    event.wait()
kept = [greenlet.greenlet(outer) for number in range(3)]
for number, one in enumerate(list(kept)):
    one.switch(number)
kept.append(greenlet.greenlet(nested))
kept[-1].switch()
kept.append(Own())
kept[-1].switch()
kept += [gevent.spawn(worker) for number in range(3)]
gevent.sleep(0)
never, ended = greenlet.greenlet(outer), greenlet.greenlet(lambda: 1)
ended.switch()
truth = {id(one): [f"{frame.name}:{frame.lineno}"
                   for frame in reversed(traceback.extract_stack(one.gr_frame))]
         for one in [*kept, gevent.get_hub()]}
with open(sys.argv[1], "w") as file:
    print(truth, file=file)
print("ready", flush=True)
sys.stdin.read()
"""


def has_gevent():
    return run("/usr/bin/python3", "-c", "import gevent").returncode == 0


def read_tasks(core):
    """By address: name, class, what it waits for, its calls, bytes."""
    found = {}
    task = None
    text = ask("-q", core, "backtrace", "--tasks").stdout
    for line in text.splitlines():
        head = re.match(r"Task 0x([0-9a-f]+)(?: '(.*?)')? \((.*?)\), (waiting|running)"
                        r"(?: for (.*?))?(?: 0x([0-9a-f]+))?, retains ([\d,]+) bytes", line)
        call = re.match(r"python #\d+ in (\S+) at .*:(\d+) ", line)
        if head:
            task = [*head.group(2, 3, 4, 5), int(head[6], 16) if head[6] else None,
                    int(head[7].replace(",", "")), []]
            found[int(head[1], 16)] = task
        elif call:
            task[-1].append(f"{call[1].rsplit('.', 1)[-1]}:{call[2]}")
    return found


class TasksTest(LiveTest):
    def check(self, python):
        core, truth = self.core_of_script(python, PROGRAM)
        with open(truth, encoding="utf-8") as file:
            said = ast.literal_eval(file.read())
        found = read_tasks(core)
        self.assertEqual(set(found), set(said))
        self.assertGreater(len(said), 13)
        alone = 0
        for address, (name, kind, waiter, calls) in said.items():
            told, told_kind, state, waits, awaited, retained, told_calls = found[address]
            self.assertEqual(told, name)
            self.assertEqual(told_kind.rsplit(".", 1)[-1], kind)
            if calls[-1].startswith("runs:"):
                self.assertEqual(state, "running")
                continue
            self.assertEqual((state, awaited), ("waiting", waiter), name)
            # The program cannot see what leads on from a generator that is iterated.
            self.assertEqual(told_calls[-len(calls):], calls, name)
            if calls[-1].startswith("consume:"):
                self.assertEqual([call.split(":")[0] for call in told_calls],
                                 ["wait", "numbers", "consume"])
            if name.startswith("request"):
                number = int(name.split()[1])
                self.assertLess(retained, 1_010_000)
                alone += retained > 1_000_000 + number
            if name == "waits for waits":
                self.assertEqual(waits.split(" ")[0], "_asyncio.Task")
        # A word that a call left on the stack may hold one, too.
        self.assertGreater(alone, 6)

    def test_tasks_are_as_the_program_says(self):
        for python in [path for path in PYTHONS if re.search(r"^/usr|/3\.(8|13)\.", path)]:
            with self.subTest(python):
                self.check(python)

    def test_coroutines_of_cxx_wait_for_each_other(self):
        for compiler, *flags in (("g++", "-O2"), ("g++", "-g"), ("clang++", "-g")):
            if not shutil.which(compiler):
                continue
            with self.subTest(compiler=compiler, flags=flags):
                program = self.compile("coroutines", compiler=compiler, text=COROUTINES,
                                       flags=("-std=c++20", *flags))
                process = self.start([program])
                core = snap(process, self.path("core"))
                end(process)
                tasks = {row["task"]: row for row in rows("task", core, "backtrace", "--tasks")}
                names = [row["function"] for row in rows("frame", core, "backtrace", "--tasks")]
                self.assertEqual(sorted(names), 9 * ["fetch(int)"] + 9 * ["handler(int)"])
                self.assertEqual(len(tasks), 18)
                for line in process.said:
                    handler, fetch, size = line.split()
                    self.assertEqual((tasks[handler]["awaits"], tasks[handler]["awaited"]),
                                     ("fetch(int)", fetch))
                    self.assertIsNone(tasks[fetch]["awaited"])
                    rest = tasks[fetch]["retained"] - int(size)
                    self.assertTrue(0 < rest < 300, rest)
                    self.assertLess(tasks[handler]["retained"], 300)

    @unittest.skipUnless(shutil.which("ruby"), "there is no ruby")
    def test_fibers_of_ruby_hold_what_only_they_have(self):
        core, truth = self.core_of_script("ruby", FIBERS)
        with open(truth, encoding="utf-8") as file:
            addresses = file.read().split()
        found = {row["task"]: row for row in rows("task", core, "backtrace", "--tasks")}
        for number, address in enumerate(addresses, 1):
            row = found[address]
            self.assertEqual((row["kind"], row["state"]), ("Fiber", "waiting"))
            rest = row["retained"] - 1_000_000 * number
            self.assertTrue(0 < rest < 500_000, (number, rest))
        self.assertEqual(len(found), 4)

    @unittest.skipUnless(shutil.which("node"), "there is no node")
    def test_timers_and_async_functions_of_node_wait(self):
        core, truth = self.core_of_script("node", NODE)
        with open(truth, encoding="utf-8") as file:
            timers = int(file.read())
        kinds = [row["kind"] for row in rows("task", core, "backtrace", "--tasks")]
        names = [row["function"] for row in rows("frame", core, "backtrace", "--tasks")]
        self.assertEqual(sorted(names), 5 * ["fetch"] + 5 * ["handler"] + timers * ["tick"])
        self.assertEqual((kinds.count("Timer"), kinds.count("Async function")), (timers, 10))
        self.assertEqual(timers, 3)

    @unittest.skipUnless(has_gevent(), "there is no gevent")
    def test_greenlets_wait_in_the_calls_that_they_say(self):
        core, truth = self.core_of_script("/usr/bin/python3", GREENLETS)
        with open(truth, encoding="utf-8") as file:
            said = ast.literal_eval(file.read())
        found = {int(row["task"], 16): [] for row in rows("task", core, "backtrace", "--tasks")
                 if row["kind"] == "Greenlet"}
        calls = None
        for line in ask("-q", core, "backtrace", "--tasks").stdout.splitlines():
            head = re.match(r"Greenlet 0x([0-9a-f]+) \(.*\), waiting", line)
            call = re.match(r"python #\d+ in (\S+) at .*:(\d+)", line)
            if head:
                calls = found[int(head[1], 16)]
            elif call:
                calls.append(f"{call[1].rsplit('.', 1)[-1]}:{call[2]}")
        self.assertEqual(found, said)
        self.assertEqual(len(said), 10)

    def test_programs_without_fibers_say_so(self):
        core, _ = self.core_of_script("/usr/bin/python3",
                                      "print('ready', flush=True)\nimport sys\nsys.stdin.read()\n")
        self.assertEqual(tables("-q", core, "backtrace", "--fibers"), {"fiber": []})
        self.assertIn("no fiber was found", ask(core, "backtrace", "--fibers").stderr)

    def test_programs_without_tasks_have_none(self):
        core, _ = self.core_of_script("/usr/bin/python3",
                                      "print('ready', flush=True)\nimport sys\nsys.stdin.read()\n")
        self.assertEqual(tables("-q", core, "backtrace", "--tasks"), {"task": []})
        self.assertIn("no task of an event loop", ask(core, "backtrace", "--tasks").stderr)


if __name__ == "__main__":
    unittest.main()
