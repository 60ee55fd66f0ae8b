#!/usr/bin/env python3
"""
Inside Perl: a program writes down where its values are and of what kind, keeps some of them, and
loses others in cycles of references.
"""

import re
import shutil
import struct
import tempfile
import unittest

import core_file
import harness
import preloaded

CYCLES, LIVE, DAMAGED = 2000, 1500, 50
TCMALLOC = "libtcmalloc_minimal.so.4"
# None is missed where it was tried; but a stale word, as on a stack, may hold some.
MOST_HELD = 0.01

PROGRAM = f"""
use strict; use warnings; use Scalar::Util qw(refaddr weaken);
sub say_it {{ my ($word, @refs) = @_; printf "%x %s\\n", refaddr($_), $word for @refs }}

package User;
sub new {{
    my ($class, $i) = @_;
    return bless {{ name => "user number $i", tags => [1 .. 3], call => sub {{ $i }} }}, $class;
}}
package Lost; package Kid; package Inside;
package Derived; our @ISA = ("User"); package Further; our @ISA = ("Derived"); package main;

our @derived = (Derived->new(0), map {{ Further->new($_) }} 1 .. 20);
say_it("Derived", @derived);
our @users = map {{ User->new($_) }} 1 .. {LIVE};
say_it("User", @users);
say_it("ARRAY", map {{ $_->{{tags}} }} @users);
say_it("CODE", map {{ $_->{{call}} }} @users);
say_it("string", map {{ \\$_->{{name}} }} @users);
my @numbers = map {{ $_ * 1.5 }} 1 .. 300;
say_it("number", map {{ \\$_ }} @numbers);
our @inside = map {{ bless [map {{ "text of some length $_" }} 1 .. 3], "Inside" }} 1 .. 300;
say_it("Inside", @inside);

# A weak reference back holds nothing: the one kept is alive, the other is freed at once.
sub family {{
    my ($parent, $kid) = (bless({{}}, "Kid"), bless({{}}, "Kid"));
    $parent->{{kid}} = $kid;
    weaken($kid->{{parent}} = $parent);
    return $parent;
}}
our @families = map {{ family() }} 1 .. 500;
family() for 1 .. 500;
say_it("Kid", map {{ ($_, $_->{{kid}}) }} @families);
say_it("weakref", map {{ \\$_->{{kid}}{{parent}} }} @families);

sub lose {{
    my ($i) = @_;
    my $one = bless {{ number => $i, list => [$i, $i] }}, "Lost";
    my $other = bless {{ peer => $one, data => "what is lost, $i" }}, "Lost";
    $one->{{peer}} = $other;
    $one->{{call}} = sub {{ $one }};
    # The program has finished with these names, and what it lost is known by address alone.
    say_it("Lost", $one, $other);
    say_it("lost", $one->{{list}}, \\$other->{{data}}, $one->{{call}});
}}
lose($_) for 1 .. {CYCLES};
# Entries with keys that are values, which only elements of a tied hash lead to.
use Tie::Hash;
tie our %tied, "Tie::StdHash";
our @elements = map {{ \\$tied{{$_}} }} 1 .. 30;
# As C code does: an integer that is the address of what Perl has no name for.
our @kept = map {{ my $held = [$_]; Internals::SvREFCNT(@$held, 2); 0 + refaddr($held) }} 1 .. 50;
printf "%x held\n", $_ for @kept;
undef $_ for my @over = map {{ [$_] }} 1 .. 200;
$| = 1;
print "ready\\n";
sleep 600;
"""

KINDS = ("User", "Inside", "Kid", "weakref")


def write_words(path, words):
    """Overwrite words of the core."""
    core = core_file.Core(path)
    with open(path, "r+b") as file:
        for address, word in words.items():
            offset = next(offset + address - start
                          for _, _, offset, start, _, held, _, _ in core.segments
                          if start <= address < start + held)
            file.seek(offset)
            file.write(word.to_bytes(8, "little"))
    core.close()


def ring_chains(path, hashes):
    """Let the last entry of each chain of the hashes lead to the first; how many there are."""
    core, words = core_file.Core(path), {}

    def word(address):
        return struct.unpack("<Q", core.read(address, 8))[0]

    for head in hashes:
        table = word(head + 16)
        for chain in range(table, table + 8 * (word(word(head) + 24) + 1), 8):
            entry = first = word(chain)
            while entry and word(entry):
                entry = word(entry)
            if entry:
                words[entry] = first
    core.close()
    write_words(path, words)
    return len(words)


def numbers(core, *words):
    return harness.addresses("-q", core, "enumerate", *words)


