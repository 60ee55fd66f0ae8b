#!/usr/bin/env python3
"""
Tasks of event loops: what each waits for, the coroutines that await each other and what the task
retains are as the program says.
"""

import ast
import os
import re
import unittest

from harness import ask, LiveTest, tables
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
        for python in [path for path in sorted(PYTHONS) if os.path.exists(path) and
                       re.search(r"^/usr|/3\.(8|13)\.", path)]:
            with self.subTest(python):
                self.check(python)

    def test_programs_without_tasks_have_none(self):
        core, _ = self.core_of_script("/usr/bin/python3",
                                      "print('ready', flush=True)\nimport sys\nsys.stdin.read()\n")
        self.assertEqual(tables("-q", core, "backtrace", "--tasks"), {"task": []})
        self.assertIn("no task of an event loop", ask(core, "backtrace", "--tasks").stderr)


if __name__ == "__main__":
    unittest.main()
