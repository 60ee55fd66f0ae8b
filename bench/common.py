"""What the benchmarks share: cores whose truth is known, times, and tables."""

import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent
# What is measured is the first core of a build.
os.environ["HEAPCORE_NO_CACHE"] = "1"


class Core(NamedTuple):
    path: pathlib.Path
    truth: dict  # of name to list of numbers


class Times(NamedTuple):
    processor: float
    wall: float
    faults: int = 0
    from_disk: int = 0


def fail(message):
    sys.exit(f"{sys.argv[0]}: {message}")


def progress(message):
    print(f"{sys.argv[0]}: {message}", file=sys.stderr, flush=True)


def compile_program(name, cache, suffix="", options=()):
    """The path of the program, which is made anew if its source is newer."""
    source = BENCH / f"{name}.c"
    compiler = os.environ.get("CC", "cc")
    if not source.exists():
        source = source.with_suffix(".cpp")
        compiler = os.environ.get("CXX", "c++")
    standard = "gnu17" if source.suffix == ".c" else "gnu++17"
    program = cache / f"{name}{suffix}"
    if (not program.exists()
            or program.stat().st_mtime < source.stat().st_mtime):
        subprocess.run([compiler, f"-std={standard}", "-O2", "-pthread", "-o",
                        program, source, *options], check=True)
    return program


def debug_size(program):
    """Bytes of DWARF in a program or an object."""
    sections = subprocess.run(["readelf", "-SW", program], check=True,
                              capture_output=True, text=True).stdout
    return sum(int(size, 16) for size in re.findall(
        r"\.debug_\w+\s+PROGBITS\s+\w+\s+\w+\s+(\w+)", sections))


def kernel_writes_cores():
    """Whether the kernel leaves cores in the directory of the program."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
    return (limit == resource.RLIM_INFINITY and pattern != ""
            and pattern[0] != "|" and "/" not in pattern)


def prepare_to_dump():
    """Runs in the child. A shell's background jobs ignore SIGQUIT."""
    limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def take_core(process, directory):
    """The path of a core of the process, which ends."""
    if kernel_writes_cores():
        process.send_signal(signal.SIGQUIT)
        process.wait()
    else:
        subprocess.run(["gcore", "-o", "core", str(process.pid)], check=True,
                       cwd=directory, stdout=subprocess.DEVNULL)
    files = list(pathlib.Path(directory).iterdir())
    if len(files) != 1:
        fail("no core was written")
    return files[0]


def make_core(command, core_path, truth_path, preloaded=None):
    variables = {"LD_PRELOAD": preloaded} if preloaded else {}
    with tempfile.TemporaryDirectory(dir=core_path.parent) as directory:
        process = subprocess.Popen(command, cwd=directory, text=True,
                                   stdout=subprocess.PIPE,
                                   env={**os.environ, **variables},
                                   preexec_fn=prepare_to_dump)
        try:
            truth = ""
            for line in process.stdout:
                if line == "ready\n":
                    break
                truth += line
            else:
                fail(f"{command[0]} ended before it was ready")
            core = take_core(process, directory)
        finally:
            process.kill()
            process.wait()
        truth_path.write_text(truth)
        # What a dump wrote lies in the page cache in pieces of any size, and to read it may take
        # twice as long as to read another one; copies are all alike.
        shutil.copyfile(core, core_path)


def can_preload(library):
    result = subprocess.run(["true"], env={"LD_PRELOAD": library},
                            stderr=subprocess.PIPE, check=True)
    return not result.stderr


def find_core(program, *arguments, preloaded=None):
    """A core of the program, from the cache if there is one."""
    names = [program.name, *([pathlib.Path(preloaded).name] if preloaded else [])]
    name = "-".join([*names, *(word.strip("-") for word in arguments)])
    core_path = program.with_name(f"{name}.core")
    truth_path = program.with_name(f"{name}.truth")
    if (not core_path.exists()
            or core_path.stat().st_mtime < program.stat().st_mtime):
        progress(f"making {core_path}")
        make_core([program, *arguments], core_path, truth_path, preloaded)
    truth = {}
    for line in truth_path.read_text().splitlines():
        what, *numbers = line.split()
        truth[what] = [int(number) for number in numbers]
    if "garbage" in truth:
        truth |= {"leaked": [0, 0], "atrisk": [0, 0]}
    return Core(core_path, truth)


def run_timed(command):
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # a gate that found something
        fail(f"{' '.join(map(str, command))}: status {process.returncode}")
    return Times(usage.ru_utime + usage.ru_stime, wall, usage.ru_minflt,
                 usage.ru_majflt)


def ask(heapcore, core, *words):
    """What heapcore writes."""
    return subprocess.run([heapcore, "-q", core.path, *words],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=True).stdout


def count(heapcore, core, what):
    """How many allocations heapcore counts, and their bytes."""
    answer = ask(heapcore, core, "count", what)
    match = re.search(r"^([\d,]+) allocations use (?:0x[0-9a-f]+ \()?([\d,]+)\)? bytes",
                      answer, re.MULTILINE)
    if not match:
        fail(f"count {what} of {core.path}: {answer}")
    return [int(group.replace(",", "")) for group in match.groups()]


def judge(value, bar):
    if bar is None:
        return ""
    return f"<= {bar:g}: " + ("ok" if value <= bar else "over")


def table(columns, rows):
    """A table in Markdown."""
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
