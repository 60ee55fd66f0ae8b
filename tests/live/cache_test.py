#!/usr/bin/env python3
"""
What is kept for other cores of a build ($XDG_CACHE_HOME/heapcore): answers are
the same without it, when it is made and when it is used, whatever the folder
and the files in it are like.
"""

import os
import pathlib
import unittest

import layouts
from harness import HEAPCORE, LiveTest, end, run, snap

COMMANDS = ("summarize used", "summarize leaked", "summarize leakroots", "list used",
            "describe leaked", "gate")

# Which functions allocate, and what "void *" leads to, only the code tells. Given an argument, it
# calls one function more, whose address the linkage table has only from then on.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pair { long first, second; struct pair *next; };
struct label { char *text; double weight[7]; };
struct node { struct node *next; void *value; };

struct node *all;
void *volatile sink;

static __attribute__((noinline)) void *get(size_t size)
{
	void *block = malloc(size);

	if (!block)
		abort();
	return memset(block, 0, size);
}

static __attribute__((noinline)) struct label *label_new(const char *text)
{
	struct label *label = calloc(1, sizeof(*label));

	label->text = strdup(text);
	return label;
}

static __attribute__((noinline)) struct pair *pair_new(long first)
{
	struct pair *pair = get(sizeof(*pair));

	pair->first = first;
	return pair;
}

static __attribute__((noinline)) void node_add(void *value)
{
	struct node *node = get(sizeof(*node));

	node->next = all;
	node->value = value;
	all = node;
}

