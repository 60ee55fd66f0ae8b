#!/usr/bin/env python3
"""
Lua 5.1 to 5.4, and LuaJIT: a program writes down what it has, and heapcore finds that in its core.
It evaluates the paths that heapcore says, which must lead to the objects that were asked for.
"""

import shutil
import tempfile
import unittest

import harness

KEPT, HANDLERS, THREADS, WEAK, LOST = 400, 100, 50, 30, 60

PROGRAM = f"""
Session = {{}} Session.__index = Session
function Session.new(i)
    return setmetatable({{ id = i, blob = ("b"):rep(300) .. i }}, Session)
end
package.loaded["app.shop"] = {{ Basket = {{}}, orders = {{ [17] = Session.new("order") }} }}
local Basket = package.loaded["app.shop"].Basket
Named = {{ __name = "app.Named" }}
cache = {{}} for i = 1, {KEPT} do cache["key" .. i] = Session.new(i) end
baskets = {{ setmetatable({{}}, Basket), setmetatable({{}}, {{ __index = Basket }}) }}
odd = {{ ["it's"] = Session.new(1), [2.5] = Session.new(2), [true] = Session.new(3) }}
handlers = {{}}
local function make(held) return function() return held end end
for i = 1, {HANDLERS} do handlers[i] = make(Session.new(i)) end
threads = {{}}
for i = 1, {THREADS} do
    local upvalue = setmetatable({{}}, Named)
    threads[i] = coroutine.create(function()
        local held = upvalue
        coroutine.yield(1)
        return held
    end)
    coroutine.resume(threads[i])
end
weak = setmetatable({{}}, {{ __mode = "v" }})
file = io.tmpfile()
collectgarbage() collectgarbage() collectgarbage("stop")
-- In a function of their own: a stack keeps what was in a variable.
local function lose()
    for i = 1, {WEAK} do weak[i] = Session.new(i) end
    for i = 1, {LOST} do local a = Session.new(i) a.me = a end
    for i = 1, {LOST} do local f = make(Session.new(i)) end
    for i = 1, 100 do local t = {{}} end
end
lose()

function answer(depth, what)
    local inner = {{ what, depth }}
    if depth > 0 then
        answer(depth - 1, what) -- the call
        return inner
    end
    print("ready") io.stdout:flush()
    for path in io.lines() do -- where it waits
        print(tostring(assert((loadstring or load)("return " .. path))()):match("0x(%x+)"))
        io.stdout:flush()
    end
end
answer(2, "question")
"""

LIVE = KEPT + HANDLERS + 4
GARBAGE = WEAK + 2 * LOST


def line_of(text):
    return 1 + PROGRAM[:PROGRAM.index(text)].count("\n")


