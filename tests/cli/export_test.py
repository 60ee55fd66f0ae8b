"""
Exports: what is in them is what `count` and `summarize` say, they are of their
format, and nothing that a core says gets out of its place. Viewers themselves
open them in exports_viewers_test.py.
"""

import collections
import gzip
import json
import os
import re
import stat
import subprocess
import unittest
import xml.etree.ElementTree

import hostile_text_test
import session_test

HEAPCORE = os.environ["HEAPCORE"]
TIMEOUT = 60
SVG = "{http://www.w3.org/2000/svg}"
EVIL = rb"<b>&\"';x"


class Core:
    """A core, and what heapcore says of it."""

    def __init__(self, path):
        self.path = path

    def run(self, *words):
        return subprocess.run([HEAPCORE, "-q", self.path, *words], check=True,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIMEOUT).stdout

    def text(self, *words):
        return self.run(*words).decode()

    def count(self, *words):
        row = json.loads(self.run("count", *words, "--format", "json"))
        row = row["tables"][0]["rows"][0]
        return row["count"], row["bytes"]


def folded(text):
    """The bytes of each path; what retains much has a line of its own."""
    paths = collections.Counter()
    for line in text.splitlines():
        path, number = line.rsplit(" ", 1)
        paths[tuple(path.split(";"))] += int(number)
    return paths


class ExportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dumps = session_test.Dumps()
        cls.addClassCleanup(cls.dumps.close)
        cls.core = Core(cls.dumps.find("program", "retained"))
        cls.folded = folded(cls.core.text("export", "folded"))

    def file(self, name):
        return os.path.join(self.dumps.folder.name, name)


class FoldedTest(ExportTest):
    def test_bytes_are_those_of_the_set(self):
        for words in (["used"], ["leaked"], ["anchored"], ["allocations"],
                      ["free"], ["used", "entry_kind"]):
            with self.subTest(words=words):
                paths = folded(self.core.text("export", "folded", *words))
                self.assertEqual(sum(paths.values()), self.core.count(*words)[1])

    def test_bytes_of_a_kind_are_those_of_the_kind(self):
        kinds = collections.Counter()
        for path, size in self.folded.items():
            kinds[path[-1]] += size
        for kind in ("cache_kind", "entry_kind", "node_kind"):
            self.assertEqual(kinds[kind], self.core.count("used", kind)[1])

    def test_a_path_begins_with_a_root_and_names_each_kind_once(self):
        self.assertIn(("cache (retained)", "cache_kind", "entry_kind"), self.folded)
        self.assertIn(("nodes (retained)", "node_kind"), self.folded)
        for path in self.folded:
            self.assertEqual(len(set(path)), len(path))

    def test_measures(self):
        words = ["used", "entry_kind"]
        retained = folded(self.core.text("export", "folded", *words, "--by", "retained"))
        summary = self.core.text("summarize", *words, "--sort-by", "retained")
        self.assertIn(f"retaining {sum(retained.values()):,} bytes", summary)
        leaked = folded(self.core.text("export", "folded", "--by", "leaked"))
        self.assertEqual(sum(leaked.values()), self.core.count("leaked")[1])
        self.assertEqual({path[0] for path in leaked}, {"what leaked"})

    def test_what_is_beyond_the_limit_is_joined(self):
        few = folded(self.core.text("export", "folded", "--limit", "4"))
        self.assertEqual(sum(few.values()), sum(self.folded.values()))
        self.assertTrue(any(re.fullmatch(r"\(\d+ more\)", path[-1]) for path in few))


    def test_named_roots_hold_what_tree_says(self):
        rows = json.loads(self.core.run("tree", "--format", "json", "--top", "50"))
        roots = {row["owner"]: row["retained"] for row in rows["tables"][0]["rows"]
                 if row["depth"] == 1}
        for root in ("cache (retained)", "nodes (retained)", "what leaked"):
            held = sum(size for path, size in self.folded.items() if path[0] == root)
            self.assertEqual(held, roots[root], root)


