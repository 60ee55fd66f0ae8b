#!/usr/bin/env python3
"""
A process that has reserved 20 TB and touched little of it: its core is small,
and what is left out of that is zeros, not missing.
"""

import os
import shutil
import struct
import subprocess
import unittest

import harness

SIZE = 20 << 40
# No file may be larger: blocks of 512 bytes, 64 MB.
LIMIT = 64 << 20
LIMITED = ["sh", "-c", f'ulimit -f {LIMIT // 512}; exec "$@"', "sh"]
COUNT = "count leaked"
LOST = "1 allocation uses 312 bytes"


class ReservedTest(harness.LiveTest):
    def setUp(self):
        super().setUp()
        self.program = self.compile("reserved", "reserved.c",
                                    flags=harness.FLAGS.split())
        if subprocess.run([self.program, "end"], check=False,
                          capture_output=True).returncode == 77:
            self.skipTest("20 TB cannot be reserved here")

    def heapcore(self, *words):
        result = harness.run(*LIMITED, harness.HEAPCORE, *words)
        if "may not be traced" in result.stderr:
            self.skipTest(result.stderr)
        self.assertEqual(result.returncode, 0, result)
        self.assertNotIn("warning", result.stderr)
        return result

    def snap(self):
        """The path of a core, and where the reservation begins."""
        process = self.start([self.program])
        core = self.path("core")
        self.heapcore("snap", str(process.pid), "-o", core)
        return core, int(process.said[0], 16)

    def test_a_core_is_small_and_all_is_known(self):
        core, _ = self.snap()
        self.assertLess(os.path.getsize(core), LIMIT)
        self.assertIn(LOST, self.heapcore("-c", COUNT, core).stdout)
        rows, *_ = harness.tables("-c", "list writable", core).values()
        largest = max(rows, key=lambda row: row["size"])
        self.assertEqual(largest["size"], SIZE)
        self.assertEqual(largest["known"], SIZE)

    def test_bill_counts_what_was_reserved(self):
        core, _ = self.snap()
        rows, *_ = harness.tables("-c", "bill", core).values()
        self.assertGreater(sum(row["mapped"] for row in rows), SIZE)
        self.assertLess(sum(row["resident"] for row in rows), LIMIT)

    def test_bill_has_one_row_for_what_was_reserved(self):
        core, _ = self.snap()
        large = [row for row in harness.tables(core, "bill")["use"][:-1]
                 if row["mapped"] > 1 << 30]
        self.assertEqual([row["mapped"] for row in large], [SIZE])

    def test_run_and_a_look_at_the_process_need_no_more(self):
        core = self.path("run.core")
        result = self.heapcore("run", f"--core={core}", "-c", COUNT, "--",
                               self.program, "end")
        self.assertIn(LOST, result.stderr)
        self.assertLess(os.path.getsize(core), LIMIT)
        result = self.heapcore("run", "-c", COUNT, "--", self.program, "end")
        self.assertIn(LOST, result.stderr)
        process = self.start([self.program])
        self.assertIn(LOST, self.heapcore("-p", str(process.pid),
                                          COUNT).stdout)

    def test_of_a_core_that_is_cut_off_nothing_is_made_up(self):
        core, _ = self.snap()
        with open(core, "rb") as file:
            header = file.read(1 << 16)
        start, = struct.unpack_from("<Q", header, 32)
        count, = struct.unpack_from("<H", header, 56)
        segments = [struct.unpack_from("<IIQQQQQQ", header, start + 56 * i)
                    for i in range(count)]
        middle = max(segments, key=lambda one: (one[5] > 0) * one[6])
        os.truncate(core, middle[2])
        result = harness.ask("-c", f"dump {middle[3]:x} 8", core,
                             expected=(harness.INCOMPLETE,))
        self.assertIn("the core is truncated", result.stderr)
        self.assertNotIn("0000000000000000", result.stdout)

    @unittest.skipUnless(shutil.which("gdb"), "there is no gdb")
    def test_gdb_reads_what_was_touched(self):
        core, place = self.snap()
        result = harness.run("gdb", "-nx", "-batch", "-ex",
                             f"x/s *(char **){place + SIZE // 2:#x}", "-ex",
                             "backtrace", self.program, core)
        self.assertIn("held by the middle", result.stdout)
        self.assertIn("main", result.stdout)


if __name__ == "__main__":
    unittest.main()
