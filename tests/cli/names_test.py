"""
Names: what explain, describe and backtrace call an address, for programs with
and without debug information, near it and away from it.
"""

import functools
import http.server
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

import harness

HEAPCORE = os.environ["HEAPCORE"]
PROGRAMS = os.path.join(os.environ["SOURCE_DIR"], "tests/cli/programs")
TIMEOUT = 120

# What holds the block of a size, with debug information. {work} and {serve} are
# frames: how many the C library's pause() has depends on its version.
STATIC = {
    0x108: "cache.entries[3].key ({0})",
    0x118: "cache.range.last ({0})",
    0x128: "grid[1][2].entries[1].key ({0})",
    0x138: "single ({0})",
}
THREAD_LOCAL = {
    0x148: "thread_single of thread {1} ({0})",
    0x158: "thread_cache.entries[2].key of thread {2} ({0})",
}
CALLS = {
    0x168: "variable local[1] of work(), frame {work} of thread {2}",
    0x178: "variable session.key of work(), frame {work} of thread {2}",
    0x188: "variable inlined_local of serve(), frame {serve} of thread {1}",
}


def tool(name):
    return unittest.skipUnless(shutil.which(name), f"{name} is not installed")


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class Process:
    """A program's core, and what heapcore says of it."""

    def __init__(self, folder, program, *arguments):
        self.options, self.answers = [], {}
        self.environment = None
        with harness.started([program, *arguments]) as process:
            harness.settle(process)
            self.core = harness.gcore(process, folder)
            tasks = os.listdir(f"/proc/{process.pid}/task")
        self.name = os.path.basename(program)
        self.threads = sorted(map(int, tasks))

    def run(self, *command):
        run = subprocess.run(
            [HEAPCORE, "-q", *self.options, self.core, *command],
            capture_output=True, text=True, timeout=TIMEOUT, check=False,
            env=self.environment,
        )
        if run.returncode != 0 or run.stderr:
            raise AssertionError(f"{command}: {run.returncode} {run.stderr}")
        return run.stdout

    def kept(self, *command):
        """As run(); it is asked once."""
        key = (*self.options, *command)
        if key not in self.answers:
            self.answers[key] = self.run(*command)
        return self.answers[key]

    def anchors(self, size):
        text = self.run("--chap", "explain", "used", "--size", f"{size:x}")
        return "\n".join(re.findall(r"^S\w+ address .*", text, re.MULTILINE))

    def expected(self, text):
        calls = re.findall(r"^#(\d+) 0x[0-9a-f]+ in (\w+)\(\)",
                           self.kept("backtrace"), re.MULTILINE)
        return text.format(self.name, *self.threads,
                           **{name: number for number, name in calls})


class NamesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="heapcore-names-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = temporary.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def build(self, name, *flags, compiler="gcc", source="names.c"):
        return harness.build(self.path(name), compiler, "-pthread",
                             os.path.join(PROGRAMS, source), *flags)

    def process(self, name, *flags, compiler="gcc", arguments=()):
        program = self.build(name, *flags, compiler=compiler)
        return Process(self.folder, program, *arguments)

    def check(self, process, *groups):
        for group in groups:
            for size, name in group.items():
                with self.subTest(size=hex(size)):
                    self.assertIn(process.expected(name),
                                  process.anchors(size))

    def split(self, program, debug, *flags):
        """Move the debug information of the program to a file of its own."""
        os.makedirs(os.path.dirname(debug), exist_ok=True)
        subprocess.run(["objcopy", "--only-keep-debug", *flags, program,
                        debug], check=True)
        subprocess.run(["strip", "--strip-all", program], check=True)

    def build_id(self, program):
        notes = subprocess.run(["readelf", "-n", program], check=True,
                               capture_output=True, text=True).stdout
        return re.search(r"Build ID: (\w+)", notes).group(1)