class OutputTest(ExportTest):
    def test_a_file_is_for_its_owner_and_described(self):
        path = self.file("used.folded")
        text = self.core.text("export", "folded", "used", "-o", path)
        count, size = self.core.count("used")
        self.assertIn(f"{count} allocations of {size:,} bytes", text)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(folded(file.read()), self.folded)

    def test_mistakes(self):
        for words, message in (
                (["folden"], "did you mean 'folded'?"),
                (["folded", "stacks"], "'stacks' is not a set of allocations"),
                (["folded", "--by", "size"], "'size' is not 'own'"),
                (["folded", "-o", self.core.path], "that is the dump itself"),
                (["folded", "-o", "/nowhere/at/all"], "/nowhere/at/all: ")):
            with self.subTest(words=words):
                run = subprocess.run([HEAPCORE, "-q", self.core.path, "export", *words],
                                     stdin=subprocess.DEVNULL, capture_output=True,
                                     timeout=TIMEOUT, check=False)
                self.assertEqual(run.returncode, 2)
                self.assertIn(message, run.stderr.decode())

    def test_all_formats_are_listed(self):
        listed = self.core.text("export").splitlines()[1:]
        self.assertEqual([line.split()[0] for line in listed], formats(self.core))


def formats(core):
    rows = json.loads(core.run("export", "--format", "json"))["tables"][0]["rows"]
    return [row["format"] for row in rows]


def varint(data, place):
    """A number, and the place behind it."""
    number = shift = 0
    while True:
        byte = data[place]
        place += 1
        number |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return number, place


def fields(data):
    """The fields of a protocol buffers message: numbers and bytes."""
    found = collections.defaultdict(list)
    place = 0
    while place < len(data):
        tag, place = varint(data, place)
        value, place = varint(data, place)
        if tag & 7 == 2:
            value, place = data[place:place + value], place + value
        found[tag >> 3].append(value)
    return found


def numbers(data):
    """Packed numbers."""
    place, found = 0, []
    while place < len(data):
        number, place = varint(data, place)
        found.append(number)
    return found


class Profile:
    """A profile of pprof."""

    def __init__(self, data):
        profile = fields(gzip.decompress(data))
        strings = [text.decode() for text in profile[6]]
        assert strings[0] == ""
        self.types = [tuple(strings[fields(value)[key][0]] for key in (1, 2))
                      for value in profile[1]]
        names = {fields(value)[1][0]: strings[fields(value)[2][0]] for value in profile[5]}
        self.mappings = {}
        for value in map(fields, profile[3]):
            self.mappings[value[1][0]] = (strings[value[5][0]], strings[sum(value[6])])
        locations, self.mapped = {}, {}
        for value in map(fields, profile[4]):
            name = names[fields(value[4][0])[1][0]]
            locations[value[1][0]] = name
            if value[2]:
                self.mapped[name] = self.mappings[value[2][0]][0]
        self.samples = []
        for value in map(fields, profile[2]):
            labels = {}
            for label in map(fields, value[3]):
                labels[strings[label[1][0]]] = strings[label[2][0]] if label[2] else label[3][0]
            path = tuple(locations[number] for number in reversed(numbers(value[1][0])))
            self.samples.append((path, numbers(value[2][0]), labels))

    def total(self, kind):
        return sum(values[kind] for _, values, _ in self.samples)


class PprofTest(ExportTest):
    def profile(self, *words):
        return Profile(self.core.run("export", "pprof", *words))

    def test_values_are_those_of_the_set(self):
        profile = self.profile()
        self.assertEqual(profile.types, [("inuse_objects", "count"), ("inuse_space", "bytes"),
                                         ("retained", "bytes"), ("leaked", "bytes")])
        count, size = self.core.count("used")
        self.assertEqual([profile.total(kind) for kind in range(4)],
                         [count, size, size, self.core.count("leaked")[1]])
        paths = collections.Counter()
        for path, values, _ in profile.samples:
            paths[path] += values[1]
        self.assertEqual(paths, self.folded)

    def test_what_members_retain_has_a_value_of_its_own(self):
        words = ["used", "entry_kind"]
        profile = self.profile(*words)
        retained = folded(self.core.text("export", "folded", *words, "--by", "retained"))
        self.assertEqual(profile.total(1), self.core.count(*words)[1])
        self.assertEqual(profile.total(2), sum(retained.values()))

    def test_labels_and_mappings(self):
        profile = self.profile()
        for path, values, labels in profile.samples:
            if values[0] == 1:
                self.assertEqual(labels["bytes"], 1024 if values[1] > 1024 else values[1])
        labels = {path[-1]: labels for path, _, labels in profile.samples}
        self.assertEqual(labels["node_kind"]["sureness"], "signature")
        self.assertEqual(labels["unrecognized of size 72 (0x48)"]["sureness"], "size alone")
        self.assertRegex(labels["node_kind"]["arena"], "^main.*glibc")
        self.assertTrue(profile.mapped["node_kind"].endswith("/retained"))
        self.assertTrue(profile.mapped["cache (retained)"].endswith("/retained"))
        for path, build_id in profile.mappings.values():
            self.assertRegex(build_id, "^[0-9a-f]{16,}$", path)

    def test_the_limit_keeps_the_sums(self):
        profile = self.profile("--limit", "3")
        self.assertEqual(profile.total(1), self.core.count("used")[1])


