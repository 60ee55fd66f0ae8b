#!/usr/bin/env python3
"""
How a program in Perl reaches its values, and which calls it is in: it evaluates the paths that
heapcore says of its core, which must lead to the values that were asked for, by their addresses,
and it says its calls itself.
"""

import shutil
import tempfile
import unittest

import harness

ENTRIES = 300

PROGRAM = f"""
use strict; use warnings; use Scalar::Util qw(refaddr);
package Entry; sub new {{ return bless {{}}, $_[0] }}
package Deep::Kept; our $last = [[], [Entry->new]]; our %by_name = (one => Entry->new);
package main;

our $app = {{
    cache => {{ map {{ ("user:$_" => Entry->new) }} 1 .. {ENTRIES} }},
    plain => Entry->new, 17 => [Entry->new], "017" => Entry->new, "" => Entry->new,
    'odd "key" $x @y \\\\' => Entry->new, line => {{ "a\\nb" => Entry->new }},
}};
our @queue = map {{ Entry->new }} 1 .. 5;
our $to_scalar = do {{ my $inner = Entry->new; \\$inner }};
my $lexical = [Entry->new];
my %lexical = (of => {{ a => [Entry->new] }});
sub make {{ my $held = Entry->new; return sub {{ $held }} }}
our $closure = make();
package Kept; sub new {{ return bless {{}}, $_[0] }} package main;
sub cached {{ use feature "state"; state %cache; $cache{{$_[0]}} //= Kept->new }}
cached("one"), cached("two");
{{ my $closed = [Kept->new]; sub closes {{ return $closed }} }}

sub find {{
    my ($path) = @_;
    $path =~ s/->\\$\\*$/->\\$*/;
    my $value = eval $path;
    die $@ if $@;
    printf "%x\\n", refaddr($value);
}}

sub answer {{
    my ($depth, @rest) = @_;
    my $local = Entry->new;
    if ($depth > 0) {{
        for my $i (1 .. 2) {{ eval {{ answer($depth - 1, $i) }} }}
        return;
    }}
    for (my $i = 0; my ($package, $file, $line, $name) = caller($i); $i++) {{
        print "$name $line\\n" if $name ne "(eval)";
    }}
    $| = 1;
    print "ready\\n"; while (my $path = <STDIN>) {{ # at the line of "ready"
        chomp $path;
        find($path);
    }}
}}
my @sorted = sort {{ answer(2); 0 }} 1, 2;
print $lexical, %lexical;
"""

EXPECTED = [
    '$main::app->{cache}{"user:1"}', f'$main::app->{{cache}}{{"user:{ENTRIES}"}}',
    "$main::app->{plain}", "$main::app->{17}[0]", '$main::app->{"017"}', '$main::app->{""}',
    r'$main::app->{"odd \"key\" \$x \@y \\"}', "$main::queue[0]", "$main::queue[4]",
    "$main::to_scalar->$*", "$Deep::Kept::last->[1][0]", "$Deep::Kept::by_name{one}",
]
# No expression leads there from where the program waits.
KEPT = ["$lexical->[0]", "$lexical{of}{a}[0]", "$main::closure->(my $held)",
        "$main::app->{line}{...}"]


@unittest.skipUnless(shutil.which("perl"), "there is no perl")
class PerlPaths(harness.LiveTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.script, cls.core = f"{cls.folder}/program.pl", f"{cls.folder}/core"
        with open(cls.script, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        cls.process = harness.start(["perl", cls.script])
        cls.addClassCleanup(harness.end, cls.process)
        harness.snap(cls.process, cls.core)

    def rows(self, name, *words):
        return harness.rows(name, self.core, *words)

    def test_paths_lead_to_their_values(self):
        found = {int(str(row["address"]), 0): row["path"] for row in self.rows(
            "result", "sql", "SELECT address, path(address) AS path FROM allocation "
            "WHERE class = 'Entry'")}
        self.assertEqual(set(EXPECTED + KEPT) - set(found.values()), set())
        typed = [path for path in EXPECTED if list(found.values()).count(path) == 1
                 and " " not in path and "(" not in path]
        starts = {path: address for address, path in found.items()}
        self.assertGreater(len(typed), 5)
        self.assertEqual(harness.addresses_typed(self.core, typed, f"{self.core}.typed"),
                         [starts[path] for path in typed])
        right = 0
        for address, path in found.items():
            if "(): " in path or path in KEPT:
                continue
            self.process.stdin.write(path + "\n")
            self.process.stdin.flush()
            self.assertEqual((path, self.process.stdout.readline().strip()),
                             (path, f"{address:x}"))
            right += 1
        self.assertEqual(right, ENTRIES + 13)
        self.assertEqual(sorted(found.values()).count("main::answer(): $local"), 3)
        self.assertEqual(len(found), right + len(KEPT) + 3)

    def test_variables_that_subroutines_keep_have_paths(self):
        found = [row["path"] for row in self.rows(
            "result", "sql", "SELECT path(address) AS path FROM allocation WHERE class = 'Kept'")]
        self.assertEqual(sorted(found), ["&main::cached->(my %cache)->{one}",
                                         "&main::cached->(my %cache)->{two}",
                                         "&main::closes->(my $closed)->[0]"])

    def test_content_is_left_out(self):
        text = harness.ask("--no-content", self.core, "sql",
                           "SELECT path(address) FROM allocation WHERE class = 'Entry'").stdout
        self.assertIn("$main::app->{...}{...}", text)
        self.assertNotIn("user:", text)

    def test_calls_are_those_that_the_program_says(self):
        said = [line.split() for line in self.process.said]
        calls = self.rows("frame", "backtrace")
        self.assertEqual([call["function"] for call in calls], [name for name, _ in said] + [None])
        self.assertEqual([call["line"] for call in calls[1:]], [int(line) for _, line in said])
        waits = 1 + PROGRAM[:PROGRAM.index('print "ready')].count("\n")
        self.assertEqual(calls[0]["line"], waits)
        self.assertEqual({call["source"] for call in calls}, {self.script})

    def test_variables_of_calls_are_shown(self):
        rows = self.rows("local", "backtrace", "--locals")
        self.assertEqual([row["value"] for row in rows if row["name"] == "$depth"],
                         ["0", "1", "2"])
        self.assertEqual([row["value"] for row in rows if row["name"] == "@rest"],
                         ["1 item", "1 item", "0 items"])

    def test_damage_is_bounded(self):
        for damaged in harness.damage(self.core, f"{self.folder}/damaged", 3000):
            harness.ask("-q", damaged, expected=(0, 3), input="backtrace --locals\n"
                        "sql \"SELECT count(path(address)) FROM allocation "
                        "WHERE class = 'Entry'\"\n")


if __name__ == "__main__":
    unittest.main()
