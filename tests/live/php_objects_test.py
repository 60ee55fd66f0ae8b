#!/usr/bin/env python3
"""
Inside PHP: a program says how many objects of each class it keeps, and drops
cycles that its collector does not free yet.
"""

import unittest

import core_file
import harness
import php_programs

USERS, CYCLES, OTHERS = 3000, 2000, 100
# A stack may hold what was dropped last.
MOST_HELD = 8

PROGRAM = f"""
namespace App;

class Base {{ public $name; }}
class User extends Base {{ public $tags; }}
class Node {{ public $other; public $text; }}

$users = [];
for ($i = 0; $i < {USERS}; $i++) {{
    $user = new User;
    $user->name = "name $i";
    $user->tags = [$i, "tag $i"];
    $users["k$i"] = $user;
}}
$others = [];
for ($i = 0; $i < {OTHERS}; $i++) {{
    $others[] = new \\ArrayObject([$i]);
    $others[] = new \\SplObjectStorage;
    $others[] = function () use ($i) {{ return $i; }};
    $others[] = new class {{ public $text = "text"; }};
}}
class Holder {{ public static $kept = []; }}
for ($i = 0; $i < {OTHERS}; $i++) {{
    $user = new Base;
    $user->name = str_repeat("x", 100 + $i);
    Holder::$kept["s$i"] = &$user;
    unset($user);
}}

function drop_cycles() {{
    for ($i = 0; $i < {CYCLES}; $i++) {{
        $node = new Node;
        $other = new Node;
        $node->text = str_repeat("n", 40 + $i % 10);
        $node->other = [$other];
        $other->other = $node;
    }}
}}
drop_cycles();

function typed_alone(): ?Node {{ return null; }}
class Typed {{ function alone(): Base {{ return new Base; }} }}

function overwrite_the_stack($depth) {{
    $values = array_fill(0, 50, null);
    if ($depth)
        overwrite_the_stack($depth - 1);
}}
overwrite_the_stack(20);
$internal = 0;
foreach (array_merge(get_declared_classes(), get_declared_interfaces()) as $class)
    $internal += (new \\ReflectionClass($class))->isInternal();
echo "collected ", gc_status()["collected"], "\\n", "internal ", $internal, "\\n";
"""


# Each object becomes a root of the collector, which gives it the object's own number.
ROOTS = f"""
class Node {{ public $self; public $text; }}
class Slow extends Node {{ function __destruct() {{ echo "ready\\n"; sleep(600); }} }}
function drop($class) {{
    $node = new $class;
    $node->self = $node;
}}
for ($i = 0; $i < {CYCLES}; $i++)
    drop("Node");
"""

