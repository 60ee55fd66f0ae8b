"""What each allocation is, as the source says at the line that makes it.

The callers that log.c keeps become functions and lines (addr2line), the
statements there are searched for a sizeof, a cast or a known macro, and gdb
says which types these are (scopes.py).
"""

import collections
import itertools
import json
import pathlib
import re
import struct
import subprocess
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
TABLE_ADDRESS = 0x200000000000
HEADER = struct.Struct("<QQQ")
ENTRY = struct.Struct("<15Q")
FIRST_FRAME = 3

LIBC = re.compile(r"/(libc|libstdc\+\+|libgcc_s)\b[^/]*$")
ALLOCATES = re.compile(r"\w*(alloc|memalign|new_size)\w*", re.I)
COPIES_TEXT = re.compile(r"\w*(str\w*n?dup|savestring|strsave|asprintf)\w*",
                         re.I)
TEXT_OF_LIBC = re.compile(
    r"\b(strn?dup|v?asprintf|getline|getdelim|realpath|getcwd)\s*\(")
TEXT_MACRO = re.compile(r"\bsavestring\s*\(")
SIZEOF = re.compile(r"\bsizeof\b\s*(\(|\w+)")
CAST = re.compile(r"\(\s*((?:struct\s+|union\s+|const\s+|unsigned\s+)*\w+"
                  r"(?:\s*\*)*)\s*\*\s*\)\s*\(?\s*$")
MOST_OF_STATEMENT = 2000


class Frame(NamedTuple):
    function: str
    file: str
    line: int


class Evidence(NamedTuple):
    """Texts of types or values, any of which it may be."""
    pc: int
    function: str
    texts: tuple


class Site(NamedTuple):
    frame: Frame | None
    truth: frozenset  # of names of types; empty: the source does not say
    called: str = ""  # the function of the C library that the program called


def read_log(pid):
    """(address, size, callers) of each allocation of a stopped process."""
    allocations = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(TABLE_ADDRESS)
        count, _, offset = HEADER.unpack(memory.read(HEADER.size))
        memory.seek(TABLE_ADDRESS + offset)
        rest = count * ENTRY.size
        data = bytearray()
        while rest > 0:
            data += memory.read(min(rest, 1 << 24))
            rest = count * ENTRY.size - len(data)
    for entry in ENTRY.iter_unpack(data):
        if entry[0]:
            frames = entry[FIRST_FRAME:]
            end = frames.index(0) if 0 in frames else len(frames)
            allocations.append((entry[0], entry[1], frames[:end]))
    return allocations


def read_modules(pid):
    """(start, end, address in the file's terms less address, path)."""
    modules, first = [], {}
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) < 6 or not pathlib.Path(fields[5]).is_file():
            continue
        start, end = (int(word, 16) for word in fields[0].split("-"))
        path = fields[5]
        if path not in first:
            first[path] = start - first_address(path)
        modules.append((start, end, first[path], path))
    return modules


def first_address(path):
    """That of the first segment that is loaded, or 0."""
    with open(path, "rb") as file:
        header = file.read(64)
        if len(header) < 64 or header[:4] != b"\x7fELF":
            return 0
        offset, = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        for number in range(count):
            file.seek(offset + number * size)
            kind, _, _, address = struct.unpack("<IIQQ", file.read(24))
            if kind == 1:
                return address & ~0xfff
    return 0


def exported(path):
    """(address, end, name) of the functions that a library exports, in order."""
    output = subprocess.run(["nm", "-D", "-S", "--defined-only", path],
                            capture_output=True, text=True, check=True).stdout
    return sorted((int(start, 16), int(start, 16) + int(size, 16),
                   name.split("@")[0]) for start, size, kind, name in (
        line.split() for line in output.splitlines()
        if len(line.split()) == 4) if kind in "TWi")


