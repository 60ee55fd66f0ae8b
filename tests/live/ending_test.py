#!/usr/bin/env python3
"""
Why a process ended: the first screen says which address it accessed, which exception nobody caught,
or what the C library wrote before it called abort().
"""

import os
import platform
import shutil
import signal
import subprocess
import sys
import unittest

from harness import HEAPCORE, LiveTest, ask, rows, run, snap

PROGRAM = r"""
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

struct node { node *next; long id; };
struct out_of_stock : std::exception {
	std::string text;
	out_of_stock(const char *about) : text(about) {}
	const char *what() const noexcept override { return text.c_str(); }
};
static node *volatile list;
static char *volatile block;
static void (*volatile callback)();
static __attribute__((noinline)) int deep(int number)
{
	volatile char frame[4096];
	frame[0] = (char)number;
	return number == -1 ? 0 : deep(number + 1) + frame[0];
}
static __attribute__((noinline)) long sum_up(node *first)
{
	long sum = 0;
	for (node *volatile each = first; each; each = each->next)
		sum += each->id;
	return sum;
}
static long use_freed()
{
	node *first = list;
	free(first);
	memset((void *)first, 0x41, sizeof(*first));
	return sum_up(first);
}
static int read_behind(const char *path)
{
	const long page = sysconf(_SC_PAGESIZE);
	FILE *file = fopen(path, "w+");
	fputc('x', file);
	fflush(file);
	return ((volatile char *)mmap(0, 2 * page, PROT_READ, MAP_SHARED, fileno(file), 0))[page];
}
static __attribute__((noinline)) int measure(const char *text) { return (int)strlen(text) + 1; }
static __attribute__((noinline)) int fire() { callback(); return 1; }
int main(int count, char **words)
{
	std::string what = words[1];
	list = (node *)calloc(1, sizeof(node));
	block = (char *)malloc(40);
	if (what == "null") return (int)list->next->id;
	if (what == "wild") return *(volatile int *)0x123456789000;
	if (what == "stack") return deep(0);
	if (what == "freed") return (int)use_freed();
	if (what == "jump") return fire();
	if (what == "length") return measure((const char *)8);
	if (what == "constant") *(volatile char *)"text" = 1;
	if (what == "file") return read_behind(words[2]);
	if (what == "number") throw 42;
	if (what == "runtime") throw std::runtime_error("the database is gone");
	if (what == "own") throw out_of_stock("there are no apples left in stock");
	if (what == "handled") try { throw std::logic_error("inner"); } catch (...) { abort(); }
	if (what == "assertion") assert(count == 7 && "the basket must not be empty");
	if (what == "twice") { free(block); free(block); }
	if (what == "abort") abort();
	puts("ready");
	fflush(stdout);
	pause();
}
"""

ENDINGS = {
    "null": ("Segmentation fault", "It accessed 0x8, near null."),
    "wild": ("Segmentation fault", "It accessed 0x123456789000, which is not mapped."),
    "stack": ("Segmentation fault",
              r"It accessed 0x[0-9a-f]+, at the end of its stack, which overflowed\."),
    # x86-64 keeps such an address for itself.
    "freed": ("Segmentation fault",
              r"It (used a wild pointer|accessed 0x4141414141414149, which is not mapped)"
              r"(; \w+ points into freed memory at 0x[0-9a-f]+)?\."),
    "jump": ("Segmentation fault", "It jumped to 0x0, near null."),
    "constant": ("Segmentation fault", r"It accessed 0x[0-9a-f]+, which is read-only, in ends\."),
    "file": ("Bus error", r"It accessed 0x[0-9a-f]+, which its mapped file does not reach\."),
    "number": ("Aborted", "Uncaught exception int."),
    "runtime": ("Aborted", "Uncaught exception std::runtime_error: the database is gone"),
    "own": ("Aborted", "Uncaught exception out_of_stock: there are no apples left in stock"),
    "handled": ("Aborted", "While handling exception std::logic_error: inner"),
    "assertion": ("Aborted",
                  'Failed assertion: count == 7 && "the basket must not be empty"'),
    "twice": ("Aborted", "Its last message: free(): double free detected in tcache 2"),
    "abort": ("Aborted", None),
}


