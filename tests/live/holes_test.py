"""
A core that is nearly all holes is read in no time.

The program reserves 128 GB and touches one page of it; the kernel writes a
core of that size, of which the disk holds some hundred kilobytes.
"""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

SOURCE_DIR = os.environ.get("SOURCE_DIR", os.getcwd())
HEAPCORE = os.environ.get("HEAPCORE", os.path.join(SOURCE_DIR, "build/heapcore"))


def take_core(directory):
    """The path of a core by the kernel, or None where it writes none here."""
    program = os.path.join(directory, "reserved")
    source = os.path.join(SOURCE_DIR, "tests/cli/programs/reserved.c")
    subprocess.run(["cc", "-O1", "-o", program, source], check=True)
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    process = subprocess.Popen(
        [program], cwd=directory, stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, unlimited))
    process.stdout.readline()
    process.send_signal(signal.SIGABRT)
    process.wait()
    process.stdout.close()
    for name in ("core", f"core.{process.pid}"):
        path = os.path.join(directory, name)
        if os.path.exists(path):
            return path
    return None


class Holes(unittest.TestCase):
    def test_what_was_reserved_and_never_touched_costs_nothing(self):
        with tempfile.TemporaryDirectory() as directory:
            try:
                path = take_core(directory)
            except (ValueError, OSError) as error:
                self.skipTest(f"no core can be had here: {error}")
            if not path or os.path.getsize(path) < 1 << 37:
                self.skipTest("the kernel writes no core here, or a cut one")
            result = subprocess.run(
                [HEAPCORE, "-c", "list leaked", "-c", "summarize used", path],
                text=True, capture_output=True, timeout=30)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("of size 7d8", result.stdout)
        self.assertIn("\n1 allocations use", result.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