class CompilerTest(NamesTest):
    def test_gcc_without_optimisation(self):
        process = self.process("plain", "-g", "-O0")
        self.check(process, STATIC, THREAD_LOCAL, CALLS)

    def test_gcc_with_optimisation(self):
        process = self.process("optimised", "-g", "-O2")
        self.check(process, STATIC, THREAD_LOCAL, {0x168: CALLS[0x168]})

    def test_at_a_fixed_address(self):
        process = self.process("fixed", "-g", "-O1", "-no-pie")
        self.check(process, STATIC, THREAD_LOCAL, CALLS)

    def test_static_program(self):
        process = self.process("closed", "-g", "-O1", "-static", "-Wl,-w")
        self.check(process, STATIC, THREAD_LOCAL, CALLS)

    def test_older_debug_information(self):
        process = self.process("older", "-g", "-O1", "-gdwarf-4")
        self.check(process, STATIC, THREAD_LOCAL, CALLS)

    def test_compressed_debug_information(self):
        process = self.process("compressed", "-g", "-O1", "-gz")
        self.check(process, STATIC, THREAD_LOCAL, CALLS)

    @tool("clang")
    def test_clang(self):
        process = self.process("clang", "-g", "-O0", compiler="clang")
        self.check(process, STATIC, THREAD_LOCAL, CALLS)

    def test_library_that_was_loaded_late(self):
        library = self.build("names.so", "-g", "-shared", "-fPIC",
                             source="names_library.c")
        process = self.process("loader", "-g", "-O1", arguments=[library])
        self.check(process, STATIC, THREAD_LOCAL, CALLS,
                   {0x198: "store.slots[1] (names.so)"})
        text = process.run("--chap", "explain", "used", "--size", "1a8")
        self.assertIn(process.expected("in the dtv of thread {1} references"),
                      text)
        block = int(re.search(r"^via anchor point 0x([0-9a-f]+)", text,
                              re.MULTILINE).group(1), 16)
        described = [process.run("describe", f"{block + offset:x}")
                     for offset in range(0, 0x28, 8)]
        self.assertIn(
            process.expected("which is thread_store.slots[2] of thread {1} "
                             "(names.so)"), "".join(described))


class FilesTest(NamesTest):
    def test_no_debug_information(self):
        process = self.process("bare", "-O1", "-s")
        for size in STATIC:
            self.assertRegex(process.anchors(size), r" in bare\+0x[0-9a-f]+ r")
        self.assertRegex(process.anchors(0x168),
                         r"\(in bare\+0x[0-9a-f]+, frame \d+ of thread \d+\)")
        self.assertRegex(process.run("backtrace"), r"#\d+ 0x\w+ in bare\+0x")

    def test_symbols_alone(self):
        process = self.process("symbols", "-O1")
        self.assertIn("in cache+0x40 (symbols) r", process.anchors(0x108))
        self.assertIn("in single (symbols) r", process.anchors(0x138))
        self.assertIn("in thread_cache+0x", process.anchors(0x158))
        self.assertRegex(process.anchors(0x168),
                         r"\(in work\(\), frame \d+ of")

    def test_separate_file_by_build_id(self):
        program = self.build("apart", "-g", "-O1")
        identity = self.build_id(program)
        self.split(program, self.path(
            f"debug/.build-id/{identity[:2]}/{identity[2:]}.debug"))
        process = Process(self.folder, program)
        self.assertIn("in apart+0x", process.anchors(0x108))
        process.options = ["--debug-dir", self.path("debug")]
        self.check(process, STATIC, THREAD_LOCAL, CALLS)

    def test_separate_file_by_its_name(self):
        program = self.build("linked", "-g", "-O1")
        debug = self.path(".debug/linked.debug")
        self.split(program, debug)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program],
                       check=True)
        process = Process(self.folder, program)
        self.check(process, STATIC, THREAD_LOCAL, CALLS)

    def test_separate_file_of_another_build_is_not_used(self):
        program = self.build("rebuilt", "-g", "-O1")
        other = self.build("other", "-g", "-O0")
        debug = self.path(".debug/rebuilt.debug")
        self.split(other, debug)
        subprocess.run(["strip", program], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program],
                       check=True)
        process = Process(self.folder, program)
        self.assertIn("in rebuilt+0x", process.anchors(0x108))

    @tool("xz")
    def test_compressed_symbols(self):
        program = self.build("mini", "-O1")
        mini = self.path("mini.symbols")
        shutil.copy(program, mini)
        subprocess.run(["objcopy", "--only-keep-debug", mini], check=True)
        subprocess.run(["xz", "--force", mini], check=True)
        subprocess.run(["strip", program], check=True)
        subprocess.run(["objcopy", "--add-section",
                        f".gnu_debugdata={mini}.xz", program], check=True)
        process = Process(self.folder, program)
        self.assertIn("in cache+0x40 (mini) r", process.anchors(0x108))
        self.assertRegex(process.run("backtrace"), r"#\d+ 0x\w+ in wait_here\(")

    def test_separate_file_from_a_server_only_when_asked_for(self):
        program = self.build("served", "-g", "-O1")
        identity = self.build_id(program)
        root = self.path("server")
        self.split(program, f"{root}/buildid/{identity}/debuginfo")
        process = Process(self.folder, program)
        handler = functools.partial(QuietHandler, directory=root)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                             handler) as server:
            threading.Thread(target=server.serve_forever).start()
            process.environment = {
                **os.environ, "HOME": self.folder,
                "DEBUGINFOD_CACHE_PATH": self.path("fetched"),
                "DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}",
            }
            try:
                self.assertIn("in served+0x", process.anchors(0x108))
                self.assertFalse(os.path.exists(self.path("fetched")))
                process.options = ["--debuginfod"]
                self.check(process, STATIC, CALLS)
            finally:
                server.shutdown()

    def test_files_of_another_machine(self):
        program = self.build("moved", "-g", "-O1")
        process = Process(self.folder, program)
        root = self.path("root")
        place = root + os.path.realpath(program)
        os.makedirs(os.path.dirname(place))
        shutil.move(program, place)
        self.assertIn("in moved+0x", process.anchors(0x108))
        process.options = ["--sysroot", root]
        self.check(process, STATIC)

    def test_sysroot_and_folder_must_exist(self):
        for option in ("--sysroot", "--debug-dir"):
            run = subprocess.run([HEAPCORE, option, "/nowhere", "core"],
                                 capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 2)
            self.assertIn("'/nowhere' is not a folder", run.stderr)


