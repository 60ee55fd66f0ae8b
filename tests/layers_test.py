"""
The map of the source: who may include whom, and what nobody below the front
end may do.

A file includes headers of its own layer and of the layers before it in LAYERS,
by their path from the root. Nothing in the analyzer or the allocators touches
the terminal, reads the environment or exits, and nothing there is global and
writable.
"""

import os
import re
import shutil
import subprocess
import unittest

SOURCE_DIR = os.environ.get("SOURCE_DIR", os.getcwd())
BUILD_DIR = os.environ.get("BUILD_DIR")

# From the bottom to the top. A layer is what a path begins with; the first that
# fits counts. So the contract of runtimes lies below the graph, and runtimes
# themselves above classifiers.
LAYERS = [
    "analyzer/base/",
    "analyzer/report/",
    "analyzer/image/",
    "analyzer/capture/",
    "analyzer/program/",
    "analyzer/heap/",
    "allocators/",
    ("analyzer/runtimes/runtime", "analyzer/runtimes/fibers.",
     "analyzer/runtimes/object_classes.", "analyzer/runtimes/object_links."),
    "analyzer/graph/",
    "analyzer/classify/",
    "analyzer/types/",
    "analyzer/runtimes/",
    "analyzer/analysis/",
    "analyzer/kinds/",
    "analyzer/account/",
    "analyzer/query/",
    "analyzer/owners/",
    "analyzer/gate/",
    "analyzer/diff/",
    "analyzer/sql/",
    "analyzer/export/",
    "analyzer/slim/",
    "cli/",
    "tests/",
]

# Which languages there are, only their runtimes know.
LANGUAGE = re.compile(r"(?<![a-z])(crystal|guile|ecl|lisp|python|ruby|perl|php|lua)(?![a-z])", re.IGNORECASE)
NO_LANGUAGE = ("analyzer/account", "analyzer/analysis", "analyzer/classify",
               "analyzer/diff", "analyzer/export", "analyzer/gate",
               "analyzer/graph", "analyzer/heap", "analyzer/kinds",
               "analyzer/owners", "analyzer/query", "analyzer/sql",
               "analyzer/types")
# A format that is one language's own, and help with examples.
IS_OF_A_LANGUAGE = ("analyzer/export/formats/dump_all.c",)
NAMES_EXAMPLES = ("analyzer/query/set.c",)
QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')

# The contract of a language stays small enough to be read at once.
MOST_SLOTS = 20
SLOT = re.compile(r"^\t[^\t\n][^\n]*\(\*\w+\)\(|^\tconst struct runtime_\w+ \*\w+;",
                  re.MULTILINE)

# Which allocators there are, only they know.
ALLOCATOR = re.compile(r"tcache|fast ?bin|boehm|jemalloc|tcmalloc|main_arena|free_tcache", re.IGNORECASE)
NO_ALLOCATOR = ("analyzer/heap", "analyzer/graph", "analyzer/account",
                "cli/views")
KNOWS_ALLOCATORS = ("analyzer/heap/unsupported",)

# Parts in which no file needs, over others, itself.
NO_CIRCLES = ("allocators/", "analyzer/heap/")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*")', re.DOTALL)

# What belongs to the front end: the terminal, the environment, the end.
FORBIDDEN = re.compile(
    r"(?<![\w.>])("
    r"v?printf|puts|putchar|perror|v?warnx?|v?errx?|psignal|"
    r"exit|_exit|_Exit|quick_exit|abort|"
    r"isatty|ttyname|getenv|secure_getenv|setenv|putenv|"
    r"setlocale|signal|sigaction|getopt|getopt_long|argp_parse"
    r")\s*\(|(?<!\w)(stdin|stdout|stderr|environ)(?!\w)"
)

# Not .data.rel.ro: constant tables of addresses, once they are relocated.
WRITABLE_SECTION = re.compile(r"\.t?(data(?!\.rel\.ro)|bss)|\*COM\*")

# The error that is never allocated is never written to, either. The sanitizers
# have their own.
HARMLESS_SYMBOL = re.compile(
    r"error_no_memory$|__(odr_)?asan|__ubsan|\.L|[au]san\.|\*?\.LUB"
)


