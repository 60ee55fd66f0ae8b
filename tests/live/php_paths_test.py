#!/usr/bin/env python3
"""
How a program in PHP reaches its objects, and which calls it is in: it evaluates the paths that
heapcore says of its core, which must lead to the objects that were asked for, by their numbers,
and it says its calls itself.
"""

import tempfile
import unittest

import core_file
import harness
import php_programs

ENTRIES = 300

PROGRAM = f"""
namespace App;

class Base {{ private $own; function __construct() {{ $this->own = new Entry; }} }}
class Entry {{ public $next; }}
class Kept {{ }}
class Held {{ public $name; function __construct($name) {{ $this->name = $name; }} function go() {{ }} }}
#[\\AllowDynamicProperties]
class Cache extends Base {{
    const LIMITS = ["a" => [1, 2]];
    public $items = []; private $secret; protected $guard;
    public static $all = []; private static $hidden;
    function __construct() {{
        parent::__construct();
        $this->secret = new Entry;
        $this->guard = [new Entry];
        self::$all["first"] = [1, new Entry];
        self::$hidden = new Entry;
    }}
    function answer($depth, $last) {{
        $of_a_call = new Kept;
        if ($depth > 0)
            return $this->answer($depth - 1, $last);
        foreach (debug_backtrace() as $call)
            echo $call["class"] ?? "", " ", $call["function"], " ", $call["line"], "\\n";
        echo "ready\\n";
        while (($path = fgets(STDIN)) !== false) echo find(trim($path)), "\\n";
    }}
}}
function keeps() {{ static $kept; $kept = [new Entry]; }}
function find($path) {{
    $way = \\Closure::bind(function () use ($path) {{
        extract($GLOBALS);
        return eval("return $path;");
    }}, null, Cache::class);
    return spl_object_id($way());
}}

$cache = new Cache;
for ($i = 0; $i < {ENTRIES}; $i++)
    $cache->items["user:$i"] = new Entry;
$cache->dynamic = new Entry;
$cache->{{"odd name"}} = new Entry;
$list = [[1, new Entry], "it's \\\\" => new Entry, -5 => new Entry];
$referred = ["deep" => [new Entry]];
$also = &$referred["deep"];
unset($also);
$chain = new Entry;
$chain->next = new Entry;
$chain->next->next = [new Entry];
$closure = (function () {{ $bound = new Kept; return function () use ($bound) {{ }}; }})();
keeps();
function generate($held) {{ yield 1; yield $held; }}
$generator = generate(new Held("generator"));
$generator->current();
$storage = new \SplObjectStorage;
$storage[new Held("key")] = new Held("value");
$queue = new \SplQueue;
$heap = new \SplPriorityQueue;
for ($i = 0; $i < 9; $i++) {{
    $queue->enqueue(new Held("queue"));
    $heap->insert(new Held("heap"), $i);
}}
$fixed = \SplFixedArray::fromArray([1, new Held("fixed")]);
$object = new \ArrayObject([new Held("array object")]);
$weak_key = new \stdClass;
$weak = new \WeakMap;
$weak[$weak_key] = new Held("weak");
$fiber = new \Fiber(function ($argument) {{ $held = new Held("fiber"); \Fiber::suspend(); return $held; }});
$fiber->start(new Held("argument"));
register_shutdown_function([new Held("ending"), "go"]);
register_shutdown_function([new Held("ending"), "go"]);
(function () use ($cache) {{ $cache->answer(2, $cache); }})();
"""

# In the order of the program.
EXPECTED = [
    "$cache->own", "$cache->secret", "$cache->guard[0]", r"App\Cache::$all['first'][1]",
    r"App\Cache::$hidden", "$cache->items['user:0']", f"$cache->items['user:{ENTRIES - 1}']",
    "$cache->dynamic", "$cache->{'odd name'}", "$list[0][1]", r"$list['it\'s \\']", "$list[-5]",
    "$referred['deep'][0]", "$chain->next", "$chain->next->next[0]",
]
# Objects of class Held that objects of C code hold, and how many.
HELD = {
    "$generator->($held)": 1, "$storage->(inside)": 2, "$queue->(inside)": 9, "$heap->(inside)": 9,
    "$fixed->(inside)": 1, "$object->(inside)[0]": 1, "$weak->(inside)": 1, "$fiber->($held)": 1,
    "$fiber->($argument)": 1, "<shutdown function>[0]": 2,
}
# Objects that no expression leads to.
KEPT = [r"App\keeps(): static $kept[0]"]


