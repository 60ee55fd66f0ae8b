#!/usr/bin/env python3
"""
Small cores that claim a lot: how long they take does not depend on it. Each
limit is far more than it takes, and far less than it would, were the work a
product of two counts.
"""

import os
import resource
import struct
import subprocess
import tempfile
import unittest

import broken
import harness

LOW, HIGH = 0x10000000, 0x7F0000000000
PAGE = broken.PAGE
SECONDS = 10  # of the processor
NOISE = bytes(range(1, 129)) * 32
COMMANDS = ("count used", "summarize leaked", "describe threads",
            f"explain {LOW + 8:x}", "count stacks", "list free", "bill",
            "fragmentation", "waste", "findbytes --text heapcore")


def module_header(number, count=1, place=64):
    """A module's first page, with a build-id of its own."""
    header = broken.elf_header(3, count, place)
    header += broken.HEADER.pack(4, 4, 120, 120, 0, 36, 36, 4)
    header += struct.pack("<III4s5I", 4, 20, 3, b"GNU\0", *[number] * 5)
    return header.ljust(PAGE, b"\0")


def module_mappings(count):
    return broken.mapped_files([
        (LOW + i * 0x2000, LOW + i * 0x2000 + PAGE, 0, b"/none/%d" % i)
        for i in range(count)])


def one_page_each(start, stride, count):
    return [(start + i * stride, i * PAGE, PAGE, PAGE) for i in range(count)]


# A program whose debug information has so many blocks in each other.
DEEP = """
	.globl main
	.type main, @function
main:	sub $8, %rsp
	lea ready(%rip), %rdi
	call puts
	xor %edi, %edi
	call fflush
.Lwait:	call pause
	jmp .Lwait
.Lend:
	.section .rodata
ready:	.string "ready"
	.section .debug_abbrev, "", @progbits
abbreviations:
	.byte 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0 # unit: low and high pc
	.byte 2, 0x2e, 1, 3, 8, 0x11, 1, 0x12, 7, 0, 0 # function with a name
	.byte 3, 0x0b, 1, 0x11, 1, 0x12, 7, 0, 0 # block
	.byte 0
	.section .debug_info, "", @progbits
	.long after - before
before:	.value 4
	.long abbreviations
	.byte 8, 1
	.quad main, .Lend - main
	.byte 2
	.string "main"
	.quad main, .Lend - main
	.rept DEPTH
	.byte 3
	.quad main, .Lend - main
	.endr
	.fill DEPTH + 2, 1, 0
after:
	.section .note.GNU-stack, "", @progbits
"""
DEPTH = 200000


class HostileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="heapcore-hostile-")
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "core")

    def check(self, notes, segments, data=b"", **options):
        broken.write_core(self.path, notes, segments, data, **options)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = [word for command in COMMANDS for word in ("-c", command)]
        run = subprocess.run(
            [harness.HEAPCORE, "-q", *words, self.path],
            capture_output=True, text=True, errors="replace", check=False,
            stdin=subprocess.DEVNULL, timeout=300)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertIn(run.returncode, (2, 3), run.stderr)
        self.assertIn("warning: ", run.stderr)
        self.assertLess(after.ru_utime + after.ru_stime
                        - before.ru_utime - before.ru_stime, SECONDS)
        return run

    def test_segments_by_the_hundred_thousand(self):
        self.check(broken.thread(1, LOW),
                   [(LOW + i * 0x2000, i * 16, 16, 16)
                    for i in range(200000)], NOISE * 800)

    def test_segments_that_overlap_in_memory(self):
        self.check(broken.thread(1, LOW),
                   [(LOW + i * 16, i * 16, 16, 1 << 40)
                    for i in range(100000)], NOISE * 400)

    def test_segments_that_share_the_file(self):
        run = self.check(broken.thread(1, LOW),
                         [(LOW + (i << 23), 0, 1 << 23, 1 << 23)
                          for i in range(50000)], NOISE * 2048)
        self.assertIn("share parts of the core", run.stderr)

    def test_notes_that_are_the_same(self):
        notes = b"".join(broken.thread(i, LOW) for i in range(1000))
        run = self.check(notes, [(LOW, 0, PAGE, PAGE)], NOISE,
                         note_segments=50000)
        self.assertIn("share parts of the core", run.stderr)

    def test_threads_by_the_ten_thousand(self):
        self.check(b"".join(broken.thread(i + 1, HIGH + 0x3000 * i + 0x100,
                                          HIGH + 0x3000 * i + 0x700)
                            for i in range(20000)),
                   one_page_each(HIGH, 0x3000, 20000),
                   b"".join(bytes(0x700) + struct.pack(
                       "<3Q", at, at + 0x100, at).ljust(0x900, b"\0")
                            for at in (HIGH + 0x3000 * i + 0x700
                                       for i in range(20000))))

    def test_mappings_of_one_file(self):
        self.check(broken.mapped_files([
            (LOW + i * 0x2000, LOW + i * 0x2000 + PAGE, 1 + i % 7, b"/none")
            for i in range(300000)]), [(LOW, 0, PAGE, PAGE)], NOISE)

    def test_modules_by_the_ten_thousand(self):
        self.check(broken.thread(1, LOW) + module_mappings(20000),
                   one_page_each(LOW, 0x2000, 20000),
                   b"".join(map(module_header, range(20000))))

    def test_modules_that_share_their_headers(self):
        count = 5000
        shared = LOW + count * 0x2000
        headers = broken.HEADER.pack(4, 4, 64, 0, 0, 36, 36, 4) * 65535
        self.check(
            broken.thread(1, LOW) + module_mappings(count),
            one_page_each(LOW, 0x2000, count)
            + [(shared, count * PAGE, len(headers), len(headers))],
            b"".join(module_header(i, 65535, shared - LOW - i * 0x2000)
                     for i in range(count)) + headers)

    def test_modules_that_share_their_notes(self):
        """Each has 256 rows of notes, in none of which is a build-id."""
        count, size = 4000, 65536
        shared = LOW + 2 * PAGE
        page = broken.elf_header(3, 256).ljust(PAGE, b"\0")
        headers = broken.HEADER.pack(4, 4, shared - LOW, 0, 0, size, size,
                                     4) * 256
        notes = struct.pack("<III", 0, 0, 1) * (size // 12)
        run = self.check(
            broken.thread(1, LOW) + broken.mapped_files(
                [(LOW, LOW + PAGE, 0, b"/none/%d" % i)
                 for i in range(count)]),
            [(LOW, 0, 64 + len(headers), 64 + len(headers)),
             (shared, 16384, size, size)],
            (page[:64] + headers).ljust(16384, b"\0") + notes)
        self.assertIn("mapped files overlap", run.stderr)

    @unittest.skipIf("sanitize" in os.environ["BUILD_DIR"],
                     "sixty thousand modules take the sanitizers long")
    def test_modules_of_one_file(self):
        """Of which a small core could make any number, each a large one."""
        # Of another process: once this one has mounts of its own, its files have no path there.
        maps = subprocess.run(["cat", "/proc/self/maps"], text=True, capture_output=True,
                              check=True).stdout
        path = next(line.split()[5] for line in maps.splitlines() if "/libc" in line)
        with open(path, "rb") as file:
            header = file.read(1024)
        count, step = 60000, os.path.getsize(path) + PAGE & -PAGE
        self.check(
            broken.thread(1, LOW) + broken.mapped_files(
                [(LOW + i * step, LOW + (i + 1) * step, 0, path.encode())
                 for i in range(count)]),
            [(LOW + i * step, i * 1024, 1024, 1024) for i in range(count)],
            header * count)

    def test_modules_in_one_stretch_of_memory(self):
        """In which each would be looked at for lists of stacks."""
        count, step, size = 20000, 128, 16 << 20
        header = broken.elf_header(3, 1).ljust(64, b"\0")
        header += broken.HEADER.pack(1, 4, 0, 0, 0, step, step, 4)
        words = struct.pack("<Q", LOW + 8) * ((size - count * step) // 8)
        self.check(
            broken.thread(1, LOW) + broken.mapped_files(
                [(LOW + i * step, LOW + (i + 1) * step, 0, b"/none/%d" % i)
                 for i in range(count)]),
            [(LOW, 0, size, size)],
            header.ljust(step, b"\0") * count + words)

    def test_terabytes_that_are_not_there(self):
        self.check(broken.thread(1, LOW), [(LOW, 0, PAGE, 100 << 40)], NOISE)

    def test_terabytes_that_could_be_objects(self):
        modules = [(LOW, b"/none/libpython"), (LOW + PAGE, b"/none/libruby")]
        self.check(
            broken.thread(1, LOW) + broken.mapped_files([
                (at, at + PAGE, 0, path) for at, path in modules]),
            one_page_each(LOW, PAGE, 2)
            + [(HIGH >> 8, 2 * PAGE, PAGE, 100 << 40)],
            module_header(1) + module_header(2) + NOISE)

    def test_terabytes_of_holes(self):
        self.check(broken.thread(1, LOW), [(LOW, 0, 4 << 40, 4 << 40)],
                   NOISE, size=4 << 40)
        self.check(broken.thread(1, LOW),
                   [(LOW + (i << 30), i << 30, 1 << 30, 1 << 30)
                    for i in range(4000)], NOISE, size=4000 << 30)

    def test_arenas_by_the_ten_thousand(self):
        self.check(
            broken.thread(1, LOW), one_page_each(HIGH, 64 << 20, 10000),
            b"".join((struct.pack("<4Q", at + 0x20, 0, PAGE, PAGE) + bytes(16)
                      + struct.pack("<Q", at + 0x800) * 200).ljust(PAGE, b"\0")
                     for at in (HIGH + (i << 26) for i in range(10000))))

    def test_mapped_chunks_by_the_ten_thousand(self):
        chunk = struct.pack("<QQ", 0, 0x1002) + struct.pack("<Q", HIGH) * 10
        self.check(broken.thread(1, LOW),
                   one_page_each(HIGH, 0x3000, 20000),
                   chunk.ljust(PAGE, b"\0") * 20000)

    def take(self, program, *arguments):
        with subprocess.Popen([program, *arguments],
                              stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            subprocess.run([harness.HEAPCORE, "snap", "-q", "-o", self.path,
                            str(process.pid)], check=True,
                           capture_output=True)
            process.kill()

    def test_classes_that_share_what_is_large(self):
        program = harness.build(self.path + ".program", "c++", "-O1", os.path.join(
            harness.PROGRAMS, "hostile_classes.cpp"))
        for kind, status, lines in (
                ("names", 2, ("list signatures", "count used plain")),
                ("tables", 0, ("count used %VectorBody",)),
                ("vector", 0, ("gate --likely",))):
            self.take(program, kind)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run = subprocess.run(
                [harness.HEAPCORE, "-q",
                 *(word for line in lines for word in ("-c", line)),
                 self.path],
                capture_output=True, text=True, check=False, timeout=300)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertEqual(run.returncode, status, run.stderr)
            self.assertLess(after.ru_utime - before.ru_utime, SECONDS / 2)

    def test_blocks_in_each_other_without_end(self):
        program = harness.build(self.path + ".program", "cc", "-Wl,--build-id", "-x", "assembler",
                                "-", text=DEEP.replace("DEPTH", str(DEPTH)))
        with harness.started([program]) as process:
            harness.snap(process, self.path)
        run = subprocess.run(
            [harness.HEAPCORE, self.path, "describe", "threads"],
            capture_output=True, text=True, check=False, timeout=60)
        self.assertIn(run.returncode, (0, 3), run.stderr)
        self.assertIn("main", run.stdout)


if __name__ == "__main__":
    unittest.main()
