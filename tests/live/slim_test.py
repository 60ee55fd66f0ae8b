#!/usr/bin/env python3
"""
heapcore slim: no secret that a program has anywhere is in the new core, which
heapcore, gdb and readelf read, and of which heapcore says the same.
"""

import array
import glob
import json
import lzma
import os
import platform
import random
import re
import shutil
import sys
import unittest
import zlib

from harness import (FOUND, HEAPCORE, INCOMPLETE, PROGRAMS, ROOT, USAGE, LiveTest, Skipped, ask,
                     build_crystal, gcore, needs_i386, run, snap)

SHAPE = 200  # secrets of each shape
WINDOW = 8   # bytes of a secret that must not be found in a row
WORD = 4


LETTERS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *kept;

int main(void)
{
	kept = malloc(5000);
	memset(kept, %d, 4999);
	kept[4999] = 0;
	write(1, "ready\\n", 6);
	pause();
	return 0;
}
"""


NAMED = """
import sys, time

class HeldAccount:
    def __init__(self):
        self.orders = [1.5] * 3

class Holder:
    pass

def wait_for_a_password():
    print("ready", flush=True)
    time.sleep(600)

holder, table = Holder(), {}
for name in sys.argv[1].split(","):
    setattr(holder, name, HeldAccount())
    table[sys.intern(name + "_key")] = [HeldAccount()]
wait_for_a_password()
"""

TYPES = """
#include <cstdio>
#include <cstring>
#include <unistd.h>

struct Account {
	virtual ~Account() = default;
	char text[40];
};

template<typename One, typename Other> struct Order {
	virtual ~Order() = default;
	char text[40];
};

void *kept[60];

