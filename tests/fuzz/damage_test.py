#!/usr/bin/env python3
"""
Cuts small cores off at random bytes, flips single bits of them, and has
heapcore look into what is left: it may say what it likes, but must end by
itself, soon.

What is damaged is the same each time: it depends on the seed alone.
"""

import argparse
import glob
import os
import random
import subprocess
import sys
import tempfile
import time

BUILD_DIR = os.environ.get("BUILD_DIR", "build")
HEAPCORE = os.environ.get("HEAPCORE", os.path.join(BUILD_DIR, "heapcore"))
QUESTIONS = ["summarize used", "summarize leakroots", "list free --limit 5",
             "explain leaked --limit 5", "describe threads",
             "describe used --limit 5"]
# Found something, not analysed: both are answers, too.
ANSWERS = {0, 1, 3}
SECONDS = 20


def ask(path, root):
    """What is wrong with how heapcore ended, or None."""
    command = [HEAPCORE, "--quiet", "--sysroot", root]
    for question in QUESTIONS:
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", metavar="FOLDER",
                        help="where damaged cores go that show a mistake")
    options = parser.parse_args()
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
            problem = ask(path, root)
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
