"""
Cores made by hand, or broken on purpose: ELF headers, segments and notes.
"""

import struct

PAGE = 4096
PT_NULL, PT_LOAD, PT_NOTE = 0, 1, 4
PF_X, PF_W, PF_R = 1, 2, 4
NT_PRSTATUS, NT_AUXV, NT_FILE = 1, 6, 0x46494C45
HEADER = struct.Struct("<IIQQQQQQ")
EXTENDED = 0xFFFF


def elf_header(kind, segments, headers=64, sections=0):
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    return identity + struct.pack(
        "<HHIQQQIHHHHHH", kind, 62, 1, 0, headers, sections, 0, 64, 56,
        min(segments, EXTENDED), 64 if sections else 0,
        1 if sections else 0, 0)


def note(kind, description):
    return (struct.pack("<III", 5, len(description), kind) + b"CORE\0\0\0\0"
            + description + bytes(-len(description) % 4))


def thread(number, stack_pointer, thread_pointer=0):
    registers = [0] * 27
    registers[19], registers[21] = stack_pointer, thread_pointer
    return note(NT_PRSTATUS, bytes(32) + struct.pack("<iiii", number, 0, 0, 0)
                + bytes(64) + struct.pack("<27Q", *registers) + bytes(8))


def mapped_files(mappings):
    """Each is (start, end, offset in pages, path)."""
    return note(NT_FILE, struct.pack("<QQ", len(mappings), PAGE)
                + b"".join(struct.pack("<QQQ", *mapping[:3])
                           for mapping in mappings)
                + b"".join(mapping[3] + b"\0" for mapping in mappings))


def write_core(path, notes, segments, data=b"", size=0, note_segments=1):
    """
    Each segment is (address, offset in data, size in the file, in memory).
    What size says beyond data is a hole.
    """
    count = len(segments) + note_segments
    extended = count >= EXTENDED
    headers = 128 if extended else 64
    start = headers + HEADER.size * count
    begin = (start + len(notes) + PAGE - 1) // PAGE * PAGE
    with open(path, "wb") as file:
        file.write(elf_header(4, count, headers, 64 if extended else 0))
        if extended:
            file.write(struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, count,
                                   0, 0))
        file.write(HEADER.pack(PT_NOTE, 0, start, 0, 0, len(notes), 0, 4)
                   * note_segments)
        for address, offset, held, whole in segments:
            file.write(HEADER.pack(PT_LOAD, PF_R | PF_W, begin + offset,
                                   address, 0, held, whole, PAGE))
        file.write(notes)
        file.seek(begin)
        file.write(data)
        file.truncate(begin + max(size, len(data)))


class Core:
    """The bytes of a core, and its program headers, to be broken."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = bytearray(file.read())
        self.place, = struct.unpack_from("<Q", self.data, 32)
        count, = struct.unpack_from("<H", self.data, 56)
        self.headers = [
            list(HEADER.unpack_from(self.data, self.place + HEADER.size * i))
            for i in range(count)]

    def set_header(self, number, header):
        HEADER.pack_into(self.data, self.place + HEADER.size * number, *header)

    def find(self, address):
        """The number of the segment that holds the address."""
        for number, header in enumerate(self.headers):
            if header[0] == PT_LOAD and 0 <= address - header[3] < header[5]:
                return number
        raise ValueError(f"{address:#x} is not in the core")

    def offset(self, address):
        header = self.headers[self.find(address)]
        return header[2] + address - header[3]

    def read(self, address, size):
        """Across segments."""
        result = b""
        while len(result) < size:
            at = address + len(result)
            header = self.headers[self.find(at)]
            part = min(size - len(result), header[3] + header[5] - at)
            start = header[2] + at - header[3]
            result += self.data[start:start + part]
        return result

    def zero(self, start, size):
        """From an offset on."""
        self.data[start:start + size] = bytes(size)

    def notes(self):
        """Offset and kind of each."""
        header = next(header for header in self.headers
                      if header[0] == PT_NOTE)
        at, end = header[2], header[2] + header[5]
        while end - at >= 12:
            name, size, kind = struct.unpack_from("<III", self.data, at)
            yield at, kind
            at += 12 + (name + 3 & ~3) + (size + 3 & ~3)

    def remove_notes(self, wanted):
        for at, kind in list(self.notes()):
            if kind == wanted:
                struct.pack_into("<I", self.data, at + 8, 0x7777)

    def auxiliary(self, wanted):
        for at, kind in self.notes():
            if kind != NT_AUXV:
                continue
            at += 20
            while True:
                key, value = struct.unpack_from("<QQ", self.data, at)
                if key in (0, wanted):
                    return value
                at += 16
        raise ValueError("no auxiliary vector")

    def thread_pointers(self):
        return [struct.unpack_from("<Q", self.data, at + 20 + 112 + 21 * 8)[0]
                for at, kind in self.notes() if kind == NT_PRSTATUS]

    def write(self, path, size=None):
        with open(path, "wb") as file:
            file.write(self.data[:size])
        return path

    def __len__(self):
        return len(self.data)
