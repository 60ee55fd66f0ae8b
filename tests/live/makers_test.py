#!/usr/bin/env python3
"""
testdata/programs/makers.c says which function made each value: that one is
among those that heapcore names; so does lost_by_size.c for blocks of which
nothing is known but their size, and lost_by_words.c where words say more.
"""

import re
import shutil
import unittest

import harness
from harness import LiveTest, ask, numbers_said, snap, tables

ONE_OF = {
    "open_conn": {"open_conn"},
    "parse_order": {"parse_order", "copy_order"},
    "copy_order": {"parse_order", "copy_order"},
    "queue_job": {"queue_job"},
}
TOO_MANY = {"on_open", "on_close", "on_read", "on_write"}


BY_SIZE = {
    "open_conn": {"open_conn"},
    "queue_job": {"queue_job", "fill_buffer"},
    "fill_buffer": {"queue_job", "fill_buffer"},
    "keep_flag": {"keep_flag", "keep_point"},
    "keep_point": {"keep_flag", "keep_point"},
    "on_open": set(), "on_close": set(), "on_read": set(), "on_write": set(),
}

BY_WORDS = {
    "open_conn": {"open_conn"},
    "queue_job": {"queue_job"},
    "keep_numbers": {"open_conn", "queue_job", "keep_numbers"},
    "make_record": {"make_record"},
    "fill_table": set(),
    "keep_text": {"main"},  # what returns bytes stands for its callers
}

# Objects of one class, alone and in control blocks: all are lost.
SHARED = r"""
#include <cstdio>
#include <memory>
#include <new>
#include <unistd.h>
struct Job { virtual ~Job() {} long numbers[8] = {}; };
__attribute__((noinline)) static void alone()
{
    Job *volatile job = new Job;
    (void)job;
}
__attribute__((noinline)) static void shared()
{
    alignas(8) char place[16];
    new (place) std::shared_ptr<Job>(std::make_shared<Job>());
    asm volatile("" : : "r"(place) : "memory");
}
int main()
{
    for (int i = 0; i < 3; i++) {
        alone();
        shared();
    }
    volatile char stack[1 << 14];
    for (volatile char &byte : stack)
        byte = 0;
    puts("ready");
    fflush(stdout);
    pause();
}
"""
LIBRARY = r"""
#include <cstdio>
#include <memory>
#include <unistd.h>
struct Conn { Conn *next; long numbers[4]; };
static Conn *conns;
__attribute__((noinline)) static void open_conn(bool is_kept)
{
    std::unique_ptr<Conn> made = std::make_unique<Conn>();
    Conn *conn = made.release();

    conn->numbers[0] = 7;
    conn->next = conns;
    if (is_kept)
        conns = conn;
    else
        printf("lost %ld\n", (long)conn);
}
int main()
{
    for (int i = 0; i < 20; i++)
        open_conn(true);
    for (int i = 0; i < 5; i++)
        open_conn(false);
    puts("ready");
    fflush(stdout);
    pause();
}
"""

