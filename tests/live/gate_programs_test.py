#!/usr/bin/env python3
"""
Small programs, each of which loses memory in its way or does the same right:
what `heapcore run` finds lost must be what valgrind finds definitely and
indirectly lost, in as many blocks, and what LeakSanitizer finds. Where one of
them says otherwise, the difference is known here, and docs/measured/gate.md says why.

With --glibc, the programs are built for another glibc, and compared with what
valgrind says under the system's: it needs debug information of the glibc's
loader, which is not at hand for others.

LeakSanitizer is asked with HEAPCORE_VARIANTS=all.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import sys
import tempfile

import harness

SOURCES = os.path.join(harness.PROGRAMS, "gate")
FLAGS = "-D_GNU_SOURCE -g -O1 -pthread"
PROGRAMS = ("lost", "threads", "endings", "libraries", "containers", "exits",
            "pointers", "library_calls", "objects")
MODES = ("leak", "clean")

# malloc() rounds sizes up: by less than that for each block.
MOST_ROUNDING = 24
# Not all of these ask for what malloc() has: sizes differ a little.
ROUNDED = ("containers", "library_calls", "objects", ("lost", "big"))
LOST = re.compile(r"(definitely|indirectly) lost: ([\d,]+) bytes in ([\d,]+) ")
SANITIZER_LOST = re.compile(r"leaked in (\d+) allocation")

# What the other says, in blocks, and why heapcore does not.
VALGRIND_DIFFERS = {
    ("exits", "register-at-once", "clean"):
        (1, "it looks at no registers when a program has ended"),
    ("pointers", "read-only", "clean"):
        (1, "it does not look into memory that is read-only"),
    ("library_calls", "environment", "clean"):
        (1, "__libc_freeres() frees the table of the environment before"),
}
# Those that lose memory are to lose some, but for these.
HELD = {
    ("pointers", "tagged-low"): "possibly lost, valgrind says: in use",
    ("pointers", "interior"): "possibly lost, valgrind says: in use",
}
# LeakSanitizer finds what heapcore finds, or less in these.
NO_CHECK = "it looks when exit() runs handlers: not later, nor without exit()"
STALE = "stale words stand in the frames of exit() and of its own functions"
VECTORS = "it looks at vector registers, which hold copies of the pointers"
COROUTINE = "on a stack that is no thread's it finds no caller of malloc()"
SANITIZER_SEES_LESS = {
    NO_CHECK: {
        "endings": ("fork", "signal"),
        "libraries": ("destructor",),
        "exits": ("immediate", "quick", "system-call", "by-handler",
                  "destructor", "abort", "kill", "assert", "register-at-once"),
        "objects": ("uncaught",),
    },
    STALE: {
        "exits": ("return", "deep", "exit", "thread", "in-handler", "jump",
                  "signal"),
    },
    VECTORS: {
        "lost": ("members",),
        "pointers": ("vector",),
    },
    COROUTINE: {
        "pointers": ("context",),
    },
}
# It does not look into mappings unless told to.
SANITIZER_SEES_MORE = {
    ("pointers", "mapping"), ("pointers", "shared-mapping"),
    ("pointers", "read-only"),
}


def build(directory, arguments, programs, flags=""):
    """Build them; the library that one loads lies next to it."""
    commands = [["library.so", *shlex.split(arguments.compiler), *shlex.split(FLAGS),
                 "-shared", "-fPIC", os.path.join(SOURCES, "library.c")]]
    for name in programs:
        plus = os.path.exists(os.path.join(SOURCES, name + ".cpp"))
        compiler = arguments.cxx if plus else arguments.compiler
        source = os.path.join(SOURCES, name + (".cpp" if plus else ".c"))
        commands.append(
            [name, *shlex.split(compiler), *shlex.split(FLAGS), *flags.split(),
             "-I", harness.ROOT, source,
             "-ldl", *shlex.split(arguments.flags)])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda command: harness.build(
            os.path.join(directory, command[0]), *command[1:]), commands))


def run(command, **variables):
    """The same each time: memory lies where it did before."""
    return harness.run(*harness.still(command),
                       env=harness.environment(**variables))


def read_lost(path):
    """
    Blocks and bytes that a log of valgrind finds lost in the end: programs may
    ask it before.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if "ERROR SUMMARY" not in text:
        raise ValueError(f"valgrind fails: {text}")
    text = text[max(text.rfind("HEAP SUMMARY"), 0):]
    found = [(harness.number(blocks), harness.number(size))
             for _, size, blocks in LOST.findall(text)]
    return sum(blocks for blocks, _ in found), sum(size for _, size in found)


def run_valgrind(command, directory, **variables):
    """The command's output; the log of each process is directory/PID."""
    return run(harness.valgrind("--show-leak-kinds=definite,indirect",
                                f"--log-file={directory}/%p", *command),
               **variables).stdout


def ask_valgrind(command, **variables):
    """Blocks and bytes lost, of all processes together."""
    with tempfile.TemporaryDirectory() as directory:
        run_valgrind(command, directory, **variables)
        found = [read_lost(os.path.join(directory, name))
                 for name in os.listdir(directory)]
    return sum(blocks for blocks, _ in found), sum(size for _, size in found)


def ask_valgrind_of_all(program, mode):
    """Of each case: blocks and bytes lost, and the status it ends with."""
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        lines = run_valgrind([program, "all", mode], directory).splitlines()
        for case, what, text in map(str.split, lines):
            blocks, size, status = found.get(case, (0, 0, None))
            if what == "process":
                more = read_lost(os.path.join(directory, text))
                found[case] = (blocks + more[0], size + more[1], status)
            else:
                found[case] = (blocks, size, int(text))
    return found