class PhpPaths(php_programs.PhpTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.script, cls.core = f"{folder.name}/program.php", f"{folder.name}/core"
        with open(cls.script, "w", encoding="utf-8") as file:
            file.write(f"<?php{PROGRAM}")
        cls.process = harness.start(["php", "-n", cls.script])
        cls.addClassCleanup(harness.end, cls.process)
        harness.snap(cls.process, cls.core)
        cls.found = harness.tables(cls.core, "sql", "SELECT address, class, path(address) AS path "
                                   "FROM allocation WHERE class LIKE 'App%'")["result"]

    def number_of(self, address):
        """Of the object at address, as the engine has it."""
        core = core_file.Core(self.core)
        try:
            return int.from_bytes(core.read(address + 8, 4), "little")
        finally:
            core.close()

    def paths(self, name):
        return {int(str(row["address"]), 0): row["path"] for row in self.found
                if row["class"].endswith(name) and row["path"]}

    def rows(self, name, *words):
        return harness.rows(name, self.core, *words)

    def test_paths_lead_to_their_objects(self):
        paths = self.paths("Entry")
        self.assertEqual(set(EXPECTED + KEPT) - set(paths.values()), set())
        self.assertEqual(len(paths), ENTRIES + len(EXPECTED) - 2 + len(KEPT) + 1)
        typed = [path for path in EXPECTED if list(paths.values()).count(path) == 1
                 and " " not in path and "(" not in path]
        starts = {path: address for address, path in paths.items()}
        self.assertGreater(len(typed), 5)
        self.assertEqual(harness.addresses_typed(self.core, typed, f"{self.core}.typed"),
                         [starts[path] for path in typed])
        for address, path in paths.items():
            if "(): " in path:
                continue
            if path == "$cache->own":  # another class's own
                path = r"\Closure::bind(fn() => $this->own, $cache, \App\Base::class)()"
            self.process.stdin.write(path + "\n")
            self.process.stdin.flush()
            self.assertEqual(self.process.stdout.readline().strip(), str(self.number_of(address)),
                             path)

    def test_variables_of_calls_and_closures_have_names(self):
        paths = list(self.paths("Kept").values())
        self.assertEqual(paths.count(r"App\Cache::answer(): $of_a_call"), 3)
        self.assertEqual(paths.count("$closure->(inside)['bound']"), 1)

    def test_what_c_code_holds_has_a_path(self):
        paths = list(self.paths("Held").values())
        self.assertEqual({path: paths.count(path) for path in paths}, HELD)

    def test_content_is_left_out(self):
        text = harness.ask("--no-content", self.core, "sql",
                           "SELECT path(address) FROM allocation WHERE class LIKE '%Entry'").stdout
        self.assertIn("$cache->items[...]", text)
        self.assertNotIn("user:", text)

    def test_calls_are_those_that_the_program_says(self):
        said = [line.rstrip("\n").split(" ") for line in self.process.said]
        calls = self.rows("frame", "backtrace")
        names = [call["function"].split("{")[0] for call in calls]
        expected = [(f"{class_name}::" if class_name else "") + name.split("{")[0]
                    for class_name, name, _ in said]
        self.assertEqual(names, ["fgets", *expected, ""])
        self.assertEqual([call["line"] for call in calls[2:]], [int(line) for _, _, line in said])
        self.assertEqual({call["source"] for call in calls[1:]}, {self.script})

    def test_variables_of_calls_are_shown(self):
        rows = self.rows("local", "backtrace", "--locals")
        depths = [row["value"] for row in rows if row["name"] == "$depth"]
        self.assertEqual(depths, ["0", "1", "2"])
        self.assertEqual({row["class"] for row in rows if row["name"] == "$this"},
                         {r"App\Cache"})

    def members(self, class_name):
        shown = self.rows("member", "show", "used", class_name)
        return {row["member"]: row for row in shown}

    def test_members_are_shown_by_name_and_key(self):
        cache = self.members(r"App\Cache")
        # The first is of the class that it is derived from.
        self.assertEqual(set(cache), {"own", "items", "secret", "guard", "dynamic", "odd name"})
        self.assertEqual(cache["items"]["type"], "array")
        self.assertRegex(cache["items"]["value"], rf"^0x[0-9a-f]+ \(array\) {ENTRIES} elements$")
        self.assertEqual(int(cache["items"]["offset"], 16) % 16, 8)
        self.assertIsNone(cache["dynamic"]["offset"])
        self.assertEqual({cache[name]["type"] for name in ("own", "dynamic", "odd name")},
                         {r"App\Entry"})
        items = cache["items"]["value"].split()[0][2:]
        elements = self.rows("member", "show", items)
        self.assertEqual([row["member"] for row in elements][:2], ["['user:0']", "['user:1']"])
        hidden = harness.ask("--no-content", self.core, "show", items).stdout
        self.assertEqual((hidden.count("[...] = "), hidden.count("user:")), (200, 0))

    def test_damage_is_bounded(self):
        for damaged in harness.damage(self.core, self.path("damaged"), 2000):
            harness.ask("-q", damaged, expected=(0, 2, 3), input="backtrace --locals\nshow used App\\Cache\nshow used array\n"
                        "sql \"SELECT count(path(address)) FROM allocation "
                        "WHERE class LIKE 'App%'\"\n")


if __name__ == "__main__":
    unittest.main()
