"""
Links of the documents lead to files and headings that exist; users' pages say what they are for, are short
or have a table of contents, and end with where to go next.
"""

import os
import re
import subprocess
import unittest

SOURCE_DIR = os.environ["SOURCE_DIR"]
# Written by the program; for contributors; by release.
NOT_USERS = {"docs/commands.md", "docs/ARCHITECTURE.md", "docs/CHANGELOG.md"}
WORDS_OF_A_PAGE, WORDS_OF_ALL = 900, 25000
LINES_OF_THE_README = 100
LINK = re.compile(r"\]\(([^)\s]+)\)")


def documents():
    listed = subprocess.run(
        ["git", "-C", SOURCE_DIR, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split()
            if os.path.exists(os.path.join(SOURCE_DIR, name))]


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
                target = os.path.join(os.path.dirname(name), path) if path else name
                target = os.path.normpath(target)
                with self.subTest(page=name, link=link):
                    self.assertTrue(os.path.exists(os.path.join(SOURCE_DIR, target)))
                    if anchor and target.endswith(".md"):
                        self.assertIn(anchor, anchors(read(target)))


class UsersPagesTest(unittest.TestCase):
    def setUp(self):
        self.pages = {name: read(name) for name in documents()
                      if re.fullmatch(r"docs/[^/]*\.md", name) and name not in NOT_USERS}

    def test_pages_are_short_or_have_a_table_of_contents(self):
        for name, text in self.pages.items():
            if len(text.split()) > WORDS_OF_A_PAGE:
                with self.subTest(name):
                    self.assertGreaterEqual(len(re.findall(r"\]\(#", text)), 3)

    def test_pages_say_what_they_are_for_and_where_to_go_next(self):
        for name, text in self.pages.items():
            with self.subTest(name):
                self.assertRegex(text, r"\A# .*\n\n(This page|These pages) ")
                self.assertRegex(text, r"\nNext: |\n## Where to go from here\n")

    def test_the_readme_leads_to_each_answer_to_ten_questions(self):
        rows = re.findall(r"(?m)^\| (?!question|---).*", read("docs/inside/questions.md"))
        self.assertEqual(len(rows), 10)
        linked = {link.partition("#")[0] for link in LINK.findall(read("README.md"))}
        for row in rows:
            with self.subTest(row):
                pages = {link.partition("#")[0].replace("../", "docs/") for link in LINK.findall(row)}
                self.assertLessEqual(len(pages), 2)
                self.assertTrue(pages)
                self.assertLessEqual(pages, linked)

    def test_all_pages_together_can_be_read(self):
        words = sum(len(text.split()) for text in self.pages.values())
        self.assertLessEqual(words, WORDS_OF_ALL)

    def test_the_readme_is_a_page(self):
        self.assertLessEqual(len(read("README.md").splitlines()), LINES_OF_THE_README)


if __name__ == "__main__":
    unittest.main()