class ThreadsTest(NamesTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.running = cls.process(cls(), "threads", "-g", "-O1")

    def test_backtrace_with_what_was_inlined(self):
        text = self.running.run("backtrace", str(self.running.threads[0]))
        functions = re.findall(
            r"^#(\d+) 0x[0-9a-f]+ in (\S+)\(\)( \(inlined\))?", text,
            re.MULTILINE)
        self.assertEqual([int(number) for number, _, _ in functions],
                         list(range(len(functions))))
        names = [name + inlined for _, name, inlined in functions]
        first = names.index("wait_here")
        self.assertEqual(
            names[first:first + 6],
            ["wait_here", "serve (inlined)", "descend", "descend", "descend",
             "main"])
        self.assertRegex(text, r"in serve\(\) \(inlined\) at \S*/names\.c:\d+")

    def test_backtrace_of_all_threads(self):
        text = self.running.run("backtrace", "--limit", "6")
        self.assertEqual(
            re.findall(r"^Thread (\d+):", text, re.MULTILINE),
            [str(thread) for thread in self.running.threads])
        self.assertIn(" in work() at ", text)
        self.assertRegex(text, r"\.\.\. and \d+ more calls not shown")

    def test_there_is_no_such_thread(self):
        run = subprocess.run(
            [HEAPCORE, "-q", self.running.core, "backtrace", "1"],
            capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn("there is no thread 1", run.stderr)

    def test_threads_are_described_with_registers_and_calls(self):
        text = self.running.run("describe", "threads")
        self.assertRegex(text, r"rip 0x[0-9a-f]+  fs_base 0x[0-9a-f]+")
        self.assertIn("#2 ", text)
        self.assertIn("in function", self.running.run("list", "threads"))

    def test_address_of_code_is_described_with_its_line(self):
        text = self.running.run("backtrace")
        address = re.search(r"0x([0-9a-f]+) in work\(\)", text).group(1)
        text = self.running.run("describe", address)
        self.assertRegex(text, r"which is work\+0x[0-9a-f]+ \(threads\)")
        self.assertRegex(text, r"compiled from \S*/names\.c:\d+")


if __name__ == "__main__":
    unittest.main()
