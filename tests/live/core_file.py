"""
What a core says, read without any of heapcore's code.
"""

import struct

NOTE_CUTS = 0x43555453
NOTE_UNSHARED = 0x554e5348


class Core:
    """An open core: its segments, and its notes by owner and type."""

    def __init__(self, path):
        self.file = open(path, "rb")
        header = struct.unpack("<16sHHIQQQIHHHHHH", self.file.read(64))
        self.segments = []
        self.notes = []
        for number in range(header[10]):
            self.file.seek(header[5] + number * 56)
            segment = struct.unpack("<IIQQQQQQ", self.file.read(56))
            if segment[0] == 1:
                self.segments.append(segment)
            elif segment[0] == 4:
                self.read_notes(segment)

    def close(self):
        self.file.close()

    def read_notes(self, segment):
        self.file.seek(segment[2])
        rest = self.file.read(segment[5])
        while rest:
            name_size, size, kind = struct.unpack("<III", rest[:12])
            name = rest[12:12 + name_size - 1].decode()
            start = 12 + (name_size + 3) // 4 * 4
            self.notes.append((name, kind, rest[start:start + size]))
            rest = rest[start + (size + 3) // 4 * 4:]

    def find(self, kind):
        return [note for _, of, note in self.notes if of == kind]

    def read(self, address, size):
        """The bytes there, or None if the core has them not."""
        cuts = [cut for note in self.find(NOTE_CUTS)
                for cut in struct.iter_unpack("<QQ", note)]
        for _, _, offset, start, _, held, all_bytes, _ in self.segments:
            if start <= address and address + size <= start + held:
                self.file.seek(offset + address - start)
                return self.file.read(size)
            if start <= address < start + all_bytes and any(
                    begin <= address < end for begin, end in cuts):
                return bytes(size)  # never touched
        return None

    def offset_of(self, address):
        """Where the file has the byte at address."""
        for _, _, offset, start, _, held, _, _ in self.segments:
            if start <= address < start + held:
                return offset + address - start
        raise ValueError(f"the core lacks {address:#x}")
