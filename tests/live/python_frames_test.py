#!/usr/bin/env python3
"""
The Python functions that threads are in, and their variables: as the program says by
sys._current_frames().
"""

import json
import os
import re
import unittest

import harness
import python_test

PROGRAM = """
import asyncio, os, sys, threading

class Session:
    def handle(self, request, *rest, limit=3, **options):
        large, below, text = 123456789012345678, -7, "gr\\u00fc\\u00dfe \\u20ac"
        half, nothing, yes, raw = 2.5, None, True, b"xy"
        items = [1,
                 2, 3]
        def inner():
            return wait(items, large)
        return inner()

def generate(count):
    yield Session().handle("name", 1, 2, key="value")

async def serve(count):
    await asyncio.sleep(0)
    for one in generate(count):
        pass

def wait(items, number):
    started.set()
    while True:
        os.read(reader, 1)

def dive(depth):
    if depth:
        return (dive(depth - 1),
                0)
    os.read(0, 1)

def write(frame, truth):
    while frame:
        code = frame.f_code
        print(getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno,
              file=truth)
        if frame.f_locals is not frame.f_globals:
            for name in sorted(frame.f_locals):
                value = frame.f_locals[name]
                print(" ", name, hex(id(value)), file=truth)
        frame = frame.f_back

started = threading.Event()
reader, writer = os.pipe()
thread = threading.Thread(target=lambda: asyncio.run(serve(5)), daemon=True)
thread.start()
deep = threading.Thread(target=dive, args=(20,), daemon=True)
started.wait()
with open(sys.argv[1], "w") as truth:
    write(sys._current_frames()[thread.ident], truth)
deep.start()
os.write(1, b"ready\\n")
deep.join()
"""

VALUES = {"large": "123456789012345678", "below": "-7", "text": "'gr\u00fc\u00dfe \u20ac'",
          "half": "2.5", "nothing": "None", "yes": "True", "raw": "b'xy'", "rest": "2 items",
          "options": "1 item", "items": "3 items", "request": "'name'", "limit": "3"}


def read_frames(core, *words):
    """By thread: a frame and its variables, as the truth has them."""
    answer = harness.ask("-q", "--format", "json", core, "backtrace", *words).stdout
    threads, values = {}, {}
    for table in json.loads(answer)["tables"]:
        for row in table["rows"]:
            if table["name"] == "frame":
                threads.setdefault(row["thread"], []).append(
                    (row["function"], row["source"], row["line"], set()))
            elif table["name"] == "local":
                threads[row["thread"]][-1][3].add((row["name"], row["address"]))
                values.setdefault(row["name"], row.get("value"))
    return threads, values


def read_truth(path):
    frames = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if line.startswith(" "):
                frames[-1][3].add((words[0], int(words[1], 16)))
            else:
                frames.append((words[0], words[1], int(words[2]), set()))
    return frames


def address(value):
    return int(value, 16) if isinstance(value, str) else value


@unittest.skipUnless(os.path.exists(python_test.SYSTEM),
                     "no python3 of the system")
class Frames(harness.LiveTest):
    def test_frames_and_variables_are_those_of_the_program(self):
        core, path = self.core_of_script(python_test.SYSTEM, PROGRAM)
        truth = read_truth(path)
        threads, values = read_frames(core, "--locals")
        found = [[(*frame[:3], {(name, address(at)) for name, at in frame[3]})
                  for frame in frames] for frames in threads.values()]
        # What the functions of asyncio are in may change until the core is taken.
        wanted = next(frames for frames in found if frames[0][0] == "wait")
        self.assertEqual([frame[:3] for frame in wanted], [frame[:3] for frame in truth])
        names = [{name for name, _ in frame[3]} for frame in wanted]
        self.assertEqual(names, [{name for name, _ in frame[3]} for frame in truth])
        self.assertEqual(wanted[:4], truth[:4])
        self.assertEqual({name: values[name] for name in VALUES}, VALUES)
        text = harness.ask("-q", core, "backtrace").stdout
        self.assertRegex(text, r"in generate at .*\(generator\)\n")
        self.assertRegex(text, r"in serve at .*\(coroutine\)\n")
        hidden = harness.ask("-q", "--no-content", core, "backtrace", "--locals").stdout
        self.assertNotIn("123456789012345678", hidden)
        calls = harness.rows("frame", "-q", core, "backtrace")
        answer = harness.ask("-q", "--format", "json", core, "backtrace").stdout
        # The calls of a thread are one table.
        self.assertEqual(sum(table["name"] == "frame" for table in json.loads(answer)["tables"]),
                         len({row["thread"] for row in calls}))
        limited = harness.ask("-q", core, "backtrace", "--limit", "2").stdout
        self.assertNotRegex(limited, re.compile("^python #2", re.MULTILINE))

    def test_stacks_of_frames_are_named_by_thread(self):
        """From Python 3.11 on; each page of a deep recursion has frames, which say where they are."""
        core, path = self.core_of_script(python_test.SYSTEM, """if True:
            import ctypes, sys, threading, time
            sys.setrecursionlimit(10000)
            pages = {}
            def dive(name, depth):
                if depth:
                    return dive(name, depth - 1)
                frame = sys._getframe()
                while frame:
                    place = ctypes.c_uint64.from_address(id(frame) + 24).value
                    pages.setdefault(name, set()).add(place // 4096)
                    frame = frame.f_back
                lock.release()
                if name == "main":
                    lock.acquire()
                    with open(sys.argv[1], "w") as file:
                        file.write(" ".join(str(len(pages[name])) for name in ("main", "other")))
                    print("ready", flush=True)
                time.sleep(1000)
            lock = threading.Lock()
            lock.acquire()
            if sys.version_info >= (3, 11):
                threading.Thread(target=dive, args=("other", 1000), daemon=True).start()
                lock.acquire()
                dive("main", 4000)
            print("ready", flush=True)
            time.sleep(1000)
            """)
        found = {row["use"]: row["mapped"] // 4096 for row in harness.rows("use", "-q", core, "bill")
                 if row["use"].startswith("Python's frames of")}
        if not os.path.exists(path):
            self.assertEqual(found, {})
            return
        with open(path, encoding="ascii") as file:
            wanted = dict(zip(("the main thread", "other threads"), map(int, file.read().split())))
        self.assertEqual(len(found), 2)
        for name, pages in wanted.items():
            # The last chunk, of 4 pages or more, has room, and one may be kept for the next call.
            self.assertIn(found[f"Python's frames of {name}"], range(pages, pages + 9))


if __name__ == "__main__":
    unittest.main()
