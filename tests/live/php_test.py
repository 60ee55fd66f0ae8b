#!/usr/bin/env python3
"""
The heap of PHP: a program says what its engine counts, and heapcore must find
the same, to the byte.
"""

import os
import socket
import time
import unittest
import urllib.error
import urllib.request

import harness
import php_programs

# Strings of all sizes, of which two of three are dropped; chunks that become empty; huge blocks.
PROGRAM = """
function texts($size) {
    $texts = [];
    for ($i = 0; $i < 3000; $i++)
        $texts[] = str_repeat(chr(65 + $i % 26), $i % $size);
    return $texts;
}
$kept = array_merge(texts(100), texts(3000), texts(10000));
for ($i = 0; $i < count($kept); $i++)
    if ($i % 3)
        $kept[$i] = null;
$dropped = texts(20000);
// A chunk that comes and goes is kept.
for ($i = 0; $i < 20; $i++)
    $dropped = $i % 2 ? null : str_repeat("a", 2000000);
$huge = [str_repeat("x", 5000000), str_repeat("y", 2 << 20), str_repeat("z", 3000000)];
$huge[1] = null;
"""


class Php(php_programs.PhpTest):
    def arena(self, core):
        rows = harness.tables("-q", core, "list", "arenas")["arena"]
        return next(row for row in rows if row["allocator"] == "zend")

    def test_bytes_are_those_that_the_engine_counts(self):
        core, said = self.core_of(PROGRAM)
        arena = self.arena(core)
        self.assertEqual(arena["used_bytes"], said["usage"])
        self.assertEqual(arena["size"], said["real"])
        self.assertNotIn("zend", harness.ask(core, "count", "used").stderr)

    def test_bill_has_chunks_by_what_is_free_in_them(self):
        core, said = self.core_of(PROGRAM)
        rows = [row for row in harness.tables("-q", core, "bill")["use"]
                if row["memory"] == "zend"]
        uses = {row["use"]: row["mapped"] for row in rows}
        self.assertEqual(sum(uses.values()), said["real"])
        self.assertLess(said["usage"] - uses["used"], 1000)
        self.assertGreater(uses["free list"], 100000)
        self.assertGreater(uses["free pages"], 100000)
        self.assertGreaterEqual(uses["cached chunks"], 2 << 20)

    def test_of_the_memory_of_malloc_none_is_php(self):
        core, said = self.core_of(PROGRAM, USE_ZEND_ALLOC="0")
        rows = harness.tables("-q", core, "list", "arenas")["arena"]
        self.assertEqual({row["allocator"] for row in rows}, {"glibc"})
        self.assertEqual(said["usage"], 0)

    def test_between_requests_what_the_engine_keeps_has_an_owner(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            place = f"127.0.0.1:{server.getsockname()[1]}"
        script, core = self.path("index.php"), self.path("core")
        with open(script, "w", encoding="utf-8") as file:
            file.write("<?php $a = []; for ($i = 0; $i < 200000; $i++) $a[] = \"x$i\";")
        process = harness.launch(["php", "-n", "-S", place, "-t", os.path.dirname(script)],
                                 stderr=harness.subprocess.DEVNULL)
        self.addCleanup(harness.end, process)
        deadline = time.monotonic() + 30
        while True:
            try:
                with urllib.request.urlopen(f"http://{place}/") as answer:
                    self.assertEqual(answer.read(), b"")
                break
            except urllib.error.URLError:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
        harness.snap(process, core)
        shares = harness.tables("-q", core, "sql", """
            select sum(size) as bytes, sum(case when class is null and pattern is null then 0 else size end) as named
            from allocation""")["result"]
        self.assertGreater(shares[0]["named"], 0.9 * shares[0]["bytes"])
        uses = {row["use"]: row["mapped"] for row in harness.tables("-q", core, "bill")["use"]
                if row["memory"] == "zend"}
        self.assertGreater(uses["cached chunks"], 0)
        self.assertNotIn("broken", harness.ask(core, "count", "leaked").stderr)

    def test_damage_is_said_and_bounded(self):
        core, _ = self.core_of(PROGRAM)
        for damaged in harness.damage(core, self.path("damaged"), 2000):
            harness.ask("-q", damaged, "count", "leaked", expected=(0, 3))


if __name__ == "__main__":
    unittest.main()
