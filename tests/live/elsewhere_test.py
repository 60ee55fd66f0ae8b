#!/usr/bin/env python3
"""
Cores by older tools, and cores that are read where the binaries are not: what
they lack costs names at most, and heapcore says which and why.
"""

import os
import re
import shutil
import struct
import unittest

import broken
import harness

STRINGS, SESSIONS, LOST, THREADS = 500, 100, 10, 3
# Strings of names, sessions' and admins', and one of each thread.
LONG_STRINGS = STRINGS + SESSIONS + SESSIONS // 2 + LOST + THREADS
AT_SYSINFO_EHDR = 33
NO_HEADERS = "0x23"  # coredump_filter without bit 4, the ELF headers
FS_BASE = 112 + 21 * 8  # in NT_PRSTATUS


def remove_elf_headers(core):
    """As an old gcore does, of what has not been written to."""
    for number, header in enumerate(core.headers):
        kind, _, offset, address, _, held, *_ = header
        if (kind == broken.PT_LOAD and held and
                core.data[offset:offset + 4] == b"\x7fELF" and
                address != core.auxiliary(AT_SYSINFO_EHDR)):
            header[5] = 0
            core.set_header(number, header)


def set_thread_pointers(core, value, renumber=0):
    """And the threads' numbers, as they are outside of a container."""
    for place, kind in core.notes():
        if kind != broken.NT_PRSTATUS:
            continue
        struct.pack_into("<Q", core.data, place + 20 + FS_BASE, value)
        thread, = struct.unpack_from("<i", core.data, place + 20 + 32)
        struct.pack_into("<i", core.data, place + 20 + 32, thread + renumber)


CRYSTAL = """
kept = Array.new(500) { |number| "string number #{number}" }
puts "ready"
STDOUT.flush
sleep
puts kept
"""


