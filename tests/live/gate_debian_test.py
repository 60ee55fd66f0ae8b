#!/usr/bin/env python3
"""
Programs of the system, which nobody built for this: `heapcore run` must not
call anything certainly lost that valgrind does not find lost, and find as much
as valgrind does. Which versions they are does not matter: valgrind says what is
true of them. valgrind also knows how many bytes were asked for: what an earlier
block left behind them is no pointer to it, and may be one to heapcore.
"""

import os
import shutil
import subprocess
import sys
import tempfile

import gate_programs_test as gate
import harness

PYTHON = "/usr/bin/python3"
# Of so many blocks one may be held by such words: a name of 4 bytes has 20 more. Where they lie
# depends on the machine, and a block of perl's that one of them holds leads to two others.
BLOCKS_BY_STALE_WORD = 10
# To heapcore, arenas of values are heaps, not blocks: at most so many are among what is lost.
ARENAS = {"perl": 4}
COMMANDS = {
    "ls": ["ls", "-l", "/usr/include"],
    "git": ["git", "-C", "@", "status"],
    # Its own allocator takes large pieces from malloc(), unless told not to. valgrind does not
    # see what it cuts from them, so it must use malloc() there. 3.13 loses thousands of objects
    # at its end.
    "python3": [PYTHON, "-c", "print(sum(range(1000)))"],
    "python3-malloc": [PYTHON, "-c",
                       "import json; print(json.dumps({'a': [1, 2]}))"],
    "sqlite3": ["sqlite3", ":memory:",
                "create table t (a); insert into t values (1); "
                "select * from t;"],
    "perl": ["perl", "-e", "my %h = map { $_ => [$_] } 1 .. 100; "
             "print scalar keys %h;"],
    "bash": ["bash", "--norc", "-c",
             "for i in 1 2 3; do a[$i]=$i; done; echo ${a[@]}"],
}


def make_repository(directory):
    subprocess.run(["git", "init", "--quiet", directory], check=True)
    with open(os.path.join(directory, "file"), "w", encoding="ascii") as file:
        file.write("text\n")
    subprocess.run(["git", "-C", directory, "add", "file"], check=True)


# valgrind does not know what perl loses itself.
gate.OPTIONS.append("--no-known")


def check(name, command):
    """What is wrong, in words, or nothing; and what was found."""
    plain = {"PYTHONMALLOC": "malloc"}
    variables = plain if name == "python3-malloc" else {}
    theirs = gate.ask_valgrind(command, **(plain if name == "python3" else variables))
    blocks, size, status, _ = gate.ask_heapcore(command, **variables)
    most = theirs[1] + gate.MOST_ROUNDING * theirs[0]
    print(f"{name}: {blocks} blocks of {size} bytes lost; valgrind finds "
          f"{theirs[0]} of {theirs[1]}")
    if blocks > theirs[0] or size > most:
        return f"{name}: more is found lost than is"
    held = theirs[0] // BLOCKS_BY_STALE_WORD + ARENAS.get(name, 0)
    if blocks < theirs[0] - held or (not held and size < theirs[1]):
        return f"{name}: less is found lost than is"
    if status != (1 if blocks else 0):
        return f"{name}: the exit status is {status}"
    return None


def main():
    if why := gate.obstacle():
        print(f"SKIPPED: {why}")
        return harness.EXIT_SKIPPED
    failures = []
    names = sys.argv[1:] or COMMANDS
    with tempfile.TemporaryDirectory(prefix="heapcore-debian-") as directory:
        make_repository(directory)
        for name in names:
            command = [word.replace("@", directory) if word == "@" else word
                       for word in COMMANDS[name]]
            if not shutil.which(command[0]):
                print(f"SKIPPED {name}: it is not installed")
                continue
            wrong = check(name, command)
            if wrong:
                print(f"FAILED {wrong}")
                failures.append(wrong)
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
