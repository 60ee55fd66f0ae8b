#!/usr/bin/env python3
"""
Cores written by heapcore: of `snap`, of -p, and of `run`. They must hold what
the process knows to be there, be read by others without complaint, and lead
to the same answers as a core by gcore.
"""

import os
import platform
import re
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import unittest

import harness
from core_file import NOTE_CUTS, Core
from harness import HEAPCORE, PROGRAMS, run

FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-g", "-O1", "-pthread"]
PAGE = resource.getpagesize()

NT_PRSTATUS, NT_FPREGSET, NT_PRPSINFO, NT_AUXV = 1, 2, 3, 6
NT_SIGINFO, NT_FILE = 0x53494749, 0x46494c45
# Notes of registers of each thread, apart from its status: of vectors; the thread pointer, signed
# pointers and tags on aarch64.
REGISTERS = [NT_FPREGSET, *{"x86_64": [0x202], "aarch64": [0x401, 0x405, 0x406, 0x409]}[
    platform.machine()]]
# The processor may lack these: SVE, signatures, tags.
OPTIONAL = {0x405, 0x406, 0x409}
NOTE_SMAPS = 0x534d4150
NOTE_TIME = 0x54494d45
NOTE_HELD = 0x48454c44

COMMANDS = ["count used", "count free", "count stacks", "summarize leaked",
            "summarize used", "list leaked", "backtrace", "list stacks"]


# It waits with values in a vector register.
VECTOR = r"""
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	static const long value[] = { 0x1111, 0x2222, 0x3333, 0x4444 };
	long result;

	__asm__ volatile("vmovdqu %[value], %%ymm9; syscall;"
			 "mov %[pause], %%eax; syscall"
			 : "=a"(result)
			 : [value] "m"(value), [pause] "i"(SYS_pause),
			   "a"(SYS_write), "D"(STDOUT_FILENO), "S"("ready\n"),
			   "d"(6)
			 : "rcx", "r11", "memory");
	return 0;
}
"""

# Pages far apart, each with another behind it that was never touched.
SCATTERED = """
import mmap, time
memory = mmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
memory.madvise(mmap.MADV_NOHUGEPAGE)
for start in (0, 4 << 30):
    for i in range(300):
        memory[start + i * 8192] = 1
print("ready", flush=True)
time.sleep(1000)
"""


def has_avx():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return " avx " in file.read()


class Program:
    """A program of testdata that has said all, and waits."""

    def __init__(self, binary, *arguments, folder):
        self.process = harness.start([binary, *arguments], folder=folder)
        self.lines = self.process.said
        harness.settle(self.process)

    @property
    def pid(self):
        return str(self.process.pid)

    def end(self):
        harness.end(self.process)


class CaptureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="heapcore-")
        cls.folder = cls.temporary.name
        for name in ("mappings", "threads", "rings"):
            sources = [os.path.join(PROGRAMS, f"{name}.c")]
            if name != "mappings":
                sources.append(os.path.join(PROGRAMS, "truth.c"))
            harness.build(cls.path(name), "cc", *FLAGS, *sources)
        cls.mappings = Program(cls.path("mappings"), cls.path("file"),
                               folder=cls.folder)
        result = run(HEAPCORE, "snap", cls.mappings.pid, "-o",
                     cls.path("core"))
        if "may not be traced" in result.stderr:
            cls.tearDownClass()
            raise unittest.SkipTest(result.stderr)
        cls.said = result

    @classmethod
    def tearDownClass(cls):
        cls.mappings.end()
        cls.temporary.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def open(self, path):
        core = Core(path)
        self.addCleanup(core.close)
        return core

    def start(self, name, *arguments):
        program = Program(self.path(name), *arguments, folder=self.folder)
        self.addCleanup(program.end)
        return program

    def test_it_says_how_long_the_process_stood_still(self):
        self.assertEqual(self.said.returncode, 0, self.said)
        self.assertRegex(self.said.stderr,
                         r"4 threads of process \d+, which was stopped for "
                         r"\d+\.\d+ s")
        self.assertIn(f"{PAGE:,} bytes are left out", self.said.stderr)
        self.assertEqual(self.said.stdout, "")

    def check_memory(self, core, excluded):
        self.assertGreater(len(self.mappings.lines), 15)
        for line in self.mappings.lines:
            name, address, what = line.split(" ", 2)
            held = core.read(int(address, 16), 32)
            with self.subTest(memory=name):
                if name == "excluded" and not excluded:
                    self.assertTrue(held.startswith(b"for nobody\0"))
                elif what == "nothing":
                    self.assertIsNone(held)
                elif what == "zeros":
                    self.assertEqual(held, bytes(32))
                else:
                    self.assertTrue(held.startswith(what.encode()), held)

    def test_memory_of_every_kind_is_there(self):
        self.check_memory(self.open(self.path("core")), excluded=True)

    def test_what_was_never_touched_takes_no_room(self):
        status = os.stat(self.path("core"))
        self.assertLess(status.st_size, 1 << 30)
        self.assertLess(status.st_blocks * 512, 4 << 20)
        self.assertEqual(status.st_mode & 0o777, 0o600)

    def test_a_program_mapped_as_data_is_no_module(self):
        result = run(HEAPCORE, self.path("core"), "list", "modules")
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(result.stdout.count("/mappings\n"), 1, result.stdout)

    def test_pages_were_not_touched_by_being_looked_for(self):
        for line in self.mappings.lines:
            name, address, _ = line.split(" ", 2)
            if name not in ("untouched", "reserved-end"):
                continue
            with open(f"/proc/{self.mappings.pid}/pagemap", "rb") as file:
                file.seek(int(address, 16) // PAGE * 8)
                entry = struct.unpack("<Q", file.read(8))[0]
            self.assertEqual(entry >> 62, 0, name)

    def test_the_notes_are_those_of_a_core(self):
        core = self.open(self.path("core"))
        kinds = [kind for _, kind, _ in core.notes]
        registers = [kind for kind in REGISTERS if kind in kinds or kind not in OPTIONAL]
        self.assertEqual(kinds, [
            NT_PRSTATUS, NT_PRPSINFO, NT_SIGINFO, NT_AUXV, NT_FILE,
            *registers, *[NT_PRSTATUS, *registers] * 3, NOTE_TIME,
            NOTE_HELD, NOTE_SMAPS, NOTE_CUTS])
        taken, age = (ns / 1e9 for ns in struct.unpack("<QQ", core.find(NOTE_TIME)[0]))
        written = os.stat(self.path("core")).st_mtime
        # Of two clocks, one a tick late.
        self.assertLess(taken, written + 1)
        self.assertGreater(taken, written - 600)
        with open(f"/proc/{self.mappings.pid}/stat", encoding="utf-8") as file:
            start = int(file.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        self.assertAlmostEqual(now - (time.time() - taken) - age, start, delta=2)
        pids = [struct.unpack("<i", note[32:36])[0]
                for note in core.find(NT_PRSTATUS)]
        self.assertEqual(str(pids[0]), self.mappings.pid)
        self.assertEqual(sorted(map(str, pids)), sorted(
            os.listdir(f"/proc/{self.mappings.pid}/task")))
        with open(f"/proc/{self.mappings.pid}/auxv", "rb") as file:
            self.assertEqual(core.find(NT_AUXV)[0], file.read())
        self.assertIn(self.path("file").encode() + b"\0",
                      core.find(NT_FILE)[0])
        smaps = core.find(NOTE_SMAPS)[0].decode()
        self.assertRegex(smaps, r"(?m)^Rss: +\d+ kB$")
        self.assertEqual(core.notes[-1][0], "HEAPCORE")

    def test_others_read_the_core_without_complaint(self):
        core = self.path("core")
        for command in (["readelf", "-hln", core], ["eu-readelf", "-n", core],
                        ["gdb", "-nx", "-batch", "-ex",
                         "thread apply all backtrace",
                         self.path("mappings"), core]):
            if not shutil.which(command[0]):
                continue
            with self.subTest(reader=command[0]):
                result = run(*command, env={**os.environ, "LC_ALL": "C",
                                            "DEBUGINFOD_URLS": ""})
                self.assertEqual(result.returncode, 0, result)
                # Files without a name cannot be opened, by nobody; and the
                # source of the C library is not here.
                complaints = [
                    line for line in (result.stderr + result.stdout).split("\n")
                    if re.search("[Ww]arning|[Ee]rror", line)
                    and not re.search(r"\(deleted\)|^warning: \d+\t", line)]
                self.assertEqual(complaints, [])
                if command[0] == "gdb":
                    self.assertEqual(result.stdout.count("wait_here"), 3,
                                     result.stdout)

    @unittest.skipUnless(has_avx() and shutil.which("gdb"),
                         "needs AVX and gdb")
    def test_gdb_finds_the_whole_of_vector_registers(self):
        """On processors whose layout it does not know, too."""
        binary = harness.build(self.path("vector"), "cc", "-xc", "-", text=VECTOR)
        program = Program(binary, folder=self.folder)
        self.addCleanup(program.end)
        core = self.path("vector.core")
        run(HEAPCORE, "snap", program.pid, "-o", core)
        result = run("gdb", "-nx", "-batch", "-ex", "p/x $ymm9.v4_int64",
                     binary, core, env={**os.environ, "DEBUGINFOD_URLS": ""})
        self.assertIn("{0x1111, 0x2222, 0x3333, 0x4444}", result.stdout,
                      result)

    def test_the_process_goes_on(self):
        program = self.start("mappings", self.path("other"))
        run(HEAPCORE, "snap", program.pid, "-o", self.path("other.core"))
        harness.settle(program.process)
        with open(f"/proc/{program.pid}/status", encoding="ascii") as file:
            status = file.read()
        self.assertIn("TracerPid:\t0\n", status)
        self.assertRegex(status, r"State:\tS")

    def test_a_stopped_process_stays_stopped(self):
        program = self.start("mappings", self.path("stopped"))
        program.process.send_signal(signal.SIGSTOP)
        os.waitpid(program.process.pid, os.WUNTRACED)
        result = run(HEAPCORE, "snap", program.pid, "-o",
                     self.path("stopped.core"))
        self.assertEqual(result.returncode, 0, result)
        # It stops anew once it was let go, and cannot run before.
        harness.settle(program.process, "T")
        self.assertEqual(harness.states(program.pid), {"T"})

    def answers(self, core):
        result = run(HEAPCORE, *[word for command in COMMANDS
                                 for word in ("-c", command)], core)
        self.assertEqual(result.returncode, 0, result)
        # Each gdb has an order of threads of its own.
        before, *threads, last = re.split(r"(?m)^(?=Thread \d+:$)",
                                          result.stdout)
        last, frames, after = re.split(r"(?m)((?:^#.*\n)+)", last, maxsplit=1)
        return before, sorted([*threads, last + frames]), after

    def test_answers_are_those_from_a_core_by_gcore(self):
        if not shutil.which("gcore"):
            self.skipTest("there is no gcore")
        for name in ("threads", "rings"):
            with self.subTest(program=name):
                program = self.start(name)
                ours = self.path(f"{name}.core")
                run(HEAPCORE, "snap", program.pid, "-o", ours)
                run("gcore", "-o", self.path("g"), program.pid)
                theirs = self.path(f"g.{program.pid}")
                self.assertEqual(self.answers(ours), self.answers(theirs))
                result = run(HEAPCORE, "-q", "-p", program.pid,
                             "count", "used")
                self.assertEqual(result.returncode, 0, result)
                self.assertIn(result.stdout, self.answers(ours)[0])

    def test_nothing_is_left_behind_by_a_look_at_a_process(self):
        place = self.path("place")
        os.mkdir(place)
        result = run(HEAPCORE, "-p", self.mappings.pid, "count used",
                     env={**os.environ, "TMPDIR": place}, cwd=place)
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(os.listdir(place), [])

    @unittest.skipUnless(shutil.which("zstd"), "there is no zstd")
    def test_a_packed_core_is_the_same(self):
        program = self.start("rings")
        packed = self.path("packed.zst")
        result = run(HEAPCORE, "snap", "--zstd", program.pid, "-o", packed)
        self.assertEqual(result.returncode, 0, result)
        run("zstd", "-q", "-d", packed, "-o", self.path("unpacked"))
        run(HEAPCORE, "snap", program.pid, "-o", self.path("plain"))
        self.assertLess(os.path.getsize(packed),
                        os.path.getsize(self.path("plain")) / 2)
        self.assertEqual(self.answers(self.path("unpacked")),
                         self.answers(self.path("plain")))

    @unittest.skipIf("sanitize" in os.environ.get("BUILD_DIR", ""),
                     "a sanitizer needs much address space")
    def test_a_small_part_of_the_machine_may_be_left(self):
        """Without room for a copy in memory, the file is written at once."""
        program = self.start("rings")
        limited = ["sh", "-c", 'ulimit -v 300000; exec "$@"', "sh"]
        result = run(*limited, HEAPCORE, "snap", program.pid, "-o",
                     self.path("limited"))
        self.assertEqual(result.returncode, 0, result)
        run(HEAPCORE, "snap", program.pid, "-o", self.path("unlimited"))
        self.assertEqual(self.answers(self.path("limited")),
                         self.answers(self.path("unlimited")))

    def test_a_full_disk_is_said_and_leaves_no_core(self):
        limited = ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh"]
        result = run(*limited, HEAPCORE, "snap", self.mappings.pid, "-o",
                     self.path("cut"))
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("cut: the core cannot be written", result.stderr)
        self.assertFalse(os.path.exists(self.path("cut")))
        result = run(*limited, HEAPCORE, "-p", self.mappings.pid, "count",
                     "used")
        self.assertEqual(result.returncode, 3, result)
        self.assertIn(f"copying process {self.mappings.pid} into ",
                      result.stderr)
        result = run(*limited, HEAPCORE, "run", "--", "sh", "-c", "exit 7")
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("the core cannot be written", result.stderr)

    def test_processes_that_cannot_be_had(self):
        for words, status in ((["snap", "999999999"], 2),
                              (["snap", "many"], 2), (["snap"], 2),
                              (["snap", "1", "2"], 2),
                              (["snap", "-o", "-", self.mappings.pid], 2),
                              (["-p", "999999999", "count", "used"], 2),
                              (["snap", "-o", "/nonexistent/core",
                                self.mappings.pid], 3)):
            with self.subTest(words=words):
                result = run(HEAPCORE, *words, cwd=self.folder)
                self.assertEqual(result.returncode, status, result)
                self.assertNotEqual(result.stderr, "")
        self.assertFalse(os.path.exists(self.path("core.999999999")))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"),
                         "needs root and setpriv")
    def test_memory_in_hundreds_of_pieces_is_there_once(self):
        """The kernel lists 512 at once, and may be wrong about where it ended."""
        with harness.started([sys.executable, "-c", SCATTERED]) as process:
            core = harness.snap(process, os.path.join(self.folder, "scattered"))
        segments = sorted((segment[3], max(segment[5:7])) for segment in Core(core).segments)
        for (start, size), (following, _) in zip(segments, segments[1:]):
            self.assertLessEqual(start + size, following)

    def test_a_process_of_another_user_is_refused(self):
        result = run("setpriv", "--reuid", "65534", "--clear-groups", HEAPCORE,
                     "-p", self.mappings.pid, "count", "used")
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("belongs to another user", result.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
