"""
The set language as a whole: each verb takes each set, and says of it what the
others say; each switch works in each of its spellings.

What the members of each set are, is for the sessions and tests/live.
"""

import os
import re
import subprocess
import tempfile
import unittest

import session_test

HEAPCORE = os.environ["HEAPCORE"]
PROGRAM = "rules"

ALLOCATIONS = """
    allocations used free anchored leaked unreferenced leakroots anchorpoints
    staticanchored staticanchorpoints stackanchored stackanchorpoints
    registeranchored registeranchorpoints threadonlyanchored
    threadonlyanchorpoints threadcached duplicates zeros derived
""".split() + [
    "allocation {owner}", "outgoing {owner}", "freeoutgoing {dangling}",
    "incoming {part}", "exactincoming {part}", "chain {ring} 0",
    "reversechain {part} 8 0",
]
RANGES = """
    stacks writable readonly rxonly inaccessible modules arenas signatures
    threads roots maps
""".split() + ["pointers {part}", "rangerefs {part} {part}8", "relrefs {part}"]
NOT_SHOWN = {"arenas", "signatures"}  # they are no stretches of memory
OWN_SUMMARY = {"leakroots"}

TOTAL = re.compile(
    r"(\d+) ([a-z -]+) use 0x([0-9a-f]+) \(((?:\d{1,3},)*\d{1,3})\) bytes\.\n"
)
HEADER = r"allocation at [0-9a-f]+ of size [0-9a-f]+\n"
SIGNATURE = (r"(?:\.\.\. with (?:signature|identity) .*\n)?"
             r"(?:\.\.\. of type .*\n)?")
COMMENTS = r"(?:#.*\n)*"
LISTED = re.compile(rf"(?:Used|Free) {HEADER}{SIGNATURE}\n")
WORDS = r"(?:[ 0-9a-f]{16} ){0,3}[ 0-9a-f]{16} ?\n"
CONTENTS = rf"(?:{WORDS}|(?: *[0-9a-f]+: {WORDS})+)"
SHOWN = re.compile(rf"(?:Used|Free) {HEADER}{SIGNATURE}{CONTENTS}\n")
RANGE_SHOWN = re.compile(r"^Range at [0-9a-f]+ of size [0-9a-f]+$", re.M)
DESCRIBED = re.compile(
    rf"^(?:Anchored|Leaked|Unreferenced|Free|Thread cached free) {HEADER}",
    re.M,
)
RANGE_DESCRIBED = re.compile(
    r"^(?:Address [0-9a-f]+ is |Thread \d+, )", re.M)
SUMMARIZED = re.compile(
    r"( {3})?(?:Signature [0-9a-f]+ \(.+\)|Pattern %\w+|Unrecognized allocations"
    r"(?: of size 0x[0-9a-f]+)?|Matches of size 0x[0-9a-f]+|.*) (?:has|have)"
    r" (\d+) instances taking 0x([0-9a-f]+)\((?:\d{1,3},)*\d{1,3}\) bytes(?:, .*)?\.\n"
)

# Each with what the other spellings come to, on a set where it matters.
SPELLINGS = [
    ("count used", "--size 18", "/size 18", "/Size 0x18", "--size=0x18"),
    ("count used", "--min-size 40", "/minsize 40", "/minSize 0X40",
     "--min-size=0x40", "--minsize 40"),
    ("count used", "--max-size 1K", "/maxsize 1k", "/MAXSIZE 400",
     "--max-size=400"),
    ("enumerate used", "--min-incoming 2", "/minincoming 2",
     "/minIncoming 2"),
    ("enumerate used", "--min-incoming app::Owner=2",
     "/minincoming app::Owner=2", "/minIncoming app::Owner=2"),
    ("enumerate used", "--max-incoming 1", "/maxincoming 1",
     "/maxIncoming 1"),
    ("enumerate used", "--min-outgoing 2", "/minoutgoing 2",
     "/minOutgoing 2"),
    ("enumerate used", "--max-outgoing 0", "/maxoutgoing 0",
     "/maxOutgoing 0"),
    ("enumerate used", "--min-free-outgoing 1", "/minfreeoutgoing 1",
     "/minFreeOutgoing 1"),
    ("enumerate used", "--max-free-outgoing 0", "/maxfreeoutgoing 0",
     "/maxFreeOutgoing 0"),
    ("enumerate used %VectorBody --extend %VectorBody->",
     "--skip-tainted-references",
     "/skipTaintedReferences true", "/skiptaintedreferences TRUE"),
    ("enumerate used %ListNode --max-incoming 1",
     "--skip-unfavored-references", "/skipUnfavoredReferences true"),
    ("enumerate used", "--geometric-sample 2", "/geometricSample 2",
     "/geometricsample 2"),
    ("list used Marker", "--extend Marker->", "/extend Marker->",
     "--extend=Marker->", "/Extend Marker->"),
    ("list used Marker --extend ->", "--comment-extensions",
     "/commentExtensions true"),
    ("show used Marker", "--ascii", "/showAscii true", "--show-ascii"),
    ("show used app::Owner", "--show-up-to 8", "/showUpTo 8", "/showupto 8"),
    ("list used app::Owner", "--annotate *.ModuleAddress",
     "/annotate *.ModuleAddress"),
    ("summarize used", "--sort-by bytes", "/sortby bytes", "/sortBy bytes",
     "--sort-by=bytes"),
    ("list used", "--limit 2", "/limit 2", "--limit=2"),
    ("count used", "--format csv", "/format csv"),
    ("count pointers {part}", "--skip used", "/skip used"),
]

