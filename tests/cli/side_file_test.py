#!/usr/bin/env python3
"""
The side file of a core: with it, every answer is the same to the byte; a core
that was changed, a side file that is damaged or of another heapcore is noticed.
"""

import lzma
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR", os.getcwd()))
HEAPCORE = os.environ.get("HEAPCORE", str(SOURCE / "build" / "heapcore"))
CORES = SOURCE / "testdata" / "cores"

# Ask for all that a side file keeps, and for what is made of it.
COMMANDS = """\
count used
count free
summarize leaked
summarize used
list leakroots
summarize leakroots
explain leakroots --limit 3
list used --limit 20
list free --limit 20
list arenas
list signatures
list anchored --sort-by retained --limit 5
describe leaked --limit 3
explain used --limit 5
count stackanchored
count registeranchored
summarize unreferenced
bill
fragmentation
waste
gate
"""

# A core that is damaged is analysed, but the status says how well.
DAMAGED = "trixie-damaged-run"
NAMES = ("bookworm-small", "forky-late_cache", "forky-damaged-size", DAMAGED)
FLIPS = 200
HEADER_SIZE = 4096
# Where the format's number stands in the header, and the table of arrays.
FORMAT_AT = 16
SECTIONS_AT, SECTION, SECTIONS = 72, struct.Struct("<QQQ"), 40


def bytes_in_use(side):
    """Where its bytes stand that mean something, the header's included."""
    places = list(range(SECTIONS_AT + SECTION.size * SECTIONS + 8))
    for number in range(SECTIONS):
        start, size, _ = SECTION.unpack_from(
            side, SECTIONS_AT + SECTION.size * number)
        places += range(start, start + size)
    return places


class SideFileTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="heapcore-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def unpack(self, name):
        core = self.directory / f"{name}.core"
        with lzma.open(CORES / f"{name}.core.xz") as packed, \
                open(core, "wb") as target:
            shutil.copyfileobj(packed, target)
        return core

    def run_on(self, core, *options, commands=COMMANDS):
        return subprocess.run(
            [HEAPCORE, *options, core], input=commands, text=True,
            cwd=self.directory, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=60, check=False)

    @staticmethod
    def side_of(core):
        return core.with_name(core.name + ".hcx")

    def make(self, name="bookworm-small"):
        """A core that has a side file, and what is said of it."""
        core = self.unpack(name)
        plain = self.run_on(core)
        self.run_on(core, "--side-file")
        self.assertTrue(self.side_of(core).exists())
        return core, plain

    def assert_same(self, first, second):
        self.assertEqual(first.stdout, second.stdout)
        self.assertEqual(first.stderr, second.stderr)
        self.assertEqual(first.returncode, second.returncode)

    def sources(self, core):
        """Of each stage that was built, what it was built from."""
        result = self.run_on(core, "-v", "--side-file", "--format", "csv",
                             commands="summarize leaked\nlist leakroots\n")
        rows = [line.split(",") for line in result.stderr.splitlines()]
        return {row[1]: row[2] for row in rows if row[0] == "stage"}

    def test_every_answer_is_the_same(self):
        for name in NAMES:
            with self.subTest(name):
                core = self.unpack(name)
                plain = self.run_on(core)
                self.assertTrue(plain.stdout)
                self.assertFalse(self.side_of(core).exists())
                self.assert_same(plain, self.run_on(core, "--side-file"))
                self.assertTrue(self.side_of(core).exists())
                self.assert_same(plain, self.run_on(core, "--side-file"))
                if name == DAMAGED:
                    self.assertEqual(plain.returncode, 3)

    def test_each_command_alone_is_the_same(self):
        core, _ = self.make("trixie-small")
        for command in COMMANDS.splitlines():
            with self.subTest(command):
                self.assert_same(
                    self.run_on(core, commands=command),
                    self.run_on(core, "--side-file", commands=command))

    def test_stages_come_from_it(self):
        core, _ = self.make()
        sources = self.sources(core)
        for stage in ("heap", "roots", "graph", "reachability", "leaks",
                      "patterns of leaked", "signatures"):
            self.assertEqual(sources[stage], "side file", stage)
        self.assertEqual(sources["program"], "core")

    def test_only_its_owner_reads_it(self):
        core, _ = self.make()
        self.assertEqual(self.side_of(core).stat().st_mode & 0o777, 0o600)
        self.assertEqual(sorted(path.name for path
                                in self.directory.iterdir()),
                         [core.name, core.name + ".hcx"])

    def test_a_link_is_not_followed(self):
        core = self.unpack("bookworm-small")
        victim = self.directory / "victim"
        victim.write_text("mine")
        self.side_of(core).symlink_to(victim)
        result = self.run_on(core, "--side-file")
        self.assertIn("it is a symbolic link", result.stderr)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(victim.read_text(), "mine")

    def test_one_that_others_can_write_is_not_used(self):
        core, _ = self.make()
        self.side_of(core).chmod(0o666)
        result = self.run_on(core, "--side-file")
        self.assertIn("others can write to it", result.stderr)
        self.assertEqual(result.returncode, 2)

    def test_a_changed_core_is_noticed(self):
        core, _ = self.make()
        status = core.stat()
        with open(core, "r+b") as file:
            file.seek(status.st_size // 2)
            byte = file.read(1)[0]
            file.seek(status.st_size // 2)
            file.write(bytes([byte ^ 1]))
        # Not by its time alone.
        os.utime(core, ns=(status.st_atime_ns, status.st_mtime_ns))
        result = self.run_on(core, "--side-file")
        self.assertIn("made anew: the core was changed", result.stderr)
        self.assertNotIn("made anew",
                         self.run_on(core, "--side-file").stderr)

    def test_a_touched_core_is_noticed(self):
        core, plain = self.make()
        os.utime(core, ns=(1, 1))
        result = self.run_on(core, "--side-file")
        self.assertIn("made anew: the core was changed", result.stderr)
        self.assertEqual(result.stdout, plain.stdout)

    def test_another_version_is_refused(self):
        core, plain = self.make()
        side = self.side_of(core)
        with open(side, "r+b") as file:
            file.seek(FORMAT_AT)
            version, = struct.unpack("<Q", file.read(8))
            file.seek(FORMAT_AT)
            file.write(struct.pack("<Q", version + 1))
        result = self.run_on(core, "--side-file")
        self.assertIn("made anew: it is of another heapcore", result.stderr)
        self.assertEqual(result.stdout, plain.stdout)

    def test_what_is_no_side_file_is_not_replaced(self):
        core = self.unpack("bookworm-small")
        self.side_of(core).write_bytes(b"a letter" * 1000)
        self.side_of(core).chmod(0o600)
        result = self.run_on(core, "--side-file")
        self.assertIn("it is no side file", result.stderr)
        self.assertEqual(result.returncode, 2)
        self.assertTrue(self.side_of(core).read_bytes().startswith(b"a let"))

    def test_a_truncated_one_is_noticed(self):
        core, plain = self.make()
        side = self.side_of(core)
        whole = side.read_bytes()
        for size in (0, 100, HEADER_SIZE, len(whole) // 2, len(whole) - 1):
            with self.subTest(size):
                side.write_bytes(whole[:size])
                result = self.run_on(core, "--side-file")
                self.assertEqual(result.stdout, plain.stdout)
                self.assertIn("made anew", result.stderr)

    def test_flipped_bits_change_no_answer(self):
        core, plain = self.make("forky-late_cache")
        side = self.side_of(core)
        whole = side.read_bytes()
        places = bytes_in_use(whole)
        chance = random.Random(1)
        noticed = 0
        for _ in range(FLIPS):
            damaged = bytearray(whole)
            damaged[chance.choice(places)] ^= 1 << chance.randrange(8)
            side.write_bytes(damaged)
            result = self.run_on(core, "--side-file")
            # In front, it may seem to be no side file at all.
            if "it is no side file" in result.stderr:
                noticed += 1
                continue
            self.assertEqual(result.stdout, plain.stdout)
            self.assertEqual(result.returncode, plain.returncode)
            noticed += "made anew" in result.stderr or \
                "is no longer used" in result.stderr
        self.assertEqual(noticed, FLIPS)

    def test_it_is_verified(self):
        core, _ = self.make()
        result = self.run_on(core, "--verify-side-file")
        self.assertEqual(result.returncode, 0)
        self.assertIn("agrees with a new analysis", result.stdout)
        side = self.side_of(core)
        damaged = bytearray(side.read_bytes())
        damaged[bytes_in_use(damaged)[-1]] ^= 4
        side.write_bytes(damaged)
        result = self.run_on(core, "--verify-side-file")
        self.assertEqual(result.returncode, 3)
        side.unlink()
        result = self.run_on(core, "--verify-side-file")
        self.assertIn("there is none", result.stderr)

    def test_a_folder_that_cannot_be_written_is_no_error(self):
        core = self.unpack("bookworm-small")
        name = "x" * (255 - len(".hcx"))
        long_core = self.directory / name
        core.rename(long_core)
        plain = self.run_on(long_core)
        result = self.run_on(long_core, "--side-file")
        self.assertEqual(result.stdout, plain.stdout)
        self.assertIn("no side file", result.stderr)


if __name__ == "__main__":
    unittest.main()
