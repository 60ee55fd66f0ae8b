"""
docs/ci.md: its recipes are executed.

A comment before each block of code says what it is:

    <!-- section: NAME -->      a fresh directory, with the example's source
    <!-- file: PATH -->         the block becomes this file
    <!-- run: STATUS -->        it is run by bash -e, and gives that status; also
                                "if cmake VERSION", or "unless" it is as new
    <!-- yaml: PATH; ... -->    a workflow: its steps are run
    <!-- not run: WHY -->
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    print("SKIPPED: there is no python3-yaml")
    sys.exit(77)

HEAPCORE = os.environ["HEAPCORE"]
SANITIZED = "sanitize" in os.environ["BUILD_DIR"]
DOCUMENT = os.path.join(os.environ["SOURCE_DIR"], "docs/ci.md")
EXAMPLE = "order_test.c"
TIMEOUT = 120
PIECE = re.compile(r"^<!-- ([a-z ]+): (.*?) -->$|^```(\w+)\n(.*?)^```$",
                   re.MULTILINE | re.DOTALL)


def recipes():
    """{section: [(what is to be done, its argument, the block)]}."""
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    found, section, comment = {}, None, None
    for piece in PIECE.finditer(text):
        what, argument, _, block = piece.groups()
        if what == "section":
            section = found.setdefault(argument, [])
        elif what:
            comment = (what, argument)
        else:
            section.append((*(comment or (None, None)), block))
            comment = None
    return found


def cmake_version():
    text = subprocess.run(["cmake", "--version"], capture_output=True,
                          text=True, check=True).stdout
    return [int(part) for part in re.search(r"(\d+)\.(\d+)", text).groups()]


def is_meant(condition):
    """Whether "if cmake 3.29" is so."""
    if not condition:
        return True
    word, _, version = condition.split()
    newer = cmake_version() >= [int(part) for part in version.split(".")]
    return newer == (word == "if")


class RecipesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.recipes = recipes()
        environment = dict(os.environ)
        environment["PATH"] = (os.path.dirname(HEAPCORE) + ":"
                               + environment["PATH"])
        environment.pop("MAKEFLAGS", None)
        cls.environment = environment
        if subprocess.run([HEAPCORE, "run", "-c", "quit", "--", "true"],
                          capture_output=True, check=False).returncode:
            raise unittest.SkipTest("programs cannot be traced here")

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="heapcore-ci-")
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run_block(self, text, status):
        if SANITIZED and "--self-check" in text:
            self.skipTest("the sanitizer has a malloc of its own")
        result = subprocess.run(
            ["bash", "-e", "-c", text], cwd=self.folder, text=True,
            env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=TIMEOUT, check=False)
        self.assertEqual(result.returncode, status,
                         f"{text}{result.stdout}{result.stderr}")
        return result.stdout + result.stderr

    def follow(self, section):
        """Do what it says; returns all that was written."""
        self.write(EXAMPLE, next(
            block for what, argument, block in self.recipes["example"]
            if (what, argument) == ("file", EXAMPLE)))
        written, runs = "", 0
        for what, argument, block in self.recipes[section]:
            if what == "file":
                self.write(argument, block)
                continue
            self.assertEqual(what, "run", block)
            status, _, condition = argument.partition(" ")
            if is_meant(condition):
                written += self.run_block(block, int(status))
                runs += 1
        self.assertGreater(runs, 0)
        return written

    def test_every_block_says_what_is_to_be_done_with_it(self):
        for section, blocks in self.recipes.items():
            for what, _, block in blocks:
                self.assertIn(what, ("file", "run", "yaml", "not run"),
                              f"{section}: {block}")
        self.assertEqual(
            set(self.recipes), {"example", "make", "cmake", "meson", "pytest",
                                "github", "gitlab", "docker"})

    def test_example(self):
        self.assertIn("Gate failed", self.follow("example"))
        for name in ("gate.sarif", "gate.xml", "gate.json", "gate.md"):
            self.assertGreater(
                os.path.getsize(os.path.join(self.folder, name)), 0, name)

    def test_make(self):
        self.assertIn("Gate failed", self.follow("make"))

    def test_cmake(self):
        self.assertIn("Gate failed", self.follow("cmake"))

    @unittest.skipUnless(shutil.which("meson"), "there is no meson")
    def test_meson(self):
        self.assertIn("Gate failed", self.follow("meson"))

    @unittest.skipUnless(shutil.which("pytest"), "there is no pytest")
    def test_pytest(self):
        written = self.follow("pytest")
        self.assertIn("1 failed, 1 passed", written)
        self.assertIn("Gate failed", written)

    def workflow(self, section):
        self.write(EXAMPLE, self.recipes["example"][0][2])
        (what, _, block), = self.recipes[section]
        self.assertEqual(what, "yaml")
        return yaml.safe_load(block)

    def test_github(self):
        steps = self.workflow("github")["jobs"]["gate"]["steps"]
        summary = os.path.join(self.folder, "summary")
        self.environment = dict(self.environment, GITHUB_STEP_SUMMARY=summary,
                                GITHUB_ACTIONS="true")
        ran, written = [], ""
        for step in steps:
            if "run" in step and step["name"] != "Get heapcore":
                ran.append(step["name"])
                written += self.run_block(step["run"], 1 if step["name"] == "Test" else 0)
        self.assertEqual(ran, ["Build", "Test", "Summary"])
        upload = [step["with"]["sarif_file"] for step in steps
                  if "upload-sarif" in step.get("uses", "")]
        self.assertTrue(os.path.getsize(os.path.join(self.folder, *upload)))
        with open(summary, encoding="utf-8") as file:
            self.assertIn("| failed |", file.read())
        # GitHub shows it beside the line that allocates.
        (place, text), = re.findall(r"^::error ([^:]*)::(.*)$", written, re.MULTILINE)
        properties = dict(pair.split("=", 1) for pair in place.split(","))
        self.assertEqual(properties["file"], EXAMPLE)
        with open(os.path.join(self.folder, EXAMPLE), encoding="utf-8") as file:
            line = file.read().splitlines()[int(properties["line"]) - 1]
        self.assertIn("calloc(", line)
        self.assertIn("allocated by order_create", text)

    def test_gitlab(self):
        job = self.workflow("gitlab")["leaks"]
        *first, last = job["script"]
        for command in first:
            self.run_block(command, 0)
        self.run_block(last, 1)
        self.assertTrue(os.path.getsize(os.path.join(
            self.folder, job["artifacts"]["reports"]["junit"])))


if __name__ == "__main__":
    unittest.main()