class Source:
    """A file without comments and texts, and its statements."""

    BLANKED = re.compile(
        r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
        re.S)

    def __init__(self, path):
        text = pathlib.Path(path).read_text(errors="replace")
        text = self.BLANKED.sub(
            lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        # Lines of the preprocessor belong to no statement.
        text = re.sub(r"^[ \t]*#(?!\s*define)(?:\\\n|[^\n])*",
                      lambda match: re.sub(r"[^\n]", " ", match[0]), text,
                      flags=re.M)
        self.text = text
        self.starts = [0] + [match.end()
                             for match in re.finditer("\n", text)]

    def statement(self, line):
        """What is on the line, and the rest of a statement that goes on."""
        if not 0 < line < len(self.starts):
            return ""
        at = self.starts[line - 1]
        start = max(self.text.rfind(mark, 0, at) for mark in ";{}") + 1
        length = len(self.text[at:self.starts[line]].rstrip())
        end = self.text.find(";", at + max(length - 1, 0))
        end = len(self.text) if end < 0 else end
        start = max(start, at - MOST_OF_STATEMENT)
        return self.text[start:min(end, at + MOST_OF_STATEMENT)]


def balanced(text, start):
    """What is between the parenthesis at start and that which closes it."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[start + 1:at]
    return text[start + 1:]


def arguments(text):
    """The parts of a list in parentheses."""
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return [*parts, part.strip()]


def sizes(text):
    """What is measured by a sizeof; of a sum, by the first that is of one."""
    found, rest, end = [], "", 0
    for match in SIZEOF.finditer(text):
        what = (balanced(text, match.start(1)) if match[1] == "("
                else match[1])
        rest += text[end:match.start()] + f"\0{len(found)}\0"
        end = match.end() + (len(what) + 1 if match[1] == "(" else 0)
        found.append(what.strip())
    terms = [term for term in re.split(r"[+,]", rest + text[end:])
             if "\0" in term]
    terms.sort(key=lambda term: "*" in term)
    return tuple(found[int(term.split("\0")[1])] for term in terms[:1])


def calls(statement, name):
    """(what stands before, the arguments) of each call of the function."""
    for match in re.finditer(rf"\b{name}\s*\(", statement):
        yield (statement[:match.start()],
               balanced(statement, match.end() - 1))


def evidence_of(statement, callee, site, in_wrapper):
    """Texts that name what a statement allocates, or ()."""
    for macro, number in site.types.items():
        for _, inside in calls(statement, macro):
            given = arguments(inside)
            if number < len(given):
                return (given[number],)
    for macro, number in site.values.items():
        for _, inside in calls(statement, macro):
            given = arguments(inside)
            if number < len(given):
                return (f"*({given[number]})",)
    found, seen = (), False
    for before, inside in calls(statement, callee):
        seen = True
        found += sizes(inside)
        cast = CAST.search(before)
        if not sizes(inside) and cast and not in_wrapper:
            found += (cast[1],)
    if not seen and not in_wrapper:
        found = sizes(statement)
        if not found and TEXT_MACRO.search(statement):
            found = ("char",)
    return tuple(text for text in found if text != "void")


class Sites:
    """Of one program."""

    def __init__(self, modules, program, site, folder):
        self.modules = modules
        self.program = str(program)
        self.site = site
        self.folder = folder
        self.frames = {}  # of a caller
        self.exported = {}  # of a library
        self.sources = {}
        self.wrapper = re.compile(site.wrappers or r"\b\B")
        self.unsaid = re.compile(site.unsaid or r"\b\B")
        self.headed = re.compile(site.headed or r"\b\B")

    def module_of(self, address):
        for start, end, base, path in self.modules:
            if start <= address < end:
                return path, address - base
        return "", 0

    def find_frames(self, callers):
        """Functions and lines of all of them at once, inlined ones too."""
        own = {}
        for caller in callers:
            path, address = self.module_of(caller - 1)
            self.frames[caller] = (path, [])
            if path == self.program:
                own[address] = caller
        output = subprocess.run(
            ["addr2line", "-a", "-i", "-f", "-e", self.program],
            input="".join(f"{address:#x}\n" for address in own),
            capture_output=True, text=True, check=True).stdout
        frames, function = [], None
        for line in output.splitlines():
            if line.startswith("0x"):
                frames = self.frames[own[int(line, 16)]][1]
            elif function is None:
                function = line
            else:
                file, _, number = line.split(" (")[0].rpartition(":")
                frames.append(Frame(
                    function.split(".")[0], file,
                    int(number) if number.isdigit() else 0))
                function = None

    def statement(self, frame):
        if frame.file not in self.sources:
            path = pathlib.Path(frame.file)
            self.sources[frame.file] = (Source(path) if path.is_file()
                                        else None)
        source = self.sources[frame.file]
        return source.statement(frame.line) if source else ""

    def judge_frame(self, frame, callee, pc, from_libc):
        """Evidence, True where the caller must say, or None."""
        statement = self.statement(frame)
        is_wrapper = bool(ALLOCATES.fullmatch(frame.function)
                          or self.wrapper.fullmatch(frame.function))
        if from_libc and TEXT_OF_LIBC.search(statement):
            return Evidence(pc, frame.function, ("char",))
        if self.unsaid.fullmatch(frame.function):
            return None
        if self.headed.fullmatch(frame.function):
            return True
        if frame.function in self.site.functions:
            types = self.site.functions[frame.function]
            return Evidence(pc, frame.function, types if isinstance(
                types, tuple) else (types,))
        texts = evidence_of(statement, callee, self.site, is_wrapper)
        if texts:
            return Evidence(pc, frame.function, texts)
        if COPIES_TEXT.fullmatch(frame.function):
            return Evidence(pc, frame.function, ("char",))
        return True if is_wrapper else None

    def evidence(self, callers):
        """(first frame that is no wrapper, evidence or None)."""
        callee, from_libc = r"\w*(?:alloc|memalign)\w*", False
        frame = None
        for caller in callers:
            path, frames = self.frames[caller]
            if path != self.program:
                if not LIBC.search(path):
                    return frame, None
                from_libc = True
                continue
            address = self.module_of(caller - 1)[1]
            for frame in frames:
                found = self.judge_frame(frame, callee, address, from_libc)
                if found is not True:
                    return frame, found
                callee, from_libc = re.escape(frame.function), False
        return frame, None

    def called(self, callers):
        """The function of the C library in which the program's call is."""
        inner = list(itertools.takewhile(
            lambda caller: self.frames[caller][0] != self.program, callers))
        path, address = self.module_of(inner[-1] - 1) if inner else ("", 0)
        if not LIBC.search(path):
            return ""
        if path not in self.exported:
            self.exported[path] = exported(path)
        return next((name for start, end, name in self.exported[path]
                     if start <= address < end), "")

    def resolve(self, evidence):
        """The names of types of each, by gdb."""
        question = self.folder / "question.json"
        answer = self.folder / "answer.json"
        wanted = sorted({(item.pc, item.function, text) for item in evidence
                         for text in item.texts})
        question.write_text(json.dumps(wanted))
        subprocess.run(
            ["gdb", "-nx", "-q", "-batch",
             "-iex", "set debuginfod enabled off",
             "-ex", f"python QUESTION, ANSWER = {str(question)!r}, "
             f"{str(answer)!r}", "-x", HERE / "scopes.py", self.program],
            check=True, stdout=subprocess.DEVNULL)
        names = dict(zip(wanted, json.loads(answer.read_text())))
        return {item: frozenset(
            names[item.pc, item.function, text] for text in item.texts
            if names[item.pc, item.function, text]) for item in evidence}

    def judge(self, allocations):
        """The site of each allocation: of address to (size, Site)."""
        self.find_frames({caller for _, _, callers in allocations
                          for caller in callers})
        found = {callers: self.evidence(callers) for callers in
                 {callers for _, _, callers in allocations}}
        called = {callers: self.called(callers) for callers in found}
        truths = self.resolve({item for _, item in found.values() if item})
        return {address: (size, Site(
            found[callers][0],
            truths.get(found[callers][1], frozenset()), called[callers]))
                for address, size, callers in allocations}


def count_sites(sites):
    return collections.Counter(
        (site.frame, site.truth) for _, site in sites.values())
