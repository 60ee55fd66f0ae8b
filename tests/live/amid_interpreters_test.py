#!/usr/bin/env python3
"""
Programs in PHP and Perl that are stopped anywhere in the midst of work, also within malloc and the
collector: what they keep is never lost, nor is anything that they are busy with.

AMID_INTERPRETERS says how often each is stopped, instead of a few times.
"""

import os
import random
import shutil
import time
import unittest

import harness

TIMES = int(os.environ.get("AMID_INTERPRETERS", "3"))
KEPT = 500

PHP = f"""<?php
class Kept {{ public $next, $text, $list; }}
class Gone {{ public $peer, $list; }}
$kept = [];
for ($i = 0; $i < {KEPT}; $i++) {{
    $one = new Kept;
    $one->text = "text of $i";
    $one->list = [$i, "a$i"];
    $one->next = $kept[$i >> 1] ?? null;
    $kept[] = $one;
}}
echo "ready\\n";
while (true) {{
    $a = new Gone;
    $b = new Gone;
    $a->peer = $b;
    $b->peer = $a;
    $a->list = [$b, str_repeat("x", rand(1, 3000))];
    $kept[rand(0, {KEPT} - 1)]->list[] = rand();
    if (rand(0, 9) == 0)
        $kept[rand(0, {KEPT} - 1)]->list = [];
}}
"""

PERL = f"""
$| = 1;
our @kept = map {{ bless {{ text => "text of $_", list => [$_, "a$_"] }}, "Kept" }} 1 .. {KEPT};
print "ready\\n";
while (1) {{
    my $a = bless {{}}, "Gone";
    my $b = bless [$a, "x" x rand(3000)], "Gone";
    $a->{{peer}} = [$b->[1]];
    push @{{ $kept[rand {KEPT}]{{list}} }}, "t" . rand;
    $kept[rand {KEPT}]{{list}} = [] if rand() < .1;
    my %many = map {{ $_ => 1 }} 1 .. rand 50;
    my $pattern = qr/a$kept[1]{{text}}/;
    my @sorted = sort {{ $a <=> $b }} map {{ rand }} 1 .. 20;
    eval {{ die {{ a => 1 }} }};
}}
"""


class AmidInterpreters(harness.LiveTest):
    def check(self, command, text):
        if not shutil.which(command[0]):
            self.skipTest(f"there is no {command[0]}")
        script, core = self.path("program"), self.path("core")
        with open(script, "w", encoding="utf-8") as file:
            file.write(text)
        process = self.start([*command, script])
        for _ in range(TIMES):
            time.sleep(random.random() / 20)
            harness.snap(process, core)
            states = {row["state"]: row["count"] for row in harness.tables(
                core, "sql", "SELECT state, count(*) AS count FROM allocation "
                "WHERE class = 'Kept' OR state = 'leaked' GROUP BY 1")["result"]}
            self.assertEqual(states, {"anchored": KEPT})

    def test_php(self):
        self.check(["php", "-n"], PHP)

    def test_perl(self):
        self.check(["perl"], PERL)


if __name__ == "__main__":
    unittest.main()