# A library without debug information gives what is held, and what is lost.
GIVEN_BY = """
#include <stdlib.h>
void give(void **slot, size_t size) { *slot = calloc(1, size); }
"""
GIVEN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void give(void **slot, size_t size);
struct item { struct item *next; char *text; long numbers[6]; } *items;
struct entry { struct entry *next; char *name; long sums[6]; } *entries;
struct flag { void *any; char *why; long times[6]; } *flags[100];
__attribute__((noinline)) static void open_flag(int i)
{
    struct flag *flag = malloc(sizeof(*flag));
    *flag = (struct flag){ .why = strdup("opened") };
    flags[i] = flag;
}
__attribute__((noinline)) static void lose(void)
{
    struct item *item;
    give((void **)&item, sizeof(*item));
    item->text = strdup("lost, too");
    printf("lost %ld\n", (long)item);
    item = NULL;
}
int main(int count, char **arguments)
{
    for (int i = 0; i < 20; i++) {
        struct item *item;
        struct entry *entry;
        give((void **)&item, sizeof(*item));
        give((void **)&entry, sizeof(*entry));
        *item = (struct item){ items, strdup("an item"), { 1 } };
        *entry = (struct entry){ entries, strdup("an entry"), { 2 } };
        items = item;
        entries = entry;
    }
    for (int i = 0; i < FLAGS; i++)
        open_flag(i);
    for (int i = 0; i < 3; i++)
        lose();
    volatile char stack[1 << 14];
    for (size_t i = 0; i < sizeof(stack); i++)
        stack[i] = 0;
    puts("ready");
    fflush(stdout);
    pause();
}
"""

# All is allocated by way of functions that put a header before what they give.
HEADED = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define OUT_OF_LINE __attribute__((noipa))
#define SAY(value) dprintf(1, "%s %ju\n", __func__, (uintmax_t)(uintptr_t)(value) - 32)
struct header { size_t size; int in_use[6]; };
struct pool { struct header *headers[4]; } pool;
struct conn { struct conn *next; long numbers[6]; };
struct row { long words[3]; };
OUT_OF_LINE static void *resize(void *old, size_t size, struct pool *of)
{
    struct header *header = NULL;
    if (old) {
        size_t at = 0;
        while (of->headers[at] != (struct header *)old - 1)
            at++;
        header = of->headers[at];
    }
    if (size > SIZE_MAX - sizeof(*header))
        abort();
    struct header *made = realloc(header, size + sizeof(*made));
    if (!made)
        abort();
    made->size = size;
    made->in_use[0] = 1;
    return made + 1;
}
OUT_OF_LINE static void *make_many(size_t count, size_t size, struct pool *of)
{
    if (size && count > SIZE_MAX / size)
        abort();
    return resize(NULL, count * size, of);
}
OUT_OF_LINE static void *open_conn(void)
{
    struct conn *conn = resize(NULL, sizeof(*conn), &pool);
    SAY(conn);
    *conn = (struct conn){ .numbers = { 1 } };
    return conn;
}
OUT_OF_LINE static void *fill_rows(void)
{
    struct row *rows = make_many(20, sizeof(*rows), &pool);
    SAY(rows);
    memset(rows, 0, 20 * sizeof(*rows));
    rows[1].words[1] = 3;
    return rows;
}
OUT_OF_LINE static void *keep_numbers(void)
{
    long *numbers = resize(NULL, 15 * sizeof(*numbers), &pool);
    SAY(numbers);
    memset(numbers, 0, 15 * sizeof(*numbers));
    return numbers;
}
/* As large as a conn would be without a header. */
OUT_OF_LINE static void *keep_bare(void)
{
    long *bare = malloc(sizeof(struct conn));
    SAY(bare + 4);
    memset(bare, 0, sizeof(struct conn));
    return bare;
}
void *volatile last;
int main(void)
{
    for (int i = 0; i < 4; i++) {
        last = open_conn();
        last = fill_rows();
        last = keep_numbers();
        last = keep_bare();
    }
    last = NULL;
    dprintf(1, "ready\n");
    pause();
}
"""


# Which functions ask for a size may be told by how malloc rounds: 72 is what it
# gives for 72 bytes, and would for 88 where 16 more are left of a free block.
# All is kept in a list, so that most of what is held has a type.
CROWDED = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define OUT_OF_LINE __attribute__((noipa))
struct row { struct row *next; long numbers[15]; } *rows;
static long *say(const char *function, long *numbers, size_t size)
{
    dprintf(1, "%s %ju\n", function, (uintmax_t)(uintptr_t)numbers);
    memset(numbers, 0, size);
    numbers[2] = 5;
    return numbers;
}
#define ASK(name, size) OUT_OF_LINE static long *name(void) \
    { return say(__func__, malloc(size), size); }
ASK(on_open, 72)
ASK(on_close, 71)
ASK(on_read, 66)
ASK(on_write, 65)
ASK(fill_cache, 88)
void *volatile last;
int main(void)
{
    for (int i = 0; i < 20; i++) {
        struct row *row = calloc(1, sizeof(*row));
        row->next = rows;
        rows = row;
    }
    for (int i = 0; i < 4; i++) {
        last = on_open();
        last = on_close();
        last = on_read();
        last = on_write();
        last = fill_cache();
    }
    last = NULL;
    dprintf(1, "ready\n");
    pause();
}
"""

# A region gives larger requests blocks of their own behind a link, and cuts
# smaller ones from a block.
REGION = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define OUT_OF_LINE __attribute__((noipa))
struct region { size_t largest, left; char *data, *blocks, *large; } region = { 48 };
struct conn { struct conn *next; long numbers[8]; } *conns;
OUT_OF_LINE static void *take(struct region *of, size_t size)
{
    size_t rounded = (size + 7) & ~7;
    char *made;
    if (size >= SIZE_MAX - 100)
        return NULL;
    if (rounded > of->largest) {
        made = malloc(size + 8);
        if (!made)
            return NULL;
        *(char **)made = of->large;
        of->large = made;
        return made + 8;
    }
    if (rounded > of->left) {
        made = malloc(4096);
        if (!made)
            return NULL;
        *(char **)made = of->blocks;
        of->blocks = made;
        of->data = made + 8;
        of->left = 4096 - 8;
    }
    made = of->data;
    of->data += rounded;
    of->left -= rounded;
    return made;
}
OUT_OF_LINE static void open_conn(void)
{
    struct conn *conn = take(&region, sizeof(*conn));
    *conn = (struct conn){ .numbers = { 1 } };
    printf("open_conn %ju\n", (uintmax_t)(uintptr_t)conn - 8);
}
OUT_OF_LINE static void *keep_small(void) { return take(&region, 24); }
/* As large as a conn would be without the link. */
OUT_OF_LINE static void keep_bare(void)
{
    long *bare = calloc(1, sizeof(struct conn));
    bare[3] = 3;
    printf("keep_bare %ju\n", (uintmax_t)(uintptr_t)bare);
}
int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 1 << 12);
    for (int i = 0; i < 20; i++) {
        struct conn *conn = calloc(1, sizeof(*conn) + 200);
        conn->next = conns;
        conns = conn;
    }
    keep_small();
    for (int i = 0; i < 4; i++) {
        open_conn();
        keep_bare();
    }
    region.large = NULL;
    volatile char stack[1 << 14];
    for (size_t i = 0; i < sizeof(stack); i++)
        stack[i] = 0;
    puts("ready");
    fflush(stdout);
    pause();
}
"""


