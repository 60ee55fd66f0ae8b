"""
A program whose malloc is a library's: testdata/programs/other_malloc.c writes down what became of
its blocks, and heapcore must find the same in its cores. The library is the system's, or that of
the folder that ALLOCATORS_FROM names, for a program built with ALLOCATORS_FLAGS, too:
scripts/allocator-matrix has both.
"""

import os

import harness
import truth

# What libc and libstdc++ allocate for themselves.
MOST_UNLISTED = 32
# Of so many lost blocks, one may be held by what a stack or a reused block kept of its address:
# threads do not run the same way twice.
LOST_BY_STALE_WORD = 100
# Another glibc's programs cannot preload it, as what starts them is of this glibc: it is linked in.
FOLDER = os.environ.get("ALLOCATORS_FROM")
FLAGS = harness.FLAGS.split() + os.environ.get("ALLOCATORS_FLAGS", "").split()
LINKED = ["-Wl,--allow-shlib-undefined", "-Wl,--no-as-needed"]


def path_of(library):
    return os.path.join(FOLDER, library) if FOLDER and library else library


def is_there(library):
    """Whether a program can be run with it."""
    if FOLDER:
        return os.path.exists(path_of(library))
    result = harness.run("env", f"LD_PRELOAD={library}", "true")
    return result.returncode == 0 and not result.stderr


def first_there(*libraries):
    """The first with which a program can be run, or None."""
    return next(filter(is_there, libraries), None)


def sizes(core, name):
    rows = harness.tables(core, "list", name)["allocation"]
    return {int(row["address"], 16): row["size"] for row in rows}


class PreloadedTest(harness.LiveTest):
    library = None
    # Sizes of what the library itself may lose.
    own_leaks = ()

    def setUp(self):
        super().setUp()
        linked = [*LINKED, path_of(self.library)] if FOLDER and self.library else []
        self.program = self.compile("other_malloc", "other_malloc.c", "truth.c",
                                    flags=FLAGS + linked)

    def run_program(self, *arguments, **variables):
        """A process that waits, and the truth about it."""
        path = self.path("truth")
        if os.path.exists(path):
            os.unlink(path)
        if not FOLDER:
            variables["LD_PRELOAD"] = self.library
        process = self.start([self.program, *arguments], truth=path, **variables)
        return process, truth.Truth(path)

    def snapped(self, *arguments, **variables):
        process, known = self.run_program(*arguments, **variables)
        core = harness.core_of(process, self.folder, FLAGS)
        harness.end(process)
        return core, known

    def check_used(self, used, known):
        expected = {**known.kept, **known.lost}
        self.assertEqual({start: used.get(start) for start in expected}, expected)
        self.assertEqual([hex(start) for start in known.freed if start in used], [])
        self.assertLess(len(used) - len(expected), MOST_UNLISTED)

    def check(self, core, known):
        leaked = sizes(core, "leaked")
        self.check_used(sizes(core, "used"), known)
        held = [start for start in known.lost if start not in leaked]
        self.assertLessEqual(len(held), len(known.lost) // LOST_BY_STALE_WORD,
                             [harness.ask(core, "explain", hex(start)).stdout for start in held])
        others = [size for start, size in leaked.items() if start not in known.lost]
        self.assertIn(others, ([], list(self.own_leaks)))

    def check_other_cores(self, **variables):
        process, known = self.run_program("late", **variables)
        self.check(harness.gcore(process, self.folder), known)
        self.check(harness.kernel_core(process, self.folder), known)


class MuslTest(PreloadedTest):
    """The same of a program built for musl, with a malloc of musl's."""

    library = ""
    compiler = None

    def build(self, name, *flags):
        return self.compile(name, "other_malloc.c", "truth.c", compiler=self.compiler,
                            flags=[*harness.FLAGS.split(), *flags])

    def setUp(self):
        super().setUp()
        self.program = self.build("musl")

    def check_all(self):
        for when in ("early", "late"):
            with self.subTest(when=when):
                self.check(*self.snapped(when))

    def check_static(self):
        self.program = self.build("static", "-static")
        self.check(*self.snapped("late"))
