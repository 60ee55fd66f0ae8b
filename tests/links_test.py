"""
Links of the documents lead to files and headings that exist.
"""

import os
import re
import subprocess
import unittest

SOURCE_DIR = os.environ["SOURCE_DIR"]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def documents():
    listed = subprocess.run(["git", "-C", SOURCE_DIR, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split() if os.path.exists(os.path.join(SOURCE_DIR, name))]


def read(name):
    with open(os.path.join(SOURCE_DIR, name), encoding="utf-8") as file:
        return file.read()


def anchors(text):
    """The anchors that hosts of Markdown give to headings."""
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class LinksTest(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self):
        for name in documents():
            text = read(name)
            for link in LINK.findall(text):
                path, _, anchor = link.partition("#")
                if re.match(r"[a-z]+:", link):
                    continue
                target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
                with self.subTest(page=name, link=link):
                    self.assertTrue(os.path.exists(os.path.join(SOURCE_DIR, target)))
                    if anchor and target.endswith(".md"):
                        self.assertIn(anchor, anchors(read(target)))


if __name__ == "__main__":
    unittest.main()