PYTHON = r"""
import os, sys, time
class Broken(Exception): pass
def parse(text): raise Broken("bad line", text)
def finish(): os.abort()
def handle(how):
    try: parse("x = 3")
    except Broken:
        if how == "handled": finish()
        if how == "waits": print(os.getpid(), flush=True); time.sleep(60)
    finish()
handle(sys.argv[1])
"""

RUBY = """
class Broken < StandardError; end
def parse(text) = raise(Broken, "bad line #{text}")
def finish = Process.kill(:ABRT, $$) && sleep(9)
def handle(how)
  begin
    parse(3)
  rescue Broken
    finish if how == "handled"
  end
  finish
end
handle(ARGV[0])
"""

PERL = r"""
package Broken { sub new { bless {}, shift } }
sub finish { kill 'ABRT', $$; sleep 9 }
sub parse { die "bad line @_\n" }
my $how = shift;
eval { $how eq 'object' ? die Broken->new : parse(3) };
eval { 1 } if $how eq 'past';
finish();
"""

PHP = r"""
<?php
class Broken extends RuntimeException {}
class Shop { static function parse($text) { throw new Broken("bad line $text"); } }
$c = FFI::cdef("void abort(void *); extern void (*zend_throw_exception_hook)(void *);");
function finish() { global $c; $c->abort(NULL); }
function handle($how) {
    global $c;
    if ($how == "uncaught") set_exception_handler(function ($e) { finish(); });
    if ($how == "thrown") $c->zend_throw_exception_hook = $c->abort;
    if ($how != "handled" && $how != "past") Shop::parse(3);
    try { Shop::parse(3); }
    catch (LogicException $other) { return; }
    catch (Error | Broken $e) { if ($how == "handled") finish(); }
    finish();
}
handle($argv[1]);
"""
PHP_ERRORS = {
    "handled": "While handling Broken from Shop::parse at script.php:3: bad line 3",
    "thrown": "While throwing Broken from Shop::parse at script.php:3: bad line 3",
    "uncaught": "Uncaught Broken from Shop::parse at script.php:3: bad line 3",
    "past": None,
}

NODE = """
class Broken extends Error {}
function parse(text) { throw new Broken(`bad line ${text}`); }
for (let i = 0; i < 9; i++) try { new (require("vm").Script)("bad bad"); } catch (e) {}
const how = process.argv[2];
if (how == "listened") {
    process.on("uncaughtException", () => process.abort());
    missing();
}
if (how == "handled") try { parse(2); } catch (e) { process.abort(); }
if (how == "past") {
    process.on("uncaughtException", () => setTimeout(() => process.abort(), 1));
    parse(2);
}
if (how == "error") parse(3);
"""
NODE_ERRORS = {
    "error": "Uncaught Broken from script.js:2: bad line 3",
    "listened": "Uncaught ReferenceError from script.js:7: missing is not defined",
    "handled": None,
    "past": None,
}

GO = """
package main
import ("errors"; "os")
func parse(how string) {
	func() { defer func() { recover() }(); panic("inner") }()
	if how == "error" { panic(errors.New("bad line")) }
	var number *int
	if how == "nil" { *number = 3 }
	var list []int
	list[len(how)] = 1
}
func main() { parse(os.Args[1]) }
"""
RUST = """
fn parse(text: &str) -> usize {
    match text {
        "text" => panic!("no basket"),
        "index" => { let list = vec![text.len()]; list[text.len()] }
        "abort" => std::process::abort(),
        _ => panic!("no basket has {} apples", text.len()),
    }
}
fn main() { println!("{}", parse(&std::env::args().nth(1).unwrap())); }
"""
RUST_PANICS = {
    "text": "Panic from panics.rs:3: no basket",
    "index": "Panic from panics.rs:4: index out of bounds: the len is 1 but the index is 5",
    "other": "Panic from panics.rs:6: no basket has 5 apples",
}


def explanation(core, *switches):
    lines = run(HEAPCORE, *switches, core, "info").stdout.splitlines()
    number = next(i for i, line in enumerate(lines) if line.startswith("Ended by signal "))
    return lines[number], lines[number + 1]