@unittest.skipUnless(shutil.which("perl"), "there is no perl")
class Perl(harness.LiveTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        process = harness.start(["perl", "-e", PROGRAM])
        try:
            cls.truth = harness.addresses_said(process)
            cls.core = harness.snap(process, f"{cls.folder}/core")
        finally:
            harness.end(process)

    def live(self):
        return set().union(*(addresses for word, addresses in self.truth.items()
                             if word not in ("Lost", "lost")))

    def test_values_have_their_kinds_and_packages(self):
        for kind in KINDS:
            derived = self.truth["Derived"] if kind == "User" else set()
            self.assertTrue(numbers(self.core, "used", kind) == self.truth[kind] | derived, kind)
        for kind in ("ARRAY", "CODE", "string", "number"):
            self.assertTrue(self.truth[kind] <= numbers(self.core, "used", kind), kind)

    def test_packages_are_found_by_what_they_are_derived_from(self):
        self.assertEqual(numbers(self.core, "used", "Derived"), self.truth["Derived"])

    def test_all_that_cycles_lost_is_leaked(self):
        leaked = numbers(self.core, "leaked")
        self.assertEqual(len(self.truth["Lost"]), 2 * CYCLES)
        missed = (self.truth["Lost"] | self.truth["lost"]) - leaked
        self.assertLessEqual(len(missed), MOST_HELD * len(self.truth["Lost"]))
        self.assertEqual(len(self.live() & leaked), 0)
        self.assertTrue(numbers(self.core, "leaked", "Lost") <= self.truth["Lost"])
        rows = harness.tables("-q", self.core, "objects", "leaked")["class"]
        counts = {row["class"]: row["objects"] for row in rows}
        self.assertGreaterEqual(counts["Lost"], 2 * CYCLES * (1 - MOST_HELD))
        self.assertGreaterEqual(counts["CODE"], CYCLES * (1 - MOST_HELD))
        self.assertLessEqual(counts["ARRAY"], 3 * CYCLES + 10)
        self.assertEqual(harness.ask(self.core, "count", "garbage").stdout.split()[0], "0")

    def test_leak_roots_are_named_by_objects_of_the_program_and_nothing_else_is_lost(self):
        self.assertEqual(numbers(self.core, "leakroots") - self.truth["Lost"], set())

    def test_nearly_all_memory_has_a_class_or_owner(self):
        groups = [row for row in harness.tables("-q", self.core, "summarize", "used")["group"]
                  if row["match"] is None and row["string_size"] is None and row["size"] is None]
        named = [row for row in groups if row["signature"] or row["pattern"]]
        self.assertGreater(sum(row["bytes"] for row in named),
                           0.97 * sum(row["bytes"] for row in groups))

    def test_parts_have_their_owner(self):
        user = min(self.truth["User"])
        parts = numbers(self.core, "outgoing", f"{user:x}")
        texts = [harness.ask("-q", self.core, "describe", f"{part:x}").stdout for part in parts]
        for role in ("the body of the value", "the chains of the hash"):
            self.assertTrue(any(role in text and f"{user:x}" in text for text in texts), texts)

    def test_walks_of_chains_that_are_rings_end(self):
        path = f"{self.folder}/rings"
        shutil.copy(self.core, path)
        self.assertGreater(ring_chains(path, self.truth["User"]), LIVE)
        users = "select max(path(address)) from allocation where class = 'User'"
        for words in (("tree",), ("report",), ("sql", users),
                      ("sql", "select count(*) from item")):
            harness.ask("-q", path, *words, expected=(harness.FINE, harness.INCOMPLETE),
                        timeout=harness.TIMEOUT)

    def test_packages_whose_chains_are_rings_are_walked_once(self):
        path = f"{self.folder}/packages"
        shutil.copy(self.core, path)
        self.assertGreater(ring_chains(path, numbers(path, "used", "stash")), 100)
        harness.run(harness.HEAPCORE, "-q", "slim", "-o", f"{path}.slim", path,
                    timeout=10)

    def test_damaged_values_are_told_and_hold_what_they_refer_to(self):
        path = f"{self.folder}/damaged"
        shutil.copy(self.core, path)
        spoilt = sorted(self.truth["User"])[:DAMAGED]
        write_words(path, {address + 8: 0x5a5a_5a5a_0000_0001 for address in spoilt})
        answer = harness.ask(path, "count", "leaked")
        said = re.search(r"make no sense.*: (\d+);", answer.stderr)
        self.assertEqual(int(said[1]), DAMAGED)
        leaked = numbers(path, "leaked")
        self.assertEqual(len(self.live() & leaked), 0)
        self.assertLessEqual(len(self.truth["Lost"] - leaked),
                             MOST_HELD * len(self.truth["Lost"]))

    def test_value_without_a_type_holds_nothing(self):
        path = f"{self.folder}/blank"
        shutil.copy(self.core, path)
        texts = numbers(path, "leaked", "%PerlStringText")
        core = core_file.Core(path)
        blank = [address for address in sorted(numbers(path, "used", "undef"))[:1000]
                 if core.read(address + 12, 1) == b"\0"]
        core.close()
        self.assertGreater(min(len(blank), len(texts)), 0)
        write_words(path, {place + 16: text for place, text in zip(blank, sorted(texts))})
        self.assertEqual(numbers(path, "leaked", "%PerlStringText"), texts)

    def test_any_damage_ends(self):
        for path in harness.damage(self.core, f"{self.folder}/noise", 3000):
            harness.ask(path, "objects", expected=(harness.FINE, harness.INCOMPLETE))
            harness.ask(path, "summarize", "leaked",
                        expected=(harness.FINE, harness.INCOMPLETE))


@unittest.skipUnless(shutil.which("perl") and preloaded.is_there(TCMALLOC),
                     "there is no perl, or no libtcmalloc-minimal4")
class WithAnotherMalloc(harness.LiveTest):
    """Perl's arenas lie in blocks of malloc(), whichever that is: it is walked before."""

    def test_values_have_their_kinds_and_packages(self):
        process = self.start(["perl", "-e", PROGRAM], LD_PRELOAD=TCMALLOC)
        said = harness.addresses_said(process)
        core = harness.snap(process, f"{self.folder}/core")
        for kind in KINDS:
            derived = said["Derived"] if kind == "User" else set()
            self.assertTrue(numbers(core, "used", kind) == said[kind] | derived, kind)


if __name__ == "__main__":
    unittest.main()
