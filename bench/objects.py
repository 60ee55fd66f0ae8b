#!/usr/bin/env python3
"""A program with many objects of Python, of which it knows how many.

    objects.py [COUNT]

It makes COUNT objects (ten million if not said), as a service that keeps records
would: with slots, with attributes, tuples, lists, dicts, and what these refer to. It
says how many it made, "used COUNT", and how many of each of its classes, then
"ready", and waits for its core to be taken.
"""

import sys
import time

IN_A_ROUND = 12


class Pair:
    __slots__ = ("first", "second")

    def __init__(self, first, second):
        self.first = first
        self.second = second


class Record:
    def __init__(self, number):
        self.number = number
        self.name = f"n{number}"


def make(number):
    """Twelve objects; small ints would be the interpreter's own."""
    return (
        # A pair, a tuple, an int, a str, a list, an int.
        Pair((number + 1000, str(number)), [number + 5000]),
        # A record, an int, a str.
        Record(number + 100000),
        # A dict, an int, a float.
        {number + 1000: 1.5 + number})


def main():
    rounds = (int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000) // IN_A_ROUND
    kept = []
    for number in range(rounds):
        kept.extend(make(number))
    print(f"used {rounds * IN_A_ROUND}\n__main__.Pair {rounds}\n__main__.Record {rounds}\nready",
          flush=True)
    time.sleep(86400)


if __name__ == "__main__":
    main()
