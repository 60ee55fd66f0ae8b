#!/usr/bin/env python3
"""
Cuts small cores off at random bytes, flips single bits of them, changes words
of any core that lead somewhere, and has heapcore look into what is left: it
may say what it likes, but must end by itself, soon.

What is damaged is the same each time: it depends on the seed alone.
"""

import argparse
import bisect
import glob
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import core_file

BUILD_DIR = os.environ.get("BUILD_DIR", "build")
HEAPCORE = os.environ.get("HEAPCORE", os.path.join(BUILD_DIR, "heapcore"))
QUESTIONS = ["summarize used", "summarize leakroots", "list free --limit 5",
             "explain leaked --limit 5", "describe threads",
             "describe used --limit 5"]
# Of cores whose words change: some each time, as interpreters take long.
MORE_QUESTIONS = ["info", "objects", "objects --retained --limit 5", "tree",
                  "objects garbage", "bill", "waste", "fragmentation",
                  "explain used --limit 5", "describe leaked --limit 5",
                  "backtrace --locals", "report",
                  "show used --limit 20", "list garbage --limit 5",
                  "sql select path(address) from allocation limit 5",
                  "sql select kind, count(*) from allocation group by 1",
                  "sql select name, retained from variable limit 9"]
# Found something, not analysed: both are answers, too.
ANSWERS = {0, 1, 3}
SECONDS = 20
WORD = struct.Struct("<Q")
EXTREMES = [0, 1, 2, 7, 8, 0xFF, 0xFFFF, 1 << 31, (1 << 31) - 1, 1 << 32,
            (1 << 47) - 8, 1 << 47, 1 << 48, (1 << 63) - 1, 1 << 63,
            (1 << 64) - 8, (1 << 64) - 1]


