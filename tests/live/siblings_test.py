#!/usr/bin/env python3
"""
testdata/programs/siblings.c leaks allocations of types of which others are
held. Those that look like just one of these are said to, and no other. So does
lost_types.c, of which the pointers are null, or the sizes differ, and
lost_odd.c, in which other things stand in place of members, and lost_arrays.c.
Of lost_links.c, what leaked ones alone refer to is what their members say.
"""

import collections
import shutil
import unittest

from harness import LiveTest, addresses, ask, numbers_said, snap, tables

LIKE = "probably struct conn"

# All that a pool gives is in a list of its own, by a link before it. A lost pool's blocks with one
# pointer behind the link look like a struct pair, of which some are held.
POOL = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct pair { struct pair *next; char *name; } *pairs;
struct pool { void *all; };
__attribute__((noinline)) static void *give(struct pool *pool, size_t size)
{
    void **made = calloc(1, size + sizeof(void *));
    *made = pool->all;
    pool->all = made;
    return made + 1;
}
__attribute__((noinline)) static void lose(int count)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    for (int i = 0; i < count; i++) {
        if (MIXED) {
            *(long *)give(pool, sizeof(long)) = i + 1;
            *(double *)give(pool, sizeof(double)) = i;
        }
        *(char **)give(pool, sizeof(char *)) = strdup("a text that the pool's user keeps");
    }
}
int main(void)
{
    for (int i = 0; i < 10; i++) {
        struct pair *pair = malloc(sizeof(*pair));
        *pair = (struct pair){ pairs, strdup("the name of a pair that is held") };
        pairs = pair;
    }
    for (int i = 0; i < 20; i++)
        lose(50);
    volatile char stack[1 << 14];
    for (size_t i = 0; i < sizeof(stack); i++)
        stack[i] = 0;
    puts("ready");
    fflush(stdout);
    pause();
}
"""


class SiblingsTest(LiveTest):
    def core(self, *flags, compiler="gcc"):
        """A core, and the addresses of what looks like a type and does not."""
        program = self.compile("siblings", "siblings.c", "truth.c",
                               compiler=compiler, flags=flags)
        process = self.start([program])
        truth = {word: set(found) for word, found in numbers_said(process).items()}
        return snap(process, self.path("core")), truth

    def check(self, *flags, compiler="gcc"):
        core, truth = self.core(*flags, compiler=compiler)
        self.assertFalse(truth["like"] & truth["not"])
        self.assertLessEqual(truth["like"] | truth["not"],
                             addresses("-q", core, "enumerate", "leaked"))
        named = {row["type"]: row["count"]
                 for row in tables("-q", core, "summarize", "leaked")["group"]
                 if row.get("type")}
        self.assertEqual(named, {LIKE: len(truth["like"])})
        self.assertIn(f"type {LIKE}\n",
                      ask("-q", core, "summarize", "leakroots").stdout)
        for address in truth["like"]:
            self.assertRegex(
                ask("-q", core, "describe", f"{address:x}").stdout,
                r"It is of type struct conn \(looks like: by 40 others of its "
                r"size, as conns")
        for address in truth["not"]:
            self.assertNotIn(
                "looks like",
                ask("-q", core, "describe", f"{address:x}").stdout)
        return core

    def check_rare(self, held, expected):
        program = self.compile("rare", "rare.c", "truth.c", flags=("-g", "-O1"))
        process = self.start([program, str(held)])
        lost = {int(line.split()[1], 16) for line in process.said
                if line.startswith("lost ")}
        core = snap(process, self.path("core"))
        self.assertLessEqual(lost, addresses("-q", core, "enumerate", "leaked"))
        named = {row["type"]: row["count"]
                 for row in tables("-q", core, "summarize", "leaked")["group"]
                 if row.get("type")}
        self.assertEqual(named.get("probably struct order", 0), expected)
        self.assertNotIn("probably struct spare", named)

    def test_a_type_of_two_is_no_rival_to_one_of_250(self):
        self.check_rare(2, 6)

    def test_a_type_of_three_is(self):
        self.check_rare(3, 0)

    def test_gcc(self):
        self.check("-g", "-O0")
        core = self.check("-g", "-O2")
        listed = ask("-q", core, "list", "leaked").stdout
        self.assertEqual(listed.count(LIKE), 5)

    def test_leaks_are_selected_by_their_probable_type(self):
        core, truth = self.core("-g", "-O2")
        for name in "conn", "struct conn":
            self.assertEqual(addresses("-q", core, "enumerate", "leaked", name),
                             truth["like"])
        self.assertEqual(addresses("-q", core, "enumerate", "used", LIKE),
                         truth["like"])
        held = addresses("-q", core, "enumerate", "anchored", "conn")
        self.assertEqual(len(held), 40)
        self.assertEqual(addresses("-q", core, "enumerate", "used", "conn"),
                         held | truth["like"])
        listed = ask("-q", core, "list", "used", "conn").stdout
        self.assertEqual(listed.count("... of type struct conn\n"), 40)
        self.assertEqual(listed.count(f"... of type {LIKE}\n"),
                         len(truth["like"]))
        # Where nothing looks like it, the name is still one.
        self.assertEqual(
            addresses("-q", core, "enumerate", "leaked", "left"), set())
        self.assertIn("unknown", ask("-q", core, "count", "leaked", "nothing",
                                     expected=(2,)).stderr)

    def test_one_is_called_the_same_everywhere(self):
        """What is used is what is anchored and what leaked."""
        core, truth = self.core("-g", "-O2")
        count = len(truth["like"])
        counts = []
        for name in "used", "anchored", "leaked":
            groups = tables("-q", core, "summarize", name)["group"]
            counts.append(collections.Counter(
                {row["type"]: row["count"] for row in groups
                 if row.get("type")}))
        self.assertEqual(counts[0], counts[1] + counts[2])
        self.assertEqual(counts[0][LIKE], count)
        rows = {int(row["address"], 16): row["type"] for row in tables(
            "-q", core, "list", "used")["allocation"]}
        query = ("SELECT count(*), sureness FROM allocation WHERE type = "
                 f"'{LIKE}' AND kind = type GROUP BY sureness")
        asked, = tables("-q", core, "sql", query).values()
        self.assertEqual({rows[address] for address in truth["like"]},
                         {LIKE})
        self.assertEqual([list(row.values()) for row in asked],
                         [[count, "looks like"]])

    def test_what_they_look_like_is_denied(self):
        core, truth = self.core("-g", "-O2")
        address = f"{min(truth['like']):x}"
        said = ask("-q", "-c", f"notype {address}", "-c", "count leaked conn",
                   "-c", f"describe {address}", core).stdout
        self.assertIn(f"Type {LIKE} denied for 1 allocation; 0 more have no "
                      "type any more.\n4 allocations use 160 bytes.\n", said)
        self.assertNotIn("It is of type", said)

    def test_members_of_leaks_are_shown(self):
        core, truth = self.core("-g", "-O2")
        shown = ask("-q", core, "show", f"{min(truth['like']):x}").stdout
        self.assertIn(f"... of type {LIKE}\n  next = ", shown)
        self.assertIn("  received = 17\n", shown)
        self.assertEqual(
            ask("-q", core, "show", "leaked", "conn").stdout.count(
                '  peer = 0x'), len(truth["like"]))
        self.assertNotIn("of type", ask(
            "-q", core, "show", f"{min(truth['not']):x}").stdout)

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_clang(self):
        self.check("-g", "-O0", compiler="clang")
        self.check("-g", "-O2", compiler="clang")

    def test_held_ones_are_called_the_same_before_and_after(self):
        core, _ = self.core("-g", "-O2")
        alone = ask("-q", core, "summarize", "used").stdout
        both = ask("-q", "-c", "summarize leaked",
                   "-c", "summarize used", core).stdout
        self.assertTrue(both.endswith(alone))
        self.assertIn(f"Type {LIKE} has ", alone)

    def lost(self, optimization, *arguments):
        program = self.compile("lost_types", "lost_types.c", "truth.c",
                               flags=("-g", optimization))
        process = self.start([program, *arguments])
        truth = {word: set(found) for word, found in numbers_said(process).items()}
        return snap(process, self.path(f"core{optimization}")), truth

    def test_some_of_many_name_what_leaked_as_all_do(self):
        core, truth = self.lost("-O2", "20000")
        alone = ask("-q", core, "summarize", "leaked").stdout
        after = ask("-q", "-c", "summarize used", "-c", "summarize leaked",
                    core).stdout
        self.assertTrue(after.endswith(alone))
        self.assertIn(f"Type {LIKE} has {len(truth['conn'])} ", alone)
        self.assertIn(f"Type probably struct note has {len(truth['note'])} ",
                      alone)
        stages = ask("-v", core, "summarize", "leaked").stderr
        self.assertNotRegex(stages, r"(?m)^types  ")
        address = f"{min(truth['conn']):x}"
        for before in (), ("-c", "summarize used"):
            self.assertRegex(
                ask("-q", *before, "-c", f"describe {address}", core).stdout,
                r"struct conn \(looks like: by more than 1,000 others of its "
                r"size")

    def test_members_say_what_only_leaked_ones_refer_to(self):
        program = self.compile("lost_links", "lost_links.c", "truth.c",
                               flags=("-g", "-O1"))
        process = self.start([program])
        truth = collections.defaultdict(set)
        for line in process.said:
            address, _, name = line.strip().partition(" ")
            if name.startswith(("probably", "?")):
                truth[name].add(int(address, 16))
        core = snap(process, self.path("core"))
        self.assertIn("a pointer of leaked struct conn", ask(
            "-q", core, "describe", f"{max(truth['probably int[]']):x}").stdout)
        truth.pop("?")
        named = {row["type"]: row["count"]
                 for row in tables("-q", core, "summarize", "leaked")["group"]
                 if row.get("type")}
        self.assertEqual(named, {name: len(found) for name, found in truth.items()})

    def lost_arrays(self, optimization, **options):
        program = self.compile("lost_arrays", "lost_arrays.c", "truth.c",
                               flags=("-g", optimization), **options)
        process = self.start([program])
        truth = {word: set(found) for word, found in numbers_said(process).items()}
        return snap(process, self.path(f"core{optimization}")), truth

    def check_arrays(self, optimization, **options):
        core, truth = self.lost_arrays(optimization, **options)
        for word, name in ("item", "struct item *[]"), ("point", "struct point[]"), (
                "cell", "struct cell[]"), ("tree", "struct tree"):
            self.assertEqual(addresses("-q", core, "enumerate", "leaked", name),
                             truth[word])
        for address in truth["not"]:
            self.assertNotRegex(ask("-q", core, "describe", f"{address:x}").stdout,
                                r"\[\]|struct tree")
        address = f"{min(truth['point']):x}"
        self.assertIn(
            "It is of type struct point[] (looks like: by 120 others of several sizes",
            ask("-q", core, "describe", address).stdout)
        self.assertIn(", place = 112}\n", ask("-q", core, "show", address).stdout)
        self.assertIn("Type probably struct item *[] has 3 instances",
                      ask("-q", core, "summarize", "leaked").stdout)

    def test_arrays_look_like_arrays(self):
        self.check_arrays("-O2")
        self.check_arrays("-O0")

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_arrays_look_like_arrays_by_clang(self):
        self.check_arrays("-O2", compiler="clang")

    def odd(self, optimization, *arguments):
        """What lost_odd.c lost by type, and what heapcore says of it."""
        program = self.compile("lost_odd", "lost_odd.c", "truth.c",
                               flags=("-g", optimization))
        process = self.start([program, *arguments])
        truth = {word: set(found) for word, found in numbers_said(process).items()}
        core = snap(process, self.path(f"core{optimization}{len(arguments)}"))
        named = {row["type"]: row["count"] for row in tables(
            "-q", core, "summarize", "leaked")["group"]
                 if (row["type"] or "").startswith("probably ")}
        texts = addresses("-q", core, "enumerate", "leaked", "char[]")
        self.assertLessEqual(truth["char"], texts)
        self.assertFalse(truth["not"] & texts)
        for word in set(truth) - {"not"}:
            if word != "char" and f"probably struct {word}" in named:
                self.assertEqual(addresses("-q", core, "enumerate", "leaked", word),
                                 truth[word])
        return named

    def test_what_held_ones_have_in_place_of_members_leaked_ones_may(self):
        for optimization in "-O0", "-O2":
            self.assertEqual(self.odd(optimization), {
                "probably struct node": 3, "probably struct item": 3,
                "probably struct variable": 3, "probably char[]": 3,
                "probably struct title": 3})

    def test_a_pointer_that_some_held_ones_have_null_tells_no_types_apart(self):
        self.assertEqual(self.odd("-O1", "some names are null"), {
            "probably struct node": 3, "probably struct item": 3,
            "probably char[]": 3, "probably struct title": 3})

    def test_null_links_and_any_length(self):
        for optimization in "-O0", "-O2":
            core, truth = self.lost(optimization)
            for name in "conn", "note":
                self.assertEqual(
                    addresses("-q", core, "enumerate", "leaked", name),
                    truth[name])
            named = {row["type"]: (row["count"], row["allocated_by"])
                     for row in tables("-q", core, "summarize", "leaked")[
                         "group"] if row.get("type")}
            self.assertEqual(set(named), {LIKE, "probably struct note"})
            self.assertRegex(named[LIKE][1], r"^conn_new \(lost_types")
            self.assertRegex(named["probably struct note"][1],
                             r"^note_new \(lost_types")
            self.assertIn(
                "(looks like: by 10 others of several sizes, as notes",
                ask("-q", core, "describe", f"{min(truth['note']):x}").stdout)

    def test_links_of_all_that_a_pool_gave_are_none_of_a_type(self):
        """Where such a list has nothing else in it, it looks like one of pairs."""
        for mixed in 0, 1:
            program = self.compile("pool", flags=("-g", "-O1", f"-DMIXED={mixed}"), text=POOL)
            core = snap(self.start([program]), self.path(f"core{mixed}"))
            leaked = ask("-q", core, "summarize", "leaked").stdout
            if mixed:
                self.assertNotIn("struct pair", leaked)
            else:
                self.assertRegex(leaked, r"probably struct pair has 1,0\d\d instances")

    def test_without_debug_information(self):
        core, _ = self.core("-g0", "-O2")
        groups = tables("-q", core, "summarize", "leaked")["group"]
        self.assertFalse([row for row in groups if row.get("type")])


if __name__ == "__main__":
    unittest.main()
