#!/usr/bin/env python3
"""
Runs the programs of testdata/programs, takes cores of them, by gcore and by
the kernel, and checks that heapcore finds in each what the program says is
there. Needs no terminal, network or privileges, but a kernel whose
core_pattern names a file in the working directory; without, what it skips is
said.
"""

import argparse
import concurrent.futures
import os
import shlex
import shutil
import sys
import tempfile

import harness
import layouts
import truth
from harness import Skipped


DAMAGES = ("size", "zero", "run", "arena", "mapped", "top", "tcache",
           "fastbin", "unsorted", "large")
PROGRAMS = {
    "plain": [[]],
    "rings": [[]],
    "threads": [[]],
    "frees_all": [[]],
    "memalign": [[]],
    "realloc": [[]],
    "mmapped": [[]],
    "foreign_sbrk": [[]],
    "no_brk": [[], ["early"]],
    "fastbins": [[]],
    "many_arenas": [[]],
    "counted": [[]],
    "in_registers": [[]],
    "own_stack": [[]],
    "coroutine": [[]],
    "trimmed": [[]],
    "late_cache": [[]],
    "small": [[]],
    "damaged": [[damage] for damage in DAMAGES],
}
# Linked to a fixed address, a program has its heap moved.
HIGH_HEAP = (os.path.join(harness.PROGRAMS, "high_heap.c")
             + " -Wl,-e,high_heap_start")
# How else a program is linked, by the suffix of its file.
LINKED = {
    "": "",
    "-stripped": "-s",
    "-fixed": f"-no-pie {HIGH_HEAP}",
    "-static": f"-static {HIGH_HEAP}",
    "-static-stripped": f"-static -s {HIGH_HEAP}",
    "-static-pie": "-static-pie",
}
LINKED_PROGRAMS = {
    "plain": list(LINKED),
    "threads": ["", "-static"],
    "foreign_sbrk": ["", "-static-stripped"],
}
# Each with the programs that show most of it; with HEAPCORE_VARIANTS=all, with all of them.
TUNABLES = {
    "glibc.malloc.tcache_count=0": ("plain", "fastbins"),
    "glibc.malloc.tcache_count=100": ("threads",),
    "glibc.malloc.tcache_max=200": ("counted",),
    "glibc.malloc.mxfast=0": ("fastbins",),
    "glibc.malloc.mxfast=160": ("fastbins",),
    "glibc.malloc.arena_max=1": ("threads",),
    "glibc.malloc.hugetlb=1": ("plain",),
    "glibc.malloc.hugetlb=2": ("threads", "plain"),
    "glibc.malloc.mmap_threshold=4096": ("memalign", "plain"),
    "glibc.malloc.perturb=85": ("counted",),
}
TUNED_PROGRAMS = ("plain", "threads", "fastbins", "memalign", "counted")
# By the kernel's cores alone the rest is covered as well, and quicker.
GCORE_PROGRAMS = ("plain", "threads", "mmapped", "in_registers", "own_stack",
                  "coroutine")


class Case:
    """One run of one program."""

    def __init__(self, program, suffix, arguments, tunables):
        self.program, self.suffix = program, suffix
        self.arguments, self.tunables = arguments, tunables

    def __str__(self):
        words = [self.program + self.suffix, *self.arguments]
        if self.tunables:
            words.append(self.tunables)
        return " ".join(words)


def make_cases(options):
    cases = []
    for program, argument_lists in PROGRAMS.items():
        for suffix in LINKED_PROGRAMS.get(program, [""]):
            for arguments in argument_lists:
                cases.append(Case(program, suffix, arguments,
                                  options.tunables))
    if not options.tunables:
        for tunables, programs in TUNABLES.items():
            for program in TUNED_PROGRAMS if harness.ALL_VARIANTS else programs:
                cases.append(Case(program, "", [], tunables))
    return [case for case in cases
            if (not options.only or
                any(word in str(case) for word in options.only))
            and not any(word in str(case) for word in options.skip)]


