"""
No circles: a header and its source are one part, and what a part includes never
leads back to it. A table of constants that its kinds share may stand in one of
them, and what describes many parts includes them and not the reverse.
"""

import os
import re
import unittest

SOURCE_DIR = os.environ.get("SOURCE_DIR", os.getcwd())
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def parts():
    """Each part, as a path without its end, and the parts that it includes."""
    found = {}
    for folder in ("analyzer", "allocators", "cli"):
        for parent, _, names in os.walk(os.path.join(SOURCE_DIR, folder)):
            for name in names:
                stem, end = os.path.splitext(name)
                if end not in (".c", ".h"):
                    continue
                part = os.path.relpath(os.path.join(parent, stem), SOURCE_DIR)
                with open(os.path.join(parent, name), encoding="utf-8") as file:
                    included = INCLUDE.findall(file.read())
                found.setdefault(part, set()).update(
                    path[:-2] for path in included if path[:-2] != part)
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

    def test_no_part_includes_what_leads_back_to_it(self):
        self.assertEqual(circles(parts()), [])


if __name__ == "__main__":
    unittest.main()
