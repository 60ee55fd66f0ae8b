#!/usr/bin/env python3
"""
Cores of threads that allocate and free all the time, taken by heapcore, gcore
and the kernel, at an abort and when another thread crashes: what is in use is
found, but for what a thread was just busy with, and no damage is claimed.
"""

import os
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import broken
import live_test

READY_TIMEOUT = 60
# Two to a thread, and those that libc allocates for itself.
MOST_UNLISTED = 32
FINE, INCOMPLETE = 0, 3


def snap(process, folder):
    path = os.path.join(folder, "core.snap")
    subprocess.run([live_test.HEAPCORE, "snap", "-q", "-o", path,
                    str(process.pid)], check=True, capture_output=True)
    return path


def crash(process, folder):
    process.send_signal(signal.SIGUSR1)
    process.wait(timeout=60)
    return os.path.join(folder, next(
        name for name in os.listdir(folder) if name.startswith("core")))


class HammerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = tempfile.TemporaryDirectory(prefix="heapcore-hammer-")
        cls.addClassCleanup(cls.programs.cleanup)
        cls.program = os.path.join(cls.programs.name, "hammer")
        sources = [os.path.join(live_test.SOURCES, name)
                   for name in ("hammer.c", "truth.c")]
        subprocess.run(["cc", *live_test.FLAGS.split(), "-o", cls.program,
                        *sources], check=True)

    def start(self, folder, *arguments):
        path = os.path.join(folder, "truth")
        live_test.allow_cores()
        process = subprocess.Popen(
            [self.program, *arguments], cwd=folder,
            env={**os.environ, "HEAPCORE_TRUTH": path})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + READY_TIMEOUT
        while not live_test.is_ready(path):
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        time.sleep(0.1)
        with open(path, encoding="ascii") as file:
            _, address, count = file.readline().split()
        return process, int(address, 16), int(count)

    def ask(self, core, what):
        run = subprocess.run([live_test.HEAPCORE, core, "enumerate", what],
                             capture_output=True, text=True, check=False)
        return run, {int(line, 16) for line in run.stdout.splitlines()}

    def hammer(self, take, *arguments, times=2):
        for _ in range(times):
            with tempfile.TemporaryDirectory(prefix="heapcore-") as folder:
                process, address, count = self.start(folder, *arguments)
                core = take(process, folder)
                self.check(core, address, count)
                process.kill()

    def check(self, core, address, count):
        words = broken.Core(core).read(address, 8 * count)
        slots = set(struct.unpack(f"<{count}Q", words)) - {0}
        run, used = self.ask(core, "used")
        self.assertNotIn("damaged", run.stderr)
        self.assertGreater(len(slots), count / 2)
        # Between two steps of malloc, a chunk can have no header at all.
        if run.returncode != FINE:
            self.assertEqual(run.returncode, INCOMPLETE)
            self.assertIn("while a thread was changing", run.stderr)
        else:
            self.assertEqual(slots - used, set(), "in a slot, but not in use")
        self.assertLess(len(used - slots), MOST_UNLISTED)
        _, leaked = self.ask(core, "leaked")
        self.assertEqual(leaked & slots, set(), "in a slot, but leaked")

    def test_snap(self):
        self.hammer(snap)

    def test_gcore(self):
        def take(process, folder):
            try:
                return live_test.take_gcore(process, folder)
            except live_test.Skipped as reason:
                raise unittest.SkipTest(str(reason))

        self.hammer(take, times=1)

    def by_kernel(self):
        obstacle = live_test.kernel_core_obstacle()
        if obstacle:
            self.skipTest(obstacle)

    def test_abort(self):
        self.by_kernel()
        self.hammer(live_test.take_kernel_core)

    def test_crash_of_another_thread(self):
        self.by_kernel()
        self.hammer(crash, "crash")


if __name__ == "__main__":
    unittest.main()
