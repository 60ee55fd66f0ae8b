#!/usr/bin/env python3
"""
`heapcore receive`: a core that comes through a pipe, as the kernel's does, is kept with answers, within
limits of size, number and room.
"""

import fcntl
import glob
import json
import os
import subprocess
import unittest

import harness
from harness import FINE, INCOMPLETE, USAGE

BLOCKS = 2000
PROGRAM = f"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {{
    struct entry *next;
    char text[4000];
}};

struct entry *the_cache;

int main(void)
{{
    for (int i = 0; i < {BLOCKS}; i++) {{
        struct entry *entry = malloc(sizeof(*entry));

        memset(entry->text, 'x', sizeof(entry->text));
        entry->next = the_cache;
        the_cache = entry;
    }}
    puts("ready");
    fflush(stdout);
    pause();
}}
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class ReceiveTest(harness.LiveTest):
    def setUp(self):
        super().setUp()
        self.answers = self.path("answers")
        self.process = self.start([self.compile("holder", text=PROGRAM, flags=("-g", "-O1"))])
        self.core = self.path("whole")
        harness.ask("snap", "-q", "-o", self.core, str(self.process.pid))

    def receive(self, *words, expected=FINE, core=None, **options):
        """The core through a pipe."""
        with subprocess.Popen(["cat", core or self.core], stdout=subprocess.PIPE) as source:
            result = subprocess.run([harness.HEAPCORE, "receive", "-o", self.answers, *words],
                                    stdin=source.stdout, check=False, text=True, **options)
            source.stdout.close()
        self.assertEqual(result.returncode, expected, result.stderr)
        return result.stderr

    def folders(self):
        return sorted(glob.glob(f"{self.answers}/2*"))

    def test_what_the_kernel_hands_over_is_kept_with_answers(self):
        words = str(self.process.pid), "hol\\n/der", "11"
        self.receive(*words, stderr=subprocess.DEVNULL)
        folder, = self.folders()
        self.assertTrue(folder.endswith(f"-hol_n_der-{self.process.pid}"), folder)
        self.assertIn("the_cache (holder)", read(f"{folder}/screen.txt"))
        self.assertEqual(read(f"{folder}/messages.txt"), "")
        reason = json.loads(read(f"{folder}/reason.json"))
        self.assertEqual((reason["cause"], reason["size"], reason["cut"]),
                         ("signal 11", os.path.getsize(self.core), False))
        self.assertEqual(os.readlink(f"{self.answers}/latest"), os.path.basename(folder))
        # Zeros take no room.
        self.assertLess(os.stat(f"{folder}/core").st_blocks * 512, os.path.getsize(self.core) + 8192)
        self.assertEqual(harness.run("cmp", self.core, f"{folder}/core").stdout, "")
        # Nobody reads standard error there.
        self.assertEqual(read(f"{self.answers}/receive.log").count(f"{folder}: signal 11"), 1)

    def test_limits(self):
        words = str(self.process.pid), "holder", "6"
        said = self.receive("--largest", "4M", *words, stderr=subprocess.PIPE)
        self.assertIn("cut there", said)
        folder, = self.folders()
        self.assertTrue(json.loads(read(f"{folder}/reason.json"))["cut"])
        self.assertLessEqual(os.stat(f"{folder}/core").st_blocks * 512, 4 << 20)
        self.assertIn("truncated", read(f"{folder}/messages.txt"))
        said = self.receive("--max", "1/h", *words, stderr=subprocess.PIPE)
        self.assertIn("as many as may be were kept within an hour", said)
        self.assertEqual(self.folders(), [folder])
        # The oldest makes room.
        self.receive("--room", "10M", *words, stderr=subprocess.PIPE)
        last, = self.folders()
        self.assertNotEqual(last, folder)

    def test_a_folder_that_another_one_analyses_makes_no_room(self):
        words = str(self.process.pid), "holder", "6"
        self.receive(*words, stderr=subprocess.PIPE)
        first, = self.folders()
        folder = os.open(first, os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_EX)
        self.receive("--room", "10M", *words, stderr=subprocess.PIPE)
        self.assertEqual((len(self.folders()), self.folders()[0]), (2, first))
        os.close(folder)
        self.receive("--room", "10M", *words, stderr=subprocess.PIPE)
        self.assertEqual(len(self.folders()), 1)
        self.assertNotEqual(self.folders(), [first])

    def test_what_is_no_core(self):
        empty = self.path("empty")
        with open(empty, "w", encoding="ascii"):
            pass
        said = self.receive("1", core=empty, expected=INCOMPLETE, stderr=subprocess.PIPE)
        self.assertIn("no core came", said)
        self.assertEqual(self.folders(), [])
        text = self.path("text")
        with open(text, "w", encoding="ascii") as file:
            file.write("no core" * 999)
        self.receive("1", core=text, expected=FINE, stderr=subprocess.PIPE)
        folder, = self.folders()
        self.assertTrue(os.path.exists(f"{folder}/core"))
        self.assertRegex(read(f"{folder}/messages.txt"), "not|no core")
        said = self.receive("--slim", "1", core=text, expected=FINE, stderr=subprocess.PIPE)
        self.assertIn("none without contents could be made, so it is removed", said)
        self.assertFalse(os.path.exists(f"{self.folders()[1]}/core"))

    def test_two_at_once_leave_each_other_alone(self):
        """One waits for the rest of its core while another comes."""
        read_end, write_end = os.pipe()
        first = subprocess.Popen([harness.HEAPCORE, "receive", "-q", "-o", self.answers, "1"],
                                 stdin=read_end)
        self.addCleanup(harness.end, first)
        os.close(read_end)
        with open(self.core, "rb") as file, open(write_end, "wb") as pipe:
            # More than a pipe holds: it has begun.
            pipe.write(file.read(1 << 20))
            pipe.flush()
            self.receive(str(self.process.pid), stderr=subprocess.PIPE)
            pipe.write(file.read())
        self.assertEqual(first.wait(timeout=harness.TIMEOUT), FINE)
        for folder in self.folders():
            self.assertIn("the_cache (holder)", read(f"{folder}/screen.txt"))
        self.assertEqual(len(self.folders()), 2)

    def test_wrong_usage(self):
        for words in ((), ("-o", self.answers), ("1",), ("-o", self.answers, "many"),
                      ("-o", self.answers, "--max", "some", "1"),
                      ("-o", self.answers, "1", "a", "2", "b")):
            self.assertEqual(harness.run(harness.HEAPCORE, "receive", *words).returncode, USAGE,
                             words)


if __name__ == "__main__":
    unittest.main()
