"""
Sessions: commands on a dump, with the output they must give.

    # program: three              or  # dump: bump/three-blocks.core
    # option: --chap              of heapcore, if any
    > list leakroots --limit 1
    Used allocation at 0x<hex:a> of size 104 (0x68)
    ...
    > describe <a+8>
    Address 0x<text> is at offset 0x8 of
    a leaked allocation at 0x<a> of size 104 (0x68)

    > list used --min-size many
    ! 'many' is not a size

A program, in C or C++, is compiled from tests/cli/programs or testdata/programs,
with the arguments behind its name, run until it writes "ready", and cored by gcore. If
it writes "older" before and waits for a line, a core is taken then, too, which is called
<older>. A dump is taken from testdata, decompressed. Lines from ! on are standard error.

In what is expected, <hex> stands for a hexadecimal number, <N> for a decimal
one with or without separators, <text> for anything, a line of ... for any
lines. <hex:a> and <N:a> are remembered, also for later commands, as <a>;
<a+8> is 8 more, of a hexadecimal one. Each command is run by itself, behind
those before it that name sets, and exits with 2 if it was mistaken, else with 0
(or 3, where there are warnings).

Run with names of sessions as arguments to run only these.
"""

import gzip
import lzma
import os
import re
import subprocess
import sys
import tempfile
import unittest

import harness
import layouts

SOURCE_DIR = os.environ["SOURCE_DIR"]
HEAPCORE = os.environ["HEAPCORE"]
SESSIONS = os.path.join(SOURCE_DIR, "tests/cli")
PROGRAM_FOLDERS = ["tests/cli/programs", "testdata/programs"]
TIMEOUT = 120
OLDER = ".older"

WILDCARD = re.compile(r"<([a-zA-Z]\w*)(?::(\w+)|\+([0-9a-f]+))?>")
PATTERNS = {"hex": "[0-9a-f]+", "N": "[0-9][0-9,]*", "text": ".*"}


