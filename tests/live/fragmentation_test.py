#!/usr/bin/env python3
"""
What `fragmentation` says that malloc_trim(0) would give back is what it gives
back: the program of testdata/programs/fragmented.c is cored, then trims its
heap and writes down by how much its resident memory shrank.

Takes the options of live_test.py that say how to compile.
"""

import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import harness
import live_test
import truth

# Linux 6.18 counts some pages of zeros as resident that no core has: 1.003 % of what is trimmed.
TOLERANCE = 0.02
TRIM_TIMEOUT = 60


class Wrong(Exception):
    """heapcore's answer is not what happened."""


def ask(core):
    """What heapcore tells of all arenas together."""
    run = subprocess.run(
        [harness.HEAPCORE, "--format", "json", core, "fragmentation",
         "--quick"],
        capture_output=True, text=True, timeout=truth.TIMEOUT, check=False,
        stdin=subprocess.DEVNULL)
    if run.returncode != 0:
        raise Wrong(f"exit status {run.returncode}: {run.stderr}")
    tables = json.loads(run.stdout)["tables"]
    return next(table["rows"][0] for table in tables
                if table["name"] == "total free")


def trim(process, directory):
    """By how many bytes the process shrank."""
    path = os.path.join(directory, "truth")
    deadline = time.monotonic() + TRIM_TIMEOUT
    process.send_signal(signal.SIGUSR1)
    while time.monotonic() < deadline:
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
        if lines[-1].startswith("trimmed "):
            return int(lines[-1].split()[1])
        time.sleep(0.01)
    raise RuntimeError("the program did not trim its heap")


def compare(what, told, happened, whole):
    print(f"{what}: {told:,} bytes told, {happened:,} given back")
    if abs(told - happened) > TOLERANCE * whole:
        raise Wrong(what)


def start(options, directory):
    """A process of the program, with a fresh directory of its own."""
    case = live_test.Case("fragmented", "", [], None)
    folder = tempfile.mkdtemp(dir=directory)
    return live_test.start(options, case, folder), folder


def ask_by_gcore(process, folder):
    """None where gdb cannot take a core of the process."""
    try:
        return ask(harness.gcore(process, folder))
    except harness.Skipped as reason:
        print(f"SKIPPED gcore: {reason}")
        return None


def check(options, directory):
    process, folder = start(options, directory)
    try:
        answer = ask_by_gcore(process, folder)
        trimmed = trim(process, folder)
        if answer:
            compare("gcore", answer["given_back"], trimmed, trimmed)
        if "kernel" not in options.core_kinds:
            return
        rest = ask(harness.kernel_core(process, folder))
        compare("the kernel's core, trimmed", rest["given_back"], 0, trimmed)
    finally:
        harness.end(process)
    for path in glob.glob(os.path.join(folder, "*core*")):
        os.remove(path)
    process, folder = start(options, directory)
    try:
        answer = ask(harness.kernel_core(process, folder))
        compare("the kernel's core", answer["given_back"], trimmed, trimmed)
    finally:
        harness.end(process)


def main():
    options = live_test.parse_options()
    live_test.PROGRAMS = {"fragmented": [[]]}
    live_test.TUNABLES = {}
    obstacle = harness.kernel_core_obstacle()
    if obstacle and "kernel" in options.core_kinds:
        print(f"SKIPPED all cores by the kernel: {obstacle}")
        options.core_kinds.remove("kernel")
    with tempfile.TemporaryDirectory(prefix="heapcore-trim-") as directory:
        options.programs = os.path.join(directory, "programs")
        live_test.build(options, options.programs)
        try:
            check(options, directory)
        except harness.Skipped as reason:
            print(f"SKIPPED: {reason}")
            return 77
        except (Wrong, RuntimeError) as error:
            print(f"FAILED: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