class MakersTest(LiveTest):
    def core(self, *flags, compiler="gcc"):
        """A core, and addresses by who made them."""
        program = self.compile("makers", "makers.c", "truth.c",
                               compiler=compiler, flags=flags)
        process = self.start([program])
        made = numbers_said(process)
        return snap(process, self.path("core")), made

    def named(self, core, addresses):
        """The functions that heapcore names, by address."""
        commands = [word for address in addresses
                    for word in ("-c", f"describe {address:x}")]
        said = ask("-q", *commands, core).stdout
        names = {}
        for part in re.split(r"^Address ", said, flags=re.M)[1:]:
            by = re.search(r"^It was allocated by (?:one of )?(.*?)"
                           r"(?: \(makers.c:\d+\))?\.$", part, re.M)
            names[int(part.split()[0], 16)] = (
                set(by[1].split(", ")) if by else set())
        return names

    def check(self, *flags, compiler="gcc"):
        core, made = self.core(*flags, compiler=compiler)
        named = self.named(core, [address for addresses in made.values()
                                  for address in addresses])
        for function, addresses in made.items():
            for address in addresses:
                names = named[address]
                if function in ONE_OF:
                    self.assertEqual(names, ONE_OF[function], function)
                elif function in TOO_MANY:
                    self.assertEqual(names, set())
                else:
                    self.assertIn(function, names)
                    self.assertLessEqual(names, {function, "keep_blob"})
        return core, made

    def test_gcc(self):
        self.check("-g", "-O0")
        self.check("-g", "-O1")

    def test_sentences(self):
        core, made = self.check("-g", "-O2")
        said = ask("-q", core, "describe", f"{made['open_conn'][-1]:x}").stdout
        self.assertRegex(
            said, r"\nIt was allocated by open_conn \(makers\.c:\d+\)\.\n")
        said = ask("-q", core, "explain", f"{made['parse_order'][-1]:x}").stdout
        self.assertRegex(said, r"\nIt was allocated by one of (parse_order, "
                         r"copy_order|copy_order, parse_order)\.\n")

    def test_leak_roots(self):
        core, _ = self.core("-g", "-O2")
        said = ask("-q", core, "summarize", "leakroots").stdout
        self.assertRegex(said, r"\nprobably struct conn was allocated by "
                         r"open_conn \(makers\.c:\d+\)\.\n")
        rows = {row["type"]: row["allocated_by"] for row in tables(
            "-q", core, "summarize", "leakroots")["leak roots"]}
        self.assertIn(rows["probably struct order"],
                      ("one of parse_order, copy_order",
                       "one of copy_order, parse_order"))
        self.assertIsNone(rows["probably struct event"])

    def test_position_that_is_fixed(self):
        self.check("-g", "-O2", "-no-pie", "-gdwarf-4", "-fno-plt")

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_clang(self):
        self.check("-g", "-O0", compiler="clang")
        self.check("-g", "-O2", compiler="clang")

    def check_classes(self, *flags, compiler):
        """Who does "new" is named, not the constructor, which allocates
        smaller ones."""
        program = self.compile("shop", "tutorial_leak.cpp", compiler=compiler,
                               flags=("-g", *flags))
        core = snap(self.start([program]), self.path("core"))
        self.assertRegex(
            ask("-q", core, "explain", "leakroots", "--limit", "1").stdout,
            r"\nIt was allocated by shop::Shop::take\(int\) "
            r"\(tutorial_leak\.cpp:\d+\)\.\n")
        row, = tables("-q", core, "summarize", "leakroots")["leak roots"]
        self.assertRegex(row["allocated_by"], r"^shop::Shop::take\(int\) "
                         r"\(tutorial_leak\.cpp:\d+\)$")

    def test_classes(self):
        for flags in "-O0", "-O1", "-O2":
            self.check_classes(flags, compiler="g++")

    @unittest.skipUnless(shutil.which("clang++"), "no clang++")
    def test_classes_of_clang(self):
        for flags in "-O0", "-O2":
            self.check_classes(flags, compiler="clang++")

    def check_sizes(self, *flags):
        """Functions by address, with what is said of why."""
        program = self.compile("sizes", "lost_by_size.c", flags=flags)
        process = self.start([program])
        made = numbers_said(process)
        self.assertEqual(set(made), set(BY_SIZE))
        core = snap(process, self.path("core"))
        others = " or others" if "-DVARIES" in flags else ""
        for function, addresses in made.items():
            for address in addresses:
                said = ask("-q", core, "explain", f"{address:x}").stdout
                by = re.findall(r"^It was allocated by (?:one of )?(.*)\.$", said, re.M)
                if not BY_SIZE[function]:
                    self.assertEqual(by, [], function)
                    continue
                said = re.sub(r" \(lost_by_size\.c:\d+\)", "", by[0])
                names, found, _ = said.partition(f"{others}, by its size")
                self.assertTrue(found, by)
                self.assertEqual(set(names.split(", ")), BY_SIZE[function])
        return core

    def test_functions_by_size(self):
        for flags in ("-O0",), ("-O2",), ("-O1", "-no-pie"):
            core = self.check_sizes("-g", *flags)
            roots = ask("-q", core, "summarize", "leakroots").stdout
            self.assertRegex(roots, r"\nAllocations of 72 bytes were allocated by open_conn "
                             r"\(lost_by_size\.c:\d+\), by its size, as struct conn\.\n")
            leaked = ask("-q", core, "summarize", "leaked").stdout
            self.assertRegex(leaked, r"\(0x48\).*have 4 instances taking 288 bytes, allocated by "
                             r"open_conn \(lost_by_size\.c:\d+\), by its size, as struct conn\.")
            said = ask("-q", core, "gate", expected=(harness.FOUND,)).stdout
            self.assertRegex(said, r"allocated by open_conn \(lost_by_size\.c:\d+\), by its size")
            # What is in use is not spoken of.
            self.assertNotIn("allocated by", ask("-q", core, "summarize", "used").stdout)

    def test_a_size_that_varies_makes_functions_less_sure(self):
        for level in "-O0", "-O2":
            self.check_sizes("-g", level, "-DVARIES")

    def test_a_wrapper_may_put_a_header_before_what_it_gives(self):
        for flags in ("-O0",), ("-O1",), ("-O2",), ("-O2", "-no-pie", "-z", "lazy"):
            program = self.compile("headed", flags=("-g", *flags), text=HEADED)
            process = self.start([program])
            made = [line.split() for line in process.said if len(line.split()) == 2]
            core = snap(process, self.path("core"))
            self.assertEqual(len(made), 16)
            for function, address in made:
                said = ask("-q", core, "describe", f"{int(address):x}").stdout
                self.assertRegex(said, rf"\nIt was allocated by {function} \([^()]*:\d+\), "
                                 r"by its size\b", (flags, function))

    def test_where_little_is_known_nothing_is_guessed(self):
        program = self.compile("sizes", "lost_by_size.c",
                               flags=("-g", "-O1", "-DVARIES", "-DUNKNOWN"))
        core = snap(self.start([program]), self.path("core"))
        self.assertNotIn("allocated by",
                         ask("-q", core, "summarize", "leaked").stdout)

    def made(self, text, *flags):
        """A core, and addresses by who made them."""
        program = self.compile(text, f"{text}.c", flags=flags)
        process = self.start([program])
        made = numbers_said(process)
        return snap(process, self.path(f"core{''.join(flags)}")), made

    def test_words_say_which_of_a_size(self):
        """By way of hooks, too. Where words speak for none, all are named,
        and none where the size says nothing, either."""
        for flags in ("-O0",), ("-O2",), ("-O2", "-no-pie"), ("-O2", "-fPIC"):
            core, made = self.made("lost_by_words", "-g", *flags)
            for function, names in BY_WORDS.items():
                for address in made[function]:
                    said = ask("-q", core, "describe", f"{address:x}").stdout
                    by = re.search(r"^It was allocated by (?:one of )?(.*?)"
                                   r"(?: \(lost_by_words\.c:\d+\))?"
                                   r"(?: or others)?, by its size", said, re.M)
                    self.assertEqual(set(by[1].split(", ")) if by else set(),
                                     names, (flags, function, said))

    def functions_by_size(self, name, text, *flags):
        """Of a program: pairs of who made a block, and what is said of that."""
        process = self.start([self.compile(name, text=text, flags=("-g", *flags))])
        made = [line.split() for line in process.said if len(line.split()) == 2]
        core = snap(process, self.path(f"core{''.join(flags)}"))
        for function, address in made:
            said = ask("-q", core, "describe", f"{int(address):x}").stdout
            by = re.search(r"^It was allocated by (.*)\.$", said, re.M)
            yield function, by[1] if by else ""

    def test_a_block_is_as_malloc_rounds(self):
        """Where too many ask for a size that may be the block's, those count
        for which it nearly always is: if these are too many, none is named."""
        for flags in ("-O0",), ("-O2",):
            for function, by in self.functions_by_size("crowded", CROWDED, *flags):
                if function == "fill_cache":
                    self.assertRegex(by, r"^fill_cache \([^()]*:\d+\) or others, by its size")
                else:
                    self.assertEqual(by, "", (flags, function))

    def test_a_region_gives_blocks_of_their_own_behind_a_link(self):
        said = list(self.functions_by_size("region", REGION, "-O2"))
        self.assertEqual(len(said), 8)
        for function, by in said:
            self.assertRegex(by, rf"^(one of )?{function}\b.*, by its size")

    def test_a_line_of_several_has_the_functions_of_all(self):
        core, _ = self.made("lost_by_words", "-g", "-O2")
        said = ask("-q", core, "summarize", "leaked").stdout
        line, = re.findall(r"^.*of size 88 .*have \d+ instances.*$", said, re.M)
        for function in "open_conn", "queue_job":
            self.assertIn(function, line)

    def test_no_functions_by_size_without_debug_information(self):
        core, made = self.core("-g0", "-O2")
        self.assertNotIn("allocated by", ask("-q", core, "summarize", "leakroots").stdout)
        self.assertTrue(made)

    def test_who_made_an_object_alone_made_no_control_block(self):
        core = snap(self.start([self.compile("shared", compiler="g++", text=SHARED,
                                             flags=("-g", "-O1"))]), self.path("core"))
        roots = ask("-q", core, "summarize", "leakroots").stdout
        self.assertRegex(roots, r"\nJob was allocated by [^\n]*\bshared\b")

    def test_what_is_held_speaks_against_functions(self):
        """Where most of the size come from elsewhere, no function is named by
        it; where most are what it gives, it is."""
        library = self.compile("libgiven.so", text=GIVEN_BY, flags=("-shared", "-fPIC", "-g0"))
        for flags, names in (("2", set()), ("80", {"open_flag"})):
            program = self.compile(f"given{flags}", text=GIVEN,
                                   flags=("-g", "-O1", f"-DFLAGS={flags}", "-x", "none", library))
            process = self.start([program])
            lost = [int(line.split()[1]) for line in process.said if line.startswith("lost")]
            core = snap(process, self.path(f"core{flags}"))
            for address in lost:
                said = ask("-q", core, "describe", f"{address:x}").stdout
                by = re.search(r"^It was allocated by (\w+)", said, re.M)
                self.assertEqual({by[1]} if by else set(), names, said)

    def test_library_is_no_caller(self):
        """Who calls std::make_unique() is named, whether it is inlined or not:
        never the library."""
        for level, names in (("-O0", {"open_conn"}), ("-O2", {"open_conn"})):
            program = self.compile("library", compiler="g++", text=LIBRARY,
                                   flags=("-g", level))
            process = self.start([program])
            lost = [int(line.split()[1]) for line in process.said
                    if line.startswith("lost")]
            core = snap(process, self.path("core"))
            said = ask("-q", core, "describe", f"{lost[0]:x}").stdout
            self.assertIn("Conn", said)
            by = re.findall(r"^It was allocated by (.*?) \(.*\)\.$", said, re.M)
            self.assertEqual(set(by), names, said)

    def test_without_debug_information(self):
        core, made = self.core("-g0", "-O2")
        address = made["open_conn"][0]
        self.assertEqual(self.named(core, [address])[address], set())


if __name__ == "__main__":
    unittest.main()