class ElsewhereTest(harness.LiveTest):
    """One program, and what is left of its core."""

    def build(self, *flags):
        return self.compile("elsewhere", "elsewhere.cpp", compiler="c++",
                            flags=("-O1", "-s", "-pthread", *flags))

    def take(self, *flags):
        """A core by heapcore, of which parts can be taken away."""
        process = self.start([self.build(*flags)])
        return broken.Core(harness.snap(process, self.path("core")))

    def write(self, core):
        return core.write(self.path("edited"))

    def count(self, path, *words, **options):
        answer = harness.ask(path, "count", *words, **options)
        return harness.number(answer.stdout.split()[0])

    def check(self, path):
        """All that needs no binary is as it is at home."""
        self.assertEqual(self.count(path, "used", "%LongString"),
                         LONG_STRINGS)
        # The string itself and what it holds.
        self.assertEqual(self.count(path, "leaked"), 2 * LOST)
        modules = harness.tables(path, "list", "modules")["module"]
        names = {os.path.basename(row["path"]) for row in modules}
        self.assertTrue({"elsewhere", "libc.so.6", "ld-linux-x86-64.so.2",
                         "[vdso]"} <= names, names)
        self.assertTrue(any(name.startswith("libstdc++") for name in names))
        self.assertEqual(len(names), len(modules))
        stacks = harness.tables(path, "list", "stacks")["stack"]
        self.assertEqual(sorted(row["kind"] for row in stacks),
                         ["main", "thread", "thread"])

    def test_core_without_elf_headers_or_names_of_files(self):
        core = self.take()
        whole = bytes(core.data)
        core.remove_notes(broken.NT_FILE)
        self.check(self.write(core))
        remove_elf_headers(core)
        self.check(self.write(core))
        core.data[:] = whole
        remove_elf_headers(core)
        self.check(self.write(core))

    def test_gcore_with_a_filter_that_leaves_headers_out(self):
        process = self.start([self.build()])
        with open(f"/proc/{process.pid}/coredump_filter", "w",
                  encoding="ascii") as file:
            file.write(NO_HEADERS)
        self.check(harness.gcore(process, self.folder))

    def test_thread_pointers_that_are_none(self):
        """They cost nothing: the control blocks name themselves."""
        core = self.take()
        told = sorted(core.thread_pointers())
        for value, renumber, how in (
                (0x30, 0, "was found by its number"),
                (0x201, 100000, "what is likely its control block")):
            set_thread_pointers(core, value, renumber)
            path = self.write(core)
            answer = harness.ask(path, "count", "leaked")
            self.assertIn(f"{value:#x}, cannot be right", answer.stderr)
            self.assertIn(how, answer.stderr)
            self.check(path)
            for pointer in told:
                where = harness.ask(path, "describe", f"{pointer:x}").stdout
                self.assertIn("thread ", where)
        remove_elf_headers(core)
        self.check(self.write(core))

    def sysroot(self, core):
        """A folder with the binaries of the core, without debug files."""
        root = self.path("root")
        shutil.rmtree(root, ignore_errors=True)
        for row in harness.tables(core, "list", "modules")["module"]:
            if row["file"] == "used":
                copy = root + row["path"]
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copy(row["path"], copy)
        return root

    def compare(self, core):
        """What is said at home, which must be what is said elsewhere."""
        home, elsewhere = self.sysroot(core), self.path("elsewhere-empty")
        os.makedirs(elsewhere, exist_ok=True)
        # Not every program has leaked something.
        explain = [f"explain {address}" for name in ("used", "leaked")
                   for address in harness.ask(core, "enumerate", name,
                                              "--limit", "1").stdout.split()]
        commands = ["-c", "summarize used", "-c", "summarize leaked",
                    "-c", "summarize leakroots", "-c", "list stacks",
                    "-c", "backtrace", "-c", "summarize signatures",
                    *(word for one in explain for word in ("-c", one))]
        answers = [harness.ask("--sysroot", root, *commands, core)
                   for root in (home, elsewhere)]
        self.assertEqual(answers[0].stdout, answers[1].stdout)
        # Here the file has no debug information; elsewhere, it is not known whether it has.
        here, elsewhere = (re.sub(".* types.*\n", "", answer.stderr) for answer in answers[:2])
        self.assertEqual(here, elsewhere)
        return answers[1].stdout

    def test_portable_core_says_the_same_elsewhere(self):
        for flags in ((), ("-static",), ("-Wl,-z,noseparate-code",)):
            with self.subTest(flags=flags):
                process = self.start([self.build(*flags)])
                core = harness.snap(process, self.path("core"), "--portable")
                harness.end(process)
                text = self.compare(core)
                self.assertIn("(Session)", text)
                # As far as the start of the program and of the threads.
                self.assertGreaterEqual(text.count("\n#3 "), THREADS)

    def test_constants_of_a_portable_core_hold_nothing(self):
        """What looks like a pointer in them is none, as in any other core."""
        process = self.start([self.build()])
        plain, portable = (
            harness.ask(harness.snap(process, self.path("core"), *options),
                        "list", "roots").stdout
            for options in ((), ("--portable",)))
        self.assertEqual(plain, portable)

    def test_portable_core_of_run(self):
        program = self.build()
        core = self.path("core")
        harness.run(harness.HEAPCORE, "run", "-q", "--portable",
                    f"--core={core}", "--", program, "end")
        self.assertIn("(Session)", self.compare(core))

    def test_portable_core_has_a_few_megabytes_more(self):
        text = """
            #include <cstdio>
            #include <string>
            #include <unistd.h>
            #include <vector>
            std::vector<std::string> strings(700000, std::string(100, 's'));
            int main() { puts("ready"); fflush(stdout); pause(); }"""
        process = self.start([self.compile("large", compiler="c++",
                                           text=text)])
        sizes = [os.stat(harness.snap(process, self.path(name),
                                      *options)).st_blocks * 512
                 for name, options in (("plain", ()),
                                       ("portable", ("--portable",)))]
        self.assertGreater(sizes[0], 90 << 20)
        self.assertLess(sizes[1], 1.05 * sizes[0])

    @unittest.skipUnless(shutil.which("ruby"), "there is no ruby")
    def test_portable_core_of_an_interpreter(self):
        script = ("$kept = (0..9999).map { |i| 'text ' * 9 + i.to_s }; "
                  "puts 'ready'; $stdout.flush; sleep")
        process = self.start(["ruby", "-e", script])
        core = harness.snap(process, self.path("core"), "--portable")
        self.assertIn("libruby", self.compare(core))

    @unittest.skipUnless(shutil.which("crystal"), "there is no crystal")
    def test_portable_core_of_a_program_in_crystal(self):
        """Its classes are read from its code; strip leaves that."""
        program = harness.build_crystal(
            self.path("kept"), CRYSTAL, "--no-debug")
        harness.run("strip", program)
        process = self.start([program])
        core = harness.snap(process, self.path("core"), "--portable")
        text = self.compare(core)
        for name in ("String", "IO::FileDescriptor"):
            self.assertIn(f"Class {name} has", text)

    def test_why_classes_have_no_names_is_said(self):
        core = self.take()
        program, library = self.path("elsewhere"), self.path("core")
        answer = harness.ask(library, "summarize", "used")
        self.assertIn("(Session)", answer.stdout)
        self.assertNotIn("class names", answer.stderr)
        os.rename(program, self.path("moved"))
        answer = harness.ask(library, "summarize", "used")
        self.assertIn("(elsewhere+0x", answer.stdout)
        self.assertRegex(answer.stderr, f"note: class names need "
                         f"{program} \\(build-id [0-9a-f]{{40}}\\), which is "
                         f"not here: use --sysroot\n")
        self.assertEqual(answer.stderr.count(f"class names need {program}"), 1)
        os.mkdir(self.path("none"))
        answer = harness.ask("--sysroot", self.path("none"), library,
                             "summarize", "used")
        self.assertIn("), which is not below the sysroot\n", answer.stderr)
        self.compile("elsewhere", compiler="c++", text="int main() { }")
        answer = harness.ask(library, "summarize", "used")
        self.assertIn("), the file here is another build, perhaps upgraded since: use "
                      "--sysroot\n", answer.stderr)
        remove_elf_headers(core)
        answer = harness.ask(self.write(core), "summarize", "used")
        self.assertIn(f"need {program}, its build-id is not in the core",
                      answer.stderr)

    def test_contents_end_as_those_of_chap(self):
        """With --chap, a line that is not full ends with a blank."""
        process = self.start([self.build()])
        core = harness.snap(process, self.path("core"))
        show = ("show", "used", "%LongString", "--size", "0x28", "--limit", "1")
        plain = harness.ask(core, *show).stdout
        text = harness.ask("--chap", core, *show).stdout
        self.assertNotIn(" \n", plain)
        self.assertRegex(text, r"\n 0: ( *[0-9a-f]+ ){3} *[0-9a-f]+\n"
                         r"20: +[0-9a-f]+ \n")
        self.assertIn("allocations use 0x190 (400) bytes.\n", text)
        ascii_text = harness.ask("--chap", core, *show, "--ascii").stdout
        self.assertNotIn(" \n", ascii_text)

    def test_static_program_without_names(self):
        core = self.take("-static")
        core.remove_notes(broken.NT_FILE)
        for edit in (lambda core: None, remove_elf_headers):
            edit(core)
            path = self.write(core)
            self.assertEqual(self.count(path, "used", "%LongString"),
                             LONG_STRINGS)
            text = harness.ask(path, "list", "modules").stdout
            self.assertRegex(text, r"/elsewhere\n")


if __name__ == "__main__":
    unittest.main()
