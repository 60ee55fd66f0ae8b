"""
What interpreters lose at their ends does not fail a test of a program in their language, but is
counted; and what an extension loses fails it as before.
"""

import json
import shutil
import sys
import unittest

import preloaded
from harness import HEAPCORE, LiveTest, run, tables as tables_of

LOST, SIZE = 100, 72
TCMALLOC = "libtcmalloc_minimal.so.4"

# Stands for an extension that loses blocks, in any interpreter.
PRELOADED = f"""
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void lose(void)
{{
	for (int i = 0; i < {LOST}; i++) {{
		void *volatile block = malloc({SIZE} - 8);

		memset(block, 'x', {SIZE} - 8);
		block = NULL;
	}}
}}
"""

RUBY = r"""
require "set"
require "time"
class Item
  def initialize(name:, number: 2) = (@name, @number = name, number)
end
$items = 1000.times.map { |i| Item.new(name: i.to_s) }
eval("def late(key:) = key")
late(key: 1)
Thread.new { $items.map(&:to_s) }.join
GC.start
"""
PYTHON = """
import ctypes, json, re, threading
class Item:
    pass
items = [Item() for _ in range(1000)]
json.loads(json.dumps({str(i): [i] for i in range(100)}))
thread = threading.Thread(target=lambda: re.findall("(a)b*", "ab" * 100))
thread.start()
thread.join()
"""
PERL = """
use strict; use POSIX; use Data::Dumper; use List::Util;
my %items = map { $_ => [1 .. 5] } 1 .. 1000;
my @calls = map { my $x = $_; sub { $x++ } } 1 .. 50;
(my $text = "abc" x 100) =~ s/a(b)c/x$1/g;
eval "sub late$_ { $_ }" for 1 .. 20;
"""
PHP = """
class Item { public $list = []; }
for ($i = 0; $i < 1000; $i++) $items[] = new Item;
preg_match_all("/a(b)c/", str_repeat("abc", 100), $found);
echo strlen(json_encode($items)) > 0;
"""

PROGRAMS = {
    "ruby": ["ruby", "-e", RUBY],
    "python3": ["python3", "-c", PYTHON],
    "perl": ["perl", "-e", PERL],
    "php": ["php", "-r", PHP],
}


class KnownLeaks(LiveTest):
    def gate(self, *words, options=()):
        """Exit status, and the tables by name."""
        path = self.path("gate.json")
        result = run(HEAPCORE, "run", "-q", "--error-exitcode", "7", *options, "-o", path, "--",
                     *words)
        with open(path) as file:
            tables = {table["name"]: table["rows"] for table in json.load(file)["tables"]}
        return result.returncode, tables, result.stderr

    def programs(self):
        """Those that docs/inside/gate.md names."""
        found = {name: words for name, words in PROGRAMS.items() if shutil.which(name)}
        if "ruby" in found and run("ruby", "--version").stdout.split()[1][:3] not in ("3.1", "3.3"):
            found.pop("ruby")
        return found

    def test_interpreters_pass(self):
        for name, words in self.programs().items():
            with self.subTest(name):
                status, tables, said = self.gate(*words)
                self.assertEqual((status, tables["leak"]), (0, []), said)

    def test_what_an_extension_loses_fails(self):
        library = self.compile("lose.so", flags=("-shared", "-fPIC"), text=PRELOADED)
        for name, words in self.programs().items():
            with self.subTest(name):
                status, tables, said = self.gate("env", f"LD_PRELOAD={library}", *words)
                self.assertEqual(status, 7, said)
                lost = sum(leak["allocations"] for leak in tables["leak"])
                # A stale word of the last one may be left on the interpreter's stack.
                self.assertIn(lost, range(LOST - 2, LOST + 1), said)

    def test_what_a_script_loses_by_calls_of_c_fails(self):
        lose = f"libc = ctypes.CDLL(None); [libc.malloc({SIZE} - 8) and None for _ in range({LOST})]"
        status, tables, said = self.gate("python3", "-c", PYTHON + lose)
        self.assertEqual(status, 7, said)
        # One may be in a register, or where the last number was.
        self.assertGreaterEqual(sum(leak["allocations"] for leak in tables["leak"]), LOST - 2, said)

    @unittest.skipIf(sys.version_info < (3, 12), "it frees all its texts")
    def test_interned_texts_of_python_are_known(self):
        core = self.path("core")
        status, tables, said = self.gate(*PROGRAMS["python3"], options=["--core", core])
        known, = tables["known leak"]
        self.assertEqual((status, known["owner"]), (0, "python"), said)
        self.assertGreater(known["count"], 500)
        shown = tables_of(core, "gate", "--no-known", expected=(1,))
        self.assertEqual(sum(leak["allocations"] for leak in shown["leak"]), known["count"])

    @unittest.skipUnless(preloaded.is_there(TCMALLOC), "there is no libtcmalloc-minimal4")
    def test_what_tcmalloc_loses_when_it_starts_is_known(self):
        status, tables, said = self.gate("env", f"LD_PRELOAD={TCMALLOC}", "/bin/true")
        self.assertEqual((status, [row["owner"] for row in tables["known leak"]]),
                         (0, ["tcmalloc"]), said)

    def test_known_leaks_are_counted_and_can_be_shown(self):
        if not shutil.which("perl"):
            self.skipTest("there is no perl")
        words = PROGRAMS["perl"]
        core = self.path("core")
        status, tables, said = self.gate(*words, options=["--core", core])
        known = sum(row["count"] for row in tables["known leak"])
        self.assertEqual({row["owner"] for row in tables["known leak"]} - {"perl"}, set())
        if known == 0:
            self.skipTest("this perl frees all it has")
        self.assertIn(" of perl (", said)
        shown = tables_of(core, "gate", "--no-known", expected=(1,))
        self.assertEqual(shown["known leak"], [])
        self.assertEqual(sum(leak["allocations"] for leak in shown["leak"]), known)
        for form, part in ("junit", " skipped="), ("sarif", '"suppressions": [{"kind": "external"}]'):
            path = self.path(form)
            self.assertEqual(run(HEAPCORE, "run", "-q", "-o", f"{form}:{path}", "--",
                                 *words).returncode, 0)
            with open(path) as file:
                self.assertIn(part, file.read())


if __name__ == "__main__":
    unittest.main()
