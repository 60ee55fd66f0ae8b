"""
The truth that a test program wrote about its heap, and whether heapcore finds
the same in the program's core.
"""

import bisect
import json
import os
import re
import subprocess
from xml.etree import ElementTree

SHOWN_ADDRESSES = 10
# What libc allocates for itself: thread control data, buffers and the like.
MOST_UNLISTED_BLOCKS = 64
EXIT_INCOMPLETE = 3
# What a program maps for itself may be more than a part of a small process of 32 bits.
FEW_BYTES = {4: 128 << 10, 8: 0}
TIMEOUT = 120

FREE_KINDS = ("tcache", "fast bin", "unsorted bin", "small bin", "large bin",
              "top", "slab", "dirty", "muzzy", "retained", "thread cache", "transfer cache",
              "span", "page heap", "returned", "available slot", "freed slot")

LISTED = re.compile(
    r"^(Used|Free|Thread cached free) allocation at 0x([0-9a-f]+) of size "
    r"[\d,]+ \(0x([0-9a-f]+)\)$"
)
COUNT = re.compile(r"^([\d,]+) allocations? uses? [\d,]+ bytes?\.$")


class MallocInfo:
    """What malloc said of itself: malloc_info()'s XML, mallinfo2() behind."""

    def __init__(self, text):
        xml, figures = text.rsplit("</malloc>", 1)
        words = figures.split()
        self.totals = {name: int(value)
                       for name, value in zip(words[::2], words[1::2])}
        self.arenas = sorted(
            (self._figures(heap)
             for heap in ElementTree.fromstring(xml + "</malloc>")
             if heap.tag == "heap"),
            key=lambda figures: sorted(figures.items()))
        self.counts, self.ranges = {}, []
        for entry in re.finditer(
                r'<(?:size|unsorted) from="(\d+)" to="(\d+)" total="\d+" '
                r'count="(\d+)"', xml):
            first, last, count = map(int, entry.groups())
            if last - first in (0, 15):  # one size; of a fast bin, if 15
                self.counts[last & ~7] = self.counts.get(last & ~7, 0) + count
            else:
                self.ranges.append((first & ~7, last & ~7))

    def counted(self, sizes):
        """Those of some sizes of chunks that are counted one by one."""
        return sorted(size for size in sizes if size % 16 == 0 and not any(
            first <= size <= last for first, last in self.ranges))

    @staticmethod
    def _figures(heap):
        figures = {"fast": 0, "fast count": 0}  # gone in 2.43
        for total in heap.iter("total"):
            figures[total.get("type")] = int(total.get("size"))
            figures[total.get("type") + " count"] = int(total.get("count"))
        for system in heap.iter("system"):
            if system.get("type") == "current":
                figures["system"] = int(system.get("size"))
        return figures


REST_KINDS = ("unsorted bin", "small bin", "large bin", "top")


class BilledArena:
    """The same of an arena, from the rows of the bill that it has."""

    def __init__(self, rows):
        self.bytes = {row["use"]: row["mapped"] for row in rows
                      if row["use"] != "reserved"}
        self.counts = {row["use"]: row["count"] or 0 for row in rows}

    def figures(self):
        return {
            "fast": self.bytes.get("fast bin", 0),
            "fast count": self.counts.get("fast bin", 0),
            "rest": self.rest(self.bytes),
            "rest count": self.rest(self.counts),
            "system": sum(self.bytes.values()),
        }

    @staticmethod
    def rest(amounts):
        return sum(amounts.get(kind, 0) for kind in REST_KINDS)


def compare_sizes(free, info, header):
    """What is wrong with the sizes of free blocks outside of caches."""
    found = info.counted(size + header for size in free.values())
    counted = info.counted(size for size, count in info.counts.items()
                           for _ in range(count))
    if found == counted:
        return []
    return [f"free chunks are of sizes\n{found}\nand by malloc\n{counted}"]


def compare_malloc(rows, info):
    """What is wrong of the bill of `bill --all`, a list of texts."""
    by_arena = {}
    for row in rows:
        if row["memory"].startswith("glibc "):
            by_arena.setdefault(row["memory"], []).append(row)
    mapped = BilledArena(by_arena.pop("glibc mmapped", []))
    arenas = [BilledArena(rows) for rows in by_arena.values()]
    found = sorted((arena.figures() for arena in arenas),
                   key=lambda figures: sorted(figures.items()))
    problems = []
    for ours, theirs in zip(found, info.arenas):
        # Its flag, that the one below is in use, counts as a byte of each
        # chunk in a bin: malloc_info() does not mask it.
        if theirs["rest"] == ours["rest"] + ours["rest count"] - 1:
            theirs["rest"] = ours["rest"]
    if found != info.arenas:
        problems.append(f"the bill's arenas are\n{found}\n"
                        f"and malloc's are\n{info.arenas}")
    free = sum(figures["fast"] + figures["rest"] for figures in found)
    system = sum(figures["system"] for figures in found)
    main = next(iter(by_arena.values()))
    billed = {
        "arena": system,
        "fordblks": free,
        "uordblks": system - free,
        "fsmblks": sum(figures["fast"] for figures in found),
        "smblks": sum(figures["fast count"] for figures in found),
        "ordblks": sum(figures["rest count"] for figures in found),
        "hblks": mapped.counts.get("used", 0),
        "hblkhd": sum(mapped.bytes.values()),
        "keepcost": BilledArena(main).bytes.get("top", 0),
    }
    for name, value in billed.items():
        if value != info.totals[name]:
            problems.append(f"{name} is {value} by the bill, "
                            f"{info.totals[name]} by malloc")
    return problems