int main()
{
	for (int i = 0; i < 20; i++) {
		Account *account = new Account;
		Order<char, char> *order = new Order<char, char>;
		char *text = new char[40]();

		sprintf(account->text, "secret of Account %d", i);
		sprintf(order->text, "secret of Order %d", i);
		sprintf(text, "secret of text %d", i);
		kept[i] = account;
		kept[20 + i] = order;
		kept[40 + i] = text;
	}
	puts("ready");
	fflush(stdout);
	pause();
}
"""


def make_secrets(without=""):
    """Keys, tokens, numbers, wide and compressed text."""
    draw = random.Random(43)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
    letters = "".join(letter for letter in letters if letter not in without)
    words = ["".join(draw.choices(letters, k=24)) for _ in range(SHAPE)]
    return {
        "key": [draw.randbytes(32) for _ in range(SHAPE)],
        "token": ["".join(draw.choices(letters, k=40)).encode() for _ in range(SHAPE)],
        "number": [draw.randrange(1 << 48, 1 << 63).to_bytes(8, "little")
                   for _ in range(SHAPE)],
        "wide": [word.encode("utf-16-le") for word in words],
        "compressed": [zlib.compress(draw.randbytes(20) + b"secret" * 5)
                       for _ in range(SHAPE)],
    }


def digits_of_python(secret):
    """The digits of 30 bits of a number, without the last, of which bits are unknown."""
    number = int.from_bytes(secret, "big")
    return b"".join((number >> 30 * i & (1 << 30) - 1).to_bytes(4, "little")
                    for i in range(number.bit_length() // 30))


def aligned_words(data):
    return array.array("I", data[:len(data) // WORD * WORD])


def found(path, secrets):
    """The secrets of which any 8 bytes in a row are in the file, at any offset."""
    sought = {secret[i:i + WINDOW]: secret for secret in secrets
              for i in range(len(secret) - WINDOW + 1)}
    # Any 8 bytes in a row hold an aligned word, and few other words are one of these.
    known = set(aligned_words(b"".join(window[i:i + WORD] for window in sought
                                       for i in range(WORD))))
    with open(path, "rb") as file:
        data = file.read()
    words = aligned_words(data)
    places = {place for i, word in enumerate(words) if word in known
              for place in range(WORD * i - WORD + 1, WORD * i + 1)}
    return {sought[data[place:place + WINDOW]] for place in places
            if data[place:place + WINDOW] in sought}


class SlimTest(LiveTest):
    def slim(self, core, name="slim.core", *options):
        path = self.path(name)
        ask("slim", "-q", *options, core, "-o", path)
        return path

    def audit(self, core, *options):
        text = ask("slim", "--audit", "--format", "json", *options, core).stdout
        return json.loads(text)["tables"][0]["rows"]

    def write(self, secrets):
        path = self.path("secrets.txt")
        with open(path, "w", encoding="ascii") as file:
            file.writelines(secret.hex() + "\n" for shape in secrets.values()
                            for secret in shape)
        return path

    def start_with_secrets(self, secrets, *flags, **variables):
        program = self.compile("secrets", "secrets.c", flags=("-O1", "-pthread", *flags))
        path = self.write(secrets)
        tokens = [token.decode() for token in secrets["token"]]
        return self.start([program, path, *tokens[:50], "--password=" + tokens[50]],
                          TOKENS=" ".join(tokens[51:100]), TOKEN=tokens[101], **variables)

    def test_no_secret_is_left(self):
        secrets = make_secrets()
        everything = [secret for shape in secrets.values() for secret in shape]
        process = self.start_with_secrets(secrets)
        os.unlink(self.path("secrets.txt"))
        for core in snap(process, self.path("core")), gcore(process, self.folder):
            self.assertEqual(len(found(core, everything)), len(everything))
            slim = self.slim(core)
            self.assertEqual(found(slim, everything), set())
            self.check_same(core, slim)
        living = snap(process, self.path("living"), "--slim", "--fork")
        self.assertEqual(found(living, everything), set())
        self.assertEqual(ask(living, "count", "used").stdout, ask(core, "count", "used").stdout)
        self.assertIn("contents were left out", ask(living, "count", "used").stderr)

    def test_no_secret_is_left_by_the_address_sanitizer(self):
        if not glob.glob("/usr/lib/*/libasan.so.*") or platform.machine() != "x86_64":
            raise Skipped("there is no AddressSanitizer")
        secrets = make_secrets()
        everything = [secret for shape in secrets.values() for secret in shape]
        process = self.start_with_secrets(secrets, "-fsanitize=address", "-g",
                                          ASAN_OPTIONS="detect_leaks=0")
        os.unlink(self.path("secrets.txt"))
        core = snap(process, self.path("core"))
        self.assertEqual(len(found(core, everything)), len(everything))
        slim = self.slim(core)
        self.assertEqual(found(slim, everything), set())
        self.check_same(core, slim, "summarize leakroots", "fragmentation", "dangling")
        self.assertEqual(ask(slim, "gate", expected=[FOUND, 0]).stdout.replace(slim, core),
                         ask("--no-content", core, "gate", expected=[FOUND, 0]).stdout)

    def check_allocator(self, name, file):
        library = glob.glob(f"/usr/lib/*/{file}")
        if not library:
            raise Skipped(f"there is no {file}")
        secrets = make_secrets()
        everything = [secret for shape in secrets.values() for secret in shape]
        process = self.start_with_secrets(secrets, LD_PRELOAD=library[0])
        os.unlink(self.path("secrets.txt"))
        core = snap(process, self.path("core"))
        self.assertEqual(len(found(core, everything)), len(everything))
        slim = self.slim(core)
        self.assertEqual(found(slim, everything), set())
        self.check_same(core, slim)
        self.assertIn(name, ask(slim, "bill").stdout)

    def test_no_secret_is_left_by_jemalloc(self):
        self.check_allocator("jemalloc", "libjemalloc.so.2")

    def test_no_secret_is_left_by_tcmalloc(self):
        self.check_allocator("tcmalloc", "libtcmalloc_minimal.so.4")

    def test_no_secret_is_left_by_gslice(self):
        self.check_allocator("slices", "libglib-2.0.so.0")

    def test_the_same_of_gobjects(self):
        if not glob.glob("/usr/lib/*/libgobject-2.0.so.0"):
            raise Skipped("there is no GObject")
        program = self.compile("gobjects", "gobjects.c", flags=("-O1", "-ldl"))
        core = snap(self.start([program]), self.path("core"))
        slim = self.slim(core)
        self.check_same(core, slim, "summarize used", "summarize leaked", "tree", "dangling",
                        "objects", "explain used HeapOrder --limit 3")
        self.assertIn("HeapOrder", ask(slim, "summarize", "leaked").stdout)

    def check_script(self, interpreter, program, encodings, *more,
                     same=("count used", "count leaked", "bill", "backtrace"), **variables):
        """What a language has of secrets, as itself and as its numbers and texts are."""
        if not shutil.which(interpreter):
            raise Skipped(f"there is no {interpreter}")
        return self.check_command([interpreter, os.path.join(PROGRAMS, program)], encodings,
                                  *same, *more, **variables)

    def check_command(self, command, encodings, *questions, **variables):
        secrets = make_secrets()
        process = self.start([*command, self.write(secrets)], **variables)
        os.unlink(self.path("secrets.txt"))
        core = snap(process, self.path("core"))
        everything = [form for shape in secrets.values() for secret in shape
                      for encode in encodings for form in [encode(secret)]
                      if len(form) >= WINDOW]
        with open(core, "rb") as file:
            data = file.read()
        self.assertEqual([form for form in everything[::20] if form[:WINDOW] not in data], [])
        slim = self.slim(core)
        self.assertEqual(found(slim, everything), set())
        hashed = self.slim(core, "hashed.core", "--hash-names")
        self.assertEqual(found(hashed, everything), set())
        for question in "count used", "count leaked", "count free":
            self.assertEqual(ask(hashed, *question.split()).stdout,
                             ask(slim, *question.split()).stdout, question)
        for question in questions:
            self.assertEqual(ask(slim, *question.split()).stdout.replace(slim, core),
                             ask("--no-content", core, *question.split()).stdout, question)
        return core, slim

    COLLECTED = ("count used", "count leaked", "count garbage", "count free", "bill", "backtrace",
                 "enumerate used", "list leakroots", "objects --limit 40", "summarize free")

    def check_hashed(self, bare, hashed, command):
        """Word by word, the one is the same as the other, or always the same hash of it."""
        answers = [ask(path, *command.split()).stdout.replace(path, "") for path in (bare, hashed)]
        words = [re.findall(r"\w+|\W", answer) for answer in answers]
        self.assertEqual(len(words[0]), len(words[1]), command)
        hashes = {}
        for one, other in zip(*words):
            self.assertEqual(len(one), len(other), command)
            if one != other:
                self.assertEqual(hashes.setdefault(one.lower(), other.lower()), other.lower())
        return hashes

    def test_names_are_hashed(self):
        """Names that a program makes, and its own, and none of the interpreter's."""
        draw = random.Random(7)
        names = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyzABCDEFGH", k=24))
                 for _ in range(100)]
        path = self.path("named_script.py")
        with open(path, "w", encoding="ascii") as file:
            file.write(NAMED)
        process = self.start([sys.executable, path, ",".join(names)])
        core = snap(process, self.path("core"))
        bare, hashed = self.slim(core, "bare.core"), self.slim(core, "hashed.core", "--hash-names")
        planted = [name.encode() for name in names] + [b"HeldAccount", b"wait_for_a_password"]
        self.assertEqual(self.has(bare, *planted), [True] * len(planted))
        self.assertEqual(self.has(hashed, *planted), [False] * len(planted))
        self.assertEqual(found(hashed, planted[:len(names)]), set())
        for command in "count used", "count leaked", "bill", "list leakroots", "enumerate used":
            self.assertEqual(self.check_hashed(bare, hashed, command), {})
        hashes = self.check_hashed(bare, hashed, "backtrace")
        self.assertIn("wait_for_a_password", hashes)
        self.assertNotIn("sleep", hashes)
        self.assertIn("names that no binary has are hashes", ask(hashed, "count", "used").stderr)
        self.assertNotIn("are hashes", ask(bare, "count", "used").stderr)
        said = ask(hashed, "tree").stdout
        self.assertIn("__dict__", said)
        again = self.slim(bare, "again.core", "--hash-names")
        self.assertEqual(found(again, planted[:len(names)]), set())
        self.assertIn("names that no binary has are hashes", ask(again, "count", "used").stderr)
        # Each file has a key of its own.
        other = self.slim(core, "other.core", "--hash-names")
        self.assertNotEqual(ask(other, "backtrace").stdout, ask(hashed, "backtrace").stdout)

    def test_no_secret_is_left_of_crystal(self):
        if not shutil.which("crystal"):
            raise Skipped("there is no crystal")
        with open(os.path.join(PROGRAMS, "secrets.cr"), encoding="utf-8") as source:
            program = build_crystal(self.path("secrets"), source.read())
        core, slim = self.check_command(
            [program], [bytes, lambda secret: secret.hex().encode()], *self.COLLECTED)
        for path in core, slim:
            said = ask("--no-content", path, "summarize", "used", "--all").stdout
            self.assertRegex(said, r"Class Account has 1,[0-9]{3} instances")
            self.assertIn("%CrystalHashEntries", said)

    def test_no_secret_is_left_of_guile(self):
        self.check_script("guile", "secrets.scm",
                          [bytes, lambda secret: secret.hex().encode()],
                          same=self.COLLECTED, GUILE_AUTO_COMPILE="0")

    def test_the_same_of_debug_headers(self):
        """Who allocated an object of a collector's is before it."""
        core = self.path("core")
        with lzma.open(f"{ROOT}/testdata/cores/bookworm-boehm-i386.core.xz") as packed, \
                open(core, "wb") as file:
            shutil.copyfileobj(packed, file)
        self.check_same(core, self.slim(core), "count garbage", "summarize leakroots", "dangling")

    def test_no_secret_is_left_of_python(self):
        core, slim = self.check_script(
            sys.executable, "secrets.py",
            [bytes, lambda secret: secret.hex().encode(), digits_of_python],
            "objects --limit 10", "list leakroots")
        for path in core, slim:
            said = ask("--no-content", path, "summarize", "used", "--all").stdout
            self.assertIn("(__main__.Account) has 1,000 instances", said)

    def test_no_secret_is_left_of_perl(self):
        core, slim = self.check_script(
            "perl", "secrets.pl", [bytes, lambda secret: secret.hex().encode()],
            "count free", "count stackanchored", "list leakroots", "summarize free",
            "objects --limit 10", "enumerate used %PerlBody", "enumerate used %PerlHashEntry",
            "enumerate used %PerlStringText", "enumerate used %PerlStack")
        for path in core, slim:
            self.assertIn("Account", ask("--no-content", path, "objects").stdout)
            said = ask("--no-content", path, "backtrace").stdout
            self.assertRegex(said, r"main::wait_for .*secrets\.pl:")

    def test_no_secret_is_left_of_php(self):
        core, slim = self.check_script(
            "php", "secrets.php", [bytes, lambda secret: secret.hex().encode()],
            "count free", "count stackanchored", "list leakroots", "summarize used",
            "summarize free", "tree", "objects --limit 30")
        for path in core, slim:
            said = ask("--no-content", path, "backtrace").stdout
            self.assertRegex(said, r"wait_for .*secrets\.php:")
            self.assertIn("Account", ask("--no-content", path, "objects").stdout)

    def test_no_secret_is_left_of_lua(self):
        for version in "5.1", "5.2", "5.3", "5.4":
            if shutil.which("lua" + version):
                self.check_script("lua" + version, "secrets.lua", [bytes],
                                  "count anchored", "count garbage", "objects", "list leakroots",
                                  "enumerate used %LuaCode", "tree")

    def test_no_secret_is_left_of_luajit(self):
        self.check_script(
            "luajit", "secrets.lua", [bytes], "count anchored", "count garbage", "objects",
            "list leakroots", "enumerate used", "tree", "list arenas", "fragmentation")

    def test_no_secret_is_left_of_ruby(self):
        core, slim = self.check_script(
            "ruby", "secrets.rb",
            [bytes, lambda secret: secret[::-1], lambda secret: secret.hex().encode(),
             lambda secret: str(int.from_bytes(secret[:8], "little", signed=True)).encode()],
            "objects", "list leakroots", "backtrace --locals", "count anchored", "count garbage",
            "explain used Account --limit 3")
        for path in core, slim:
            said = ask("--no-content", path, "summarize", "used", "--all").stdout
            self.assertIn("(Account) has 1,000 instances", said)
            said = ask("--no-content", path, "backtrace").stdout
            self.assertRegex(said, r"ruby #1 in Object#hold at /.*/secrets.rb:\d+\n")

    def test_no_secret_is_left_of_node(self):
        """Few words of its stacks may count as references, as values that say more are left out."""
        core, slim = self.check_script(
            "node", "secrets.js", [bytes, lambda secret: secret.hex().encode()],
            "count free", "enumerate used", "objects --limit 60", "list leakroots",
            same=("count used", "count leaked", "backtrace"))
        for path in core, slim:
            said = ask("--no-content", path, "objects", "--limit", "100").stdout
            self.assertRegex(said, r"\bAccount\n")

    def check_same(self, core, slim, *more):
        """What rests on no contents is the same, to the byte."""
        for command in ("count used", "count leaked", "count free", "count anchored",
                        "count stackanchored", "list leakroots", "bill", "enumerate used",
                        "backtrace", "summarize free", *more):
            whole = ask("--no-content", core, *command.split())
            answer = ask(slim, *command.split())
            self.assertEqual(answer.stdout.replace(slim, core), whole.stdout, command)

    def test_the_same_of_other_machines(self):
        """Pointers with tags and signatures, heaps with memory tags, a static program."""
        for name in ("bookworm-small-aarch64_tags", "bookworm-tagged_pointers-aarch64_kernel",
                     "trixie-small-riscv64_kernel", "bookworm-small-static",
                     "glibc_2_19-small-i386", "bookworm-small-jemalloc_i386"):
            core = self.path(f"{name}.core")
            with lzma.open(f"{ROOT}/testdata/cores/{name}.core.xz") as packed, \
                    open(core, "wb") as file:
                shutil.copyfileobj(packed, file)
            slim = self.slim(core)
            for command in ("count used", "count leaked", "bill", "list leakroots", "backtrace"):
                answers = [run(HEAPCORE, "-q", "--no-content", path, *command.split())
                           for path in (core, slim)]
                self.assertEqual(answers[0].stdout, answers[1].stdout, (name, command))
                self.assertEqual(answers[0].returncode, answers[1].returncode, (name, command))

    def test_no_secret_is_left_of_words_of_4_bytes(self):
        needs_i386()
        # Four letters that end in one of these may be an address of its heap, 0x56... to 0x5a...: a
        # reference in the whole core, and text in a slim one.
        secrets = make_secrets(without="VWXYZ")
        everything = [secret for shape in secrets.values() for secret in shape]
        process = self.start_with_secrets(secrets, "-m32")
        os.unlink(self.path("secrets.txt"))
        core = gcore(process, self.folder)
        self.assertEqual(len(found(core, everything)), len(everything))
        slim = self.slim(core)
        self.assertEqual(found(slim, everything), set())
        self.check_same(core, slim)
        packed = self.slim(core, "packed.zst")
        self.check_same(core, packed)
        said = run("readelf", "-hln", slim) if shutil.which("readelf") else None
        self.assertEqual(said and (said.returncode, said.stderr), said and (0, ""))

    def fingerprints(self, core):
        said = ask(core, "gate", "--max-leaked", "0", expected=[FOUND]).stdout
        found = re.findall(r"^Leak \w+ .*", said, re.MULTILINE)
        self.assertTrue(found)
        return found

    def test_the_same_of_classes(self):
        """A program of C++ with leaks, threads, and lists of all kinds of free memory."""
        process = self.start([self.compile("leak", "tutorial_leak.cpp", compiler="c++",
                                           flags=("-pthread",))])
        core = snap(process, self.path("core"))
        slim = self.slim(core)
        self.check_same(core, slim, "summarize leakroots", "summarize used", "summarize leaked",
                        "tree", "fragmentation")
        self.assertEqual(self.fingerprints(slim), self.fingerprints(core))
        packed = self.slim(core, "packed.zst")
        self.check_same(core, packed)
        self.assertLess(os.path.getsize(packed), os.path.getsize(core) / 10)
        for path, says_how in (slim, True), (packed, False):
            said = ask("slim", core, "-o", path).stderr
            self.assertEqual("a name that ends in .zst packs it" in said, says_how, said)
        again = self.slim(slim, "again.core")
        with open(slim, "rb") as one, open(again, "rb") as other:
            self.assertEqual(one.read(), other.read())

    def test_the_same_of_containers(self):
        """Lengths, counts and colours of containers stay."""
        flags = ("-O2", "-g", "-pthread")
        process = self.start([self.compile("containers", "containers.cpp", compiler="c++",
                                           flags=flags)],
                             truth=self.path("truth"))
        core = snap(process, self.path("core"))
        slim = self.slim(core)
        for pattern in ("LongString", "MapOrSetNode", "ListNode", "DequeBlock", "DequeMap",
                        "StdioBuffer", "ExceptionPool"):
            self.assertEqual(ask(slim, "enumerate", "used", "%" + pattern).stdout,
                             ask(core, "enumerate", "used", "%" + pattern).stdout, pattern)

    def keep(self):
        """A core of kept_contents.c, the file's bytes, and addresses by word."""
        truth = self.path("truth")
        process = self.start([self.compile("kept", "kept_contents.c", "truth.c")], truth=truth)
        told = {}
        with open(truth, encoding="ascii") as lines:
            for word, *numbers in map(str.split, lines):
                if numbers:
                    told.setdefault(word, []).append(numbers[0] if word != "text" else f"{int(numbers[0]):x}")
        return snap(process, self.path("core")), told

    def has(self, path, *sought):
        with open(path, "rb") as file:
            data = file.read()
        return [text in data for text in sought]

    NUMBERS = [first.to_bytes(8, "little") for first in (0x1122334455667700, 0x1f2e3d4c5b6a7900)]
    TEXTS = [b"customer Smith from", b"may read: sword", b"swordfish"]

    def test_what_a_set_has_is_kept(self):
        core, told = self.keep()
        bare = self.slim(core, "bare.core")
        slim = self.slim(core, "slim.core", "--keep", "all-of", "leaked")
        self.assertEqual(self.has(core, *self.NUMBERS, *self.TEXTS), [True] * 5)
        self.assertEqual(self.has(bare, *self.NUMBERS, *self.TEXTS), [False] * 5)
        self.assertEqual(self.has(slim, *self.NUMBERS, *self.TEXTS), [True] + [False] * 4)
        self.check_same(core, slim)
        for address in told["lost"]:
            for command in f"show {address}", f"dump {address} 40":
                shown = ask(slim, *command.split()).stdout
                self.assertIn("11223344556677", shown)
                self.assertEqual(shown.replace(slim, core), ask(core, *command.split()).stdout)
                hidden = ask("--no-content", slim, *command.split()).stdout
                self.assertNotIn("11223344556677", hidden)
        for address in told["kept"] + told["text"]:
            for command in f"dump {address} 40", f"show {address}", f"string {address}":
                shown = ask(slim, *command.split()).stdout
                self.assertIn("(content left out)", shown)
                self.assertNotRegex(shown, "5b6a79|b5b5b5|xxxx|7878")
        self.assertIn("but for those that --keep named", ask(slim, "count", "used").stderr)
        self.assertNotIn("--keep", ask(bare, "count", "used").stderr)
        # What was left out cannot come back, and what a second one does not keep is gone.
        again = self.slim(slim, "again.core", "--keep", "all-of", "used")
        self.assertEqual(self.has(again, *self.NUMBERS), [True, False])
        self.assertIn("(content left out)", ask(again, "dump", told["kept"][0]).stdout)
        again = self.slim(slim, "bare2.core")
        self.assertEqual(self.has(again, *self.NUMBERS), [False, False])
        self.assertIn("(content left out)", ask(again, "dump", told["lost"][0]).stdout)

    def test_what_types_have_is_kept(self):
        """Of one class, of two of which one has a space in its name, and of a set beside these."""
        program = self.compile("types", text=TYPES, compiler="c++", flags=("-O1",))
        core = snap(self.start([program]), self.path("core"))
        sought = [f"secret of {name} 7".encode() for name in ("Account", "Order", "text")]
        self.assertEqual(self.has(core, *sought), [True] * 3)
        for name, keep, has in (
                ("bare.core", [], [False] * 3),
                ("one.core", ["--keep", "types", "Account"], [True, False, False]),
                ("two.core", ["--keep", "types", "Account", "--keep", "types",
                              "Order<char, char>"], [True, True, False]),
                ("mixed.core", ["--keep", "types", "%String", "--keep", "all-of",
                                "used Account"], [True, False, True])):
            slim = self.slim(core, name, *keep)
            self.assertEqual(self.has(slim, *sought), has, keep)
            self.check_same(core, slim)

    def test_texts_are_kept(self):
        core, told = self.keep()
        slim = self.slim(core, "slim.core", "--keep", "strings")
        self.assertEqual(self.has(slim, *self.NUMBERS, *self.TEXTS),
                         [False, False, True, False, False])
        self.check_same(core, slim)
        for address in told["text"]:
            self.assertIn('"customer Smith from Springfield"',
                          ask(slim, "string", address).stdout)
        for address in told["kept"] + told["lost"]:
            self.assertIn("(content left out)", ask(slim, "string", address).stdout)
        rows = [{row["origin"]: row for row in self.audit(core, *keep)}
                for keep in ([], ["--keep", "strings"])]
        used = [each["allocations in use"] for each in rows]
        self.assertEqual(used[0]["contents"], 0)
        self.assertGreaterEqual(used[1]["contents"], 32 * len(told["text"]))
        self.assertEqual(used[0]["left_out"] - used[1]["left_out"], used[1]["contents"])

    def test_texts_of_python_are_kept(self):
        """An instance of str in a block of its own, in each width, and not the int beside it."""
        texts = ["Smith of Springfield %d", "Mu\u00f1oz of C\u00e1diz %d",
                 "\u042f\u043d\u0430 of \u041e\u043c\u0441\u043a %d", "\U0001f600 of nowhere %d"]
        program = ("kept = [text % i for i in range(20) for text in %a]\n"
                   "numbers = [0x1f2e3d4c5b6a7988 + i for i in range(20)]\n"
                   "blobs = [b'swordfish %%d' %% i for i in range(20)]\n"
                   "print('ready', flush=True)\nimport time\ntime.sleep(600)\n")
        path = self.path("texts.py")
        with open(path, "w", encoding="ascii") as file:
            file.write(program.replace("%a", ascii(texts)).replace("%%", "%"))
        process = self.start([sys.executable, path])
        os.unlink(path)
        core = snap(process, self.path("core"))
        encoded = [(text % 7).encode(encoding) for text, encoding in
                   zip(texts, ("latin-1", "latin-1", "utf-16-le", "utf-32-le"))]
        number = digits_of_python((0x1f2e3d4c5b6a7988 + 7).to_bytes(8, "big"))
        sought = [*encoded, number, b"swordfish 7"]
        self.assertEqual(self.has(core, *sought), [True] * 6)
        self.assertEqual(self.has(self.slim(core, "bare.core"), *sought), [False] * 6)
        kept = self.slim(core, "slim.core", "--keep", "strings")
        self.assertEqual(self.has(kept, *sought), [True] * 4 + [False] * 2)
        for command in "count used", "count leaked", "bill":
            self.assertEqual(ask(kept, *command.split()).stdout.replace(kept, core),
                             ask("--no-content", core, *command.split()).stdout, command)

    def test_what_cannot_be_kept(self):
        core, slim = f"{ROOT}/testdata/cores/bookworm-small-static.core.xz", self.path("slim")
        for words, said in ((["secrets"], "takes 'strings', 'types TYPE' or 'all-of SET'"),
                            (["all-of"], "needs a set"), (["types"], "needs a type"),
                            (["types", "Lekaed"], "Lekaed"), (["all-of", "lekaed"], "leaked"),
                            (["all-of", "stacks"], "is no set of allocations")):
            self.assertIn(said, ask("slim", core, "-o", slim, "--keep", *words,
                                    expected=[USAGE]).stderr)

    def test_it_says_so(self):
        process = self.start([self.compile("leak", "tutorial_leak.cpp", compiler="c++",
                                           flags=("-pthread",))])
        core = snap(process, self.path("core"))
        slim = self.slim(core)
        said = "contents were left out of this core"
        self.assertIn(said, ask(slim, "count", "used").stderr)
        self.assertNotIn(said, ask(core, "count", "used").stderr)
        self.assertNotIn("such as \"", ask(slim, "summarize", "used").stdout)
        rows = {row["origin"]: row for row in self.audit(core)}
        self.assertGreater(rows["allocations in use"]["left_out"], 0)
        self.assertLess(rows["allocations in use"]["structure"],
                        rows["allocations in use"]["left_out"])
        total = rows.pop("total")
        for column in "addresses", "structure", "contents", "zeros", "left_out":
            self.assertEqual(sum(row[column] for row in rows.values()), total[column])

    def test_text_that_is_placeholders_is_left_out(self):
        """Letters, and words that look like those that are left out."""
        rows = {}
        for letter in 0x78, 0x79, 0xb5:
            program = self.compile(f"letters{letter}", text=LETTERS % letter, compiler="cc")
            core = snap(self.start([program]), self.path(f"{letter}.core"))
            rows[letter] = {row["origin"]: row for row in self.audit(core)}["allocations in use"]
        self.assertEqual(rows[0x78], rows[0x79])
        self.assertEqual(rows[0xb5], rows[0x79])

    def test_pages_of_placeholders_are_left_out(self):
        """They are no memory to gdb, and heapcore says the same as of the whole core."""
        program = self.compile("large_buffers", "large_buffers.c", flags=("-g", "-O1"))
        process = self.start([program])
        core = snap(process, self.path("core"))
        slim = self.slim(core)
        self.check_same(core, slim, "summarize used", "tree", "explain leaked",
                        "summarize leaked")
        packed = self.slim(core, "packed.zst")
        self.check_same(core, packed, "summarize used")
        self.check_same(core, self.slim(packed, "again.core"), "summarize used")
        self.assertLess(os.path.getsize(packed), os.path.getsize(core) / 1000)
        if not shutil.which("gdb"):
            raise Skipped("there is no gdb")
        show = ["-ex", "print holders->numbers[40000]", "-ex", "print holders->next == 0"]
        said = run("gdb", "-q", "-nx", "-batch", *show, program, slim)
        self.assertIn("Cannot access memory", said.stderr)
        self.assertIn("$1 = 0", said.stdout)

    def test_by_a_pipe(self):
        """Its memory does not grow with the core, which waits in a file."""
        process = self.start([self.compile("large_buffers", "large_buffers.c")])
        core = snap(process, self.path("core"))
        slim = self.path("piped.zst")
        with open(core, "rb") as file:
            said = run("bash", "-c", 'cat | "$0" slim -q - -o "$1"', HEAPCORE, slim, stdin=file)
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.check_same(core, slim)

    def test_what_is_missing_stays_missing(self):
        process = self.start([self.compile("leak", "tutorial_leak.cpp", compiler="c++",
                                           flags=("-pthread",))])
        core, cut = snap(process, self.path("core")), self.path("cut")
        with open(core, "rb") as whole, open(cut, "wb") as half:
            half.write(whole.read(os.path.getsize(core) * 2 // 3))
        slim = self.slim(cut)
        for path in cut, slim:
            self.assertIn("The core is truncated", ask("-t", path, expected=[INCOMPLETE]).stdout)
        # Two segments with the same bytes are a way to blow up what is written.
        with open(core, "r+b") as file:
            head = file.read(64)
            first, count = (int.from_bytes(head[i:j], "little") for i, j in ((32, 40), (56, 58)))
            file.seek(first)
            segments = [file.read(56) for _ in range(count)]
            largest = max(segments, key=lambda segment: int.from_bytes(segment[32:40], "little"))
            file.seek(first + 56)
            for segment in segments[1:]:
                file.write(segment[:8] + largest[8:16] + segment[16:32] + largest[32:40] +
                           largest[40:48] + segment[48:])
        said = ask("slim", core, "-o", slim, expected=[INCOMPLETE]).stderr
        self.assertIn("has segments that share bytes", said)

    def test_others_read_it(self):
        process = self.start([self.compile("leak", "tutorial_leak.cpp", compiler="c++",
                                           flags=("-pthread",))])
        slim = self.slim(snap(process, self.path("core")))
        for tool in "gdb", "readelf":
            if not shutil.which(tool):
                raise Skipped(f"there is no {tool}")
        said = run("readelf", "-hln", slim)
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.assertIn("HEAPCORE", said.stdout)
        said = run("gdb", "-q", "-nx", "-batch", "-ex", "bt", self.path("leak"), slim)
        self.assertIn("main", said.stdout)

    def test_an_interpreter_that_never_starts(self):
        """As in unbound, which links Python for modules that few use."""
        libraries = [library for name in ("libruby-3*.so.3.*", "libpython3*.so.1.0")
                     for library in glob.glob(f"/usr/lib/*/{name}")]
        if not libraries:
            raise Skipped("there is no library of an interpreter")
        process = self.start([self.compile("leak", "tutorial_leak.cpp", compiler="c++",
                                           flags=("-pthread",))],
                             LD_PRELOAD=" ".join(libraries))
        core = snap(process, self.path("core"))
        slim = self.slim(core)
        for question in "count used", "list leaked":
            self.assertEqual(ask("--no-content", core, question).stdout,
                             ask(slim, question).stdout)

    def test_what_it_cannot_take(self):
        """Heaps and languages whose own words it does not know."""
        core = f"{ROOT}/testdata/cores/bookworm-small-musl_i386.core.xz"
        said = ask("slim", core, "-o", self.path("slim.core"), expected=[INCOMPLETE]).stderr
        self.assertIn("a slim core cannot have a heap of musl yet", said)
        self.assertFalse(os.path.exists(self.path("slim.core")))
        ask("slim", core, expected=[USAGE])
        ask("slim", "-o", self.path("slim.core"), self.path("none"), expected=[USAGE])


if __name__ == "__main__":
    unittest.main()
