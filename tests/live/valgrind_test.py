#!/usr/bin/env python3
"""
A second opinion on the test programs: valgrind must find as many blocks and
bytes lost, definitely and indirectly, as the program says. What is kept by a
pointer into its middle only, valgrind calls possibly lost.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import harness
import truth

PROGRAMS = ("plain", "rings", "realloc", "fastbins")
LOST = re.compile(r"(definitely|indirectly) lost: ([\d,]+) bytes in ([\d,]+) ")


def build(program, directory):
    return harness.build(os.path.join(directory, program), "gcc", *shlex.split(harness.FLAGS),
                         os.path.join(harness.PROGRAMS, program + ".c"),
                         os.path.join(harness.PROGRAMS, "truth.c"))


def run_valgrind(path, truth_path):
    """Returns how many bytes, in how many blocks, valgrind finds lost."""
    environment = harness.environment(HEAPCORE_TRUTH=truth_path,
                                      HEAPCORE_TRUTH_EXIT="1")
    run = subprocess.run(
        harness.still(harness.valgrind("--show-leak-kinds=none", path)),
        env=environment, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=True)
    size = count = 0
    for match in LOST.finditer(run.stderr):
        size += int(match[2].replace(",", ""))
        count += int(match[3].replace(",", ""))
    return size, count


def ask(path, truth_path):
    """Returns what valgrind finds, and what the program wrote down."""
    found = run_valgrind(path, truth_path)
    lost = truth.Truth(truth_path).lost
    return found, (sum(lost.values()), len(lost))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    if not shutil.which("valgrind"):
        print("SKIPPED: there is no valgrind")
        return harness.EXIT_SKIPPED
    failures = 0
    programs = parser.parse_args().programs
    with tempfile.TemporaryDirectory(prefix="heapcore-valgrind-") as directory:
        truth_path = os.path.join(directory, "truth")
        for program in programs:
            path = build(program, directory)
            found, expected = ask(path, truth_path)
            if found != expected:
                failures += 1
                print(f"FAILED {program}: bytes and blocks lost are {expected}"
                      f" in truth; valgrind finds {found}")
    print(f"{len(programs) - failures} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