class Truth:
    """Each state maps the addresses of its blocks to their usable sizes."""

    def __init__(self, path):
        self.lost, self.kept, self.freed, self.destroyed = {}, {}, {}, {}
        self.damaged, self.numbers = [], {}
        self.ready = False
        self.malloc = None
        with open(path, encoding="ascii") as file:
            for line in file:
                self._read(line.split())
        if os.path.exists(path + ".malloc"):
            with open(path + ".malloc", encoding="ascii") as file:
                self.malloc = MallocInfo(file.read())

    def _read(self, words):
        if words == ["ready"]:
            self.ready = True
        elif words[0] == "damaged":
            self.damaged.append(int(words[1], 16))
        elif len(words) == 2:
            self.numbers[words[0]] = int(words[1])
        else:
            getattr(self, words[0])[int(words[1], 16)] = int(words[2])

    def used(self):
        return {**self.lost, **self.kept}

    def state(self, address):
        for name in ("lost", "kept", "freed", "destroyed"):
            size = getattr(self, name).get(address)
            if size is not None:
                return f"{name}, size {size}"
        return "not listed"


class Intervals:
    """Blocks that do not overlap, to be found by an address inside."""

    def __init__(self, blocks):
        self.starts = sorted(blocks)
        self.sizes = blocks

    def find(self, address):
        rank = bisect.bisect_right(self.starts, address) - 1
        if rank < 0:
            return None
        start = self.starts[rank]
        return start if address - start < self.sizes[start] else None


class Unusable(Exception):
    """heapcore gave no answer that can be judged."""


