"""Run by gdb: which types texts of a program's source mean where they stand.

QUESTION is a file with [address, function, text] each, where the text is what a
sizeof measures; ANSWER gets the name of each type, or null.
"""

import json
import re

import gdb  # pylint: disable=import-error

TYPE = re.compile(r"((?:(?:struct|union|enum|const|unsigned|signed|volatile)"
                  r"\s+)*)([A-Za-z_]\w*(?:\s+(?:int|long|char|short))*)"
                  r"\s*((?:\*|const|\s)*)$")
NO_STRUCTURE = {gdb.TYPE_CODE_FUNC: "function", gdb.TYPE_CODE_VOID: "void"}


def name_of(kind):
    """As heapcore has it: without typedef, const and bounds."""
    typedef = None
    while True:
        if kind.code == gdb.TYPE_CODE_TYPEDEF:
            typedef, kind = kind.name, kind.target()
        elif kind.code == gdb.TYPE_CODE_ARRAY:
            typedef, kind = None, kind.target()
        else:
            break
    kind = kind.unqualified()
    if kind.code in NO_STRUCTURE:
        return NO_STRUCTURE[kind.code]
    if kind.code == gdb.TYPE_CODE_PTR:
        return name_of(kind.target()) + " *"
    return kind.name or typedef or ""


def blocks_of(address, function):
    """The blocks around the address that are of the function, inlined or not,
    from the innermost on."""
    block, found = gdb.block_for_pc(address), []
    while block and not block.is_global and not block.is_static:
        around = block
        while around.function is None and around.superblock:
            around = around.superblock
        if around.function and around.function.name.split("(")[0] == function:
            found.append(block)
        block = block.superblock
    return found


class Scope:
    def __init__(self, address, function):
        self.blocks = blocks_of(address, function)
        self.block = gdb.block_for_pc(address)

    def variable(self, name):
        for block in self.blocks:
            for symbol in block:
                if symbol.name == name and (symbol.is_variable
                                            or symbol.is_argument):
                    return symbol.type
        try:
            symbol = (gdb.lookup_global_symbol(name)
                      or gdb.lookup_static_symbol(name))
        except gdb.error:
            return None
        return (symbol.type if symbol and symbol.is_variable else None)

    def named_type(self, text):
        match = TYPE.match(text)
        if not match:
            return None
        words = re.sub(r"\b(const|volatile)\b", "", match[1] + match[2])
        words = " ".join(words.split())
        for block in (self.block, None):
            try:
                kind = (gdb.lookup_type(words, block) if block
                        else gdb.lookup_type(words))
                break
            except gdb.error:
                kind = None
        for _ in range(match[3].count("*") if kind else 0):
            kind = kind.pointer()
        return kind

    def value(self, text):
        """The type of an expression of names, members and elements."""
        text = text.strip()
        while text.startswith("(") and closing(text, 0) == len(text) - 1:
            text = text[1:-1].strip()
        if text.startswith("*"):
            kind = self.value(text[1:])
            return pointee(kind)
        if text.startswith("&"):
            kind = self.value(text[1:])
            return kind.pointer() if kind else None
        if text.endswith("]"):
            return pointee(self.value(text[:opening(text)]))
        match = re.fullmatch(r"(.*?)\s*(->|\.)\s*(\w+)", text, re.S)
        if match and match[1]:
            kind = self.value(match[1])
            if kind and match[2] == "->":
                kind = pointee(kind)
            return member(kind, match[3])
        match = re.fullmatch(r"\(([^()]*\*)\s*\)(.*)", text, re.S)
        if match:
            return self.named_type(match[1])
        return self.variable(text) if re.fullmatch(r"\w+", text) else None

    def meaning(self, text):
        kind = self.value(text)
        return kind if kind is not None else self.named_type(text)


def closing(text, at):
    depth = 0
    for at in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return -1


def opening(text):
    """Where the bracket opens that closes at the end."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += {"]": 1, "[": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return 0


def pointee(kind):
    kind = kind.strip_typedefs() if kind is not None else None
    if kind is None or kind.code not in (gdb.TYPE_CODE_PTR,
                                         gdb.TYPE_CODE_ARRAY):
        return None
    return kind.target()


def member(kind, name):
    """Also one of a structure without a name inside."""
    kind = kind.strip_typedefs() if kind is not None else None
    if kind is None or kind.code not in (gdb.TYPE_CODE_STRUCT,
                                         gdb.TYPE_CODE_UNION):
        return None
    for field in kind.fields():
        if field.name == name:
            return field.type
        found = None if field.name else member(field.type, name)
        if found is not None:
            return found
    return None


def answer(questions):
    for address, function, text in questions:
        try:
            kind = Scope(address, function).meaning(text)
            yield name_of(kind) or None if kind is not None else None
        except (gdb.error, RuntimeError):
            yield None


with open(QUESTION, encoding="utf-8") as file:  # noqa: F821
    asked = json.load(file)
with open(ANSWER, "w", encoding="utf-8") as file:  # noqa: F821
    json.dump(list(answer(asked)), file)