static __attribute__((noinline)) double weigh(void)
{
	double sum = 0;

	for (struct node *node = all; node; node = node->next) {
		struct label *label = node->value;

		sum += label->weight[3];
	}
	return sum;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 1)
		free(label_new(argv[1]));
	for (int i = 0; i < 100; i++)
		node_add(argc > 1 ? label_new("kept") : get(sizeof(struct label)));
	for (int i = 0; i < 20; i++) {
		sink = pair_new(i);
		sink = memset(malloc(200), 0, 200);
	}
	sink = NULL;
	if (weigh() == 0)
		puts("ready");
	for (;;)
		pause();
}
"""


class CacheTest(LiveTest):
    def setUp(self):
        super().setUp()
        self.cache = pathlib.Path(self.path("cache"))
        self.folder_of_entries = self.cache / "heapcore"

    def core(self, program, name, *words):
        # The modules of all lie in the same order: another one makes other entries.
        process = self.start([program, *words], layout=layouts.Layout())
        core = snap(process, self.path(name))
        end(process)
        return core

    def program(self, *flags):
        return self.compile("kept", flags=("-Wl,--build-id", *flags), text=PROGRAM)

    def answers(self, core, *options, **variables):
        """Output, errors and status of each command."""
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.cache), **variables}
        environment.pop("HEAPCORE_NO_CACHE", None)
        environment.update(variables)
        said = []
        for command in COMMANDS:
            result = run(HEAPCORE, "-q", *options, core, *command.split(), env=environment)
            said.append((command, result.stdout, result.stderr, result.returncode))
        return said

    def ask(self, core, *words):
        result = run(HEAPCORE, "-q", core, *words,
                     env={**os.environ, "XDG_CACHE_HOME": str(self.cache)})
        return result.stdout, result.stderr

    def entries(self):
        """The files, and what changes if one is made anew."""
        if not self.folder_of_entries.exists():
            return {}
        return {path: (path.stat().st_ino, path.stat().st_mtime_ns)
                for path in self.folder_of_entries.iterdir()}

    def test_answers_are_the_same_for_each_core_of_the_build(self):
        for flags in (("-g", "-O2"), ("-g", "-O0"), ("-g", "-O2", "-gz"),
                      ("-g", "-O2", "-no-pie")):
            with self.subTest(flags=flags):
                program = self.program(*flags, "-Wl,-z,now")
                first, second = self.core(program, "one"), self.core(program, "two")
                expected = self.answers(first, "--no-cache")
                before = self.entries()
                self.assertEqual(self.answers(first), expected)
                made = self.entries()
                self.assertGreater(len(made), len(before))
                self.assertEqual(self.answers(first), expected)
                self.assertEqual(self.answers(second), self.answers(second, "--no-cache"))
                self.assertEqual(self.entries(), made)

    def test_compressed_debug_information_is_unpacked_once(self):
        core = self.core(self.program("-g", "-O2", "-gz"), "one")
        expected = self.answers(core, "--no-cache")
        self.assertEqual(self.answers(core), expected)
        unpacked = [path for path in self.entries() if path.read_bytes().startswith(b"\x7fELF")]
        self.assertGreater(len(unpacked), 0)
        first = self.ask(core, "backtrace")
        made = self.entries()
        self.assertEqual(self.ask(core, "backtrace"), first)
        self.assertEqual(self.ask(core, "backtrace", "--no-cache"), first)
        # What is unpacked again is another file.
        self.assertEqual(self.entries(), made)

    def test_a_function_that_is_bound_later_is_noticed(self):
        program = self.program("-g", "-O2", "-Wl,-z,lazy")
        cores = [self.core(program, "one"), self.core(program, "two", "label"),
                 self.core(program, "three")]
        for core in cores + cores[:1]:
            self.assertEqual(self.answers(core), self.answers(core, "--no-cache"))

    def test_other_code_is_not_taken_for_the_same(self):
        program = self.program("-g", "-O2", "-Wl,--build-id=0x0123456789abcdef", "-Wl,-z,now")
        core = self.core(program, "one")
        self.answers(core)
        text = PROGRAM.replace("get(sizeof(*pair))", "malloc(sizeof(*pair))")
        program = self.compile("kept2", text=text, flags=(
            "-g", "-O2", "-Wl,--build-id=0x0123456789abcdef", "-Wl,-z,now"))
        core = self.core(program, "two")
        self.assertEqual(self.answers(core), self.answers(core, "--no-cache"))

    def test_nothing_is_kept_unless_there_is_something_to_keep(self):
        self.answers(self.core(self.program("-O2", "-s"), "one"))
        self.assertEqual(self.entries(), {})
        core = self.core(self.program("-g", "-O2"), "two")
        self.answers(core, "--no-cache")
        self.answers(core, HEAPCORE_NO_CACHE="1")
        self.assertEqual(self.entries(), {})
        self.answers(core)
        self.assertNotEqual(self.entries(), {})

    def test_folders_that_cannot_be_used_are_passed_over_in_silence(self):
        core = self.core(self.program("-g", "-O2"), "one")
        expected = self.answers(core, "--no-cache")
        self.assertEqual(self.answers(core, XDG_CACHE_HOME="/proc/none"), expected)
        self.assertEqual(self.answers(core, XDG_CACHE_HOME="", HOME=""), expected)
        self.assertEqual(self.answers(core, XDG_CACHE_HOME="/dev/full"), expected)
        self.cache.mkdir(mode=0o700)
        self.folder_of_entries.write_text("no folder")
        self.assertEqual(self.answers(core), expected)
        self.folder_of_entries.unlink()
        self.folder_of_entries.mkdir()
        self.folder_of_entries.chmod(0o777)
        self.assertEqual(self.answers(core), expected)
        self.assertEqual(self.entries(), {})

    def test_without_a_home_for_caches_it_is_in_the_users(self):
        home = pathlib.Path(self.path("home"))
        home.mkdir(mode=0o700)
        core = self.core(self.program("-g", "-O2"), "one")
        self.answers(core, XDG_CACHE_HOME="", HOME=str(home))
        kept = home / ".cache" / "heapcore"
        self.assertEqual(kept.stat().st_mode & 0o777, 0o700)
        for path in kept.iterdir():
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertGreater(len(list(kept.iterdir())), 0)

    def test_damaged_entries_do_no_harm(self):
        core = self.core(self.program("-g", "-O2", "-gz"), "one")
        expected = self.answers(core)
        whole = {path: path.read_bytes() for path in self.entries()}
        self.assertGreater(len(whole), 2)
        for part in range(12):
            for path, data in whole.items():
                changed = bytearray(data)
                first = len(data) * part // 12
                for at in range(first, min(first + 5, len(data))):
                    changed[at] ^= 0x21
                path.write_bytes(changed)
            self.assertEqual(self.answers(core), expected)
        for length in (0, 100, 4096, 5000):
            for path, data in whole.items():
                path.write_bytes(data[:length])
            self.assertEqual(self.answers(core), expected)


if __name__ == "__main__":
    unittest.main()
