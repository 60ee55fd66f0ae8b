"""
Each finding has a test: five words of its sentence, one after the other, stand in a test. Two of
these may be what varies.
"""

import os
import pathlib
import re
import unittest

SOURCE_DIR = pathlib.Path(os.environ.get("SOURCE_DIR", os.getcwd()))
WORDS = 5
LEAST_FIXED = 3
CALL = re.compile(r"\b(?:findings_add|analysis_note|analysis_doubt)\(")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
CONVERSION = re.compile(r"%[-+ #0]*[\d.*]*(?:hh|h|ll|l|z)?[a-zA-Z]")
VARIES = "\x01"
WORD = re.compile(rf"[\w'{VARIES}-]+")

# What no test has, by its first five fixed words, and why.
UNTESTED = {
    "references of objects are missing": "needs objects of Ruby that share memory by the million",
    "memory is limited too much": "needs a tagged core larger than the limit of its process",
    "the notes cannot be read": "libelf refuses no row of notes that is in the file",
    "there is not enough memory": "memory would have to end while debug information is read",
}


def arguments(text, start):
    """A call's arguments, from behind its bracket on."""
    depth = 1
    for match in re.compile(r'"(?:[^"\\]|\\.)*"|[()]').finditer(text, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if not depth:
            return text[start:match.start()]
    return text[start:]


def sentence(text):
    """The words of the format, which is the first literal among the arguments."""
    joined = re.sub(r'"\s*"', "", re.sub(r'"\s*PRI\w+\s*"', "s", text))
    literal = LITERAL.search(joined)
    return WORD.findall(CONVERSION.sub(VARIES, literal[1])) if literal else []


def findings():
    """(place, words) of each finding whose sentence stands where it is added."""
    for folder in "analyzer", "allocators", "cli":
        for path in sorted(SOURCE_DIR.glob(f"{folder}/**/*.c")):
            text = path.read_text(encoding="utf-8")
            for match in CALL.finditer(text):
                words = sentence(arguments(text, match.end()))
                if sum(VARIES not in word for word in words) >= LEAST_FIXED:
                    line = text.count("\n", 0, match.start()) + 1
                    yield f"{path.relative_to(SOURCE_DIR)}:{line}", words


def words_of_tests():
    """All that tests say: words with a space between them."""
    told = []
    for suffix in "c", "py", "session":
        for path in SOURCE_DIR.glob(f"tests/**/*.{suffix}"):
            if path.name != "findings_test.py":
                text = re.sub(r'"\s*PRI\w+\s*"', "s", path.read_text(encoding="utf-8"))
                text = re.sub(r'"\s*\n\s*[rf]*"', "", text)
                if suffix == "py":
                    text = re.sub(r"\{[^{}\n]*\}", "0", text)
                told += [*WORD.findall(CONVERSION.sub("0", text).replace("\\", "")), "|"]
    return f" {' '.join(told)} "


def expression(words):
    """What varies may be nothing, or a part of a word."""
    return " " + "".join("(?:[^ |]+ )?" if word == VARIES
                         else re.escape(word).replace(VARIES, "[^ |]*") + " " for word in words)


def is_told(words, tested):
    count = min(WORDS, len(words))
    for i in range(len(words) - count + 1):
        some = words[i:i + count]
        fixed = [word for word in some if VARIES not in word]
        if len(fixed) == count and f" {' '.join(some)} " in tested:
            return True
        if LEAST_FIXED <= len(fixed) < count and re.search(expression(some), tested):
            return True
    return False


class Findings(unittest.TestCase):
    def test_each_finding_is_in_a_test(self):
        tested = words_of_tests()
        untested = {" ".join([word for word in words if VARIES not in word][:WORDS]): place
                    for place, words in findings() if not is_told(words, tested)}
        unknown = {words: place for words, place in untested.items() if words not in UNTESTED}
        self.assertEqual(unknown, {}, "no test has these findings")
        self.assertEqual(UNTESTED.keys() - untested.keys(), set(), "these are tested, or gone")


if __name__ == "__main__":
    unittest.main()