def build(options, directory):
    """Compile what --programs does not supply. Says what cannot be linked."""
    def compile_one(program, suffix):
        command = [
            *shlex.split(options.compiler), *shlex.split(options.flags),
            *shlex.split(LINKED[suffix]),
            *(shlex.split(options.dynamic_flags)
              if "-static" not in suffix
              else shlex.split(options.static_flags)),
            os.path.join(harness.PROGRAMS, program + ".c"),
            os.path.join(harness.PROGRAMS, "truth.c"),
        ]
        try:
            harness.build(os.path.join(directory, program + suffix), *command)
        except RuntimeError as error:
            print(error, file=sys.stderr)

    os.makedirs(directory, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case in {(case.program, case.suffix)
                     for case in make_cases(options)}:
            pool.submit(compile_one, *case)


def start(options, case, directory):
    """Returns the process, once its truth is written and it waits."""
    path = os.path.join(options.programs, case.program + case.suffix)
    if not os.path.exists(path):
        raise Skipped(f"no {path}")
    launcher = shlex.split(options.launcher)
    if "static" in case.suffix:
        launcher = []
    launcher = shlex.split(getattr(options, "emulator", "")) + launcher
    tunables = {"GLIBC_TUNABLES": case.tunables} if case.tunables else {}
    # The main heap is mapped then: upwards, chunks of their own come between its parts.
    layout = (layouts.Layout(legacy=True)
              if case.tunables == "glibc.malloc.hugetlb=2" else None)
    return harness.start([*launcher, path, *case.arguments],
                         os.path.join(directory, "truth"), directory, layout,
                         **tunables)


TAKERS = {"gcore": harness.gcore, "kernel": harness.kernel_core, "qemu": harness.qemu_core}


def core_kinds(options, case):
    """The kernel's last, as its core is the end of the process."""
    kinds = [kind for kind in TAKERS if kind in options.core_kinds]
    rare = case.tunables or case.suffix or case.program not in GCORE_PROGRAMS
    if rare and len(kinds) == 2 and not options.all_core_kinds:
        return ["kernel"]
    return kinds


def run_case(options, case):
    """Returns a list of (core kind, problems, why skipped)."""
    if options.keep:
        name = str(case).replace(" ", "_").replace("/", "_")
        directory = os.path.join(os.path.abspath(options.keep), name)
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
    else:
        directory = tempfile.mkdtemp(prefix="heapcore-live-")
    process = None
    results = []
    kinds = core_kinds(options, case)
    try:
        process = start(options, case, directory)
        for kind in kinds:
            results.append(check_core(options, kind, process, directory))
    except Skipped as error:
        results.append((", ".join(kinds), [], str(error)))
    except RuntimeError as error:
        results.append((", ".join(kinds), [str(error)], None))
    finally:
        if process:
            harness.end(process)
        if not options.keep:
            shutil.rmtree(directory, ignore_errors=True)
    return results


def check_core(options, kind, process, directory):
    try:
        core = TAKERS[kind](process, directory)
    except Skipped as error:
        return (kind, [], str(error))
    except RuntimeError as error:
        return (kind, [str(error)], None)
    if not options.heapcore:
        return (kind, [], None)
    return (kind, truth.check(options.heapcore, core,
                              os.path.join(directory, "truth")), None)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heapcore", metavar="PATH",
                        default=harness.HEAPCORE)
    parser.add_argument("--no-heapcore", dest="heapcore",
                        action="store_const", const=None,
                        help="only run the programs and take cores")
    parser.add_argument("--programs", metavar="DIR",
                        help="programs built already")
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--flags", default=harness.FLAGS)
    parser.add_argument("--dynamic-flags", default="",
                        help="more flags, for programs not static")
    parser.add_argument("--static-flags", default="",
                        help="more flags, for those that are")
    parser.add_argument("--launcher", default="",
                        help="what to run dynamic programs by")
    parser.add_argument("--emulator", default="",
                        help="what to run programs of another machine by")
    parser.add_argument("--only", metavar="WORD", action="append",
                        help="cases whose name contains the word")
    parser.add_argument("--skip", metavar="WORD", action="append", default=[],
                        help="all other cases")
    parser.add_argument("--keep", metavar="DIR", help="keep programs, cores and truth")
    parser.add_argument("--core-kinds", default="gcore,kernel")
    parser.add_argument("--all-core-kinds", action="store_true",
                        help="gcore for every case")
    parser.add_argument("--tunables", metavar="STRING",
                        help="GLIBC_TUNABLES, in place of the usual ones")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.core_kinds = options.core_kinds.split(",")
    for kind in options.core_kinds:
        if kind not in TAKERS:
            parser.error(f"no kind of core is '{kind}'")
    return options


def report(options, case, results, counts):
    for kind, problems, skipped in results:
        if skipped:
            counts["skipped"] += 1
            print(f"SKIPPED {case}, {kind}: {skipped}")
        elif problems:
            counts["failed"] += 1
            print(f"FAILED {case}, {kind}:")
            print("\n".join("  " + line for problem in problems
                            for line in problem.splitlines()))
        else:
            counts["passed"] += 1
            if options.verbose:
                print(f"passed {case}, {kind}")
        sys.stdout.flush()


def run(options):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    obstacle = harness.kernel_core_obstacle()
    if obstacle and "kernel" in options.core_kinds:
        print(f"SKIPPED all cores by the kernel: {obstacle}")
        options.core_kinds.remove("kernel")
        counts["skipped"] += 1
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(run_case, options, case): case
                   for case in make_cases(options)}
        for future in concurrent.futures.as_completed(futures):
            report(options, futures[future], future.result(), counts)
    if counts["skipped"]:
        print(f"{counts['skipped']} SKIPPED")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] or not counts["passed"] else 0


def main():
    options = parse_options()
    if options.heapcore and not os.path.exists(options.heapcore):
        sys.exit(f"there is no {options.heapcore}")
    if options.programs:
        return run(options)
    if options.keep:
        options.programs = os.path.join(os.path.abspath(options.keep),
                                        "programs")
        build(options, options.programs)
        return run(options)
    with tempfile.TemporaryDirectory(prefix="heapcore-programs-") as directory:
        options.programs = directory
        build(options, directory)
        return run(options)


if __name__ == "__main__":
    sys.exit(main())
