"""
A build that only reads cores (-DCAPTURE=OFF): cli/live/elsewhere.c has all that the rest calls of
what such a build leaves out. Whether it links is seen in the symbols of a build that has it.
"""

import glob
import os
import re
import subprocess
import tempfile
import unittest

SOURCE_DIR = os.environ.get("SOURCE_DIR", os.getcwd())
BUILD_DIR = os.environ.get("BUILD_DIR", os.path.join(SOURCE_DIR, "build"))
LEFT_OUT = re.compile(r"/analyzer/capture/|/cli/live/(watch|preload)\.c\.o$")


def symbols(paths, kinds):
    """The names of these kinds, as nm writes them, in object files."""
    text = subprocess.run(["nm", "--no-sort", *paths], check=True, text=True,
                          capture_output=True).stdout
    return set(re.findall(rf"^[\s0-9a-f]* [{kinds}] (\w+)$", text, re.M))


class WithoutCaptureTest(unittest.TestCase):
    def test_all_that_the_rest_calls_has_a_stand_in(self):
        objects = [path for part in ("analyzer", "front", "heapcore")
                   for path in glob.glob(f"{BUILD_DIR}/CMakeFiles/{part}.dir/**/*.o",
                                         recursive=True)]
        left_out = [path for path in objects if LEFT_OUT.search(path)]
        kept = [path for path in objects if not LEFT_OUT.search(path)]
        if not left_out or "/elsewhere.c.o" in " ".join(kept):
            self.skipTest("this build has no capture")
        with tempfile.TemporaryDirectory(prefix="heapcore-test-") as folder:
            made = os.path.join(folder, "elsewhere.o")
            subprocess.run(["cc", "-c", "-D_GNU_SOURCE", f"-I{SOURCE_DIR}", "-o", made,
                            f"{SOURCE_DIR}/cli/live/elsewhere.c"], check=True)
            stand_ins = symbols([made], "T")
        needed = symbols(kept, "U") & symbols(left_out, "TDRB")
        self.assertIn("snapshot_take", needed)
        self.assertEqual(needed, stand_ins)


if __name__ == "__main__":
    unittest.main()
