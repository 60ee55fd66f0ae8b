"""
A program that was linked statically (-DSTATIC=ON) runs where there is nothing else.
"""

import os
import shutil
import subprocess
import tempfile
import unittest

HEAPCORE = os.environ["HEAPCORE"]
CORE = os.path.join(os.environ["SOURCE_DIR"], "testdata/cores/bookworm-small.core.xz")


class StaticTest(unittest.TestCase):
    def test_it_answers_in_an_empty_root(self):
        with tempfile.TemporaryDirectory(prefix="heapcore-root-") as root:
            shutil.copy(HEAPCORE, os.path.join(root, "heapcore"))
            shutil.copy(CORE, os.path.join(root, "core.xz"))
            os.mkdir(os.path.join(root, "tmp"))
            change = ["chroot", root] if os.geteuid() == 0 else ["unshare", "-r", "-R", root]
            run = subprocess.run([*change, "/heapcore", "-q", "/core.xz", "count", "used"],
                                 capture_output=True, text=True, check=False)
        self.assertRegex(run.stdout, r"^\d[\d,]* allocations use [\d,]+ bytes", run.stderr)


if __name__ == "__main__":
    unittest.main()