# Words that the engine does not use, or that hold nothing, lead to cycles that were dropped.
PLANTED, FIBERS, DEPTH = 300, 50, 6
UNUSED = f"""
gc_disable();
class Cycle {{ public $self; public $number; }}
class Unset_ extends Cycle {{}}  class Fixed extends Cycle {{}}
class Heaped extends Cycle {{}}  class Queued extends Cycle {{}}
class Deleted extends Cycle {{}} class Popped extends Cycle {{}}
class Packed extends Cycle {{}}  class Stored extends Cycle {{}}
class Weak extends Cycle {{}}    class Key extends Cycle {{}}
class Deep extends Cycle {{}}    class Fibered extends Cycle {{}}
class Holder {{ public $member; public $other = 1; }}
function cycle($class) {{ $made = new $class; $made->self = $made; return $made; }}
function deep($class, $n) {{ $made = cycle($class); return $n > 1 ? deep($class, $n - 1) : 0; }}
function wait_deep() {{ deep("Fibered", {DEPTH}); Fiber::suspend(); }}
function plant() {{
    global $kept;
    $fixed = new SplFixedArray({PLANTED});
    $heap = new class extends SplHeap {{
        protected function compare($a, $b): int {{ return $a->number <=> $b->number; }}
    }};
    $queue = new SplPriorityQueue;
    $storage = new SplObjectStorage;
    $map = new WeakMap;
    $objects = $deleted = $popped = $packed = $references = [];
    for ($i = 0; $i < {PLANTED}; $i++) {{
        $holder = new Holder;
        $holder->member = cycle("Unset_");
        unset($holder->member);
        $objects[] = $holder;
        $fixed[$i] = cycle("Fixed");
        $heap->insert(cycle("Heaped"));
        $queue->insert(cycle("Queued"), $i);
        $storage->attach($stored = cycle("Stored"));
        $storage->detach($stored);
        $deleted["key $i"] = cycle("Deleted");
        $packed[] = cycle("Packed");
        $popped[] = cycle("Popped");
        $references[] = WeakReference::create(cycle("Weak"));
        $map[cycle("Key")] = $i;
    }}
    $stored = null;
    for ($i = 0; $i < {PLANTED}; $i++) {{
        unset($fixed[$i], $deleted["key $i"], $packed[$i]);
        $heap->extract();
        $queue->extract();
        array_pop($popped);
    }}
    deep("Deep", {PLANTED});
    $holder->member = cycle("Unset_");
    $fixed[0] = cycle("Fixed");
    $map[$holder] = $references[] = WeakReference::create($holder);
    $kept = [$fixed, $heap, $queue, $storage, $deleted, $packed, $popped, $objects, $references,
             $map, []];
    for ($i = 0; $i < {FIBERS}; $i++) {{
        $fiber = new Fiber("wait_deep");
        $fiber->start();
        $kept[10][] = $fiber;
    }}
}}
plant();
"""
IN_USE = {"Unset_": 1, "Fixed": 1, "Holder": PLANTED, "Fiber": FIBERS, "WeakReference": PLANTED + 1}