def documents(text):
    """The JSON documents that follow one another."""
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        yield document
        text = text[end:]


OPTIONS = []  # of heapcore run, besides


def report_of(command, **variables):
    """What heapcore says of each process, and how it ended."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as log:
        result = run([harness.HEAPCORE, "run", "--quiet", "--follow-forks", *OPTIONS,
                      "--format", "json", "--log-file", log.name, "--",
                      *command], **variables)
        return list(documents(log.read())), result


def ask_heapcore(command, **variables):
    """
    Blocks and bytes lost, of all processes together, and the exit status; and
    how many of these blocks are certain, and not likely held by a pointer in
    disguise.
    """
    found, result = report_of(command, **variables)
    blocks = size = held = 0
    for document in found:
        tables = {table["name"]: table["rows"] for table in document["tables"]}
        if not document["complete"]:
            raise ValueError(f"{command}: incomplete: {document['findings']}")
        blocks += tables["gate"][0]["leaks"]
        size += tables["gate"][0]["bytes"]
        for row in tables.get("held in disguise", ()):
            held += row["held"]
            size += row["bytes"]
    if not found:
        raise ValueError(f"{command}: no report: {result.stderr}")
    return blocks + held, size, result.returncode, blocks


def ask_sanitizer(command):
    """Blocks that LeakSanitizer finds lost."""
    errors = run(command).stderr
    if "LeakSanitizer has encountered a fatal error" in errors:
        raise ValueError(errors)
    return sum(map(int, SANITIZER_LOST.findall(errors)))


def compare(which, theirs, ours):
    """What is wrong, in words; nothing if all is well."""
    name, case, mode = which
    blocks, size, status, certain = ours
    told, why = VALGRIND_DIFFERS.get(which, (theirs[0], None))
    if told != theirs[0]:
        yield f"valgrind finds {theirs[0]} blocks lost, and no longer {told}"
    leaks = mode == "leak" and (name, case) not in HELD
    if why is None and leaks != (theirs[0] > 0):
        yield f"valgrind finds {theirs[0]} blocks lost"
    if why is None and blocks != theirs[0]:
        yield f"{blocks} blocks are lost; valgrind finds {theirs[0]}"
    if why is not None and blocks == theirs[0]:
        yield f"it no longer differs from valgrind ({why})"
    rounded = name in ROUNDED or (name, case) in ROUNDED
    most = theirs[1] + (MOST_ROUNDING * blocks if rounded else 0)
    if why is None and not theirs[1] <= size <= most:
        yield f"{size} bytes are lost; valgrind finds {theirs[1]}"
    expected = 1 if certain else theirs[2]
    if status != expected:
        yield f"the exit status is {status}, not {expected}"


def compare_sanitizer(which, theirs, ours):
    name, case, _ = which
    less = any(case in programs.get(name, ())
               for programs in SANITIZER_SEES_LESS.values())
    more = (name, case) in SANITIZER_SEES_MORE
    if (theirs > ours and not more) or (theirs < ours and not less):
        yield f"LeakSanitizer finds {theirs} blocks lost, not {ours}"


class Programs:
    """The programs as built for each of those that look into them."""

    def __init__(self, directory, arguments):
        self.directory = self.reference = directory
        self.sanitized = None
        system = argparse.Namespace(compiler="gcc", cxx="g++", flags="")
        build(directory, arguments, arguments.programs)
        if arguments.glibc:
            self.reference = os.path.join(directory, "system")
            os.mkdir(self.reference)
            build(self.reference, system, arguments.programs)
            return
        if harness.SANITIZED or not harness.ALL_VARIANTS:  # what is compared is the same
            return
        sanitized = os.path.join(directory, "sanitized")
        os.mkdir(sanitized)
        try:
            build(sanitized, system, arguments.programs, "-fsanitize=leak")
            self.sanitized = sanitized
        except RuntimeError:
            print("not compared with LeakSanitizer: it is not installed")

    def check(self, which, theirs):
        name, case, mode = which
        ours = ask_heapcore([os.path.join(self.directory, name), case, mode])
        wrong = list(compare(which, theirs, ours))
        if self.sanitized:
            wrong += compare_sanitizer(which, ask_sanitizer(
                [os.path.join(self.sanitized, name), case, mode]), ours[0])
        for text in wrong:
            print(f"FAILED {' '.join(which)}: {text}")
        return not wrong

    def check_all(self, names, skipped):
        """How many cases are right, and how many are not."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            told = {(name, mode): pool.submit(
                ask_valgrind_of_all, os.path.join(self.reference, name), mode)
                    for name in names for mode in MODES}
            checks = [pool.submit(self.check, (name, case, mode), theirs)
                      for (name, mode), future in told.items()
                      for case, theirs in future.result().items()
                      if case not in skipped]
            right = sum(check.result() for check in checks)
        return right, len(checks) - right


def obstacle():
    """Why there is nothing to compare, or None."""
    if not shutil.which("valgrind"):
        return "there is no valgrind"
    if run([harness.HEAPCORE, "run", "-c", "quit", "--", "true"]).returncode:
        return "ptrace or seccomp is not allowed here"
    return None


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--glibc", action="store_true",
                        help="the compilers build for another glibc")
    parser.add_argument("--skip", action="append", default=[], metavar="CASE",
                        help="what that glibc cannot run")
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--flags", default="", help="further ones to link")
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if why := obstacle():
        print(f"SKIPPED: {why}")
        return harness.EXIT_SKIPPED
    with tempfile.TemporaryDirectory(prefix="heapcore-gate-") as directory:
        programs = Programs(directory, arguments)
        passed, failed = programs.check_all(arguments.programs,
                                            arguments.skip)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
