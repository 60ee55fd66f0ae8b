#!/usr/bin/env python3
"""
However a program was linked, its types, lines and variables are known; where its file may be
another one, that is said.
"""

import os
import shutil
import struct
import unittest

from harness import LiveTest, ask, end, gcore, places_said, rows, snap

KINDS = ("-no-pie", "-pie", "-static", "-static-pie")
NO_BUILD_ID = "-Wl,--build-id=none"
LARGE_PAGES = "-Wl,-z,max-page-size=65536"
# Other than all by default, with these kinds of programs: what the linker has that moves segments
# or packs relocations.
BUILDS = {
    "bfd": {"-Wl,-z,separate-code": KINDS, "-Wl,-z,noseparate-code": KINDS,
            "-Wl,-z,pack-relative-relocs": ("-pie",), LARGE_PAGES: KINDS},
    "gold": {"-Wl,--rosegment": ("-no-pie", "-pie", "-static"),
             LARGE_PAGES: ("-no-pie", "-pie", "-static")},
    "lld": {"-Wl,-z,separate-code": KINDS, "-Wl,--no-rosegment": KINDS,
            "-Wl,--pack-dyn-relocs=relr": ("-static-pie",), LARGE_PAGES: KINDS},
    "mold": {"-Wl,-z,separate-code": KINDS, "-Wl,-z,noseparate-code": KINDS,
             "-Wl,--pack-dyn-relocs=relr": ("-static-pie",), LARGE_PAGES: KINDS},
}
# Cores have the first page of a file only: its build-id is elsewhere.
APART = ("gold", "-static", "-Wl,--rosegment")


class LinkersTest(LiveTest):
    def core(self, linker, kind, option, take=None):
        program = self.compile("program", "linked.c",
                               flags=("-g", "-O1", f"-fuse-ld={linker}", kind, option))
        process = self.start([program])
        core = take(process, self.folder) if take else snap(process, self.path("core"))
        end(process)
        return core, places_said(process)["&shop.items"]

    def check(self, core, place, has_build_id):
        answer = ask("-c", "summarize used", "-c", "backtrace", "-c", "explain shop.items",
                     core, expected=(0, 3))
        said = answer.stdout
        self.assertIn("Type struct item has 100 instances", said)
        self.assertRegex(said, r"in main\(\) at \S*linked\.c:\d+ \(program\)")
        self.assertIn(f"shop.items (in program, of type struct item *) is at 0x{place:x},", said)
        modules = {os.path.basename(row["path"]): row["file"]
                   for row in rows("module", "-q", core, "list", "modules")}
        self.assertEqual(modules["program"], "used" if has_build_id else "likely")
        self.assertEqual("the core has no build-id of" in answer.stderr, not has_build_id)

    def check_linker(self, linker):
        kinds = [kind for kind in KINDS if (linker, kind) != ("gold", "-static-pie")]
        builds = {"-Wl,--build-id": kinds, NO_BUILD_ID: kinds, **BUILDS[linker]}
        for option, kinds in builds.items():
            for kind in kinds:
                with self.subTest(linker=linker, kind=kind, option=option):
                    core, place = self.core(linker, kind, option)
                    self.check(core, place,
                               option != NO_BUILD_ID and (linker, kind, option) != APART)
        core, place = self.core(linker, "-pie", "-Wl,--build-id", gcore)
        self.check(core, place, True)

    @unittest.skipUnless(shutil.which("ld.bfd"), "there is no ld.bfd")
    def test_bfd(self):
        self.check_linker("bfd")

    @unittest.skipUnless(shutil.which("ld.gold"), "there is no ld.gold")
    def test_gold(self):
        self.check_linker("gold")

    @unittest.skipUnless(shutil.which("ld.lld"), "there is no ld.lld")
    def test_lld(self):
        self.check_linker("lld")

    @unittest.skipUnless(shutil.which("ld.mold"), "there is no ld.mold")
    def test_mold(self):
        self.check_linker("mold")


class FilesTest(LiveTest):
    """What is said where the program's file, or its debug information, is not the right one."""

    def core(self, *flags):
        program = self.compile("program", "linked.c", flags=("-O1", *flags))
        process = self.start([program])
        core = snap(process, self.path("core"))
        end(process)
        return core, places_said(process)["&shop.items"]

    def said(self, core):
        answer = ask(core, "summarize", "used")
        return "Type struct item" in answer.stdout, answer.stderr

    def test_another_build_is_not_used(self):
        core, _ = self.core("-g", NO_BUILD_ID)
        self.compile("program", "linked.c", flags=("-O2", "-g", NO_BUILD_ID))
        has_types, notes = self.said(core)
        self.assertFalse(has_types)
        self.assertRegex(notes, "types of allocations need .*program, the file here is another")
        self.assertNotIn("compile it with -g", notes)
        os.remove(self.path("program"))
        self.assertIn("which is not here", self.said(core)[1])

    def test_a_build_id_is_wanted_where_the_core_has_none(self):
        core, _ = self.core("-g", NO_BUILD_ID)
        self.compile("program", "linked.c", flags=("-O1", "-g", "-Wl,--build-id"))
        self.assertFalse(self.said(core)[0])

    def test_only_what_has_no_debug_information_is_to_be_compiled_with_it(self):
        for flags in (), (NO_BUILD_ID,):
            core, _ = self.core(*flags)
            self.assertIn("compile it with -g", self.said(core)[1])
            core, _ = self.core("-g", *flags)
            self.assertNotIn("compile it with -g", self.said(core)[1])

    def test_variables_without_a_place(self):
        core, place = self.core("-g", "-no-pie", "-Wl,--build-id")
        self.assertNotIn("has a place", self.said(core)[1])
        start = place - 8
        with open(self.path("program"), "rb") as file:
            whole = file.read()
        # DW_OP_addr, behind the length: shop, and what leads to it.
        elsewhere = b"\x09\x03" + struct.pack("<Q", start + (1 << 32))
        damaged = whole.replace(b"\x09\x03" + struct.pack("<Q", start), elsewhere)
        self.assertNotEqual(damaged, whole)
        os.remove(self.path("program"))
        with open(self.path("program"), "wb") as file:
            file.write(damaged)
        self.assertRegex(self.said(core)[1],
                         "debug information of program was read, but none of its 1 static "
                         "variable has a place in its memory")


if __name__ == "__main__":
    unittest.main()
