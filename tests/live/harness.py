"""
What live tests share: programs that are built and started, cores of them, and
heapcore's answers.

Nothing is tried twice. What made a test fail by chance, a number that looks
like a pointer, depends on where memory lies: programs start without address
space randomisation, with the same environment each time, in a layout that is
chosen anew and printed (layouts.py).
"""

import collections
import contextlib
import functools
import glob
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import layouts
from layouts import still  # for tests, too

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
HEAPCORE = os.environ.get("HEAPCORE") or os.path.join(ROOT, "build",
                                                      "heapcore")
PROGRAMS = os.path.join(ROOT, "testdata", "programs")
# Where each program that a test built is kept, named by a hash of what it was built from.
BUILT = os.environ.get("BUILT_BY_TESTS")
# What is kept for other cores of a build is in the build tree, also when ctest is not asked.
os.environ.setdefault("XDG_CACHE_HOME", os.path.join(
    os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build"), "cache"))
FLAGS = "-std=gnu17 -D_GNU_SOURCE -g -O2 -Wall -Wextra -pthread"
SANITIZED = "sanitize" in os.environ.get("BUILD_DIR", "")
# Else, a program that can be built or run in many ways is so in one of each kind.
ALL_VARIANTS = os.environ.get("HEAPCORE_VARIANTS") == "all"
# Where the folders of tests that fail stay.
KEEP = os.environ.get("KEEP") and os.path.abspath(os.environ["KEEP"])
TIMEOUT = 120
EXIT_SKIPPED = 77
FINE, FOUND, USAGE, INCOMPLETE = 0, 1, 2, 3

UNREAD = re.compile(r"Memory read failed for corefile section, .* at (0x\w+)")
END_OF_USER_SPACE = 1 << 47
# What a stack holds depends on what the environment holds.
KEPT_VARIABLES = ("HOME", "PATH", "TERM", "TMPDIR", "USER")


class Skipped(unittest.SkipTest):
    """The test cannot be made here; says why."""


# For a test of what others test, too, of another variant.
among_all = unittest.skipUnless(ALL_VARIANTS, "HEAPCORE_VARIANTS is not all")


def variants(everything, *names):
    """All variants, or those of these names: one of each kind."""
    return everything if ALL_VARIANTS else {name: everything[name] for name in names}


def run(*command, **options):
    """A command's end: its output as text, its status not looked at."""
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("timeout", TIMEOUT)
    options.setdefault("check", False)
    return subprocess.run(command, text=True, capture_output=True,
                          errors="replace", **options)


def ask(*words, expected=(FINE,), **options):
    """What heapcore answers, which must end with an expected status."""
    result = run(HEAPCORE, *words, **options)
    if result.returncode not in expected:
        raise AssertionError(f"heapcore {' '.join(words)}: exit status "
                             f"{result.returncode}\n{result.stderr}")
    return result


def tables(*words, **options):
    """The rows of each table of an answer, by the table's name."""
    text = ask("--format", "json", *words, **options).stdout
    return {table["name"]: table["rows"]
            for table in json.loads(text)["tables"]}


def rows(name, *words, **options):
    """The rows of all tables of that name in an answer."""
    text = ask("--format", "json", *words, **options).stdout
    return [row for table in json.loads(text)["tables"] if table["name"] == name
            for row in table["rows"]]


def addresses(*words, **options):
    """The addresses that heapcore enumerates."""
    return {int(line, 16) for line in ask(*words, **options).stdout.split()}


def addresses_typed(core, paths, script):
    """The addresses that heapcore takes the paths for, in their order; the script is written."""
    with open(script, "w", encoding="utf-8") as file:
        file.writelines(f"enumerate allocation {path}\n" for path in paths)
    return [int(line, 16) for line in ask("-q", "-f", script, core).stdout.split()]


def number(text):
    """A number as heapcore prints it, in groups of digits."""
    return int(text.replace(",", ""))


def valgrind(*words):
    """
    The command that looks for leaks by valgrind, with these words after it.

    valgrind puts the heap at low addresses, and searches the kernel's clocks
    ([vvar]), too: there, numbers of nanoseconds look like pointers to the heap
    in one run of a hundred. None is as high as this.
    """
    return ["valgrind", "--leak-check=full", "--aspace-minaddr=0x1f0000000",
            *words]


def environment(**variables):
    """What programs are started with: the same on each machine, nearly."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES
            if name in os.environ}
    seeds = {"PERL_HASH_SEED": "0", "PYTHONHASHSEED": "0"}
    return {**kept, **seeds, "LC_ALL": "C.UTF-8", **variables}


@functools.cache
def tools(compiler):
    """The compiler's version, the C library's, and all headers of the programs."""
    said = [shutil.which(compiler) or compiler, run(compiler, "--version").stdout,
            os.confstr("CS_GNU_LIBC_VERSION")]
    for pattern in ("testdata/programs/**/*.h", "tests/cli/programs/*.h"):
        for path in sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True)):
            with open(path, encoding="utf-8") as file:
                said += [path, file.read()]
    return said


def build_key(command, text):
    """A hash of all that decides what the command builds; objects have no fixed path."""
    digest = hashlib.sha256(repr([tools(command[0]), os.getcwd(), text]).encode())
    for word in command:
        is_file = os.path.isfile(word)
        digest.update(repr([is_file, not word.endswith(".o") and word]).encode())
        if is_file:
            with open(word, "rb") as file:
                digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


def build_now(path, command, text, options):
    given = {"input": text} if text else {}
    result = run(*command, "-o", path, **given, **options)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
    print(result.stderr, end="", file=sys.stderr)
    return path


def build(path, *command, text=None, **options):
    """
    Run the compiler's command, which lacks -o; path is the program, of which a copy is kept.
    RuntimeError has what the compiler says.
    """
    # Split debug information stays where the program was built.
    if not BUILT or "-gsplit-dwarf" in command:
        return build_now(path, command, text, options)
    kept = os.path.join(BUILT, build_key(command, text))
    if not os.path.exists(kept):
        os.makedirs(BUILT, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILT) as folder:
            made = os.path.join(folder, os.path.basename(path))
            os.rename(build_now(made, command, text, options), kept)
    # By another process: a file open for writing here may be inherited by a child that is
    # just being started, and cannot be executed until that child lets go of it.
    # A running program cannot be written over, but its file can be replaced.
    subprocess.run(["cp", "--remove-destination", kept, path], check=True)
    return path


def build_crystal(path, source, *flags):
    """As build(), from source text; Crystal's own cache is kept beside the path."""
    return build(path, "crystal", "build", "--stdin-filename=program.cr", *flags, text=source,
                 timeout=10 * TIMEOUT,
                 env={**os.environ, "CRYSTAL_CACHE_DIR": f"{path}-cache"})


def allow_cores():
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def truth_is_ready(path):
    try:
        with open(path, "rb") as file:
            file.seek(-len("ready\n"), os.SEEK_END)
            return file.read() == b"ready\n"
    except OSError:
        return False


def wait_for_truth(process, path, timeout=TIMEOUT):
    """Until the program has written all its truth, and waits."""
    deadline = time.monotonic() + timeout
    while not truth_is_ready(path):
        if process.poll() == EXIT_SKIPPED:
            raise Skipped("not with this glibc")
        if process.returncode is not None or time.monotonic() > deadline:
            end(process)
            raise RuntimeError(
                f"the program did not get ready: {process.returncode}")
        time.sleep(0.01)


def states(pid):
    """The letters of the states of a process's threads."""
    found = set()
    for path in glob.glob(f"/proc/{pid}/task/*/stat"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8",
                                                errors="replace") as file:
            found.add(file.read().rpartition(")")[2].split()[0])
    return found


def places_said(process):
    """The numbers that the process said of itself, each by the word before it."""
    said = (line.strip().partition(" ") for line in process.said)
    return {word: int(rest) for word, _, rest in said if rest.isdigit()}


def addresses_said(process):
    """The addresses that the process said of itself, all before each name."""
    said = collections.defaultdict(set)
    for line in process.said:
        address, _, name = line.strip().partition(" ")
        if name:
            said[name].add(int(address, 16))
    return said


def numbers_said(process):
    """All numbers that the process said of itself, in order, each by the word before it."""
    said = collections.defaultdict(list)
    for line in process.said:
        word, _, rest = line.strip().partition(" ")
        if rest.isdigit():
            said[word].append(int(rest))
    return said


def addresses_by_type(core):
    """Of all types that summarize knows, those that are used."""
    return {row["type"]: addresses("-q", core, "enumerate", "used", row["type"])
            for row in tables("-q", core, "summarize", "used")["group"]
            if row.get("type")}


def settle(process, state="S"):
    """Until all threads of the process wait for something, or are stopped."""
    settle_pid(process.pid, state)


def settle_pid(pid, state="S"):
    deadline = time.monotonic() + TIMEOUT
    while states(pid) != {state} and time.monotonic() < deadline:
        time.sleep(0.01)


def end(process):
    """Kill the process, if it is still there, and let go of its pipes."""
    if process.poll() is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def launch(command, folder=None, layout=None, **options):
    """A process, which may not be ready yet; in that layout, or in one that is chosen."""
    options.setdefault("stdin", subprocess.PIPE)
    options.setdefault("stdout", subprocess.PIPE)
    layout = layout or layouts.choose(os.path.basename(command[0]))
    command, options["env"] = layouts.apply(layout, command, options.get("env") or environment())

    def prepare():
        allow_cores()
        layouts.limit_stack(layout)

    process = subprocess.Popen(command, cwd=folder, text=True, preexec_fn=prepare, **options)
    process.said = []
    return process


def wait_for_line(process, *lines):
    """Which of the lines came; those before become part of process.said."""
    for line in process.stdout:
        line = line.rstrip("\n")
        if line in lines:
            return line
        process.said.append(line)
    end(process)
    raise RuntimeError(f"{process.args} ended before it was ready: "
                       f"{process.returncode}")


def start(command, truth=None, folder=None, layout=None, **variables):
    """
    A process, once it waits: with its truth written to that file, or with a
    line "ready" on its output, of which the lines before are process.said.
    """
    if not truth:
        process = launch(command, folder, layout, env=environment(**variables))
        wait_for_line(process, "ready")
        return process
    process = launch(command, folder, layout, stdin=subprocess.DEVNULL, stdout=None,
                     env=environment(HEAPCORE_TRUTH=truth, **variables))
    wait_for_truth(process, truth)
    return process


@contextlib.contextmanager
def ended(process):
    """The process, which is killed in the end."""
    try:
        yield process
    finally:
        end(process)


def started(command, **options):
    """A process as start() has it, which is killed in the end."""
    return ended(start(command, **options))


def gcore(process, folder):
    """The path of a core by gdb; Skipped where gdb cannot."""
    if not shutil.which("gcore"):
        raise Skipped("there is no gcore")
    prefix = os.path.join(folder, "gcore")
    result = run("gcore", "-o", prefix, str(process.pid))
    path = f"{prefix}.{process.pid}"
    if result.returncode != 0 or not os.path.exists(path):
        raise RuntimeError(f"gcore failed: {result.stderr.strip()}")
    # The guard pages that glibc makes of stacks from 2.42 on, where the kernel
    # can, lie within mappings, of which some gdb then writes nothing but zeros.
    for address in UNREAD.findall(result.stdout + result.stderr):
        if int(address, 16) < END_OF_USER_SPACE:
            raise Skipped(f"gdb could not read the memory at {address}")
    return path


def kernel_core_obstacle():
    """Why the kernel would not put a core into the working directory."""
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as file:
        pattern = file.read().strip()
    if pattern.startswith("|") or "/" in pattern or not pattern:
        return f"core_pattern is '{pattern}'"
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        return "the hard limit on cores is 0"
    return None


def kernel_core(process, folder, by=signal.SIGABRT):
    """The path of a core by the kernel, into the process's folder."""
    obstacle = kernel_core_obstacle()
    if obstacle:
        raise Skipped(obstacle)
    process.send_signal(by)
    process.wait(timeout=TIMEOUT)
    paths = glob.glob(os.path.join(folder, "core*"))
    if len(paths) != 1:
        raise RuntimeError(f"the kernel left {len(paths)} cores")
    return paths[0]


def qemu_core(process, folder):
    """The path of a core of the program that qemu runs, which qemu writes into the folder."""
    # Newer ones leave SIGABRT to this machine's kernel.
    process.send_signal(signal.SIGSEGV)
    process.wait(timeout=TIMEOUT)
    paths = glob.glob(os.path.join(folder, "qemu_*.core"))
    if len(paths) != 1:
        raise RuntimeError(f"qemu left {len(paths)} cores")
    return paths[0]


def snap(process, path, *options):
    """The path of a core by heapcore."""
    ask("snap", "-q", *options, "-o", path, str(process.pid))
    return path


def core_of(process, folder, flags):
    """The same; by gdb of programs for i386, which heapcore does not take cores of."""
    if "-m32" in flags:
        return gcore(process, folder)
    return snap(process, os.path.join(folder, "core"))


def control_group(controller, name):
    """A group that the kernel limits, and its limit's file, by either version of the kernel's interface."""
    parent, limit = f"/sys/fs/cgroup/{controller}", {"memory": "memory.limit_in_bytes"}
    with contextlib.suppress(OSError), open("/sys/fs/cgroup/cgroup.subtree_control", encoding="ascii") as file:
        if controller in file.read().split():
            parent, limit = "/sys/fs/cgroup", {}
    group = f"{parent}/{name}"
    try:
        os.mkdir(group)
    except OSError as error:
        raise Skipped(str(error)) from error
    return group, f"{group}/{limit.get(controller, controller + '.max')}"


def remove_group(group):
    """Its last process may take a moment to be gone."""
    run("sh", "-c", f"until rmdir {group}; do sleep 0.1; done")


def damage(core, path, words):
    """Three times, the core with so many words overwritten by those before, at path."""
    with open(core, "rb") as file:
        whole = file.read()
    for seed in range(3):
        draw, damaged = random.Random(seed), bytearray(whole)
        for _ in range(words):
            at = draw.randrange(1 << 16, len(whole) - 8) & ~7
            damaged[at:at + 8] = damaged[at - 64:at - 56]
        with open(path, "wb") as file:
            file.write(damaged)
        yield path


@functools.cache
def what_i386_lacks(compiler):
    """Why programs for i386 cannot be built or run here, or None."""
    header = "new" if "++" in compiler else "stdlib.h"
    with tempfile.TemporaryDirectory(prefix="heapcore-") as folder:
        program = os.path.join(folder, "program")
        result = run(compiler, "-m32", "-x", "c++" if "++" in compiler else "c", "-o", program,
                     "-", input=f"#include <{header}>\nint main() {{ return 0; }}\n", stdin=None)
        if result.returncode != 0:
            return f"there is no {compiler} for i386"
        try:
            run(program)
        except OSError:
            return "the kernel runs no programs for i386"
    return None


def needs_i386(compiler="gcc"):
    """Skipped where programs for i386 cannot be built or run."""
    lack = what_i386_lacks(compiler)
    if lack:
        raise Skipped(lack)


def is_core(path):
    with open(path, "rb") as file:
        head = file.read(18)
    return head.startswith(b"\x7fELF") and head[16:] == b"\4\0"


class LiveTest(unittest.TestCase):
    """A test with a folder of its own, which is gone in the end; with KEEP, unless it fails."""

    maxDiff = None
    kept = None

    def setUp(self):
        if KEEP:
            os.makedirs(KEEP, exist_ok=True)
            self.folder = self.kept = tempfile.mkdtemp(prefix="heapcore-test-", dir=KEEP)
            return
        folder = tempfile.TemporaryDirectory(prefix="heapcore-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run(self, result=None):
        result = self.defaultTestResult() if result is None else result
        failures = len(result.failures) + len(result.errors)
        super().run(result)
        if self.kept and len(result.failures) + len(result.errors) > failures:
            self.say_kept()
        elif self.kept:
            shutil.rmtree(self.kept)
        return result

    def say_kept(self):
        print(f"\nKEPT {self.id()}: {self.kept}")
        for path in sorted(glob.glob(os.path.join(self.kept, "**"), recursive=True)):
            if os.path.isfile(path) and is_core(path):
                print(f"  {HEAPCORE} {path}")

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, name, *sources, flags=(), compiler="cc", text=None):
        """Build a program from files of testdata/programs, or from text."""
        paths = [os.path.join(PROGRAMS, source) for source in sources]
        language = "c++" if "++" in compiler else "c"
        given = ("-x", language, "-") if text else ()
        return build(self.path(name), compiler, *given, *paths, *flags, text=text)

    def start(self, command, **options):
        process = start(command, folder=self.folder, **options)
        self.addCleanup(end, process)
        return process

    def typed(self, name, *flags, compiler="gcc"):
        """Run a program that says of which types its allocations are: a core of it, and these by
        type as the program says it and as heapcore does."""
        program = self.compile(name, f"{name}.c", compiler=compiler, flags=flags)
        process = self.start([program])
        core = snap(process, self.path("core"))
        return core, addresses_said(process), addresses_by_type(core)

    def core_of_script(self, interpreter, text, **variables):
        """A core of the interpreter, and the path of the truth, the script's argument."""
        script, truth = self.path("program"), self.path("truth")
        with open(script, "w", encoding="utf-8") as file:
            file.write(text)
        process = self.start([interpreter, script, truth], **variables)
        core = snap(process, self.path("core"))
        end(process)
        return core, truth
