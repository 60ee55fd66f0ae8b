"""
heapcore within gdb: packaging/heapcore.gdb.
"""

import os
import re
import subprocess
import tempfile
import unittest

SCRIPT = os.path.join(os.environ["SOURCE_DIR"], "packaging/heapcore.gdb")
SOURCE = """
#include <stdlib.h>
#include <stdio.h>
struct node { struct node *next; long number; } *nodes;
static void stop_here(struct node *node) { printf("%p\\n", (void *)node); }
int main(void)
{
	for (int i = 0; i < 3; i++) {
		struct node *node = malloc(sizeof(*node));
		node->next = nodes;
		node->number = i;
		nodes = node;
		stop_here(node);
	}
	struct node *last = nodes;
	nodes = last->next;
	free(last);
	stop_here(nodes);
	return 0;
}
"""


class GdbTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="heapcore-")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        with open(f"{self.folder}/nodes.c", "w", encoding="utf-8") as file:
            file.write(SOURCE)
        subprocess.run(["cc", "-g", "-O0", "-o", "nodes", "nodes.c"],
                       cwd=self.folder, check=True)

    def gdb(self, *commands):
        """What gdb writes, at the third node."""
        words = [word for command in ("break stop_here", "run", "continue",
                                      "continue", *commands)
                 for word in ("-ex", command)]
        run = subprocess.run(
            ["gdb", "-nx", "-batch", "-x", SCRIPT, *words, "./nodes"],
            cwd=self.folder, capture_output=True, text=True, check=True,
            env={**os.environ, "HEAPCORE": os.environ["HEAPCORE"],
                 "TMPDIR": self.folder, "DEBUGINFOD_URLS": ""})
        return run.stdout

    def test_registers_and_expressions_are_addresses(self):
        for word in ("$rdi", "nodes->next->next", "*&nodes"):
            with self.subTest(word):
                answer = self.gdb(f"print (long){word}",
                                  f"heapcore explain {word}")
                address = int(re.search(r"\$1 = (\d+)", answer)[1])
                self.assertRegex(answer, rf"-> .*{address:#x}, \d+ bytes")
                self.assertRegex(answer, "1. nodes .*, static address ")

    def test_the_core_is_taken_anew_when_the_program_went_on(self):
        answer = self.gdb("heapcore count used", "heapcore count used",
                          "continue", "heapcore count used")
        first, second, third = re.findall(r"(\d+) allocations? uses?", answer)
        self.assertEqual(first, second)
        self.assertEqual(int(third), int(first) - 1)

    def test_nothing_stays(self):
        self.gdb("heapcore count used", "kill")
        self.assertEqual([name for name in os.listdir(self.folder)
                          if name.startswith("heapcore-")], [])

    def test_without_a_program_it_says_so(self):
        with self.assertRaises(subprocess.CalledProcessError) as failed:
            self.gdb("kill", "heapcore count used")
        self.assertIn("no core can be taken", failed.exception.stderr)


if __name__ == "__main__":
    unittest.main()
