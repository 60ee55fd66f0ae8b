"""
A dry run of scripts/release, in a repository of the few files that it reads.
"""

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

SOURCE_DIR = os.environ["SOURCE_DIR"]
VERSION = "7.6"
# What is written in each file where the version stands.
PLACES = {
    "CMakeLists.txt": (r"(project\(heapcore VERSION )\S+", rf"\g<1>{VERSION}"),
    "docs/CHANGELOG.md": (r"(?m)^## .*", f"## {VERSION}, 2026-11-23"),
    "packaging/tag.txt": (r"\Aheapcore \S+", f"heapcore {VERSION}"),
    "README.md": (r"heapcore-[\d.]+-x86_64 ", f"heapcore-{VERSION}-x86_64 "),
    "packaging/heapcore.nix": (r'version = ".*"', f'version = "{VERSION}"'),
    "packaging/debian/changelog": (r"\A\S+ \(\S+\)", f"heapcore ({VERSION}-1)"),
}


class ReleaseTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="heapcore-release-")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        for path, (pattern, new) in PLACES.items():
            self.write(path, re.sub(pattern, new, self.read(SOURCE_DIR, path), count=1))
        self.write(".gitignore", self.read(SOURCE_DIR, ".gitignore"))
        os.mkdir(self.path("scripts"))
        shutil.copy(os.path.join(SOURCE_DIR, "scripts/release"), self.path("scripts/release"))
        self.git("init", "-q")
        self.commit()

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def read(folder, path):
        with open(os.path.join(folder, path), encoding="utf-8") as file:
            return file.read()

    def write(self, path, text):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "w", encoding="utf-8") as file:
            file.write(text)

    def git(self, *words):
        subprocess.run(["git", "-C", self.folder, "-c", "user.name=a", "-c", "user.email=a@b",
                        *words], check=True, capture_output=True)

    def commit(self):
        self.git("add", ".")
        self.git("commit", "-q", "-m", "a release")

    def release(self, version=VERSION):
        return subprocess.run([self.path("scripts/release"), "--dry-run", version], text=True,
                              capture_output=True, check=False)

    def assert_refused(self, message, version=VERSION):
        run = self.release(version)
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn(message, run.stderr)
        self.assertNotIn("git tag", run.stdout)

    def test_sources_are_packed_and_the_tag_is_left_to_the_user(self):
        run = self.release()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout,
                         rf"\n    git tag -s -F packaging/tag.txt {VERSION} \w{{40}}\n")
        with tarfile.open(self.path(f"build/release/heapcore-{VERSION}.tar.xz")) as archive:
            self.assertIn(f"heapcore-{VERSION}/CMakeLists.txt", archive.getnames())
        tags = subprocess.run(["git", "-C", self.folder, "tag"], capture_output=True, check=True)
        self.assertEqual(tags.stdout, b"")
        self.assertEqual(self.release().returncode, 0)

    def test_every_place_must_have_the_version(self):
        for path in PLACES:
            with self.subTest(path):
                text = self.read(self.folder, path)
                self.write(path, text.replace(VERSION, "7.5", 1))
                self.commit()
                self.assert_refused(f"{path} has version '7.5' instead of '{VERSION}'")
                self.write(path, text)
                self.commit()

    def test_what_is_not_released_yet_is_refused(self):
        text = self.read(self.folder, "docs/CHANGELOG.md")
        self.write("docs/CHANGELOG.md", text.replace(", 2026-11-23", ", not released yet"))
        self.commit()
        self.assert_refused("docs/CHANGELOG.md has version '7.6, not released yet'")

    def test_changes_and_a_tag_that_is_there_are_refused(self):
        self.write("more", "")
        self.assert_refused("not committed")
        self.commit()
        self.git("tag", VERSION)
        self.assert_refused(f"there is a tag {VERSION} already")

    def test_what_is_no_version_is_wrong_usage(self):
        for version in ("", "v1", "1", "1.0; true"):
            self.assertEqual(self.release(version).returncode, 2, version)


if __name__ == "__main__":
    unittest.main()
