"""
Circles of includes: headers that include each other, and pairs of a header and
its source which lead back to themselves by what they include.

A header without a source of its own holds what several sources share, and a
source without a header opens or makes what another one's header declares; so
neither is a pair.
"""

import os
import re
import unittest

SOURCE_DIR = os.environ.get("SOURCE_DIR", os.getcwd())
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


# Those that there are still; no other may come.
KNOWN = ()


def files():
    for folder in ("analyzer", "allocators", "cli"):
        for parent, _, names in os.walk(os.path.join(SOURCE_DIR, folder)):
            for name in names:
                if name.endswith((".c", ".h")):
                    path = os.path.join(parent, name)
                    yield os.path.relpath(path, SOURCE_DIR)


def includes(path):
    with open(os.path.join(SOURCE_DIR, path), encoding="utf-8") as file:
        return set(INCLUDE.findall(file.read()))


def headers():
    return {path: includes(path) for path in files() if path.endswith(".h")}


def pairs():
    """Each pair, as a path without its end, and those that it includes."""
    every = set(files())
    found = {path[:-2]: set() for path in every
             if path.endswith(".h") and path[:-2] + ".c" in every}
    for pair, included in found.items():
        for path in (pair + ".h", pair + ".c"):
            included.update(other[:-2] for other in includes(path)
                            if other[:-2] in found and other[:-2] != pair)
    return found


def circles(graph):
    """The sets of parts of which each leads to all others (Tarjan)."""
    order, lowest, stack, found = {}, {}, [], []

    def visit(part):
        order[part] = lowest[part] = len(order)
        stack.append(part)
        for other in sorted(graph.get(part, ())):
            if other not in order:
                visit(other)
                lowest[part] = min(lowest[part], lowest[other])
            elif other in stack:
                lowest[part] = min(lowest[part], order[other])
        if lowest[part] == order[part]:
            circle = stack[stack.index(part):]
            del stack[stack.index(part):]
            if len(circle) > 1:
                found.append(sorted(circle))

    for part in sorted(graph):
        if part not in order:
            visit(part)
    return found


class CirclesTest(unittest.TestCase):
    def test_circle_is_found(self):
        graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
        self.assertEqual(circles(graph), [["b", "c"]])

    def test_no_header_includes_what_leads_back_to_it(self):
        self.assertEqual(circles(headers()), [])

    def test_no_pair_includes_what_leads_back_to_it(self):
        new = [circle for circle in circles(pairs())
               if not any(set(circle) <= set(known) for known in KNOWN)]
        self.assertEqual(new, [])


if __name__ == "__main__":
    unittest.main()
