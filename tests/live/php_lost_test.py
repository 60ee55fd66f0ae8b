#!/usr/bin/env python3
"""
What C code loses in a process of PHP: a program calls the engine's and the C library's allocators
by FFI, and writes down which blocks it keeps, and which it forgets.
"""

import unittest

import harness
import php_programs

LOST, KEPT = 300, 100
# Stale words hold some: of stacks, and of memory that C code got and did not fill.
MOST_HELD = 0.01

PROGRAM = f"""
$c = FFI::cdef("size_t _emalloc(size_t); size_t malloc(size_t); size_t memset(size_t, int, size_t);");

function make($c, $name, $size, $word) {{
    $block = $c->$name($size);
    $c->memset($block, 85, $size);
    printf("%x %s\\n", $block, $word);
    return $block;
}}

function lose($c) {{
    for ($i = 0; $i < {LOST}; $i++) {{
        make($c, "_emalloc", 24 + $i % 100, "lost");
        make($c, "_emalloc", 5000 + $i % 3 * 4096, "lost");
        make($c, "malloc", 24 + $i, "lost");
    }}
}}

function keep($c) {{
    static $kept;
    $kept = $c->new("size_t[{2 * KEPT}]");
    for ($i = 0; $i < {KEPT}; $i++) {{
        $kept[2 * $i] = make($c, "_emalloc", 24 + $i, "kept");
        $kept[2 * $i + 1] = make($c, "malloc", 24 + $i, "kept");
    }}
}}

function overwrite_the_stack($depth) {{
    $values = array_fill(0, 50, null);
    if ($depth)
        overwrite_the_stack($depth - 1);
}}

keep($c);
lose($c);
overwrite_the_stack(20);
"""


class PhpLost(php_programs.PhpTest):
    def setUp(self):
        super().setUp()
        script, self.core = self.path("program.php"), self.path("core")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"<?php\n{PROGRAM}\necho \"ready\\n\"; sleep(600);")
        if harness.run("php", "-n", "-d", "extension=ffi", "-r", "exit(class_exists('FFI') ? 0 : 1);"
                       ).returncode:
            raise harness.Skipped("PHP has no FFI")
        process = self.start(["php", "-n", "-d", "extension=ffi", script])
        harness.snap(process, self.core)
        self.truth = harness.addresses_said(process)
        harness.end(process)

    def test_blocks_that_c_code_lost_are_leaked_and_others_are_not(self):
        leaked = harness.addresses("-q", self.core, "enumerate", "leaked")
        self.assertEqual(len(self.truth["lost"]), 3 * LOST)
        self.assertEqual(len(self.truth["kept"]), 2 * KEPT)
        self.assertLessEqual(len(self.truth["lost"] - leaked), MOST_HELD * 3 * LOST)
        self.assertEqual(self.truth["kept"] & leaked, set())
        self.assertEqual(leaked - self.truth["lost"], set())


if __name__ == "__main__":
    unittest.main()