class Dumps:
    """Programs and their cores, each made once."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="heapcore-sessions-")
        self.made = {}

    def close(self):
        self.folder.cleanup()

    def find(self, kind, what):
        key = (kind, what)
        if key not in self.made:
            make = self.core if kind == "program" else self.unpacked
            self.made[key] = make(what)
        return self.made[key]

    def unpacked(self, path):
        path = os.path.join(SOURCE_DIR, "testdata", path)
        if os.path.exists(path):
            return path
        target = os.path.join(self.folder.name, str(len(self.made)))
        for ending, opener in ((".gz", gzip.open), (".xz", lzma.open)):
            if os.path.exists(path + ending):
                with opener(path + ending) as packed:
                    with open(target, "wb") as file:
                        file.write(packed.read())
                return target
        subprocess.run(["zstd", "-q", "-d", "-o", target, path + ".zst"],
                       check=True)
        return target

    def compile(self, name):
        for folder in PROGRAM_FOLDERS:
            folder = os.path.join(SOURCE_DIR, folder)
            source = os.path.join(folder, name + ".c")
            if os.path.exists(source):
                break
            source = os.path.join(folder, name + ".cpp")
            if os.path.exists(source):
                break
        else:
            raise FileNotFoundError(f"there is no program {name}")
        sources = [source]
        with open(source, encoding="utf-8") as file:
            if '"truth.h"' in file.read():
                sources.append(os.path.join(folder, "truth.c"))
        compiler = "g++" if source.endswith(".cpp") else "cc"
        return harness.build(os.path.join(self.folder.name, name), compiler, "-O1", "-g",
                             "-pthread", "-I", SOURCE_DIR, *sources)

    def core(self, command):
        name, *arguments = command.split()
        program = self.compile(name)
        layout = layouts.choose(name, only_cache=True)
        with harness.ended(harness.launch([program] + arguments, layout=layout)) as process:
            if harness.wait_for_line(process, "older", "ready") == "older":
                core = self.take_core(process)
                os.rename(core, core + OLDER)
                process.stdin.write("\n")
                process.stdin.flush()
                harness.wait_for_line(process, "ready")
            return self.take_core(process)

    def take_core(self, process):
        harness.settle(process)
        prefix = os.path.join(self.folder.name, "core")
        subprocess.run(
            ["gcore", "-o", prefix, str(process.pid)], check=True,
            stdin=subprocess.DEVNULL, capture_output=True,
        )
        return f"{prefix}.{process.pid}"


def parse(path):
    """The dump of a session, its options, and its commands with their expected lines."""
    dump, options, steps = None, [], []
    with open(path, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("> "):
                steps.append((line[2:], [], []))
            elif not steps:
                match = re.fullmatch(r"# (program|dump): (.*)", line)
                dump = match.groups() if match else dump
                if line.startswith("# option: "):
                    options.append(line.split()[2])
            elif line.startswith("! "):
                steps[-1][2].append(line[2:])
            else:
                steps[-1][1].append(line)
    return dump, options, steps


def fill_in(text, known):
    """Put what is remembered in place of its name; leave wildcards."""

    def replace(match):
        name, _, more = match.groups()
        if name not in known:
            return match.group(0)
        return f"{int(known[name], 16) + int(more, 16):x}" if more else \
            known[name]

    return WILDCARD.sub(replace, text)


def line_pattern(line, named):
    """The regular expression of a line; named are names met before."""
    pattern, position = "", 0
    for match in WILDCARD.finditer(line):
        kind, name, _ = match.groups()
        pattern += re.escape(line[position:match.start()])
        position = match.end()
        if kind in named:
            pattern += f"(?P={kind})"
        elif name in named:
            pattern += f"(?P={name})"
        elif kind not in PATTERNS:
            pattern += re.escape(match.group(0))
        elif name:
            named.add(name)
            pattern += f"(?P<{name}>{PATTERNS[kind]})"
        else:
            pattern += PATTERNS[kind]
    return pattern + re.escape(line[position:])


def match_lines(expected, actual, known):
    """Whether the lines match; if so, what they name is remembered."""
    named, pattern = set(), ""
    for line in expected:
        if line == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += line_pattern(fill_in(line, known), named) + r"\n"
    match = re.fullmatch(pattern, "".join(line + "\n" for line in actual))
    if match:
        known.update(match.groupdict())
    return bool(match)


def is_remembered(command):
    """Whether later commands depend on it: it names a set."""
    return re.match(r"let |diff |redirect |.*[-/]-?set-?operation[ =]", command, re.I)


def run(core, command, before=(), options=()):
    """Run a command, behind others whose output is of no interest."""
    arguments = [HEAPCORE, "--quiet", *options]
    for earlier in before:
        arguments += ["-c", earlier + " > /dev/null"]
    result = subprocess.run(
        arguments + ["-c", command, core], capture_output=True,
        stdin=subprocess.DEVNULL, timeout=TIMEOUT,
    )
    output = result.stdout.decode(errors="backslashreplace").split("\n")
    messages = result.stderr.decode(errors="backslashreplace").splitlines()
    return output[:-1], [
        re.sub(r"^heapcore: (command:\d+: |-c:\d+: )?", "", line)
        for line in messages
    ], result.returncode


def expected_statuses(messages):
    """What the program may exit with that says so."""
    if all(message.startswith("warning: ") for message in messages):
        return [3] if messages else [0]
    return [2]


class SessionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dumps = Dumps()

    @classmethod
    def tearDownClass(cls):
        cls.dumps.close()

    def check(self, name):
        dump, options, steps = parse(os.path.join(SESSIONS, name + ".session"))
        core = self.dumps.find(*dump)
        known, remembered = {"older": core + OLDER}, []
        for command, output, messages in steps:
            command = fill_in(command, known)
            actual_output, actual_messages, status = run(
                core, command, remembered, options)
            if is_remembered(command) and not messages:
                remembered.append(command)
            for expected, actual in ((messages, actual_messages),
                                     (output, actual_output)):
                if not match_lines(expected, actual, known):
                    self.fail("\n".join(
                        [f"{name}: > {command}", "--- expected"]
                        + [fill_in(line, known) for line in expected]
                        + ["--- actual"] + actual
                    ))
            self.assertIn(status, expected_statuses(actual_messages),
                          f"{name}: > {command}")


def add_session(name):
    setattr(SessionTest, f"test_{name}", lambda self: self.check(name))


for file_name in sorted(os.listdir(SESSIONS)):
    if file_name.endswith(".session"):
        add_session(file_name[: -len(".session")])

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1]
                  + [f"SessionTest.test_{name}" for name in sys.argv[1:]])
