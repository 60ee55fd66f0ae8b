#!/usr/bin/env python3
"""
Java: where its heap and its code cache are, against what the virtual machine says of them, and what
only its heap holds of malloc's blocks.
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
    """One core for all, as those of Java are large."""

    def test_what_a_virtual_machine_says(self):
        with open(self.path("Blocks.java"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        result = harness.run("javac", "-nowarn", "-d", self.folder, self.path("Blocks.java"))
        self.assertEqual(result.returncode, 0, result.stderr)
        java = os.path.realpath(shutil.which("java"))
        process = self.start([java, f"-Xmx{HEAP >> 20}m", "-XX:+UseSerialGC", "-cp",
                              self.folder, "Blocks"])
        self.code = harness.run(os.path.join(os.path.dirname(java), "jcmd"),
                                str(process.pid), "Compiler.codecache").stdout
        self.core = harness.snap(process, self.path("core"))
        harness.end(process)
        self.check_bill()
        self.check_leaks()

    def check_bill(self):
        """All that is reserved for objects, and for code as `jcmd` prints its bounds."""
        rows = harness.tables("-q", self.core, "bill")["use"]
        found = {row["use"]: row for row in rows}
        self.assertEqual(found["Java's heap"]["mapped"], HEAP)
        self.assertGreater(found["Java's heap"]["resident"], 0)
        bounds = [(int(start, 16), int(end, 16)) for start, end in re.findall(
            r"bounds \[0x(\w+), 0x\w+, 0x(\w+)\]", self.code)]
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
