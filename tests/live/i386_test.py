#!/usr/bin/env python3
"""
Runs programs for i386 and checks that heapcore finds in their cores what they say is there.
"""

import unittest

import harness
import truth

FLAGS = [*harness.FLAGS.split(), "-m32"]


STRINGS = r"""
#include <cstdio>
#include <string>
#include <unistd.h>

struct Person {
	std::string name, address;
	virtual ~Person() = default;
};

Person *person;

int main()
{
	person = new Person;
	person->name = "short";
	person->address = std::string(40, 'a');
	puts("ready");
	fflush(stdout);
	pause();
	return person->name.empty();
}
"""

EMBEDS = r"""
#include <stdio.h>
#include <unistd.h>

void Py_Initialize(void);

int main(void)
{
	Py_Initialize();
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
"""


class I386Test(harness.LiveTest):
    """Cores of 32-bit words, by gdb and by the kernel."""

    def setUp(self):
        super().setUp()
        harness.needs_i386()

    def start_truth(self, name, *flags, **variables):
        self.compile(name, f"{name}.c", "truth.c", flags=[*FLAGS, *flags])
        process = self.start(harness.still([self.path(name)]), truth=self.path("truth"),
                             **variables)
        harness.settle(process)
        return process

    def check_program(self, core, process):
        """Modules have their files, and threads their stacks."""
        modules = harness.tables("-q", core, "list", "modules")["module"]
        files = {row["path"].split("/")[-1]: row["file"] for row in modules}
        self.assertEqual(files["small"], "used")
        start = next(row["start"] for row in modules if row["path"].endswith("/small"))
        dumped = harness.ask("-q", core, "dump", start, "32").stdout
        self.assertRegex(dumped, r"^[0-9a-f]+: 464c457f( [ 0-9a-f]{8}){7}\n")
        self.assertEqual(files["libc.so.6"], "used")
        self.assertEqual(files["ld-linux.so.2"], "used")
        threads = harness.tables("-q", core, "list", "threads")["thread"]
        self.assertEqual(len(threads), 2)
        self.assertEqual(threads[0]["thread"], process.pid)
        for row in threads:
            self.assertLess(int(row["stack_start"], 16), int(row["stack_pointer"], 16))
            self.assertLess(int(row["stack_pointer"], 16), int(row["stack_end"], 16))
            self.assertEqual(row["in_module"], "small")

    def check_heap(self, core):
        said = harness.ask(core, "count leaked").stderr
        self.assertIn("disguised pointers of i386 are not read yet", said)
        self.assertNotIn("its objects are not read in 32-bit programs", said)
        self.assertEqual(truth.check(harness.HEAPCORE, core, self.path("truth")), [])

    def test_program(self):
        process = self.start_truth("small")
        cores = harness.gcore(process, self.folder), harness.kernel_core(process, self.folder)
        for core in cores:
            self.check_program(core, process)
            self.check_heap(core)

    def test_blocks_that_move_between_heap_and_mappings(self):
        self.check_heap(harness.gcore(self.start_truth("realloc"), self.folder))

    def test_threads_that_live_and_have_finished(self):
        self.check_heap(harness.gcore(self.start_truth("threads"), self.folder))

    def test_no_thread_caches(self):
        tunables = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
        self.check_heap(harness.gcore(self.start_truth("plain", **tunables), self.folder))

    def test_strings_in_objects(self):
        harness.needs_i386("g++")
        program = self.compile("strings", text=STRINGS, compiler="g++", flags=["-m32", "-O1"])
        core = harness.gcore(self.start([program]), self.folder)
        shown = harness.ask("-q", core, "show", "used", "Person", "--annotate", "Person.*").stdout
        self.assertIn('offsets 0x4 to 0x1c: SSOString, length 5, "short"', shown)
        self.assertIn("offsets 0x1c to 0x34: LongString, length 40, ", shown)

    def test_objects_of_an_interpreter_are_said_to_be_missing(self):
        """By its name a library is an interpreter's."""
        library = self.compile("libpython3.11.so.1.0", text="void Py_Initialize(void) {}",
                               flags=["-m32", "-shared", "-fPIC"])
        program = self.compile("embeds", text=EMBEDS, flags=["-m32", "-x", "none", library])
        core = harness.gcore(self.start([program]), self.folder)
        self.assertIn("python is loaded, and its objects are not read in 32-bit programs",
                      harness.ask(core, "count leaked").stderr)

    def test_static_program(self):
        """The descriptor of its first thread stands in front of the heap."""
        self.check_heap(harness.gcore(self.start_truth("plain", "-static"), self.folder))


if __name__ == "__main__":
    unittest.main()