class HeaptrackTest(ExportTest):
    def test_allocations_hang_on_the_traces_of_their_owners(self):
        strings, pointers, traces, sizes = [""], [""], [()], []
        paths, count = collections.Counter(), 0
        lines = self.core.text("export", "heaptrack").splitlines()
        self.assertEqual(lines[0], "v 10400 3")
        for line in lines:
            kind, *words = line.split(" ")
            if kind == "s":
                strings.append(line.split(" ", 2)[2])
                self.assertEqual(int(words[0], 16), len(strings[-1]))
            elif kind == "i":
                pointers.append(strings[int(words[2], 16)])
            elif kind == "t":
                traces.append(traces[int(words[1], 16)] + (pointers[int(words[0], 16)],))
            elif kind == "a":
                sizes.append((int(words[0], 16), traces[int(words[1], 16)]))
            elif kind == "+":
                size, path = sizes[int(words[0], 16)]
                paths[path] += size
                count += 1
        self.assertEqual(paths, self.folded)
        self.assertEqual(count, self.core.count("used")[0])


class Snapshot:
    """A heap snapshot of V8: nodes by number, with names, sizes and edges."""

    def __init__(self, data):
        document = json.loads(data)
        meta = document["snapshot"]["meta"]
        width, edge_width = len(meta["node_fields"]), len(meta["edge_fields"])
        rows = [document["nodes"][i:i + width] for i in range(0, len(document["nodes"]), width)]
        edges = [document["edges"][i:i + edge_width]
                 for i in range(0, len(document["edges"]), edge_width)]
        assert len(rows) == document["snapshot"]["node_count"]
        assert len(edges) == document["snapshot"]["edge_count"]
        self.names = [document["strings"][row[1]] for row in rows]
        self.sizes = [row[3] for row in rows]
        self.targets, place = [], 0
        for row in rows:
            self.targets.append([edge[2] // width for edge in edges[place:place + row[4]]])
            place += row[4]
        assert place == len(edges)

    def reached(self, without=None):
        """What the first node leads to if one is not there."""
        found, left = {0}, [0]
        while left:
            for target in self.targets[left.pop()]:
                if target not in found and target != without:
                    found.add(target)
                    left.append(target)
        return found

    def retained(self, node):
        lost = self.reached() - self.reached(node)
        return sum(self.sizes[number] for number in lost)


class SnapshotTest(ExportTest):
    def snapshot(self, *words):
        return Snapshot(self.core.run("export", "heapsnapshot", *words))

    def test_allocations_are_nodes(self):
        snapshot = self.snapshot()
        self.assertEqual(sum(snapshot.sizes), self.core.count("used")[1])
        self.assertEqual(snapshot.reached(), set(range(len(snapshot.names))))
        counts = collections.Counter(snapshot.names)
        for kind in ("cache_kind", "entry_kind", "node_kind"):
            self.assertEqual(counts[kind], self.core.count("used", kind)[0])
        nodes = snapshot.names.index("nodes (retained)")
        self.assertEqual([snapshot.names[node] for node in snapshot.targets[nodes]],
                         ["node_kind"])

    def test_who_computes_dominators_finds_what_is_retained(self):
        rows = json.loads(self.core.run("list", "used", "--sort-by", "retained",
                                        "--format", "json"))["tables"][0]["rows"]
        expected = sorted(row["retained"] for row in rows)
        snapshot = self.snapshot()
        allocations = [node for node, size in enumerate(snapshot.sizes) if size]
        self.assertEqual(sorted(map(snapshot.retained, allocations)), expected)
        few = self.snapshot("--limit", "5")
        self.assertEqual(sum(few.sizes), sum(snapshot.sizes))
        self.assertEqual(few.reached(), set(range(len(few.names))))
        kept = [few.retained(node) for node, size in enumerate(few.sizes)
                if size and "others)" not in few.names[node]]
        self.assertEqual(sorted(kept), expected[-5:])

    def test_of_a_set_only_members_have_sizes(self):
        words = ["used", "entry_kind"]
        self.assertEqual(sum(self.snapshot(*words).sizes), self.core.count(*words)[1])
        snapshot = self.snapshot("leaked")
        self.assertEqual(sum(snapshot.sizes), self.core.count("leaked")[1])


class GraphTest(ExportTest):
    def graph(self, *words):
        """The boxes of a graph as name, address or None, bytes, and its arrows as pairs."""
        text = self.core.text("export", "dot", *words)
        boxes = {}
        for number, name, address, size in re.findall(
                r'^\t(n\d+) \[label="(.*)\\n(?:(0x[0-9a-f]+): )?([0-9,]+) bytes.*"', text, re.M):
            boxes[number] = name, address, int(size.replace(",", ""))
        return boxes, re.findall(r"^\t(n\d+) -> (n\d+)( \[style=dashed\])?;$", text, re.M)

    def test_each_box_is_below_the_first(self):
        for graph in ("kinds", "dominators", "references"):
            for words in (["used"], ["leaked"], ["used", "entry_kind"], ["free"],
                          ["used", "--limit", "4"]):
                with self.subTest(graph=graph, words=words):
                    boxes, arrows = self.graph("--graph", graph, *words)
                    self.assertEqual(boxes["n0"][2], self.core.count(*words)[1])
                    self.assertEqual({target for _, target, _ in arrows} | {"n0"}, set(boxes))

    def test_allocations_are_drawn_with_their_references(self):
        boxes, arrows = self.graph("--graph", "references", "--limit", "1000")
        kinds = {(boxes[source][0], boxes[target][0])
                 for source, target, dashed in arrows if not dashed}
        self.assertIn(("cache_kind", "entry_kind"), kinds)
        self.assertIn(("node_kind", "node_kind"), kinds)
        addresses = {address for _, address, _ in boxes.values() if address}
        self.assertEqual(addresses, set(self.core.text("enumerate", "used").split()))

    def test_what_is_left_out_is_said(self):
        for graph in ("kinds", "dominators"):
            text = self.core.text("export", "dot", "--graph", graph, "--limit", "3")
            self.assertRegex(text, r"\d+ more")


class SvgTest(ExportTest):
    def test_frames_are_as_wide_as_what_they_hold(self):
        root = xml.etree.ElementTree.fromstring(self.core.run("export", "svg"))
        frames = [(group.find(SVG + "title").text.split("\n"), group.find(SVG + "rect"))
                  for group in root.iter(SVG + "g")]
        whole = self.core.count("used")[1]
        self.assertEqual(frames[0][0][0], "the heap")
        for (name, text), rect in frames:
            size = int(re.match("[0-9,]+", text)[0].replace(",", ""))
            self.assertAlmostEqual(float(rect.get("width")), 1200 * size / whole, 2, name)
            self.assertLessEqual(float(rect.get("x")) + float(rect.get("width")), 1200.01)

    def test_nothing_is_asked_of_a_network(self):
        text = self.core.text("export", "svg")
        self.assertEqual(re.findall(r'\bhttps?:[^"]*', text), ["http://www.w3.org/2000/svg"])
        self.assertNotRegex(text, r"\b(src|href|import|fetch|url)\b")


class HostileTest(unittest.TestCase):
    """Names that would mean something in a format are only names there."""

    @classmethod
    def setUpClass(cls):
        cls.dumps = session_test.Dumps()
        cls.addClassCleanup(cls.dumps.close)
        hostile_text_test.HOSTILE[b"HOSTILE_NAME_MARKER"] = EVIL
        cls.core = Core(hostile_text_test.Place(cls.dumps.folder.name, True).core)

    def test_each_name_stays_in_its_place(self):
        paths = folded(self.core.text("export", "folded"))
        self.assertTrue(any("<b>&" in name for path in paths for name in path))
        json.loads(self.core.run("export", "heapsnapshot"))
        for line in self.core.text("export", "dot").splitlines()[3:-1]:
            self.assertRegex(line, r'^\tn\d+ (-> n\d+|\[label="([^"\\]|\\.)*",[^"]*("[^"]*"[^"]*)?\]);$')
        root = xml.etree.ElementTree.fromstring(self.core.run("export", "svg"))
        self.assertEqual({element.tag.removeprefix(SVG) for element in root.iter()},
                         {"svg", "title", "style", "script", "text", "g", "rect"})


if __name__ == "__main__":
    unittest.main()
