#!/usr/bin/env python3
"""
Node.js: V8's heap by space and the memory of Buffers, against what Node.js says of itself, and
what only V8's heap holds of an addon's blocks.
"""

import json
import re
import shutil
import unittest

import harness

# Small lost blocks are often held by what earlier ones left in memory that was freed.
HELD, LOST, LOST_SIZE, HELD_SIZE = 40, 20, 151536, 1432
# What malloc may give more than is asked for: of its heaps, and of blocks with a mapping.
ROUNDING, PAGE, MAPPED = 24, 4096, 64 << 10
SPACES = {"new_space": "new objects", "new_large_object_space": "large objects",
          "large_object_space": "large objects", "old_space": "old objects",
          "map_space": "old objects"}

ADDON = f"""
#include <stdlib.h>
#include <string.h>

typedef struct env *napi_env;
typedef struct value *napi_value;

int napi_create_external(napi_env env, void *data, void *finalize, void *hint, napi_value *ret);
int napi_create_array(napi_env env, napi_value *ret);
int napi_set_element(napi_env env, napi_value object, unsigned int index, napi_value value);

static void *make(size_t size)
{{
	return memset(malloc(size), 1, size);
}}

__attribute__((noinline)) static void lose(void)
{{
	for (int i = 0; i < {LOST}; i++)
		make({LOST_SIZE});
}}

/* The module is an array of externals, each with the address of a block. */
napi_value napi_register_module_v1(napi_env env, napi_value exports)
{{
	napi_value list, external;

	lose();
	napi_create_array(env, &list);
	for (unsigned int i = 0; i < {HELD}; i++) {{
		napi_create_external(env, make({HELD_SIZE}), NULL, NULL, &external);
		napi_set_element(env, list, i, external);
	}}
	return list;
}}
"""

PROGRAM = """
const fs = require('fs'), v8 = require('v8'), vm = require('vm');
v8.setFlagsFromString('--expose-gc');
const gc = vm.runInNewContext('gc');
globalThis.externals = require(process.env.ADDON);
globalThis.kept = [];
for (let i = 0; i < 150; i++) kept.push(Buffer.alloc(5000 + 8 * i, i));
for (let i = 0; i < 3; i++) kept.push(new ArrayBuffer(300000 + 4096 * i));
for (let i = 0; i < 90; i++) Buffer.alloc(7000);
globalThis.objects = [];
for (let i = 0; i < 50000; i++) objects.push({ n: i, s: 'text ' + i });
gc();
setTimeout(() => {
  gc();
  setTimeout(() => {
    fs.writeFileSync(process.argv[2], JSON.stringify({
      kept: kept.map((buffer) => buffer.byteLength),
      usage: process.memoryUsage(), spaces: v8.getHeapSpaceStatistics() }));
    console.log('ready');
  }, 50);
}, 50);
setInterval(() => {}, 1000000);
"""


def has_room(size, length):
    return 0 <= size - length <= ROUNDING + (PAGE if length >= MAPPED else 0)


@unittest.skipUnless(shutil.which("node"), "there is no node")
class Node(harness.LiveTest):
    """One core for all, as V8 makes large ones."""

    def test_what_a_process_of_node_says(self):
        addon = self.compile("addon.node", text=ADDON, flags=("-shared", "-fPIC"))
        self.core, truth = self.core_of_script("node", PROGRAM, ADDON=addon)
        with open(truth, encoding="utf-8") as file:
            self.truth = json.load(file)
        self.check_spaces()
        self.check_fill()
        self.check_buffers()
        self.check_leaks()

    def check_spaces(self):
        """The spaces whose sizes are those of their chunks; code is mapped in another way."""
        rows = harness.tables("-q", self.core, "bill")["use"]
        found = {row["use"]: row["mapped"] for row in rows}
        wanted = {}
        for space in self.truth["spaces"]:
            use = SPACES.get(space["space_name"])
            if use:
                wanted[use] = wanted.get(use, 0) + space["space_size"]
        for use in ("new objects", "large objects"):
            self.assertEqual(found.get(f"V8's heap: {use}", 0), wanted[use], use)
        # An old chunk may be new since, or gone: those counted are of 256 KiB.
        self.assertAlmostEqual(found["V8's heap: old objects"], wanted["old objects"],
                               delta=2 * (256 << 10))

    def check_fill(self):
        """The bytes of objects in chunks, but for new objects and what was made since."""
        rows = harness.tables("-q", self.core, "fragmentation", "--quick")["unit"]
        found = {row["memory"].partition(": ")[2]: row for row in rows}
        used = {space["space_name"]: space["space_used_size"]
                for space in self.truth["spaces"]}
        self.assertEqual(found["large objects"]["used"], used["large_object_space"])
        self.assertNotIn("new objects", found)
        old = sum(used.get(space, 0) for space in ("old_space", "map_space", "code_space"))
        self.assertAlmostEqual(found["old objects"]["used"], old, delta=old / 20)

    def check_buffers(self):
        rows = harness.tables("-q", self.core, "list", "used", "%NodeBuffer")["allocation"]
        sizes = sorted(row["size"] for row in rows)
        missing = [length for length in self.truth["kept"]
                   if not any(has_room(size, length) for size in sizes)]
        self.assertEqual(missing, [])
        self.assertGreaterEqual(len(sizes), len(self.truth["kept"]))
        self.assertLess(sum(has_room(size, 7000) for size in sizes), 5)
        total = self.truth["usage"]["arrayBuffers"]
        room = sum(ROUNDING + (PAGE if size >= MAPPED else 0) for size in sizes)
        self.assertLess(abs(sum(sizes) - total), room + total / 20)
        large = max(rows, key=lambda row: row["size"])["address"]
        self.assertRegex(harness.ask("-q", self.core, "describe", large).stdout,
                         rf"It is the memory of the BackingStore at 0x[0-9a-f]+: length "
                         rf"{max(self.truth['kept'])}, capacity")
        self.assertRegex(harness.ask("-q", self.core, "explain", large).stdout,
                         "in V8's heap: (old|new) objects at offset")

    def check_leaks(self):
        """What only V8's heap refers to is held."""
        rows = harness.tables("-q", self.core, "list", "leaked")["allocation"]
        wrong = [row for row in rows if not has_room(row["size"], LOST_SIZE)]
        self.assertEqual(wrong, [])
        # A stack may still have one.
        self.assertLessEqual(LOST - 2, len(rows))
        self.assertLessEqual(len(rows), LOST)
        used = harness.tables("-q", self.core, "list", "used", "--min-size", str(HELD_SIZE),
                              "--max-size", str(HELD_SIZE))["allocation"]
        self.assertGreaterEqual(len(used), HELD)
        note = harness.ask(self.core, "count", "leaked")
        self.assertTrue(re.search("Node.js is loaded", note.stderr), note.stderr)


if __name__ == "__main__":
    unittest.main()