class PhpObjects(php_programs.PhpTest):
    def core(self):
        core, self.said = self.core_of(PROGRAM)
        self.assertEqual(self.said["collected"], 0)
        return core

    def counts(self, core, *words):
        rows = harness.tables("-q", core, "objects", *words).get("class", [])
        return {row["class"]: row["objects"] for row in rows}

    def test_objects_are_counted_by_class(self):
        found = self.counts(self.core())
        expected = {"App\\User": USERS, "App\\Node": 2 * CYCLES, "App\\Base": OTHERS,
                    "ArrayObject": OTHERS, "SplObjectStorage": OTHERS, "Closure": OTHERS}
        self.assertEqual({name: found.get(name) for name in expected}, expected)
        self.assertEqual(found["reference"], OTHERS)
        self.assertGreater(found["array"], USERS + CYCLES)
        self.assertGreater(found["string"], 2 * USERS + CYCLES)

    def test_nearly_all_memory_has_a_class_or_owner(self):
        core = self.core()
        groups = [row for row in harness.tables("-q", core, "summarize", "used")["group"]
                  if row["match"] is None and row["string_size"] is None and row["size"] is None]
        named = [row for row in groups if row["signature"] or row["pattern"]]
        self.assertGreater(sum(row["bytes"] for row in named),
                           0.9 * sum(row["bytes"] for row in groups))
        # Classes of the program itself are in the arena of what was compiled.
        self.assertEqual([row["count"] for row in groups if row["pattern"] == "PhpClass"],
                         [self.said["internal"]])

    def test_objects_are_found_by_class_and_base(self):
        core = self.core()
        for name, count in (("App\\User", USERS), ("App\\Base", USERS + OTHERS)):
            total = harness.tables("-q", core, "count", "used", name)["total"][0]
            self.assertEqual(total["count"], count)

    def test_sql_has_names_of_classes_as_they_are(self):
        query = r"SELECT count(*) AS count FROM allocation WHERE class = 'App\User'"
        rows = harness.tables("-q", self.core(), "sql", query)["result"]
        self.assertEqual([row["count"] for row in rows], [USERS])

    def test_functions_have_class_and_name(self):
        rows = harness.tables("-q", self.core(), "summarize", "iseqs")["code label"]
        found = {(row["class"], row["label"]): row for row in rows}
        for name in ((None, "App\\drop_cycles"), ("App\\Typed", "alone"), (None, "{main}")):
            self.assertEqual(found[name]["iseqs"], 1)
            self.assertGreater(found[name]["bytes"], 0)

    def test_dropped_cycles_are_garbage_and_nothing_else_is(self):
        core = self.core()
        found = self.counts(core, "garbage")
        self.assertEqual(set(found), {"App\\Node", "array", "string"})
        for name, count in (("App\\Node", 2 * CYCLES), ("array", CYCLES), ("string", CYCLES)):
            self.assertLessEqual(found[name], count)
            self.assertGreaterEqual(found[name], count - MOST_HELD)
        self.assertEqual(self.counts(core, "leaked"), {})
        blocks = {row["address"] for row in
                  harness.tables("-q", core, "list", "leaked").get("allocation", [])}
        arenas = harness.tables("-q", core, "list", "arenas")["arena"]
        heap = next(row["arena"] for row in arenas if row["allocator"] == "zend")
        self.assertEqual([block for block in blocks if int(block, 16) >> 24 ==
                          int(heap, 16) >> 24], [])

    def test_unused_words_and_weak_references_hold_nothing(self):
        if harness.run("php", "-r", "echo PHP_VERSION_ID;").stdout < "80100":
            self.skipTest("PHP has no fibers before 8.1")
        core, _ = self.core_of(UNUSED)
        found, used = self.counts(core, "garbage"), self.counts(core)
        for name in ("Unset_", "Fixed", "Heaped", "Queued", "Deleted", "Popped", "Packed",
                     "Stored", "Weak", "Key", "Deep", "Fibered"):
            planted = FIBERS * DEPTH if name == "Fibered" else PLANTED
            self.assertEqual(used[name], planted + IN_USE.get(name, 0))
            # Temporary values hold some.
            self.assertIn(found.get(name), range(planted - 4 * MOST_HELD, planted + 1), name)
        self.assertEqual(set(found) & {"Holder", "Fiber", "WeakReference", "WeakMap"}, set())
        self.assertEqual(used["(stack of a Fiber)"], FIBERS)
        self.assertEqual(self.counts(core, "leaked"), {})

    def test_collector_that_is_off_is_told(self):
        core, _ = self.core_of(ROOTS + "gc_disable();")
        answer = harness.ask(core, "count", "garbage", "Node")
        self.assertIn("(gc_disable())", answer.stderr)
        self.assertGreaterEqual(int(answer.stdout.replace(",", "").split()[0]),
                                CYCLES - MOST_HELD)

    def test_middle_of_a_collection_is_told(self):
        core, _ = self.core_of(ROOTS + 'drop("Slow"); gc_collect_cycles();')
        for words in (("count", "garbage"), ("count", "leaked"), ("objects",)):
            answer = harness.ask(core, *words)
            self.assertIn("the collector of php was running", answer.stderr)
            if words[0] == "count":
                self.assertTrue(answer.stdout.startswith("0 "), answer.stdout)

    def test_object_that_a_count_too_high_keeps_is_leaked(self):
        core = self.core()
        node = min(harness.addresses("-q", core, "enumerate", "garbage", "App\\Node"))
        opened = core_file.Core(core)
        place = opened.offset_of(node)
        opened.close()
        with open(core, "r+b") as file:
            file.seek(place)
            count = int.from_bytes(file.read(4), "little")
            file.seek(place)
            file.write((count + 1).to_bytes(4, "little"))
        found = self.counts(core, "leaked")
        self.assertEqual(found["App\\Node"], 2)
        text = harness.ask("-q", core, "explain", f"{node:x}").stdout
        self.assertIn(f"kept by a count of {count + 1} references", text)

    def test_damage_is_bounded(self):
        for damaged in harness.damage(self.core(), self.path("damaged"), 2000):
            for words in (("objects",), ("count", "leaked")):
                harness.ask("-q", damaged, *words, expected=(0, 3))


if __name__ == "__main__":
    unittest.main()