def source_files(*folders):
    for folder in folders:
        for parent, _, names in os.walk(os.path.join(SOURCE_DIR, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    path = os.path.join(parent, name)
                    yield os.path.relpath(path, SOURCE_DIR)


def read(path):
    with open(os.path.join(SOURCE_DIR, path), encoding="utf-8") as file:
        return file.read()


def without_comments(text):
    """Comments and what is in quotes may speak of anything."""
    return COMMENT.sub(lambda match: '""' if match.group(1) else " ", text)


def layer(path):
    """The place of a file's layer, or None."""
    for number, prefix in enumerate(LAYERS):
        if path.startswith(prefix):
            return number
    return None


# What only the description of x86-64 may name, so that a dump of it can be read
# on any machine, and of others by one more file: its registers, and the headers
# with its layouts.
PROCESSOR = re.compile(
    r"\b(r[abcd]x|r[sd]i|r[sbi]p|r8|r9|r1[0-5]|orig_rax|[fg]s_base|"
    r"user_(fp)?regs_struct|elf_prstatus|NT_X86_XSTATE|X86_REG_\w+|"
    r"sys/(user|reg|procfs)\.h)\b"
)
PROCESSOR_MAY_BE_NAMED = (
    "analyzer/image/architectures/",
    # They hold live processes of this machine, and write their notes.
    "analyzer/capture/machine.h",
    "analyzer/capture/injection.c",
    "analyzer/capture/injection.h",
    "analyzer/capture/aarch64.c",
    "analyzer/capture/x86_64.c",
    "analyzer/capture/notes.c",
    "analyzer/runtimes/crystal/code.c",  # what its instructions do
)


class IncludesTest(unittest.TestCase):
    def test_files_include_only_their_own_layer_and_those_below(self):
        wrong = []
        for path in source_files("analyzer", "allocators", "cli", "tests"):
            for _, included in self.includes(path):
                other = layer(included)
                if other is not None and other > layer(path):
                    wrong.append(f"{path} includes {included}")
        self.assertEqual(wrong, [])

    def test_only_its_description_names_the_processor(self):
        wrong = []
        for path in source_files("analyzer", "allocators", "cli"):
            if path.startswith(PROCESSOR_MAY_BE_NAMED):
                continue
            text = re.sub(r"/\*.*?\*/", " ", read(path), flags=re.DOTALL)
            for line in text.splitlines():
                if PROCESSOR.search(line):
                    wrong.append(f"{path}: {line.strip()}")
        self.assertEqual(wrong, [])

    def test_headers_are_named_by_their_path_from_the_root(self):
        wrong = []
        for path in source_files("analyzer", "allocators", "cli", "tests"):
            for bracket, included in self.includes(path):
                exists = os.path.exists(os.path.join(SOURCE_DIR, included))
                if bracket == '"' and not exists:
                    wrong.append(f'{path} includes "{included}"')
                if bracket == "<" and layer(included) is not None and exists:
                    wrong.append(f"{path} includes <{included}>")
        self.assertEqual(wrong, [])

    def test_every_file_belongs_to_a_layer(self):
        wrong = [
            path
            for path in source_files("analyzer", "allocators", "cli")
            if layer(path) is None
        ]
        self.assertEqual(wrong, [])

    def test_no_language_is_named_outside_of_its_runtime(self):
        wrong = []
        for path in source_files(*NO_LANGUAGE):
            if path in IS_OF_A_LANGUAGE:
                continue
            text = read(path)
            if path in NAMES_EXAMPLES:
                text = QUOTED.sub('""', text)
            for line in text.splitlines():
                if LANGUAGE.search(line):
                    wrong.append(f"{path}: {line.strip()}")
        self.assertEqual(wrong, [])

    def test_the_contract_of_a_language_is_small(self):
        text = read("analyzer/runtimes/runtime.h")
        contract = text[text.index("\nstruct runtime {"):]
        slots = SLOT.findall(contract[:contract.index("\n};")])
        self.assertIn("open", "".join(slots))
        self.assertLessEqual(len(slots), MOST_SLOTS)

    def test_no_allocator_is_named_outside_of_itself(self):
        wrong = []
        for path in source_files(*NO_ALLOCATOR):
            for line in read(path).splitlines():
                if (ALLOCATOR.search(line) and
                        not path.startswith(KNOWS_ALLOCATORS)):
                    wrong.append(f"{path}: {line.strip()}")
        self.assertEqual(wrong, [])

    def test_allocators_and_heaps_include_in_no_circle(self):
        needs = {}
        for path in source_files("allocators", "analyzer/heap"):
            module = path[:-2].removesuffix("_parts")
            needs.setdefault(module, set()).update(
                name[:-2].removesuffix("_parts")
                for _, name in self.includes(path)
                if name.startswith(NO_CIRCLES))
        while needs:
            done = {module for module, others in needs.items()
                    if not (others - {module}) & needs.keys()}
            self.assertTrue(done, f"a circle is in {sorted(needs)}")
            needs = {module: others for module, others in needs.items()
                     if module not in done}

    @staticmethod
    def includes(path):
        # Not without_comments(): that would take the quoted names away.
        return INCLUDE.findall(re.sub(r"/\*.*?\*/", " ", read(path),
                                      flags=re.DOTALL))


class RestraintTest(unittest.TestCase):
    def test_terminal_environment_and_exit_are_left_to_the_front_end(self):
        wrong = []
        for path in source_files("analyzer", "allocators"):
            lines = without_comments(read(path)).splitlines()
            for line in lines:
                match = FORBIDDEN.search(line)
                if match:
                    wrong.append(f"{path}: {line.strip()}")
        self.assertEqual(wrong, [])

    @unittest.skipUnless(
        BUILD_DIR
        and os.path.exists(os.path.join(BUILD_DIR, "libanalyzer.a"))
        and shutil.which("nm"),
        "there is no library to look into",
    )
    def test_nothing_below_the_front_end_is_global_and_writable(self):
        library = os.path.join(BUILD_DIR, "libanalyzer.a")
        listing = subprocess.run(
            ["nm", "--defined-only", "--format=sysv", library],
            check=True, capture_output=True, text=True,
        ).stdout
        wrong = []
        file_name = ""
        for line in listing.splitlines():
            if line.startswith("Symbols from "):
                file_name = line
            columns = [column.strip() for column in line.split("|")]
            if (
                len(columns) == 7
                and WRITABLE_SECTION.match(columns[6])
                and not HARMLESS_SYMBOL.match(columns[0])
            ):
                wrong.append(f"{file_name} {columns[0]}")
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
