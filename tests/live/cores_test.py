#!/usr/bin/env python3
"""Checks heapcore by the cores that are kept in testdata/cores."""

import argparse
import collections
import glob
import lzma
import os
import shutil
import sys
import tempfile

import boehm_test
import harness
import preloaded
import truth

CORES = os.path.join(harness.ROOT, "testdata", "cores")
SUFFIX = ".core.xz"
# What heapcore says of one.
SAID = {"bookworm-small-aarch64_kernel": "pointers may be signed here"}


def unpack(packed, path):
    with lzma.open(packed) as source, open(path, "wb") as target:
        shutil.copyfileobj(source, target)


# What an allocator other than glibc's is known to lose itself.
OWN_LEAKS = {"bookworm-small-tcmalloc_i386": [8]}


def check_blocks(core, name, known):
    """Of other allocators than glibc's. A block of no bytes still has an address."""
    used, leaked = preloaded.sizes(core, "used"), preloaded.sizes(core, "leaked")
    expected = {start: size or 1 for start, size in {**known.kept, **known.lost}.items()}
    problems = [f"{start:x} of size {size}: found {used.get(start)}"
                for start, size in expected.items() if used.get(start) != size]
    problems += [f"{start:x} is free, and found used" for start in known.freed if start in used]
    problems += [f"{start:x} is not found leaked" for start in known.lost if start not in leaked]
    others = [size for start, size in leaked.items() if start not in known.lost]
    if others != OWN_LEAKS.get(name, []):
        problems.append(f"others of sizes {others} are found leaked")
    return problems


def check(heapcore, core, name, truth_path):
    if "-boehm" in name:
        return boehm_test.check(heapcore, core, truth_path, collections.Counter(),
                                has_program=False)
    if name.endswith("_i386"):
        return check_blocks(core, name, truth.Truth(truth_path))
    return truth.check(heapcore, core, truth_path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heapcore", metavar="PATH",
                        default=harness.HEAPCORE)
    parser.add_argument("names", nargs="*", help="the default is all")
    options = parser.parse_args()
    if not os.path.exists(options.heapcore):
        sys.exit(f"there is no {options.heapcore}")
    names = options.names or sorted(
        os.path.basename(path)[:-len(SUFFIX)]
        for path in glob.glob(os.path.join(CORES, "*" + SUFFIX)))
    failures = 0
    for name in names:
        with tempfile.TemporaryDirectory(prefix="heapcore-") as directory:
            core = os.path.join(directory, "core")
            truth_path = os.path.join(directory, "truth")
            unpack(os.path.join(CORES, name + SUFFIX), core)
            unpack(os.path.join(CORES, name + ".truth.xz"), truth_path)
            problems = check(options.heapcore, core, name, truth_path)
            said = harness.ask(core, "count", "leaked", expected=(0, 3)).stderr
        if SAID.get(name, "") not in said:
            problems.append(f"it does not say that {SAID[name]}")
        if problems:
            failures += 1
            print(f"FAILED {name}:")
            print("\n".join("  " + line for problem in problems
                            for line in problem.splitlines()))
    print(f"{len(names) - failures} passed, {failures} failed")
    return 1 if failures or not names else 0


if __name__ == "__main__":
    sys.exit(main())
