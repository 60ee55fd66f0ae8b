"""A core in which some allocations leaked: no word leads to them any more."""

import array
import bisect
import struct

ONE_IN = 100
HEADER = struct.Struct("<IIQQQQQQ")  # of a segment
PT_LOAD, PT_NOTE, WRITABLE = 1, 4, 2
WORD = 8


def segments(core):
    """(kind, rights, offset, address, bytes in the file) of each."""
    offset, = struct.unpack_from("<Q", core, 32)
    size, count = struct.unpack_from("<HH", core, 54)
    for number in range(count):
        kind, rights, start, address, _, length, *_ = HEADER.unpack_from(
            core, offset + number * size)
        yield kind, rights, start, address, length


def chosen(sites):
    """One in a hundred of the allocations, spread over all, as (start, end)."""
    for number, address in enumerate(sorted(sites)):
        size = sites[address][0]
        # The address of a free chunk behind it may be that of its last word.
        if number * 2654435761 % (1 << 32) < (1 << 32) // ONE_IN:
            yield address, address + max(size - WORD, 1)


def lose(core, sites, lost):
    """Write a copy of the core, with zeros over all that leads to the chosen,
    but for pointers of an allocation into itself."""
    data = bytearray(core.read_bytes())
    ranges = list(chosen(sites))
    starts = [start for start, _ in ranges]
    lowest, highest = starts[0], ranges[-1][1]
    for kind, rights, offset, address, length in segments(data):
        # Registers stand in the notes.
        if kind != PT_NOTE and not (kind == PT_LOAD and rights & WRITABLE):
            continue
        skipped = -offset % 4 if kind == PT_NOTE else 0
        for shift in (0, 4) if kind == PT_NOTE else (0,):
            first = offset + skipped + shift
            count = (offset + length - first) // WORD
            words = array.array("Q", data[first:first + count * WORD])
            for number, word in enumerate(words):
                if not lowest <= word < highest:
                    continue
                start, end = ranges[bisect.bisect_right(starts, word) - 1]
                place = address + first - offset + number * WORD
                if word < end and (kind == PT_NOTE or not start <= place < end):
                    words[number] = 0
            data[first:first + count * WORD] = words.tobytes()
    lost.write_bytes(data)
