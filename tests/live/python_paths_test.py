#!/usr/bin/env python3
"""
How a program in Python reaches its objects: it evaluates the paths that heapcore says of its core,
and each must lead to the object that was asked for.
"""

import json
import os
import random
import re
import unittest

import harness
import python_test

PROGRAM = r"""
import collections, contextvars, ctypes, functools, os, queue as queues, sys
import xml.etree.ElementTree as trees

class Base:
    __slots__ = ("parent", "tag")

class Slotted(Base):
    __slots__ = ("left", "right")

class Session:
    limits = {"rate": [10.5, 20.25]}
    def __init__(self, number):
        self.number = number + 0.125
        self.basket = [("article %d" % number, number * 1.5)]
        self.seen = {number: {"when": number + 0.25}}

class Large(dict):
    pass

class Dynamic:
    pass

def make(number):
    hidden = ["hidden %d" % number]
    def inner():
        return hidden
    return inner

def make_slotted(number):
    one = Slotted()
    one.parent, one.tag = ["p%d" % number], "tag %d" % number
    one.left, one.right = {"x": number * 0.5}, (number * 0.75,)
    return one

sessions = {"s%d" % i: Session(i) for i in range(300)}
by_number = [Session(i + 1000) for i in range(300)]
slotted = [make_slotted(i) for i in range(100)]
dynamic = Dynamic()
for i in range(200):
    setattr(dynamic, "field%d" % i, ["value %d" % i])
large = Large(a=[1.5], b={"c": (2.5, [3.5])})
large.extra = ["extra"]
ordered = collections.OrderedDict(first=["o1"], second=["o2"])
partial = functools.partial(print, ["argument"], key=["keyword"])
closures = [make(i) for i in range(20)]
keys = {(1, 2): ["by tuple"], 3: ["by int"], b"raw": ["by bytes"], None: ["by None"],
        "it's": ["quoted"], "back\\slash": ["escaped"], "gr\u00fc\u00df": ["umlauts"], 2.5: ["by float"], True: ["by bool"]}
queue = collections.deque([["queued %d" % i] for i in range(200)])
for i in range(70):
    queue.popleft()
@functools.lru_cache(maxsize=None)
def remember(number):
    return ["remembered %d" % number]
@functools.lru_cache(maxsize=30)
def recall(number):
    return ["recalled %d" % number]
for i in range(100):
    remember(i + 1000), recall(i + 1000)
named = collections.namedtuple("Named", "x y")(["nx"], ["ny"])
chain = None
for i in range(300):
    chain = [chain]
gone = Session(5000)
del gone.number, gone.basket

class Packed:
    # Its second attribute has the flags of a type of dicts where a type has its flags.
    def __init__(self):
        self.first = [1.5]
        self.second = (1 << 29 | 1 << 12).to_bytes(8, "little") * 100
        self.third = ["behind bytes"]

# Its values stand where texts were.
texts = ["was here before %d" % i + "y" * 190 for i in range(100)]
del texts
packed = Packed()

def generate(number):
    kept = ["generated %d" % number]
    shared = ["shared %d" % number]
    yield lambda: shared
    yield kept

async def wait(number):
    waiting = ["waiting %d" % number]
    await Never()
    return waiting

class Never:
    def __await__(self):
        yield

generators = [generate(i) for i in range(10)]
for one in generators[1:]:
    next(one)
coroutine = wait(1)
coroutine.send(None)
ended = generate(77)
list(ended)

class Failure(Exception):
    pass

def fail(number):
    local = ["failed %d" % number]
    raise Failure(number)

failures = []
for i in range(10):
    try:
        fail(i)
    except Failure as failure:
        failures.append(failure)

variables = [contextvars.ContextVar("v%d" % i, default=["default %d" % i]) for i in range(100)]
def set_all():
    for i, variable in enumerate(variables):
        variable.set(["context %d" % i])
context = contextvars.copy_context()
context.run(set_all)
variables[0].set(["current"])
simple = queues.SimpleQueue()
for i in range(30):
    simple.put(["simple %d" % i])
for i in range(20):
    simple.get()
element = trees.Element("of a class in C")
element.tag = ["by a getter"]
audit = [("entry %d" % i,) for i in range(20000)]
items = ctypes.c_void_p(ctypes.c_void_p.from_address(id(audit) + 24).value)

def module_of(path):
    return max((name for name in sys.modules if re.match(re.escape(name) + r"(?![\w])", path)),
               key=len)

def evaluate(path, variables):
    scope, local, rest = path.partition(".<locals>.")
    if local:
        return eval(rest, variables[scope])
    name = module_of(path)
    return eval("module" + path[len(name):], {"module": sys.modules[name]})

def serve(request):
    answer = {"request": request, "parts": [request * 2, ["deep"]]}
    variables = {"serve": dict(request=request, answer=answer)}
    print("ready", flush=True)
    for path in sys.stdin:
        print(id(evaluate(path.rstrip("\n"), variables)), flush=True)

import re
serve("one request" + str(len(sys.argv)))
"""

