#!/usr/bin/env python3
"""
Breaks a program's core in many ways: what is missing is said, gates do not pass
then, and without a warning all is as the program says.
"""

import os
import subprocess
import tempfile
import unittest

import broken
import harness
import live_test
import truth

AT_RANDOM = 25
CUTS = 30


class Answer:
    def __init__(self, path):
        self.leaks = self._run(path, "enumerate", "leaked")
        self.gate = self._run(path, "gate", "--max-leaked=1000000")
        self.status, self.errors = self.leaks.returncode, self.leaks.stderr
        self.leaked = {int(line, 16)
                       for line in self.leaks.stdout.splitlines()}

    @staticmethod
    def _run(path, *command):
        return subprocess.run(
            [harness.HEAPCORE, path, *command], capture_output=True,
            text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=60,
            check=False)


class BrokenTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        obstacle = harness.kernel_core_obstacle()
        if obstacle:
            raise unittest.SkipTest(obstacle)
        cls.folder = tempfile.TemporaryDirectory(prefix="heapcore-broken-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = os.path.join(cls.folder.name, "broken")
        cls.make_core()

    @classmethod
    def make_core(cls):
        class Options:
            compiler, flags, launcher = "gcc", harness.FLAGS, ""
            dynamic_flags = static_flags = ""
            only, skip, tunables, jobs = ["small"], [], None, 1
            programs = cls.folder.name

        case = live_test.Case("small", "", [], None)
        live_test.build(Options, cls.folder.name)
        process = live_test.start(Options, case, cls.folder.name)
        cls.core = harness.kernel_core(process, cls.folder.name)
        cls.truth = truth.Truth(os.path.join(cls.folder.name, "truth"))

    def load(self):
        return broken.Core(self.core)

    def ask(self, core, size=None):
        """A gate agrees with the rest; nothing is wrong in silence."""
        answer = Answer(core.write(self.path, size))
        self.assertIn(answer.status, (harness.FINE, harness.INCOMPLETE),
                      answer.errors)
        if answer.gate.returncode != answer.status:
            # It also looks for variables that refer to what is missing.
            self.assertEqual(answer.gate.returncode, harness.INCOMPLETE, answer.gate.stderr)
            self.assertIn("where the core has no memory", answer.gate.stderr)
        if answer.status == harness.INCOMPLETE:
            self.assertIn("warning: ", answer.errors)
        else:
            self.assertEqual(answer.leaked, set(self.truth.lost),
                             answer.errors)
        return answer

    def expect(self, message, core, size=None):
        answer = self.ask(core, size)
        self.assertEqual(answer.status, harness.INCOMPLETE, message)
        self.assertRegex(answer.errors, message)
        return answer

    def test_whole_core_is_fine(self):
        answer = self.ask(self.load())
        self.assertEqual((answer.status, answer.gate.returncode), (harness.FINE, harness.FINE))

    def test_core_is_cut_off(self):
        core = self.load()
        for i in range(CUTS):
            size = 64 + (len(core) - 65) * i // (CUTS - 1)
            if size < core.place + 56 * len(core.headers) + 64:
                run = subprocess.run(
                    [harness.HEAPCORE, core.write(self.path, size), "gate"],
                    capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, harness.INCOMPLETE)
                self.assertIn("cut off", run.stderr)
                continue
            answer = self.expect("the core is truncated: [0-9,]+ of "
                                 rf"{len(core):,} bytes are missing", core, size)
            self.assertIn(f"{len(core) - size:,} of", answer.errors)

    def test_segments_are_missing(self):
        """Never seen at all, or without contents, or only zeros in them."""
        for number, header in enumerate(self.load().headers):
            # That never-written memory is zero is no news.
            bss = header[1] & broken.PF_W and header[0] == broken.PT_LOAD
            if not bss or not header[5]:
                continue
            for way in ("gone", "absent", "zero"):
                core = self.load()
                changed = list(header)
                if way == "gone":
                    changed[0] = broken.PT_NULL
                elif way == "absent":
                    changed[5] = 0
                else:
                    core.zero(header[2], header[5])
                core.set_header(number, changed)
                with self.subTest(segment=hex(header[3]), way=way):
                    self.ask(core)

    def test_heap_is_zero_in_part(self):
        """Damage is reported where it is, and where the blocks go on."""
        core = self.load()
        used = sorted(self.truth.used())
        address = used[len(used) // 4] & ~(broken.PAGE - 1)
        core.zero(core.offset(address), broken.PAGE)
        answer = self.ask(core)
        if any(address <= block - 8 < address + broken.PAGE for block in used):
            self.assertEqual(answer.status, harness.INCOMPLETE)
            self.assertRegex(answer.errors, r"the heap is damaged at 0x\w+: "
                             r".* bytes are skipped")

    def test_main_stack_is_missing(self):
        core = self.load()
        number = core.find(core.auxiliary(AT_RANDOM))
        header = list(core.headers[number])
        header[0] = broken.PT_NULL
        core.set_header(number, header)
        self.expect("the main stack at 0x[0-9a-f]+ is not in the core", core)

    def test_thread_local_storage_is_missing(self):
        for pointer in self.load().thread_pointers():
            core = self.load()
            header = list(core.headers[core.find(pointer)])
            header[5] = 0
            core.set_header(core.find(pointer), header)
            self.expect("the thread-local storage of thread [0-9]+ at "
                        f"{pointer:#x}", core)

    def test_notes_are_missing(self):
        core = self.load()
        core.remove_notes(broken.NT_PRSTATUS)
        self.expect("the core has no threads", core)
        for kind in (broken.NT_AUXV, broken.NT_FILE):
            core = self.load()
            core.remove_notes(kind)
            self.ask(core)

    def test_program_headers_are_wrong(self):
        loads = [number for number, header in enumerate(self.load().headers)
                 if header[0] == broken.PT_LOAD]
        core = self.load()
        for to, number in zip(loads, reversed(loads)):
            core.set_header(to, core.headers[number])
        self.assertEqual(self.ask(core).status, harness.FINE)
        for number in loads[::6]:
            for field, value, message in (
                    (2, 1 << 63, "truncated"),
                    (5, 1 << 62, "truncated"),
                    (6, (1 << 64) - 1, "reaches past the end"),
                    (3, self.load().headers[loads[-2]][3], "overlap")):
                core = self.load()
                header = list(core.headers[number])
                if header[5] == 0 or number == loads[-2]:
                    continue
                header[field] = value
                core.set_header(number, header)
                with self.subTest(segment=number, field=field):
                    self.expect(message, core)

    def test_core_without_private_memory(self):
        """As coredump_filter can have it."""
        core = self.load()
        for number, header in enumerate(core.headers):
            if header[0] == broken.PT_LOAD and header[1] & broken.PF_W:
                core.set_header(number, header[:5] + [0] + header[6:])
        self.expect("see coredump_filter", core)


if __name__ == "__main__":
    unittest.main()
