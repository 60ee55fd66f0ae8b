"""
Packed cores, and those that come through a pipe: they give the answers of the
core itself; what is cut off, damaged, or no core at all is reported; a bomb is
bounded.
"""

import bz2
import gzip
import json
import lzma
import os
import resource
import struct
import subprocess
import tempfile
import unittest
import zlib

HEAPCORE = os.environ["HEAPCORE"]
CORE = os.path.join(
    os.environ["SOURCE_DIR"], "testdata/cores/bookworm-small.core.xz")
FINE, WRONG_USAGE, NOT_ANALYSED = 0, 2, 3
TIMEOUT = 120
MEGABYTE = 1 << 20


def tool(*words):
    return lambda data: subprocess.run(
        words, input=data, stdout=subprocess.PIPE, check=True).stdout


PACKERS = {
    "zstd": tool("zstd", "-c"),
    "gzip": gzip.compress,
    "lz4": tool("lz4", "-c"),
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}


def small_files():
    """Nothing that is made may be larger than this."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


class PackedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="heapcore-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        with lzma.open(CORE) as file:
            cls.bytes = file.read()
        cls.core = cls.write("core", cls.bytes)
        cls.answer = cls.run_heapcore(FINE, cls.core).stdout
        assert b"allocations use" in cls.answer

    @classmethod
    def write(cls, name, content):
        path = os.path.join(cls.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    @classmethod
    def run_heapcore(cls, status, core, *words, **options):
        if "stdin" not in options and "input" not in options:
            options["stdin"] = subprocess.DEVNULL
        run = subprocess.run(
            [HEAPCORE, core, *(words or ["count", "used"])],
            capture_output=True, timeout=TIMEOUT, **options)
        assert run.returncode == status, (run.returncode, run.stderr)
        return run

    def errors(self, status, core, **options):
        return self.run_heapcore(status, core, **options).stderr.decode()

    def test_packed_cores_answer_as_the_core_does(self):
        for name, pack in PACKERS.items():
            with self.subTest(packer=name):
                # The name of the file tells nothing.
                path = self.write("anything", pack(self.bytes))
                self.assertEqual(
                    self.run_heapcore(FINE, path).stdout, self.answer)

    def test_members_one_after_another_are_one_core(self):
        half = len(self.bytes) // 2 + 123
        for name, pack in PACKERS.items():
            with self.subTest(packer=name):
                path = self.write(
                    "halves", pack(self.bytes[:half]) + pack(self.bytes[half:]))
                self.assertEqual(
                    self.run_heapcore(FINE, path).stdout, self.answer)

    def test_core_is_read_from_standard_input(self):
        for content in (self.bytes, PACKERS["zstd"](self.bytes)):
            run = self.run_heapcore(FINE, "-", input=content)
            self.assertEqual(run.stdout, self.answer)
            with open(self.write("file", content), "rb") as file:
                run = self.run_heapcore(FINE, "-", stdin=file)
                self.assertEqual(run.stdout, self.answer)
        self.assertIn("is empty", self.errors(NOT_ANALYSED, "-", input=b""))
        run = subprocess.run([HEAPCORE, "-"], input=self.bytes,
                             capture_output=True, timeout=TIMEOUT)
        self.assertEqual(run.returncode, WRONG_USAGE)
        self.assertIn(b"give commands as arguments", run.stderr)

    def test_core_comes_from_the_kernel_with_nothing_else_open(self):
        report = os.path.join(self.folder, "report.json")
        run = subprocess.run(
            ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", HEAPCORE, "-o", report,
             "-", "count", "used"], input=self.bytes, timeout=TIMEOUT)
        self.assertEqual(run.returncode, FINE)
        with open(report, encoding="utf-8") as file:
            self.assertIn("rows", json.dumps(json.load(file)))

    def test_what_is_cut_off_is_told_and_the_rest_analysed(self):
        for name, pack in PACKERS.items():
            with self.subTest(packer=name):
                half = len(self.bytes) // 2
                data = pack(self.bytes[:half]) + pack(self.bytes[half:])[:-20]
                errors = self.errors(NOT_ANALYSED, self.write("cut", data))
                self.assertIn(f"packed with {name}, and cut off", errors)

    def test_what_is_damaged_is_told(self):
        for name, pack in PACKERS.items():
            with self.subTest(packer=name):
                data = bytearray(pack(self.bytes))
                for place in range(len(data) // 2, len(data) // 2 + 64):
                    data[place] ^= 0x5a
                errors = self.errors(NOT_ANALYSED, self.write("bad", data))
                self.assertRegex(errors, f"{name}, and|unpacks to nothing")

    def test_what_is_no_core_is_told(self):
        for content, message in (
            (gzip.compress(b"no core" * 1000), "not a core dump"),
            (lzma.compress(gzip.compress(self.bytes)), "packed twice"),
            (gzip.compress(b""), "unpacks to nothing"),
            (b"\x1f\x8b\x08", "unpacks to nothing"),
        ):
            self.assertIn(message, self.errors(
                NOT_ANALYSED, self.write("none", content)))

    def test_bomb_is_bounded_by_the_headers(self):
        """A gigabyte that no header tells of is not even looked at."""
        zeros = gzip.compress(bytes(64 * MEGABYTE), 1)
        bomb = self.write("bomb", gzip.compress(self.bytes) + 16 * zeros)
        run = self.run_heapcore(FINE, bomb)
        self.assertEqual(run.stdout, self.answer)
        self.assertIn(b"larger than its headers say", run.stderr)

    def test_decoder_gets_no_endless_memory(self):
        """A header of xz tells how much: here 1.5 GB, for a few bytes."""
        packed = bytearray(lzma.compress(b"small", preset=0))
        end = 12 + 4 * packed[12]  # of the block's header, less its checksum
        packed[packed.index(b"\x21\x01", 12) + 2] = 37
        packed[end:end + 4] = struct.pack("<I", zlib.crc32(packed[12:end]))
        self.assertIn("more than 256 MiB", self.errors(
            NOT_ANALYSED, self.write("greedy", packed)))

    def test_lack_of_room_names_the_folder(self):
        path = self.write("packed", gzip.compress(self.bytes))
        errors = self.errors(NOT_ANALYSED, path, preexec_fn=small_files,
                             env={**os.environ, "TMPDIR": self.folder})
        self.assertIn(f"no room to unpack it in {self.folder}", errors)
        self.assertIn("TMPDIR", errors)
        missing = os.path.join(self.folder, "missing")
        errors = self.errors(NOT_ANALYSED, path,
                             env={**os.environ, "TMPDIR": missing})
        self.assertIn(missing, errors)

    def test_nothing_is_left_behind(self):
        folder = os.path.join(self.folder, "room")
        os.mkdir(folder)
        path = self.write("packed", gzip.compress(self.bytes))
        self.run_heapcore(FINE, path, env={**os.environ, "TMPDIR": folder})
        self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