class EndingTest(LiveTest):
    def ended(self, program, word):
        core = self.path(f"core.{word}")
        run(HEAPCORE, "run", "--core", core, "--", program, word, self.path("file"))
        return core

    def write(self, name, text):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.lstrip())
        return path

    def ended_script(self, interpreter, suffix, text, *words, before=()):
        script = self.write(f"script.{suffix}", text)
        core = self.path("core.script")
        run(HEAPCORE, "run", "--core", core, "--", interpreter, *before, script, *words)
        return core

    def check(self, found, wanted):
        if wanted is None:
            self.assertTrue(found.startswith("RSS"), found)
        elif "\\" in wanted:
            self.assertRegex(found, f"^{wanted}$")
        else:
            self.assertEqual(found, wanted)

    def test_each_says_why(self):
        program = self.compile("ends", compiler="c++", flags=("-g", "-O1"), text=PROGRAM)
        for word, (signal, wanted) in ENDINGS.items():
            with self.subTest(word):
                ended, reason = explanation(self.ended(program, word))
                self.assertIn(f"({signal})", ended)
                self.check(reason, wanted)

    def test_where_the_program_called_what_ended_it(self):
        program = self.compile("ends", compiler="c++", flags=("-g", "-O1"), text=PROGRAM)
        for word in "runtime", "assertion", "twice", "abort", "constant":
            ended, _ = explanation(self.ended(program, word))
            self.assertRegex(ended, r" in main\(\) at <stdin>:\d+\.$")

    def test_who_called_what_faulted(self):
        program = self.compile("ends", compiler="c++", flags=("-g", "-O1"), text=PROGRAM)
        jump, length = (self.ended(program, word) for word in ("jump", "length"))
        self.assertRegex(explanation(jump)[0], r" in fire\(\) at <stdin>:\d+\.$")
        # On aarch64 strlen() is not named: its variants have no symbols.
        callee = r"strlen\(\), called by " if platform.machine() == "x86_64" else ""
        self.assertRegex(explanation(length)[0], rf" in {callee}measure\(\) at <stdin>:\d+\.$")
        self.assertIn("in main()", ask(jump, "backtrace").stdout)

    def test_the_thread_that_ended_it(self):
        program = self.compile("ends", compiler="c++", flags=("-g", "-O1"), text=PROGRAM)
        row, = rows("thread", "-q", self.ended(program, "null"), "list", "threads")
        self.assertEqual(row["ended_by"], "Segmentation fault")
        facts, = rows("facts", "-q", self.path("core.null"), "facts")
        self.assertEqual((facts["signal"], facts["reason"]), (11, "It accessed 0x8, near null"))
        self.assertRegex(facts["in"], r"^main\(\) at ")
        core = snap(self.start([program, "live"]), self.path("core"))
        row, = rows("thread", "-q", core, "list", "threads")
        self.assertIsNone(row["ended_by"])
        self.assertIsNone(rows("facts", "-q", core, "facts")[0]["signal"])

    def test_a_static_program_without_symbols(self):
        program = self.compile("ends", compiler="c++", flags=("-O1", "-s", "-static"),
                               text=PROGRAM)
        _, reason = explanation(self.ended(program, "own"))
        self.assertEqual(reason, ENDINGS["own"][1])

    def test_the_message_is_content(self):
        program = self.compile("ends", compiler="c++", flags=("-O1",), text=PROGRAM)
        core = self.ended(program, "runtime")
        _, reason = explanation(core, "--no-content")
        self.assertEqual(reason, "Uncaught exception std::runtime_error.")
        row, = rows("core", "-q", core, "info")
        self.assertEqual((row["reason"], row["message"]),
                         ("Uncaught exception std::runtime_error", "the database is gone"))

    def test_what_python_handled(self):
        handled = explanation(self.ended_script(sys.executable, "py", PYTHON, "handled"))
        self.assertEqual(handled, (
            "Ended by signal 6 (Aborted) in finish at script.py:4.",
            "While handling __main__.Broken from parse at script.py:3: bad line, x = 3"))
        past = explanation(self.ended_script(sys.executable, "py", PYTHON, "past"))
        self.assertIn(" in finish at script.py:4.", past[0])
        self.assertNotIn("Broken", past[1])

    @unittest.skipUnless(shutil.which("ruby"), "there is no ruby")
    def test_what_ruby_handled(self):
        handled = explanation(self.ended_script("ruby", "rb", RUBY, "handled"))
        self.assertRegex(handled[0], r"Process\.kill, called by Object#finish at script\.rb:3\.$")
        self.assertEqual(handled[1], "While handling Broken: bad line 3")
        past = explanation(self.ended_script("ruby", "rb", RUBY, "past"))
        self.assertEqual(handled[0], past[0])
        self.assertNotIn("Broken", past[1])

    @unittest.skipUnless(shutil.which("perl"), "there is no perl")
    def test_what_the_last_eval_of_perl_failed_with(self):
        for word, wanted in (("text", "The last eval failed: bad line 3"),
                             ("object", "The last eval failed with Broken."), ("past", None)):
            ended, reason = explanation(self.ended_script("perl", "pl", PERL, word))
            self.assertIn("script.pl:2", ended)
            self.check(reason, wanted)

    @unittest.skipUnless(shutil.which("php"), "there is no php")
    def test_what_php_threw_or_handled(self):
        for word, wanted in PHP_ERRORS.items():
            ended, reason = explanation(self.ended_script("php", "php", PHP, word))
            place = "Shop::parse at script.php:3" if word == "thrown" else "at script.php:5"
            self.assertIn(place, ended)
            self.check(reason, wanted)

    @unittest.skipUnless(shutil.which("node"), "there is no node")
    def test_what_nobody_caught_in_node(self):
        for word, wanted in NODE_ERRORS.items():
            # Of an exception that a program listens to, V8 does not abort by itself.
            switch = [] if word in ("listened", "past") else ["--abort-on-uncaught-exception"]
            _, reason = explanation(self.ended_script("node", "js", NODE, word, before=switch))
            self.check(reason, wanted)

    @unittest.skipUnless(shutil.which("node"), "there is no node")
    def test_a_node_whose_heap_cannot_be_read(self):
        program = shutil.copy(os.path.realpath(shutil.which("node")), self.path("node"))
        core = self.ended_script(program, "js", NODE, "error",
                                 before=["--abort-on-uncaught-exception"])
        os.remove(program)
        self.assertTrue(explanation(core)[1].startswith("RSS"))

    @unittest.skipUnless(shutil.which("go"), "there is no go")
    def test_what_go_panicked_with(self):
        self.write("script.go", GO)
        cache = {**os.environ, "GOCACHE": self.path("cache"), "GOTRACEBACK": "crash"}
        run("go", "build", "-o", self.path("panics"), self.path("script.go"), env=cache)
        for word, line, wanted in (
                ("error", 5, "bad line"),
                ("nil", 7, "runtime error: invalid memory address or nil pointer dereference"),
                ("index", 9, "runtime error: index out of range [5] with length 0")):
            core = self.path(f"core.{word}")
            run(HEAPCORE, "run", "--core", core, "--", self.path("panics"), word, env=cache)
            ended, reason = explanation(core)
            self.assertEqual(reason, f"Panic: {wanted}")
            self.assertTrue(ended.endswith(f" in main.parse() at script.go:{line}."), ended)

    @unittest.skipUnless(shutil.which("rustc"), "there is no rustc")
    def test_what_rust_panicked_with(self):
        self.write("panics.rs", RUST)
        for flags in ("-g",), ("-O", "-C", "strip=symbols"):
            run("rustc", *flags, "-C", "panic=abort", "-o", self.path("panics"),
                self.path("panics.rs"))
            for word, wanted in RUST_PANICS.items():
                ended, reason = explanation(self.ended(self.path("panics"), word))
                self.assertEqual(reason, wanted)
                if "-g" in flags:
                    self.assertRegex(ended, r"parse\(\) at panics\.rs:\d+\.$")
            _, reason = explanation(self.ended(self.path("panics"), "abort"))
            self.assertNotIn("Panic", reason)

    def test_what_a_worker_did_when_another_process_aborted_it(self):
        script = self.write("script.py", PYTHON)
        command = HEAPCORE, "run", "--core", self.path("core"), "--", sys.executable, "-u"
        with subprocess.Popen((*command, script, "waits"), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            os.kill(int(process.stdout.readline()), signal.SIGABRT)
            process.communicate(timeout=60)
        ended, reason = explanation(self.path("core"))
        self.assertRegex(ended, r", which process \d+ sent, in handle at script\.py:9\.$")
        self.assertTrue(reason.startswith("While handling __main__.Broken from parse"), reason)

    def test_a_process_that_lives_has_no_reason(self):
        program = self.compile("ends", compiler="c++", flags=("-O1",), text=PROGRAM)
        core = snap(self.start([program, "live"]), self.path("core"))
        self.assertNotIn("Ended", ask(core, "info").stdout)
        row, = rows("core", "-q", core, "info")
        self.assertIsNone(row["reason"])


if __name__ == "__main__":
    unittest.main()