class Analysis:
    """What heapcore says of a core."""

    def __init__(self, heapcore, core):
        self.heapcore, self.core = heapcore, core
        with open(core, "rb") as file:
            self.word = 4 if file.read(5)[4:] == b"\1" else 8
        self.statuses, self.errors = set(), ""
        self.leaked = self._enumerate("leaked")
        self.used = self._list("used", {"Used"})
        self.free = self._list("free", {"Free", "Thread cached free"})
        self.bill = self._tables("bill")
        statuses = self.statuses.copy()
        self.maps = self._tables("list maps")["mapping"]
        self.statuses = statuses  # that one never looks at the heap

    def _run(self, *command, options=()):
        arguments = [self.heapcore, *options, self.core, *command]
        try:
            run = subprocess.run(
                arguments, capture_output=True, text=True, timeout=TIMEOUT,
                stdin=subprocess.DEVNULL, errors="replace", check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Unusable(f"no answer in {TIMEOUT} s: {command}") from error
        if run.returncode not in (0, EXIT_INCOMPLETE):
            raise Unusable(
                f"exit status {run.returncode} of {' '.join(arguments)}\n"
                + indent(run.stderr)
            )
        self.statuses.add(run.returncode)
        self.errors += run.stderr
        return run.stdout.splitlines()

    def uncached(self):
        """Free blocks that are in no thread's cache."""
        cached = self._list("threadcached", {"Free", "Thread cached free"})
        return {address: size for address, size in self.free.items()
                if address not in cached}

    def bill_by_arena(self):
        return self._tables("bill --all")["use"]

    def _tables(self, command):
        """The rows of the command's tables, by what the tables are of."""
        text = "\n".join(self._run(*command.split(),
                                   options=("--format", "json")))
        return {table["name"]: table["rows"]
                for table in json.loads(text)["tables"]}

    def _enumerate(self, what):
        addresses = [int(line, 16) for line in self._run("enumerate", what)]
        if len(set(addresses)) < len(addresses):
            raise Unusable(f"'enumerate {what}' repeats addresses")
        return set(addresses)

    def _list(self, what, states):
        blocks, count = {}, None
        for line in self._run("list", what):
            match = LISTED.match(line)
            if match and match[1] in states:
                blocks[int(match[2], 16)] = int(match[3], 16)
            elif match:
                raise Unusable(f"'list {what}' has '{line}'")
            elif COUNT.match(line):
                count = int(COUNT.match(line)[1].replace(",", ""))
        if count != len(blocks):
            raise Unusable(
                f"'list {what}' lists {len(blocks)} and says {count}"
            )
        return blocks

    def state(self, address):
        if address in self.leaked:
            return "leaked"
        if address in self.used:
            return "used"
        return "free" if address in self.free else "not found"


def indent(text, lines=10):
    return "\n".join("    " + line for line in text.splitlines()[:lines])


class Check:
    """Compares one analysis to the truth; problems is what is wrong."""

    def __init__(self, truth, analysis):
        self.truth, self.analysis = truth, analysis
        self.problems = []
        self._check_leaked()
        self._check_used()
        self._check_sizes()
        self._check_freed()
        self._check_free()
        self._check_bill()
        self._check_status()

    def _wrong(self, what, addresses):
        addresses = sorted(addresses)
        if not addresses:
            return
        lines = [f"{len(addresses)} {what}"]
        for address in addresses[:SHOWN_ADDRESSES]:
            lines.append(
                f"    {address:x}: in truth {self.truth.state(address)};"
                f" found {self.analysis.state(address)}"
            )
        if len(addresses) > SHOWN_ADDRESSES:
            lines.append("    ...")
        self.problems.append("\n".join(lines))

    def _check_leaked(self):
        lost, leaked = set(self.truth.lost), self.analysis.leaked
        self._wrong("lost, but not found leaked", lost - leaked)
        self._wrong(
            "found leaked, but not lost",
            leaked - lost - set(self.truth.destroyed),
        )

    def _check_used(self):
        truth, used = self.truth, set(self.analysis.used)
        self._wrong("used, but not found so", set(truth.used()) - used)
        unlisted = used - set(truth.used()) - set(truth.destroyed)
        if len(unlisted) > MOST_UNLISTED_BLOCKS and not truth.damaged:
            self._wrong("found used, but not listed", unlisted)

    def _check_sizes(self):
        used = self.analysis.used
        wrong = [
            (address, size)
            for address, size in self.truth.used().items()
            if used.get(address, size) != size
        ]
        self._wrong("of another size", [address for address, _ in wrong])
        for address, size in wrong[:SHOWN_ADDRESSES]:
            self.problems.append(
                f"    {address:x}: of size {size}; found {used[address]}"
            )

    def _check_freed(self):
        used = Intervals(self.analysis.used)
        self._wrong(
            "freed, but found in use",
            [address for address in self.truth.freed
             if used.find(address) is not None],
        )

    def _check_free(self):
        used = Intervals(self.truth.used())
        self._wrong(
            "found free, but inside a block that is used",
            [address for address in self.analysis.free
             if used.find(address) is not None],
        )

    def _check_bill(self):
        """Each mapped byte stands in it once, and each block."""
        *uses, total = self.analysis.bill["use"]
        mapped = sum(row["size"] for row in self.analysis.maps)
        if total["mapped"] != mapped:
            self.problems.append(
                f"the bill has {total['mapped']} of {mapped} mapped bytes")
        for column in ("mapped", "resident"):
            if sum(row[column] for row in uses) != total[column]:
                self.problems.append(f"the bill's {column} bytes add up wrong")
        free = sum(row["count"] for row in uses
                   if row["memory"] in ("glibc", "jemalloc", "tcmalloc", "musl") and row["use"] in FREE_KINDS)
        if free != len(self.analysis.free):
            self.problems.append(
                f"the bill has {free} free blocks of "
                f"{len(self.analysis.free)}")
        if self.truth.malloc:
            self.problems += compare_malloc(self.analysis.bill_by_arena(),
                                            self.truth.malloc)
            self.problems += compare_sizes(self.analysis.uncached(),
                                           self.truth.malloc, self.analysis.word)
        unexplained = sum(row["mapped"] for row in uses
                          if row["memory"] == "unexplained")
        few = FEW_BYTES[self.analysis.word]
        if unexplained > max(mapped // 100, few) and not self.truth.damaged:
            self.problems.append(f"{unexplained} bytes are unexplained")

    def _check_status(self):
        analysis = self.analysis
        expected = {EXIT_INCOMPLETE} if self.truth.damaged else {0}
        if analysis.statuses != expected:
            self.problems.append(
                f"exit status {sorted(analysis.statuses)} for {expected}\n"
                + indent(analysis.errors)
            )
        if not self.truth.damaged:
            return
        for address in self.truth.damaged:
            # Of one that is destroyed itself, nothing may be left to name.
            if (address not in self.truth.destroyed
                    and not self._is_named(address)):
                self.problems.append(
                    f"the damage at or behind {address:x} is not named\n"
                    + indent(analysis.errors)
                )

    def _is_named(self, address):
        """By itself, or by the block behind it, with or without header."""
        known = {**self.truth.used(), **self.truth.destroyed,
                 **self.truth.freed}
        end = address + known[address]
        names = {address, address - 8, address - 16, end - 8, end, end + 8}
        found = re.findall(r"\b(?:0x)?([0-9a-f]{6,16})\b",
                           self.analysis.errors)
        return any(int(word, 16) in names for word in found)


def check(heapcore, core, truth_path):
    """Returns what is wrong, a list of texts."""
    try:
        return Check(Truth(truth_path), Analysis(heapcore, core)).problems
    except Unusable as error:
        return [str(error)]
