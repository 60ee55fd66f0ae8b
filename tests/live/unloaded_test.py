#!/usr/bin/env python3
"""
Objects of a plug-in that was unloaded are known as such; those of one that stays have their class,
and structures that begin with an address of memory that was given back are nothing of the kind.
"""

import unittest

import harness

PLUGIN = r"""
#include <string>
struct Shape { virtual ~Shape() {} virtual int area() = 0; };
struct Widget : Shape { std::string name = "a name that is long enough"; int area() { return 1; } };
extern "C" Shape *make() { return new Widget; }
"""

PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { COUNT = 100, LARGE = 4 << 20 };
struct part { char *text; long length; };
static void *objects[COUNT];
static struct part *parts[COUNT];
int main(int count, char **arguments)
{
	void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
	void *(*make)(void) = (void *(*)(void))dlsym(library, "make");
	char *text = malloc(LARGE);

	for (int i = 0; i < COUNT; i++) {
		objects[i] = make();
		parts[i] = malloc(sizeof(*parts[i]));
		parts[i]->text = text;
		parts[i]->length = i;
	}
	free(text);
	if (strcmp(arguments[2], "unload") == 0)
		dlclose(library);
	puts(dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) ? "loaded" : "unloaded");
	puts("ready");
	fflush(stdout);
	pause();
}
"""

NUMBERS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static long *parts[100];
int main(void)
{
	for (int i = 0; i < 100; i++) {
		parts[i] = calloc(5, sizeof(**parts));
		parts[i][0] = 24;
	}
	puts("ready");
	fflush(stdout);
	pause();
}
"""


class UnloadedTest(harness.LiveTest):
    def kinds(self, what):
        """What the program says of its plug-in, and the counts of its allocations' kinds."""
        plugin = harness.build(self.path("plugin.so"), "g++", "-O1", "-shared", "-fPIC",
                               "-fno-gnu-unique", "-x", "c++", "-", text=PLUGIN)
        program = harness.build(self.path("program"), "gcc", "-O1", "-x", "c", "-", "-ldl",
                                text=PROGRAM)
        process = self.start([program, plugin, what])
        core = harness.snap(process, self.path(f"{what}.core"))
        rows = harness.tables(core, "summarize", "used", "--all")["group"]
        return process.said, {row["identity"] or row["name"]: row["count"] for row in rows}

    def test_objects_without_their_library_are_named(self):
        said, kinds = self.kinds("unload")
        self.assertIn("unloaded", said)
        self.assertEqual(kinds.get("class of an unloaded library"), 100, kinds)

    def test_objects_of_a_loaded_library_have_their_class(self):
        said, kinds = self.kinds("stay")
        self.assertIn("loaded", said)
        self.assertNotIn("class of an unloaded library", kinds)
        self.assertEqual(kinds.get("Widget"), 100, kinds)

    def test_numbers_are_no_classes_where_addresses_are_as_small(self):
        harness.needs_i386("gcc")
        process = self.start([self.compile("numbers", flags=("-m32",), text=NUMBERS)])
        core = harness.gcore(process, self.folder)
        self.assertNotIn("unloaded library", harness.ask(core, "summarize", "used").stdout)


if __name__ == "__main__":
    unittest.main()
