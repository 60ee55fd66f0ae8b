"""
scripts/check-words refuses words of its list, and comments of C that begin without a subject; and
says in which line, and what to write instead.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE_DIR = pathlib.Path(os.environ.get("SOURCE_DIR", os.getcwd()))
REFUSED = ("What", "The same", "Of", "Those", "That", "Whether", "Who", "Whose", "Where")


def check(name, text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.write_text(text, encoding="utf-8")
        run = subprocess.run([SOURCE_DIR / "scripts/check-words", path], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout.replace(str(path), name)


class Words(unittest.TestCase):
    def test_beginning_without_a_subject_is_refused_in_its_line(self):
        for word in REFUSED:
            for comment in (f"/* {word} it was. */", f"/*\n * {word} it\n * was.\n */", f"int a; /* {word} it was */"):
                with self.subTest(comment=comment):
                    status, output = check("a.c", f"int b;\n{comment}\nint c;\n")
                    line = 3 if comment.startswith("/*\n") else 2
                    self.assertEqual(status, 1)
                    self.assertEqual(output,
                                     f"a.c:{line}: '{word}': begin a comment with its subject or a verb\n")

    def test_sentence_is_accepted(self):
        for text in ("/* True if it is what it was. */", "/* Whatever it is, free it. */", "/* Offset of the link. */",
                     "int a; /* of the table */", "/* Free it.\n *\n * What remains is free. */"):
            with self.subTest(text=text):
                self.assertEqual(check("a.h", text + "\n"), (0, ""))

    def test_only_sources_in_c_have_such_comments(self):
        self.assertEqual(check("a.md", "/* What it was. */\n"), (0, ""))

    def test_word_of_the_list_is_refused_everywhere(self):
        word = " ".join(("is", "told"))  # in two parts, as this file is checked, too
        status, output = check("a.md", f"One\n{word} two.\n")
        self.assertEqual(status, 1)
        self.assertIn(f"a.md:2: '{word}': write ", output)

    def test_message_is_refused_where_a_comment_is_not(self):
        status, output = check("a.c", 'int b; /* (nobody) */\nshow("held by "\n     "nobody");\n')
        self.assertEqual(status, 1)
        self.assertEqual(output.count("\n"), 1)
        self.assertRegex(output, r"\Aa\.c:2: 'nobody': in a message, write ")
        self.assertEqual(check("a.md", "held by nobody\n"), (0, ""))


if __name__ == "__main__":
    unittest.main()
