#!/usr/bin/env python3
"""
Runs testdata/programs/boehm.c, which writes down what became of its objects in
the collector's heap, takes cores of it, by gcore and by the kernel, and checks
that heapcore finds the same. See live_test.py for what that needs.
"""

import argparse
import bisect
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import harness
import live_test
import truth

WHEN = ("early", "collected", "reused")
LINKED = {
    "": ("", "-lgc"),
    "-stripped": ("-s", "-lgc"),
    "-static": ("-static", "-lgc"),
    "-static-stripped": ("-static -s", "-lgc"),
    "-static-sbrk": ("-static -DWITH_SBRK -Wl,--wrap=GC_unix_get_mem", "-lgc"),
}
# Of each, one core is enough, besides those of the usual one: what is done with a core is the same.
USUAL = ("", "-static-stripped", "-static-sbrk")
# What describe says of each kind that the program knows.
KINDS = {
    "normal": re.compile(r"an object$"),
    "atomic": re.compile(r"a pointer-free object$"),
    "uncollectable": re.compile(r"an uncollectable object$"),
    "atomic-uncollectable": re.compile(r"a pointer-free uncollectable object$"),
    "own": re.compile(r"an object of kind \d+$"),
}
# The collector makes objects for itself, also where others were before.
ITS_OWN = re.compile(r"\bthe collector('s)?\b")
LISTED = re.compile(r"^.* allocation at 0x([0-9a-f]+) of size [\d,]+ \(0x([0-9a-f]+)\)")
# A block that a mere number seems to point to is given up until the next
# collection: it looks like a pointer-free object that fills it.
GIVEN_UP = (4096, "a pointer-free object")
SHOWN = 10


class Truth:
    """What the program says; see its head comment."""

    def __init__(self, path):
        self.live, self.freed, self.collected = {}, {}, {}
        self.debug, self.malloc = {}, {}
        with open(path, encoding="ascii") as file:
            for line in file:
                self._read(line.split())

    def _read(self, words):
        if words[0] in ("live", "freed", "collected"):
            getattr(self, words[0])[int(words[1], 16)] = (
                int(words[2]), words[3])
        elif words[0] == "debug":
            self.debug[int(words[1], 16)] = words[2]
        elif words[0] == "malloc":
            self.malloc[int(words[1], 16)] = int(words[2])


class Core:
    """What heapcore says of a core."""

    def __init__(self, heapcore, path):
        self.heapcore, self.path = heapcore, path
        self.used = {}
        for line in self.run("list used\n").splitlines():
            match = LISTED.match(line)
            if match:
                self.used[int(match[1], 16)] = int(match[2], 16)
        self.starts = sorted(self.used)

    def run(self, commands):
        run = subprocess.run([self.heapcore, self.path], input=commands,
                             capture_output=True, text=True, check=False,
                             timeout=truth.TIMEOUT)
        if run.returncode != 0:
            raise truth.Unusable(
                f"exit status {run.returncode}\n{truth.indent(run.stderr)}")
        return run.stdout

    def find(self, address):
        rank = bisect.bisect_right(self.starts, address) - 1
        start = self.starts[rank] if rank >= 0 else None
        if start is None or address - start >= self.used[start]:
            return None
        return start

    def describe(self, addresses):
        text = self.run("".join(f"describe {address:x}\n"
                                for address in addresses))
        parts = re.split(r"(?m)^(?=Address )", text)[1:]
        if len(parts) != len(addresses):
            raise truth.Unusable(f"{len(addresses)} addresses, "
                                 f"{len(parts)} descriptions")
        return dict(zip(addresses, parts))

    def tell(self, addresses):
        """What each is, as the words behind 'which is'."""
        parts = self.describe(addresses)
        found = {address: re.search(r"which is (.*)", part)
                 for address, part in parts.items()}
        return {address: match[1] if match else ""
                for address, match in found.items()}


def shorten(wrong):
    return "".join(f"\n    {line}" for line in wrong[:SHOWN]) + (
        "\n    ..." if len(wrong) > SHOWN else "")


def check_live(core, known):
    """All that is used is found, with its size."""
    everything = {address: size for address, (size, _) in known.live.items()}
    everything.update(known.malloc)
    wrong = [f"{address:x} of size {size}: found "
             f"{core.used.get(address, 'nothing')}"
             for address, size in everything.items()
             if core.used.get(address) != size]
    return [f"{len(wrong)} of {len(everything)} live objects are not found "
            f"so:{shorten(wrong)}"] if wrong else []


def check_kinds(core, known):
    told = core.tell(list(known.live))
    made = core.describe(list(known.debug))
    wrong = [f"{address:x}, {kind}: said to be '{told[address]}'"
             for address, (_, kind) in known.live.items()
             if not KINDS[kind].match(told[address])]
    wrong += [f"{address:x}: made in line {line}: '{made[address]}'"
              for address, line in known.debug.items()
              if not re.search(rf"made at .*/boehm.c:{line}\b",
                               made[address])]
    return [f"{len(wrong)} live objects are reported wrongly:{shorten(wrong)}"
            ] if wrong else []