# What has no expression: elements of sets, members of C code, keys, middles of long paths.
NO_EXPRESSION = re.compile(r"\+0x|\.<(?!locals)|\{\.\.\.\}|\[<| \.\.\. |\.keys\(\)")
# A class gives a proxy for its dict.
PROXY = re.compile(r"\.__dict__$")
ASKED = 400


def documents(text):
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        yield {table["name"]: table["rows"] for table in document["tables"]}
        while at < len(text) and text[at].isspace():
            at += 1


@unittest.skipUnless(os.path.exists(python_test.SYSTEM), "no python3 of the system")
class Paths(harness.LiveTest):
    def setUp(self):
        super().setUp()
        script = self.path("program")
        with open(script, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        self.process = self.start([python_test.SYSTEM, script])
        self.core = harness.snap(self.process, self.path("core"))

    def evaluate(self, path):
        self.process.stdin.write(path + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def explain(self, rows, *options):
        """The path of each allocation, or None."""
        script = self.path("commands")
        with open(script, "w", encoding="utf-8") as file:
            file.writelines(f"explain {row['address']}\n" for row in rows)
        answers = harness.ask("-q", "--format", "json", *options, "-f", script, self.core).stdout
        return [answer["path"][0]["path"] if "path" in answer else None
                for answer in documents(answers)]

    def objects(self, *of):
        return harness.tables(self.core, "list", "used", *of)["allocation"]

    def check(self, rows, paths):
        """All paths that are expressions lead to the object; return how many are."""
        right = 0
        for row, path in zip(rows, paths):
            if not path or NO_EXPRESSION.search(path) or PROXY.search(path):
                continue
            start, size = int(row["address"], 16), row["size"]
            self.assertIn(self.evaluate(path) - start, range(size), (path, row))
            right += 1
        return right

    def test_paths_lead_to_their_objects(self):
        rows = [row for row in self.objects() if row.get("name")]
        rows = random.Random(1).sample(rows, ASKED)
        self.assertGreater(self.check(rows, self.explain(rows)), ASKED // 3)

    def test_all_that_the_program_made_has_a_path(self):
        rows = self.objects("__main__.Session") + self.objects("__main__.Slotted")
        self.assertEqual(len(rows), 701)
        paths = self.explain(rows)
        self.assertEqual(self.check(rows, paths), len(rows))
        self.assertIn("__main__.sessions['s0']", paths)
        self.assertIn("__main__.gone", paths)

    def check_typed(self, rows, paths, typed):
        """What explain says can be typed."""
        starts = {path: int(row["address"], 16) for row, path in zip(rows, paths)}
        self.assertEqual(harness.addresses_typed(self.core, typed, self.path("typed")),
                         [starts[path] for path in typed])

    def test_what_is_no_path_is_said(self):
        for path in "__main__.nothing", "__main__.sessions['none']", "nowhere.else":
            said = harness.ask("-q", self.core, "explain", path, expected=(2,)).stderr
            self.assertIn(f"unknown variable or object '{path}'", said)

    def test_containers_of_each_kind_are_gone_into(self):
        rows = self.objects("list")
        paths = self.explain(rows)
        self.check(rows, paths)
        for path in ("dynamic.field199", "large['a']", "large['b']['c'][1]", "large.extra",
                     "ordered['second']", "partial.args[0]", "partial.keywords['key']",
                     "keys[3]", "keys[b'raw']", "keys[None]", 'keys["it\'s"]', "keys['back\\\\slash']",
                     "keys['gr\u00fc\u00df']", "keys[2.5]", "keys[True]", "keys[<tuple>]",
                     "queue[129]", "named[1]", "Session.limits['rate']", "slotted[99].parent", "packed.third",
                     "closures[19].__closure__[0].cell_contents",
                     "generators[8].gi_frame.f_locals['kept']",
                     "generators[8].gi_frame.f_locals['shared']",
                     "coroutine.cr_frame.f_locals['waiting']", "remember.<cache>[1007]",
                     "recall.<cache>[1085].<result>",
                     "recall.<newest>.<result>", "variables[7].<default>",
                     "failures[7].__traceback__.tb_next.tb_frame.f_locals['local']",
                     "context[<ContextVar 'v99'>]", "simple.<items>[9]", "element.tag"):
            self.assertTrue("__main__." + path in paths, path)
        self.assertTrue("serve.<locals>.answer['parts'][1]" in paths)
        self.check_typed(rows, paths, (
            "__main__.dynamic.field199", "__main__.large['b']['c'][1]", "__main__.keys[3]",
            "__main__.queue[129]", "__main__.partial.keywords['key']", "__main__.keys[None]",
            "__main__.coroutine.cr_frame.f_locals['waiting']", "__main__.element.tag"))
        self.assertIn("contextvars.copy_context()[<ContextVar 'v0'>]", paths)
        self.assertFalse([path for path in paths if path and ("ended" in path or "+0x" in path and
                                                              "__main__" in path)])
        long = [path for path in paths if path and " ... " in path]
        self.assertEqual(len(long), 282)
        self.assertTrue(all(path.startswith("__main__.chain[0]") for path in long))

    def test_contents_are_left_out_on_request(self):
        rows = self.objects("__main__.Session")
        paths = self.explain(rows, "--no-content")
        self.assertIn("__main__.sessions[...]", paths)
        self.assertFalse([path for path in paths if path and "'" in path])

    def test_a_block_is_named_by_what_owns_it(self):
        table, = [row for row in self.objects("%PythonListItems") if row["size"] >= 2400
                  and "__main__.by_number" in harness.ask("-q", self.core, "explain",
                                                          row["address"]).stdout]
        self.assertIn("The program reaches what owns it as __main__.by_number\n",
                      harness.ask("-q", self.core, "explain", table["address"]).stdout)

    def test_the_first_screen_names_the_owner_of_a_block(self):
        """The items of the list, to which a word leads besides, have no path of their own."""
        screen = harness.ask("-q", self.core).stdout
        self.assertRegex(screen, r"__main__\.audit \(list\) +20,000 tuple\n")
        self.assertNotIn("%PythonListItems", screen)

    def test_values_are_not_named_by_what_stood_there_before(self):
        rows = self.objects("%PythonAttributes")
        self.assertTrue(rows)
        self.assertFalse([row for row in rows if row.get("identity")])

    def test_sql_has_the_same_paths(self):
        rows = harness.tables(self.core, "sql", "SELECT path(address) AS path FROM allocation "
                              "WHERE class = '__main__.Session'")["result"]
        self.assertTrue("__main__.sessions['s0']" in [row["path"] for row in rows])

    def test_the_tree_names_examples(self):
        rows = harness.tables(self.core, "tree", "--depth", "5", "--top", "30")["owner"]
        paths = [row["path"] for row in rows if row.get("path")]
        self.assertTrue([path for path in paths if path.startswith("__main__.sessions['s")])

    def test_damage_does_no_harm(self):
        for path in harness.damage(self.core, self.path("damaged"), 3000):
            harness.ask("-q", path, "tree", expected=(harness.FINE, harness.INCOMPLETE))
            harness.ask("-q", path, "explain", "used", "%PythonListItems", "--limit", "20",
                        expected=(harness.FINE, harness.INCOMPLETE))


if __name__ == "__main__":
    unittest.main()
