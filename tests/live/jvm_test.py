#!/usr/bin/env python3
"""
Java: where its heap, its classes and its code cache are, against what the virtual machine says of
them, and what only its heap holds of malloc's blocks.
"""

import os
import re
import shutil
import unittest

import harness

HELD, LOST, LOST_SIZE, HELD_SIZE = 40, 20, 151536, 1432
HEAP = 96 << 20

PROGRAM = f"""
import java.lang.reflect.Field;
import sun.misc.Unsafe;

public class Blocks {{
    static long[] held = new long[{HELD}];

    static void lose(Unsafe unsafe) {{
        for (int i = 0; i < {LOST}; i++)
            unsafe.setMemory(unsafe.allocateMemory({LOST_SIZE}), {LOST_SIZE}, (byte) 1);
    }}

    public static void main(String[] arguments) throws Exception {{
        Field field = Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Unsafe unsafe = (Unsafe) field.get(null);
        lose(unsafe);
        for (int i = 0; i < {HELD}; i++) {{
            held[i] = unsafe.allocateMemory({HELD_SIZE});
            unsafe.setMemory(held[i], {HELD_SIZE}, (byte) 2);
        }}
        System.out.println("ready");
        Thread.sleep(1000000000);
    }}
}}
"""


@unittest.skipUnless(shutil.which("javac"), "there is no javac")
class Jvm(harness.LiveTest):
    """One core for all that does not depend on the collector, as those of Java are large."""

    def test_what_a_virtual_machine_says(self):
        with open(self.path("Blocks.java"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        result = harness.run("javac", "-nowarn", "-d", self.folder, self.path("Blocks.java"))
        self.assertEqual(result.returncode, 0, result.stderr)
        java = os.path.realpath(shutil.which("java"))
        questions = self.path("questions")
        with open(questions, "w", encoding="utf-8") as file:
            file.write("Compiler.codecache\nGC.heap_info\n")
        for collector in ("G1", "Serial"):
            process = self.start([java, f"-Xmx{HEAP >> 20}m", f"-XX:+Use{collector}GC", "-cp",
                                  self.folder, "Blocks"])
            says = harness.run(os.path.join(os.path.dirname(java), "jcmd"), str(process.pid),
                               "-f", questions).stdout
            self.core = harness.snap(process, self.path(f"core.{collector}"))
            harness.end(process)
            rows = harness.tables("-q", self.core, "bill")["use"]
            found = {row["use"]: row for row in rows}
            self.assertEqual(HEAP, sum(row["mapped"] for row in rows
                                       if row["use"].startswith("Java's heap: ")))
            self.check_regions(found, says)
        self.check_bill(found, says)
        self.check_leaks()

    def check_regions(self, found, says):
        """The regions of G1. What has run since they were counted may have taken another."""
        said = re.search(r"region size (\d+)K, (\d+) young", says)
        if said:
            size, count = int(said[1]) << 10, int(said[2])
            self.assertLessEqual(
                abs(found["Java's heap: young"]["mapped"] - size * count), 2 * size)

    def check_bill(self, found, says):
        """Memory for classes, and all that is reserved for code as `jcmd` prints its bounds."""
        self.assertGreater(found["Java's heap: young"]["resident"], 0)
        said = re.search(r"Metaspace +used (\d+)K,.*committed (\d+)K.*\n *class space +"
                         r"used (\d+)K,.*committed (\d+)K", says)
        if said:
            used, committed, class_used, class_committed = [int(text) << 10
                                                            for text in said.groups()]
            for use, least, most in (
                    ("Java's metaspace", used - class_used, committed - class_committed),
                    ("Java's compressed class space", class_used, class_committed)):
                # What is used may be counted before it is written, and some is used since.
                self.assertGreaterEqual(found[use]["resident"], least * 3 // 4, use)
                self.assertLessEqual(found[use]["resident"], most + (1 << 20), use)
        bounds = [(int(start, 16), int(end, 16)) for start, end in re.findall(
            r"bounds \[0x(\w+), 0x\w+, 0x(\w+)\]", says)]
        if bounds:
            self.assertEqual(found["Java's code cache"]["mapped"],
                             max(end for _, end in bounds) - min(start for start, _ in bounds))

    def check_leaks(self):
        """What only Java's heap refers to is held."""
        rows = harness.tables("-q", self.core, "list", "leaked")["allocation"]
        sizes = [row["size"] for row in rows]
        self.assertEqual([size for size in sizes if 0 <= size - HELD_SIZE <= 64], [])
        lost = sum(0 <= size - LOST_SIZE <= 8192 for size in sizes)
        self.assertLessEqual(lost, LOST)
        # Registers and stacks of the interpreter may still have one or another.
        self.assertGreater(lost, LOST // 2)
        used = [row["address"] for row in harness.tables(
            "-q", self.core, "list", "used", "--min-size", str(HELD_SIZE), "--max-size",
            str(HELD_SIZE + 64))["allocation"]]
        self.assertGreaterEqual(len(used), HELD)
        places = [harness.ask("-q", self.core, "explain", address).stdout
                  for address in used[::HELD // 2]]
        self.assertGreaterEqual(sum("in Java's heap" in place for place in places), 2)


if __name__ == "__main__":
    unittest.main()
