"""
docs/ci.md: its recipes are executed.

A comment before each block of code says what it is:

    <!-- section: NAME -->      a fresh directory, with the example's source
    <!-- file: PATH -->         the block becomes this file
    <!-- run: STATUS -->        it is run by bash -e, and gives that status; also
                                "if cmake VERSION", or "unless" it is as new
    <!-- yaml: PATH; ... -->    a workflow: its steps are run, and those of packaging/ that it uses, with
                                a release that the test makes
    <!-- not run: WHY -->
"""

import hashlib
import os
import platform
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
SOURCE_DIR = os.environ["SOURCE_DIR"]
DOCUMENT = os.path.join(SOURCE_DIR, "docs/ci.md")
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
        if SANITIZED and "--self-check" in text + self.environment.get("OPTIONS", ""):
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
            set(self.recipes), {"example", "make", "cmake", "gtest", "meson", "cargo", "pytest",
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

    @unittest.skipUnless(os.path.exists("/usr/include/gtest/gtest.h"), "there is no gtest")
    def test_gtest(self):
        written = self.follow("gtest")
        self.assertIn("1 tests failed out of 2", written)
        self.assertIn("allocated by Orders_AreFreed_Test::TestBody()", written)

    @unittest.skipUnless(shutil.which("cargo"), "there is no cargo")
    def test_cargo(self):
        self.assertIn("orders_are_freed", self.follow("cargo").partition("allocated by")[2])

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

    def release(self, version):
        """Its folder, and the sum of the file for this machine."""
        folder = os.path.join(self.folder, "release")
        os.mkdir(folder)
        name = f"heapcore-{version}-{platform.machine()}"
        shutil.copy(HEAPCORE, os.path.join(folder, name))
        with open(HEAPCORE, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        self.write("release/SHA256SUMS", f"{digest}  {name}\n{'0' * 64}  {name}.apk\n")
        return f"file://{folder}", digest

    @staticmethod
    def packaged(name):
        """The documents of the file of packaging/."""
        with open(os.path.join(SOURCE_DIR, "packaging", name), encoding="utf-8") as file:
            return list(yaml.safe_load_all(file))

    def fill(self, declared, given, opening, closing):
        """A function that puts the inputs where they are named, as the forge does."""
        self.assertLessEqual(set(given), set(declared))
        inputs = {name: given.get(name, about.get("default")) for name, about in declared.items()}
        self.assertNotIn(None, [value for name, value in inputs.items() if "default" not in declared[name]])
        return lambda text: re.sub(re.escape(opening) + r"\s*inputs\.([\w-]+)\s*" + re.escape(closing),
                                   lambda match: str(inputs[match[1]]), str(text))

    def run_action(self, given, statuses):
        """All its steps, whatever the ones before gave; returns what was written."""
        action, = self.packaged("github/action.yml")
        fill = self.fill(action["inputs"], given, "${{", "}}")
        written = ""
        for step in action["runs"]["steps"]:
            if "run" not in step:
                continue
            for name, value in step.get("env", {}).items():
                self.environment[name] = fill(value)
            written += self.run_block(step["run"], statuses[step["name"]])
        return written

    @unittest.skipUnless(shutil.which("curl"), "there is no curl")
    def test_github(self):
        *first, (use, given) = [(step.get("run") or step["uses"], step.get("with"))
                                for step in self.workflow("github")["jobs"]["gate"]["steps"]]
        self.assertEqual(use, f"OWNER/heapcore/packaging/github@{given['version']}")
        for step, _ in first:
            if "actions/" not in step:
                self.run_block(step, 0)
        url, digest = self.release(given["version"])
        summary, path = (os.path.join(self.folder, name) for name in ("summary", "path"))
        self.environment = dict(self.environment, GITHUB_STEP_SUMMARY=summary, GITHUB_PATH=path,
                                RUNNER_TEMP=self.folder, GITHUB_ACTIONS="true")
        given = dict(given, url=url)
        written = self.run_action(given, {"Get heapcore": 0, "Test": 1, "Summary": 0})
        with open(path, encoding="utf-8") as file:
            self.assertTrue(os.access(os.path.join(file.read().strip(), "heapcore"), os.X_OK))
        self.run_block(f"rm {self.folder}/gate.*", 0)
        for sha256, status in ((digest, 0), ("1" * 64, 1)):
            self.run_action(dict(given, sha256=sha256, command="true"),
                            {"Get heapcore": status, "Test": 0, "Summary": 0})
        self.assertTrue(os.path.getsize(os.path.join(self.folder, "gate.sarif")))
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

    @unittest.skipUnless(shutil.which("curl"), "there is no curl")
    def test_gitlab(self):
        include, = self.workflow("gitlab")["include"]
        url, digest = self.release(include["inputs"]["version"])
        spec, jobs = self.packaged("gitlab/leaks.yml")
        fill = self.fill(spec["spec"]["inputs"], dict(include["inputs"], url=url, sha256=digest), "$[[", "]]")
        job = jobs["leaks"]
        self.environment = dict(self.environment, **{name: fill(value) for name, value in job["variables"].items()})
        *first, last = job["before_script"] + job["script"]
        for command in first:
            self.run_block(command, 0)
        self.run_block(last, 1)
        self.assertTrue(os.path.getsize(os.path.join(
            self.folder, job["artifacts"]["reports"]["junit"])))
        self.environment["SHA256"] = "1" * 64
        self.run_block(job["before_script"][1], 1)


if __name__ == "__main__":
    unittest.main()
