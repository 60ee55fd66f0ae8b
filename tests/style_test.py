"""
The layout and the spelling of the sources, and what clang-tidy finds in them.

Tools that are not installed are said, and what they would check is skipped.
"""

import os
import shutil
import subprocess
import sys
import unittest

SOURCE_DIR = os.environ.get("SOURCE_DIR", os.getcwd())
BUILD_DIR = os.environ.get("BUILD_DIR", os.path.join(SOURCE_DIR, "build"))
PARTS = ["analyzer", "allocators", "cli", "tests", "testdata", "bench"]
PROSE = PARTS + ["docs", "scripts", "cmake", "README.md", "CMakeLists.txt"]


def sources(parts, endings):
    for part in parts:
        for folder, _, names in os.walk(os.path.join(SOURCE_DIR, part)):
            for name in sorted(names):
                if name.endswith(endings):
                    yield os.path.join(folder, name)


def run(*command):
    return subprocess.run(command, cwd=SOURCE_DIR, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def needs(tool):
    return unittest.skipUnless(shutil.which(tool), f"{tool} is not installed")


# Words that are right, or wrong because a test mistypes them.
MEANT = "deques,onwer,sesion,sesions,tthe"


class Style(unittest.TestCase):
    @needs("clang-format")
    def test_layout_is_that_of_clang_format(self):
        result = run("clang-format", "--dry-run", "-Werror",
                     *sources(PARTS, (".c", ".h")))
        self.assertEqual(result.returncode, 0, result.stdout[-5000:])

    @needs("codespell")
    def test_words_are_spelt_right(self):
        result = run("codespell", "--skip",
                     "*.xz,*.core,*.truth,*/schemas/*,*/corpus/*",
                     "--ignore-words-list", MEANT, *PROSE)
        self.assertEqual(result.returncode, 0, result.stdout)

    @needs("clang-tidy")
    @unittest.skipUnless(os.environ.get("CI"), "takes a minute or two: only in CI")
    @unittest.skipIf("sanitize" in BUILD_DIR, "once is enough")
    def test_clang_tidy_finds_nothing(self):
        # Half of the sources for each of two processors.
        every = list(sources(["analyzer", "allocators", "cli"], (".c",)))
        running = [subprocess.Popen(
            ["clang-tidy", "--quiet", "-p", BUILD_DIR, *every[i::2]],
            cwd=SOURCE_DIR, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL) for i in range(2)]
        output = "".join(process.communicate()[0] for process in running)
        self.assertEqual([process.returncode for process in running], [0, 0],
                         output[-5000:])


if __name__ == "__main__":
    sys.exit(unittest.main())
