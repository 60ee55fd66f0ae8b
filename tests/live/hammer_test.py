#!/usr/bin/env python3
"""
Cores of threads that allocate and free all the time, taken by heapcore, gcore
and the kernel, at an abort and when another thread crashes: what is in use is
found, but for what a thread was just busy with, and no damage is claimed.
"""

import os
import signal
import struct
import tempfile
import time
import unittest

import broken
import harness

# Two to a thread, and those that libc allocates for itself.
MOST_UNLISTED = 32


class HammerTest(harness.LiveTest):
    def setUp(self):
        super().setUp()
        self.program = self.compile("hammer", "hammer.c", "truth.c",
                                    flags=harness.FLAGS.split())

    def ask(self, core, what):
        run = harness.run(harness.HEAPCORE, core, "enumerate", what)
        return run, {int(line, 16) for line in run.stdout.splitlines()}

    def hammer(self, take, *arguments, times=2):
        for _ in range(times):
            with tempfile.TemporaryDirectory(prefix="heapcore-") as folder:
                truth = os.path.join(folder, "truth")
                with harness.started([self.program, *arguments], truth=truth,
                                     folder=folder) as process:
                    time.sleep(0.1)
                    with open(truth, encoding="ascii") as file:
                        _, address, count = file.readline().split()
                    self.check(take(process, folder), int(address, 16),
                               int(count))

    def check(self, core, address, count):
        words = broken.Core(core).read(address, 8 * count)
        slots = set(struct.unpack(f"<{count}Q", words)) - {0}
        run, used = self.ask(core, "used")
        self.assertNotIn("damaged", run.stderr)
        self.assertGreater(len(slots), count / 2)
        # Between two steps of malloc, a chunk can have no header at all.
        if run.returncode != harness.FINE:
            self.assertEqual(run.returncode, harness.INCOMPLETE)
            self.assertIn("while a thread was changing", run.stderr)
        else:
            self.assertEqual(slots - used, set(), "in a slot, but not in use")
        self.assertLess(len(used - slots), MOST_UNLISTED)
        _, leaked = self.ask(core, "leaked")
        self.assertEqual(leaked & slots, set(), "in a slot, but leaked")

    def test_snap(self):
        self.hammer(lambda process, folder: harness.snap(
            process, os.path.join(folder, "snapped")))

    def test_gcore(self):
        self.hammer(harness.gcore, times=1)

    def test_abort(self):
        self.hammer(harness.kernel_core)

    def test_crash_of_another_thread(self):
        self.hammer(lambda process, folder: harness.kernel_core(
            process, folder, by=signal.SIGUSR1), "crash")


if __name__ == "__main__":
    unittest.main()