# What must be refused, and the word that the message must name.
MISTAKES = [
    ("cuont used", "count"), ("count usde", "used"),
    ("count used /minsze 1", "/minsize"),
    ("count used --minsze 1", "--min-size"),
    ("count used app::Onwer", "app::Owner"),
    ("count used %ListNod", "ListNode"), ("count used 5", "5"),
    ("summarize used --sort-by byts", "bytes"),
    ("count leaked minsu used", "minus"),
    ("count used --extend app::Onwer->", "app::Owner"),
    ("count used --extend ->%ListNod", "ListNode"),
    ("count used --min-incoming app::Onwer=1", "app::Owner"),
    ("count used --min-incoming %ListNod=1", "ListNode"),
    ("list used --annotate *.SSOstrin", "SSOString"),
    ("count pointers {part} --skip stack", "stacks"),
    ("count used --format jso", "json"), ("help cuont", "count"),
    ("count used --set-operation assgn", "assign"),
    ("count used \"\"", "signature"), ("count and used", "'and'"),
    ("count chain {ring} next", "offset"), ("describe", "address"),
    ("describe {part} --limit 1", "allocation ADDRESS"),
    ("describe {part} --min-size 1", "allocation ADDRESS"),
    ("explain {part} --sort-by bytes", "allocation ADDRESS"),
    ("describe {part} --set-operation assign", "allocation ADDRESS"),
    ("find32 zz", "'zz' is not a word"), ("redirect maybe", "'maybe'"),
    ("count used --skip-tainted-references=true", "takes no value"),
    ("count used /skipTaintedReferences 1", "'true' or 'false'"),
    ("count used /minsize=18", "the next word"),
    ("count used --skip-tainted", "--skip-tainted-references"),
    ("list used --sort-by retained --skip-tainted-references", "retain"),
    ("summarize used --skip-unfavored-references --sort-by retained", "retain"),
    ("count used --limit 0x10", "'0x10' is not a count"),
    ("count used --size zz", "'zz' is not a size"),
]

# What a line may look like, and what it comes to.
LINES = [
    ("count used# no comment", None), ("count used # a comment", "count used"),
    ("count\tused  --size  18", "count used --size 18"),
    ("count used \\\n--size \\\n18", "count used --size 18"),
    ("  count 'used' \"app::Owner\"", "count used app::Owner"),
    ("count used \"app::Table<int, long>\"",
     "count used app::Table<int,long>"),
    ("# count leaked", ""), ("", ""),
]


class SpecificationTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dumps = session_test.Dumps()
        cls.addClassCleanup(cls.dumps.close)
        cls.core = cls.dumps.find("program", PROGRAM)
        cls.places = {"part": "anchored app::Part --max-size 18",
                      "owner": "anchored app::Owner",
                      "dangling": "used app::Dangling",
                      "ring": "used - --size 38 --geometric-sample 4"}
        for name, words in cls.places.items():
            output, _ = cls.run_one(f"enumerate {words}")
            cls.places[name] = output.splitlines()[-1]

    @classmethod
    def run_one(cls, line):
        """The output and messages of a line, as if it stood in a script."""
        run = subprocess.run(
            [HEAPCORE, "--quiet", "--chap", cls.core], input=line + "\n", text=True,
            capture_output=True, timeout=session_test.TIMEOUT,
        )
        return run.stdout, run.stderr

    def run_all(self, commands):
        """The output of each, in one go."""
        with tempfile.TemporaryDirectory() as folder:
            script = "".join(f"{command} > {folder}/{number}\n"
                             for number, command in enumerate(commands))
            run = subprocess.run(
                [HEAPCORE, "--quiet", "--chap", self.core], input=script, text=True,
                capture_output=True, timeout=session_test.TIMEOUT,
            )
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            outputs = []
            for number in range(len(commands)):
                with open(f"{folder}/{number}", encoding="utf-8") as file:
                    outputs.append(file.read())
        return outputs

    def verb(self, verb, sets):
        """What the verb says of each, with the numbers that count gives."""
        names = [name.format(**self.places) for name in sets]
        outputs = self.run_all([f"count {name}" for name in names]
                               + [f"{verb} {name}" for name in names])
        for name, counted, output in zip(
            names, outputs, outputs[len(names):]
        ):
            total = re.fullmatch(COMMENTS + "(" + TOTAL.pattern + ")", counted)
            self.assertIsNotNone(total, f"count {name}: {counted}")
            if verb != "enumerate":
                self.assertTrue(output.endswith(total.group(1)), output)
            yield name, int(total.group(2)), output

    def test_count_says_numbers_in_both_bases(self):
        for name, _, output in self.verb("count", ALLOCATIONS + RANGES):
            _, _, hexadecimal, decimal = TOTAL.search(output).groups()
            self.assertEqual(int(hexadecimal, 16),
                             int(decimal.replace(",", "")), name)

    def test_enumerate_writes_addresses_alone(self):
        for name, count, output in self.verb("enumerate",
                                             ALLOCATIONS + RANGES):
            self.assertRegex(output, r"\A(?:[0-9a-f]+\n)*\Z")
            if name != "arenas":  # one of them has no address
                self.assertEqual(output.count("\n"), count)

    def test_list_has_an_empty_line_behind_each_allocation(self):
        for _, count, output in self.verb("list", ALLOCATIONS):
            entries = LISTED.findall(output)
            self.assertEqual(len(entries), count, output)
            rest = LISTED.sub("", output)
            self.assertRegex(rest, rf"\A{COMMENTS}{TOTAL.pattern}\Z")

    def test_list_has_a_line_for_each_range(self):
        for _, count, output in self.verb("list", RANGES):
            lines = output.splitlines()
            self.assertEqual(len(lines), count + 2 if count else 1, output)

    def test_show_has_the_words_of_each(self):
        for _, count, output in self.verb("show", ALLOCATIONS):
            self.assertEqual(len(SHOWN.findall(output)), count, output)
            rest = SHOWN.sub("", output)
            self.assertRegex(rest, rf"\A{COMMENTS}{TOTAL.pattern}\Z")
        ranges = [name for name in RANGES if name not in NOT_SHOWN]
        for _, count, output in self.verb("show", ranges):
            self.assertEqual(len(RANGE_SHOWN.findall(output)), count)
        for name in NOT_SHOWN:
            _, message = self.run_one(f"show {name}")
            self.assertIn(f"see 'list {name}'", message)

    def test_describe_and_explain_tell_of_each(self):
        for verb in "describe", "explain":
            for _, count, output in self.verb(verb, ALLOCATIONS):
                self.assertEqual(len(DESCRIBED.findall(output)), count,
                                 output)
            for name, count, output in self.verb(verb, RANGES):
                if name != "arenas":
                    self.assertEqual(len(RANGE_DESCRIBED.findall(output)),
                                     count, output)

    def test_lines_of_summarize_add_up(self):
        sets = [name for name in ALLOCATIONS + RANGES
                if name not in OWN_SUMMARY]
        for _, count, output in self.verb("summarize", sets):
            lines = re.sub(COMMENTS + TOTAL.pattern, "", output)
            self.assertEqual(SUMMARIZED.sub("", lines), "")
            found = [match.groups() for match in SUMMARIZED.finditer(lines)]
            self.assertEqual(
                sum(int(number) for indent, number, _ in found
                    if not indent), count, output)
            self.assertEqual(
                sum(int(size, 16) for indent, _, size in found
                    if not indent),
                int(TOTAL.search(output).group(3), 16), output)

    def test_rows_of_summarize_come_most_first(self):
        orders = ("", lambda row: -int(row[1])), (
            " --sort-by bytes", lambda row: -int(row[2], 16))
        for words, key in orders:
            output, = self.run_all(["summarize used" + words])
            rows = [match.groups() for match in SUMMARIZED.finditer(output)]
            rows = [row for row in rows if not row[0]]
            self.assertGreater(len(rows), 3)
            self.assertEqual(rows, sorted(rows, key=key))

    def test_switches_work_in_each_spelling(self):
        for words, *spellings in SPELLINGS:
            words = words.format(**self.places)
            without, first, *others = self.run_all(
                [words] + [f"{words} {spelling}" for spelling in spellings])
            self.assertNotEqual(without, first, spellings[0])
            for spelling, other in zip(spellings[1:], others):
                self.assertEqual(other, first, spelling)

    def test_mistakes_name_what_is_known(self):
        for command, word in MISTAKES:
            command = command.format(**self.places)
            run = subprocess.run(
                [HEAPCORE, "--quiet", "--chap", "-c", command, self.core],
                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=session_test.TIMEOUT,
            )
            with self.subTest(command=command):
                self.assertEqual((run.returncode, run.stdout), (2, ""))
                self.assertIn(word, run.stderr)
                self.assertEqual(run.stderr.count("\n"), 1)

    def test_lines_are_taken_apart(self):
        for line, meant in LINES:
            output, messages = self.run_one(line)
            with self.subTest(line=line):
                if meant is None:
                    self.assertNotEqual(messages, "")
                    continue
                self.assertEqual((output, messages), self.run_one(meant))


if __name__ == "__main__":
    unittest.main()