class LuaCases:
    NAME = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which(cls.NAME):
            raise unittest.SkipTest(f"there is no {cls.NAME}")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.script, cls.core = f"{folder.name}/program.lua", f"{folder.name}/core"
        cls.folder = folder.name
        with open(cls.script, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        cls.process = harness.start([cls.NAME, cls.script])
        cls.addClassCleanup(harness.end, cls.process)
        harness.snap(cls.process, cls.core)

    def select(self, query):
        return harness.rows("result", self.core, "sql", query)

    def test_objects_are_counted_by_class(self):
        counts = {row["class"]: row["objects"] for row in harness.rows("class", self.core, "objects")}
        functions = {name: count for name, count in counts.items() if name.startswith("function ")}
        self.assertEqual(counts["Session"], LIVE + GARBAGE)
        self.assertEqual(counts["app.Named"], THREADS)
        self.assertEqual(counts["app.shop.Basket"], 2)
        self.assertIn(counts["thread"], (THREADS, THREADS + 1))
        self.assertEqual(counts["FILE*"], 4)
        self.assertEqual(functions[f"function {self.script}:{line_of('local function make')}"],
                         1 + HANDLERS + LOST)
        self.assertEqual(functions[f"function {self.script}:{line_of('function answer')}"], 1)

    def test_a_class_is_told_by_its_name_alone(self):
        """Numbers that heapcore gives classes are for programs."""
        said = harness.ask(self.core, "summarize", "used", "string").stdout
        self.assertRegex(said, "(?m)^Class string has ")
        row = harness.rows("group", self.core, "summarize", "used", "string")[0]
        self.assertEqual((row["name"], int(row["signature"], 16) < 1 << 16), ("string", True))
        listed = harness.ask(self.core, "list", "used", "string").stdout
        self.assertIn("\n... of class string\n", listed)
        self.assertNotIn("signature", listed)

    def test_garbage_is_what_the_collector_frees(self):
        found = {row["state"]: row["n"] for row in self.select(
            "SELECT state, count(*) AS n FROM allocation WHERE class = 'Session' GROUP BY state")}
        self.assertEqual(found, {"anchored": LIVE, "garbage": GARBAGE})
        self.assertEqual(harness.ask(self.core, "count", "leaked").stdout.split()[0], "0")
        self.assertEqual(self.select("SELECT count(*) AS n FROM allocation WHERE state = "
                                     "'held by garbage'")[0]["n"], 0)

    def test_paths_lead_to_their_objects(self):
        found = {int(str(row["address"]), 0): row["path"] for row in self.select(
            "SELECT address, path(address) AS path FROM allocation "
            "WHERE class IN ('Session', 'app.Named', 'FILE*') AND state = 'anchored'")}
        expected = {"_G.cache.key1", f"_G.cache.key{KEPT}", r"_G.odd['it\'s']", "_G.odd[2.5]",
                    "_G.odd[true]", "package.loaded['app.shop'].orders[17]", "_G.file",
                    "_G.handlers[1].(upvalue held)", "_G.threads[7].(local held)"}
        self.assertEqual(expected - set(found.values()), set())
        right = 0
        for address, path in found.items():
            if ".(" in path or path.startswith("registry"):
                continue
            self.process.stdin.write(path + "\n")
            self.process.stdin.flush()
            said = self.process.stdout.readline().strip()
            # A file is said by its FILE.
            if "file" not in path and "io." not in path:
                self.assertEqual((path, int(said, 16)), (path, address))
                right += 1
        self.assertEqual(right, KEPT + 4)

    def test_calls_and_their_variables(self):
        frames = harness.rows("frame", self.core, "backtrace")
        frames = [row for row in frames if row["function"] in ("answer", "main chunk")]
        self.assertEqual([row["line"] for row in frames],
                         [line_of("for path in")] + [line_of("answer(depth - 1")] * 2 +
                         [line_of('answer(2, "question"')])
        self.assertEqual({row["source"] for row in frames}, {self.script})
        variables = harness.rows("local", self.core, "backtrace", "--locals")
        self.assertEqual([row["value"] for row in variables if row["name"] == "depth"],
                         ["0", "1", "2"])
        self.assertEqual({row["value"] for row in variables if row["name"] == "what"},
                         {'"question"'})

    def test_parts_belong_to_their_tables(self):
        sizes = {row["class"]: row for row in harness.rows("class", self.core, "objects")}
        for name in ("Session", "table", "thread"):
            self.assertLess(sizes[name]["bytes"], sizes[name]["with_blocks"], name)

    def test_the_first_screen_names_the_holder(self):
        text = harness.ask("-q", self.core).stdout
        self.assertIn("_G.cache (table)", text)
        self.assertIn(f"{KEPT} Session", text)

    def test_damage_is_bounded(self):
        for damaged in harness.damage(self.core, f"{self.folder}/damaged", 3000):
            harness.ask("-q", damaged, expected=(0, 3), input="backtrace --locals\nobjects\n"
                        "sql \"SELECT count(path(address)) FROM allocation "
                        "WHERE class = 'Session'\"\n")


class Lua51(LuaCases, harness.LiveTest):
    NAME = "lua5.1"


class Lua52(LuaCases, harness.LiveTest):
    NAME = "lua5.2"


class Lua53(LuaCases, harness.LiveTest):
    NAME = "lua5.3"


class Lua54(LuaCases, harness.LiveTest):
    NAME = "lua5.4"


COMPILED = """
local sum = 0
for round = 1, 300 do for i = 1, 1000 do sum = sum + i % 7 end end
print("ready")
io.stdout:flush()
io.stdin:read()
"""


class LuaJit(LuaCases, harness.LiveTest):
    NAME = "luajit"

    def code_of(self, switch):
        """What is mapped to be executed and is of no file, and the bill's row of it."""
        process = self.start(["luajit", switch, self.write_program()])
        with open(f"/proc/{process.pid}/maps", encoding="utf-8") as file:
            ranges = [line.split()[0].split("-") for line in file
                      if "x" in line.split()[1] and len(line.split()) == 5]
        core = harness.snap(process, self.path(f"core{switch}"))
        uses = harness.rows("use", "-q", core, "bill")
        return (sum(int(end, 16) - int(start, 16) for start, end in ranges),
                [row["mapped"] for row in uses if row["use"] == "LuaJIT's code"])

    def write_program(self):
        with open(self.path("compiled.lua"), "w", encoding="utf-8") as file:
            file.write(COMPILED)
        return self.path("compiled.lua")

    def test_what_it_compiled_has_a_row_of_the_bill(self):
        mapped, rows = self.code_of("-jon")
        self.assertGreater(mapped, 0)
        self.assertEqual(rows, [mapped])
        self.assertEqual(self.code_of("-joff"), (0, []))


if __name__ == "__main__":
    unittest.main()
