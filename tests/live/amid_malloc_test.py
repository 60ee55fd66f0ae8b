#!/usr/bin/env python3
"""
Programs of each allocator, ended amid malloc: their threads allocate and free all the time. What
their slots hold is in use, but for what a thread was just busy with, and no other block is.

AMID_MALLOC says how often each is ended, instead of a few times.
"""

import os
import random
import shutil
import struct
import tempfile
import time
import unittest

import broken
import harness
import preloaded

TIMES = int(os.environ.get("AMID_MALLOC", "3"))
# The threads move blocks between an allocator's lists and their caches, many at once.
THREADS, MOST_MOVED = 4, 256
# Of slots, each thread may be about to fill one, or just did.
MOST_BUSY = 2


class AmidMalloc(harness.LiveTest):
    def hammered(self, program, library):
        """A core of the program, and what its slots hold."""
        with tempfile.TemporaryDirectory(prefix="heapcore-") as folder:
            path = os.path.join(folder, "truth")
            with harness.started([program], truth=path, folder=folder,
                                 LD_PRELOAD=preloaded.path_of(library)) as process:
                time.sleep(random.random() / 20)
                with open(path, encoding="ascii") as file:
                    _, address, count = file.readline().split()
                core = harness.kernel_core(process, folder)
            words = broken.Core(core).read(int(address, 16), 8 * int(count))
            slots = set(struct.unpack(f"<{count}Q", words)) - {0}
            used, leaked = (harness.run(harness.HEAPCORE, core, "enumerate", which)
                            for which in ("used", "leaked"))
        return slots, used, leaked

    def check(self, program, library):
        slots, used, leaked = self.hammered(program, library)
        starts, lost = ({int(line, 16) for line in run.stdout.split()} for run in (used, leaked))
        self.assertIn(used.returncode, (harness.FINE, harness.INCOMPLETE), used.stderr)
        # jemalloc's extents amid a change are not counted, the latest block of a cache is in doubt.
        said = (used.returncode == harness.INCOMPLETE or "were changing" in used.stderr
                or "caches that threads may have been changing" in used.stderr)
        missed, others = len(slots - starts), len(starts - slots)
        self.report.append((missed, others, len(lost & slots), said))
        self.assertLessEqual(missed, MOST_BUSY * THREADS if said else 0, used.stderr)
        self.assertLessEqual(others, THREADS * MOST_MOVED + preloaded.MOST_UNLISTED)
        self.assertEqual(lost & slots, set())

    def check_all(self, program, library=""):
        self.report = []
        for _ in range(TIMES):
            with self.subTest(library=library):
                self.check(program, library)
        print(f"{library or program}: killed {TIMES} times;",
              f"slots missed: {sum(row[0] for row in self.report)},",
              f"blocks in use besides: at most {max(row[1] for row in self.report)},",
              f"slots leaked: {sum(row[2] for row in self.report)},",
              f"said: {sum(row[3] for row in self.report)}")

    def check_library(self, *names):
        library = preloaded.first_there(*names)
        if not library:
            raise harness.Skipped(f"there is no {names[0]}")
        self.check_all(self.compile("hammer", "hammer.c", "truth.c",
                                    flags=harness.FLAGS.split()), library)

    def test_jemalloc(self):
        self.check_library("libjemalloc.so.2")

    def test_tcmalloc(self):
        self.check_library("libtcmalloc_minimal.so.4")

    def test_mimalloc(self):
        self.check_library("libmimalloc.so.2", "libmimalloc.so.3")

    def check_compiler(self, compiler):
        self.check_all(self.compile("hammer", "hammer.c", "truth.c", compiler=compiler,
                                    flags=harness.FLAGS.split()))

    @unittest.skipUnless(shutil.which("musl-gcc"), "there is no musl-gcc")
    def test_musl(self):
        self.check_compiler("musl-gcc")


if __name__ == "__main__":
    unittest.main()