def ask(path, questions, *options):
    """What is wrong with how heapcore ended, or None."""
    command = [HEAPCORE, "--quiet", *options]
    for question in questions:
        command += ["-c", question]
    try:
        status = subprocess.run(
            command + [path], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"takes more than {SECONDS} s"
    if status.returncode not in ANSWERS or b"Sanitizer" in status.stderr:
        return (f"ends with {status.returncode}: "
                + status.stderr.decode(errors="replace")[-2000:])
    return None


def cut(core, chance):
    size = chance.randrange(len(core))
    return f"cut at {size}", core[:size]


def flip(core, chance):
    """Half of the places are not zero: zeros tell little."""
    place = chance.randrange(len(core))
    if chance.random() < 0.5:
        while not core[place]:
            place = chance.randrange(len(core))
    bit = chance.randrange(8)
    damaged = bytearray(core)
    damaged[place] ^= 1 << bit
    return f"bit {bit} of byte {place} flipped", damaged


class Words:
    """Words of a core, changed in a copy of it and put back."""

    def __init__(self, path, folder):
        self.name = os.path.basename(path)
        self.path = os.path.join(folder, self.name)
        shutil.copy(path, self.path)
        with open(self.path, "rb") as file:
            core = file.read()
        opened = core_file.Core(path)
        opened.close()
        self.loads = [(start, offset, held)
                      for _, flags, offset, start, _, held, _, _ in opened.segments
                      if flags & 2 and held]
        self.loads.sort()
        starts = [load[0] for load in self.loads]
        self.pointers, self.numbers = [], []
        for address, offset, size in self.loads:
            for place, (word,) in zip(
                    range(offset, offset + size, 8),
                    WORD.iter_unpack(core[offset:offset + size // 8 * 8])):
                if not word:
                    continue
                i = bisect.bisect_right(starts, word) - 1
                inside = i >= 0 and word < starts[i] + self.loads[i][2]
                (self.pointers if inside else self.numbers).append(place)
        self.core = core

    def address_of(self, place):
        for address, offset, size in self.loads:
            if offset <= place < offset + size:
                return address + place - offset
        return 0

    def changed(self, place, chance):
        word, = WORD.unpack_from(self.core, place)
        other, = WORD.unpack_from(self.core, chance.choice(self.pointers))
        return chance.choice([
            other, other + chance.choice([-16, -8, -1, 1, 8, 16]),
            self.address_of(place) - 8 * chance.randrange(8),
            chance.choice(EXTREMES), word + chance.choice([-8, -1, 1, 8, 4096]),
            word ^ 1 << chance.randrange(64), word << 32 | word >> 32,
        ]) % (1 << 64)

    def damage(self, chance):
        edits = []
        for _ in range(1 << chance.randrange(6)):
            place = chance.choice(
                self.pointers if chance.random() < 0.6 else self.numbers)
            edits.append((place, self.changed(place, chance)))
        self.write(edits)
        return edits

    def undo(self, edits):
        self.write((place, *WORD.unpack_from(self.core, place))
                   for place, _ in edits)

    def write(self, edits):
        with open(self.path, "r+b") as file:
            for place, word in edits:
                file.seek(place)
                file.write(WORD.pack(word))


def change_words(options):
    """Whether each was survived. Another seed may run at the same time."""
    chance = random.Random(options.seed)
    failures, slowest = 0, (0.0, "")
    with tempfile.TemporaryDirectory(prefix="heapcore-") as folder:
        cores = [Words(path, folder) for path in options.cores]
        for number in range(options.words):
            core = cores[number % len(cores)]
            edits = core.damage(chance)
            questions = chance.sample(QUESTIONS + MORE_QUESTIONS, 4)
            start = time.monotonic()
            problem = ask(core.path, questions)
            slowest = max(slowest, (time.monotonic() - start,
                                    f"{core.name}, {questions}"))
            if problem:
                failures += 1
                print(f"FAILED {core.name}, {questions}, {edits}: {problem}",
                      flush=True)
                if options.keep:
                    os.makedirs(options.keep, exist_ok=True)
                    shutil.copy(core.path, os.path.join(
                        options.keep, f"words-{options.seed}-{number}.core"))
            core.undo(edits)
    print(f"{options.words} changes of words, {failures} failed; "
          f"the slowest took {slowest[0]:.2f} s: {slowest[1]}")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", metavar="FOLDER",
                        help="where damaged cores go that show a mistake")
    parser.add_argument("--words", type=int, default=0,
                        help="so many changes of words of CORE instead")
    parser.add_argument("cores", nargs="*", metavar="CORE")
    options = parser.parse_args()
    if options.words:
        return change_words(options)
    paths = sorted(path for path in
                   glob.glob(os.path.join(BUILD_DIR, "fuzz/files/*.core"))
                   if os.path.getsize(path) < 2 << 20)
    if not paths:
        sys.exit(f"there are no cores in {BUILD_DIR}/fuzz/files")
    cores = []
    for path in paths:
        with open(path, "rb") as file:
            cores.append((os.path.basename(path), file.read()))
    chance = random.Random(options.seed)
    failures, slowest = 0, 0.0
    with tempfile.TemporaryDirectory(prefix="heapcore-") as folder:
        root = os.path.join(folder, "root")
        os.mkdir(root)
        for number in range(options.cuts + options.flips):
            name, core = cores[number % len(cores)]
            damage = cut if number < options.cuts else flip
            what, damaged = damage(core, chance)
            path = os.path.join(folder, "core")
            with open(path, "wb") as file:
                file.write(damaged)
            start = time.monotonic()
            problem = ask(path, QUESTIONS, "--sysroot", root)
            slowest = max(slowest, time.monotonic() - start)
            if not problem:
                continue
            failures += 1
            print(f"FAILED {name}, {what}: {problem}")
            if options.keep:
                os.makedirs(options.keep, exist_ok=True)
                os.replace(path, os.path.join(options.keep,
                                              f"damaged-{number}.core"))
    print(f"{options.cuts} cuts and {options.flips} flips, {failures} failed; "
          f"the slowest took {slowest:.2f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