def check_gone(core, known, totals):
    """What is freed or collected is not used, but by the collector."""
    gone = {**known.freed, **known.collected}
    seen = {address: core.find(address) for address in gone}
    holders = sorted({start for start in seen.values() if start is not None})
    told = core.tell(holders)
    wrong = [f"{address:x} of size {gone[address][0]}, {gone[address][1]}: in "
             f"{start:x} of size {core.used[start]}, '{told[start]}'"
             for address, start in seen.items()
             if start is not None and not ITS_OWN.search(told[start])
             and (core.used[start], told[start]) != GIVEN_UP]
    totals["gone"] += len(gone)
    return [f"{len(wrong)} of {len(gone)} that are gone are found in use:"
            f"{shorten(wrong)}"] if wrong else []


def check_arena(core):
    lines = [line.split() for line in core.run("list arenas\n").splitlines()]
    arenas = [words for words in lines if words[-2:] == ["boehm", "collected"]]
    if len(arenas) != 1:
        return [f"{len(arenas)} arenas of a collector"]
    return []


def check(heapcore, path, truth_path, totals, has_program=True):
    known = Truth(truth_path)
    if not has_program:
        known.debug.clear()  # its file has the text of where they were made
    try:
        core = Core(heapcore, path)
        return (check_gone(core, known, totals) + check_live(core, known) +
                check_kinds(core, known) + check_arena(core))
    except truth.Unusable as error:
        return [str(error)]


def build(options, directory, suffix):
    before, behind = LINKED[suffix]
    flags = (options.static_flags if "static" in suffix
             else options.dynamic_flags)
    command = [*shlex.split(options.compiler), *shlex.split(harness.FLAGS),
               *shlex.split(before), *shlex.split(flags),
               os.path.join(harness.PROGRAMS, "boehm.c"),
               *shlex.split(behind)]
    try:
        return harness.build(os.path.join(directory, "boehm" + suffix), *command)
    except RuntimeError as error:
        raise harness.Skipped(str(error).partition("\n")[2].strip()) from error


def run_case(options, suffix, when, directory, totals):
    """Yields (name, problems) of each core."""
    case = live_test.Case("boehm", suffix, [when], None)
    process = live_test.start(options, case, directory)
    try:
        for kind in options.core_kinds:
            if kind == "gcore" and suffix:
                continue
            name = f"{case}, {kind}"
            try:
                path = live_test.TAKERS[kind](process, directory)
            except harness.Skipped as error:
                totals["skipped"] += 1
                print(f"SKIPPED {name}: {error}")
                continue
            yield name, check(options.heapcore, path,
                              os.path.join(directory, "truth"), totals)
            os.unlink(path)
    finally:
        harness.end(process)


def run_cases(options, suffix, totals):
    build(options, options.programs, suffix)
    few = harness.SANITIZED or (suffix and not harness.ALL_VARIANTS)
    for when in WHEN[-1:] if few else WHEN:
        directory = tempfile.mkdtemp(prefix="heapcore-boehm-")
        try:
            yield from run_case(options, suffix, when, directory, totals)
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heapcore", metavar="PATH",
                        default=harness.HEAPCORE)
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--dynamic-flags", default="",
                        help="more flags, for programs not static")
    parser.add_argument("--static-flags", default="",
                        help="more flags, for those that are")
    parser.add_argument("--launcher", default="",
                        help="what to run dynamic programs by")
    parser.add_argument("--core-kinds", default="gcore,kernel")
    options = parser.parse_args()
    options.core_kinds = options.core_kinds.split(",")
    return options


def run(options):
    totals = {"passed": 0, "failed": 0, "skipped": 0, "gone": 0}
    obstacle = harness.kernel_core_obstacle()
    if obstacle and "kernel" in options.core_kinds:
        print(f"SKIPPED all cores by the kernel: {obstacle}")
        options.core_kinds = ["gcore"]
    for suffix in USUAL if harness.SANITIZED or not harness.ALL_VARIANTS else LINKED:
        try:
            for name, problems in run_cases(options, suffix, totals):
                totals["failed" if problems else "passed"] += 1
                for problem in problems:
                    print(f"FAILED {name}:\n  {problem}")
        except harness.Skipped as error:
            totals["skipped"] += 1
            print(f"SKIPPED boehm{suffix}: {error}")
    print(", ".join(f"{count} {what}" for what, count in totals.items()))
    return 1 if totals["failed"] or not totals["passed"] else 0


def main():
    options = parse_options()
    if not os.path.exists(options.heapcore):
        sys.exit(f"there is no {options.heapcore}")
    with tempfile.TemporaryDirectory(prefix="heapcore-boehm-") as directory:
        options.programs = directory
        return run(options)


if __name__ == "__main__":
    sys.exit(main())
