#!/usr/bin/env python3
"""
The programs of valgrind's own test suite: the blocks that `heapcore run` finds
lost, against those that valgrind finds definitely and indirectly lost. Where
their numbers differ, a reason is known here, and it is checked.

scripts/valgrind-suite fetches and builds them, and runs this.
"""

import argparse
import concurrent.futures
import dataclasses
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

import gate_programs_test as gate
import harness

FOLDERS = (".", "linux", "amd64", "amd64-linux")
POSSIBLE = re.compile(r"possibly lost: [\d,]+ bytes in ([\d,]+) ")
REQUESTS = "VALGRIND_(MALLOCLIKE_BLOCK|CREATE_MEMPOOL|CLO_CHANGE)"


@dataclasses.dataclass
class Outcome:
    """What was found out about a program."""

    command: list
    lost: int = 0       # by valgrind
    possible: int = 0   # by valgrind
    found: int = 0      # by heapcore
    messages: str = ""  # of heapcore: why the analysis is not complete
    problem: str = ""   # it could not be compared

    def agrees(self):
        return not self.problem and self.lost == self.found


def crashes(outcome):
    return gate.run(outcome.command).returncode < 0


def says(outcome, text):
    return text in gate.run(outcome.command).stderr


def has_in_source(outcome, pattern):
    for path in glob.glob(outcome.command[0] + ".c*"):
        with open(path, encoding="utf-8", errors="replace") as file:
            if re.search(pattern, file.read()):
                return True
    return False


# Reasons, each with the check that it is one, and the programs.
REASONS = (
    ("without valgrind, which replaces malloc() or goes on, it crashes",
     crashes,
     {"big_blocks_freed_list", "dw4", "malloc_usable", "suppfree", "xml1"}),
    ("it says by client requests what is a block, or what to suppress",
     lambda outcome: has_in_source(outcome, REQUESTS),
     {"custom-overlap", "leak-autofreepool", "leak-pool", "mempool",
      "nanoleak_supp", "origin1-yes"}),
    ("it overwrites what malloc() keeps beside its blocks: exit status 3",
     lambda outcome: "the heap is damaged" in outcome.messages,
     {"badaddrvalue", "fprw", "malloc1"}),
    ("it has a malloc() of its own, and exit status is 3",
     lambda outcome: "another malloc is loaded" in outcome.messages,
     {"static_malloc"}),
    ("it does nothing unless valgrind runs it",
     lambda outcome: says(outcome, "only works when run under Valgrind"),
     {"sh-mem"}),
    ("it becomes another program, of which valgrind says nothing",
     lambda outcome: outcome.problem and has_in_source(outcome, r"exec\w*\("),
     {"execve1", "sys-execveat", "thread_alloca"}),
    ("it does nothing where the processor has no AVX, which valgrind has",
     lambda outcome: says(outcome, "must be run on a CPU that supports AVX"),
     {"xsave-avx"}),
    ("a pointer just before its start likely holds it",
     lambda outcome: f"Gate failed: {outcome.lost} alloc" in harness.run(
         harness.HEAPCORE, "run", "--likely", "--stacks=never", "--", *outcome.command).stderr,
     {"leak-delta"}),
    ("its only pointer stands in memory without rights, which heapcore reads",
     lambda outcome: has_in_source(outcome, "PROT_NONE"),
     {"leak-segv-jmp"}),
    ("some are possibly lost: words lead into them under valgrind only",
     lambda outcome: outcome.lost + outcome.possible == outcome.found,
     {"origin6-fp"}),
)


def find_reason(outcome):
    """Why the numbers differ, or None: no reason is known, or it is wrong."""
    name = os.path.basename(outcome.command[0])
    for text, holds, programs in REASONS:
        if name in programs and holds(outcome):
            return text
    return None


def find_programs(directory):
    for path in sorted(glob.glob(os.path.join(directory, "*"))):
        if not os.path.isfile(path) or path.endswith((".so", ".o")):
            continue
        with open(path, "rb") as file:
            if file.read(4) == b"\x7fELF" and os.access(path, os.X_OK):
                yield "./" + os.path.basename(path)


def find_arguments(directory):
    """What the suite runs each program with, the first time that it does."""
    found = {}
    for path in sorted(glob.glob(os.path.join(directory, "*.vgtest"))):
        with open(path, encoding="utf-8") as file:
            fields = dict(re.findall(r"^(\w+):[ \t]*(.*)$", file.read(), re.M))
        program, *words = fields.get("prog", "-").split()
        found.setdefault("./" + program,
                         words + shlex.split(fields.get("args", "")))
    return found


def ask_valgrind(outcome):
    with tempfile.TemporaryDirectory() as logs:
        gate.run_valgrind(outcome.command, logs)
        for path in glob.glob(f"{logs}/*"):
            outcome.lost += gate.read_lost(path)[0]
            with open(path, encoding="utf-8", errors="replace") as file:
                last = POSSIBLE.findall(file.read())[-1:]
            outcome.possible += sum(map(harness.number, last))
        if not os.listdir(logs):
            raise ValueError("valgrind says nothing")


def ask_heapcore(outcome):
    documents, result = gate.report_of(outcome.command)
    for document in documents:
        tables = {table["name"]: table["rows"] for table in document["tables"]}
        outcome.found += tables["gate"][0]["leaks"]
        outcome.messages += "".join(finding["message"] for finding
                                    in document["findings"])
    if not documents:
        raise ValueError(f"no report: {result.stderr}")


def look_into(command):
    outcome = Outcome(command)
    try:
        ask_valgrind(outcome)
        ask_heapcore(outcome)
    except (ValueError, subprocess.TimeoutExpired) as error:
        outcome.problem = str(error).partition(":")[0]
    return outcome


def describe(outcome, reason):
    name = " ".join(outcome.command).removeprefix("./")
    if outcome.agrees():
        return f"same      {name}: {outcome.lost}"
    text = (f"valgrind {outcome.lost} and {outcome.possible} possibly, "
            f"heapcore {outcome.found}")
    if outcome.problem:
        text = f"not compared: {outcome.problem}"
    if reason:
        return f"explained {name}: {text}: {reason}"
    return f"DIFFERS   {name}: {text}"


def run_folder(names):
    """Of the programs in the working directory: same, explained, others."""
    arguments = find_arguments(".")
    counts = [0, 0, 0]
    commands = [[name, *arguments.get(name, [])]
                for name in find_programs(".")
                if not names or name.removeprefix("./") in names]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for outcome in pool.map(look_into, commands):
            reason = None if outcome.agrees() else find_reason(outcome)
            counts[0 if outcome.agrees() else 1 if reason else 2] += 1
            print(describe(outcome, reason), flush=True)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", help="memcheck/tests, built")
    parser.add_argument("programs", nargs="*", help="only these")
    arguments = parser.parse_args()
    totals = [0, 0, 0]
    top = os.path.abspath(arguments.directory)
    for folder in FOLDERS:
        os.chdir(os.path.join(top, folder))
        counts = run_folder(arguments.programs)
        totals = [sum(pair) for pair in zip(totals, counts)]
    print(f"{sum(totals)} programs: in {totals[0]} the number of lost blocks "
          f"is valgrind's, in {totals[1]} it is not, and explained, in "
          f"{totals[2]} it is neither")
    return 1 if totals[2] else 0


if __name__ == "__main__":
    sys.exit(main())
