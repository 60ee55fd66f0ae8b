"""
`heapcore run`: programs that end in every way, what is said of them, and that
they notice nothing.
"""

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import harness

HEAPCORE = os.environ["HEAPCORE"]
SOURCE = os.path.join(os.environ["SOURCE_DIR"],
                      "testdata/programs/endings.c")
DENY = os.path.join(os.environ["SOURCE_DIR"], "tests/cli/programs/deny.c")
RELATIVES = os.path.join(os.environ["SOURCE_DIR"],
                         "tests/cli/programs/relatives.c")
TIMEOUT = 60
LOST = 3
COUNT = ["-c", "count leaked"]


def lost(count):
    return f"{count} allocations use {count * 0x68:,} bytes"


def run(*words, **options):
    """heapcore run, with what it wrote."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([HEAPCORE, "run", *words], text=True,
                          capture_output=True, timeout=TIMEOUT, **options)


def may_trace():
    """Whether programs can be traced here at all."""
    return run(*COUNT, "--", "true").returncode == 0


def watchers_left(program):
    """Processes of `heapcore run` of that program that still go on."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if (words[:2] == [HEAPCORE.encode(), b"run"]
                and program.encode() in words):
            found.append(name)
    return found


class RunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not may_trace():
            raise unittest.SkipTest("ptrace or seccomp is not allowed here")
        cls.temporary = tempfile.TemporaryDirectory(prefix="heapcore-")
        cls.folder = cls.temporary.name
        cls.program = harness.build(os.path.join(cls.folder, "endings"), "cc", "-D_GNU_SOURCE",
                                    "-O1", "-g", "-pthread", SOURCE)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def check(self, words, status, leaked=LOST, options=()):
        """Run the program so; its status, and what it lost, must be these."""
        result = run(*options, *COUNT, "--", self.program, *words)
        self.assertEqual(result.returncode, status, result)
        self.assertIn(lost(leaked), result.stderr)
        self.assertNotIn("warning", result.stderr)
        return result

    def test_the_status_of_the_program_is_passed_on(self):
        for status in (0, 1, 3, 42, 255):
            with self.subTest(status=status):
                self.check([str(status)], status)

    def test_every_way_to_exit(self):
        ways = {"exit": 5, "_exit": 4, "thread": 6, "syscall": 9, "leader": 0}
        for way, status in ways.items():
            with self.subTest(way=way):
                self.check([way], status)

    def test_every_way_to_be_killed(self):
        ways = {"abort": signal.SIGABRT, "segv": signal.SIGSEGV,
                "kill": signal.SIGKILL}
        for way, number in ways.items():
            with self.subTest(way=way):
                result = self.check([way], 128 + number)
                self.assertRegex(
                    result.stderr,
                    rf"\(endings\), killed by signal {int(number)} ")

    def test_threads_alive_at_the_end_have_their_registers(self):
        for way, status in (("7", 7), ("exit", 5), ("thread", 6),
                            ("segv", 139), ("kill", 137)):
            with self.subTest(way=way):
                self.check([way, "threads"], status)

    def test_backtraces_of_all_threads_can_be_had(self):
        result = run("-c", "backtrace", "--", self.program, "thread",
                     "threads")
        self.assertEqual(result.returncode, 6, result)
        for function in ("hold", "end_process", "main"):
            self.assertIn(function, result.stderr)

    def test_a_child_is_looked_into_only_with_follow_forks(self):
        result = self.check(["fork"], 11)
        self.assertEqual(result.stderr.count("allocations"), 1)
        result = self.check(["fork"], 11, options=["--follow-forks"])
        self.assertIn(lost(LOST), result.stderr)
        self.assertIn(lost(LOST + 1), result.stderr)
        self.assertEqual(len(re.findall(r"process \d+ \(endings\)",
                                        result.stderr)), 2)

    def test_children_that_end_unseen_are_counted(self):
        shell = ["sh", "-c", f"{self.program} 1; {self.program} 1; exit 0"]
        result = run("--", *shell)
        self.assertEqual(result.returncode, 0, result)
        note = "note: 2 child processes were not checked: --follow-forks"
        self.assertIn(note, result.stderr.splitlines()[-1])
        self.assertIn(note, run("--quiet", "--", *shell).stderr)
        result = run("--follow-forks", "--", *shell)
        self.assertEqual(result.returncode, 1, result)
        self.assertNotIn("not checked", result.stderr)

    def test_children_that_are_not_looked_into_notice_nothing(self):
        for way in ("0", "7", "exit", "thread", "syscall", "leader", "abort",
                    "segv", "kill", "fork", "exec", "spawn", "no-spawn",
                    "vfork", "many-threads"):
            with self.subTest(way=way):
                shell = ["sh", "-c", '"$@"; echo $?', "sh", self.program, way]
                alone = subprocess.run(shell, capture_output=True, text=True,
                                       timeout=TIMEOUT, check=False)
                result = run(*COUNT, "--", *shell)
                self.assertEqual(result.stdout, alone.stdout)
                self.assertEqual(result.returncode, 0, result)
        shell = ["sh", "-c", '"$@"; echo $?', "sh", self.program,
                 "thread-exec", "threads"]
        self.assertEqual(run(*COUNT, "--", *shell).stdout, "0\n")

    def test_unusual_children(self):
        program = harness.build(os.path.join(self.folder, "relatives"), "cc", "-D_GNU_SOURCE",
                                "-O1", RELATIVES)
        for options in ([], ["--follow-forks"]):
            with self.subTest(options=options):
                result = run(*options, *COUNT, "--", program)
                self.assertEqual(result.stdout,
                                 "clone3: 3, wrote 7\nvfork: 5\n"
                                 "trace: Operation not permitted\n"
                                 f"traced: {-signal.SIGKILL}\n")
                self.assertEqual(result.returncode, 6, result)
                self.assertIn("0 allocations", result.stderr)

    def test_what_borrows_memory_is_not_taken_for_a_process(self):
        ways = {"spawn": (30, 2), "no-spawn": (50, 1), "vfork": (51, 1)}
        for way, (status, processes) in ways.items():
            with self.subTest(way=way):
                result = self.check([way], status,
                                    options=["--follow-forks"])
                self.assertEqual(result.stderr.count("allocations use"),
                                 processes, result.stderr)

    def test_another_program_takes_over(self):
        result = run(*COUNT, "--", self.program, "exec")
        self.assertEqual(result.returncode, 12, result)
        self.assertIn("0 allocations", result.stderr)
        result = run(*COUNT, "--", self.program, "thread-exec", "threads")
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("0 allocations", result.stderr)

    def test_many_threads_come_and_go(self):
        self.check(["many-threads"], 22)

    def test_a_daemon_is_not_waited_for_and_lives_on(self):
        path = os.path.join(self.folder, "daemon")
        # The pipes of run() are only at an end when nobody has them any more.
        result = self.check(["daemon", path], 0)
        self.assertIn("still run", result.stderr)
        self.assertFalse(os.path.exists(path))
        with open(path + ".go", "w", encoding="ascii"):
            pass
        deadline = time.monotonic() + TIMEOUT
        text = ""
        while "child" not in text and time.monotonic() < deadline:
            time.sleep(0.05)
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    text = file.read()
        self.assertEqual(text, "done\nchild 3\n")
        while watchers_left(path) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(watchers_left(path), [])

    def test_a_daemon_is_followed_to_its_end(self):
        path = os.path.join(self.folder, "followed")
        with open(path + ".go", "w", encoding="ascii"):
            pass
        result = run(*COUNT, "--follow-forks", "--", self.program, "daemon", path)
        self.assertEqual(result.returncode, 0, result)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "done\nchild 3\n")
        self.assertIn("it left processes such as", result.stderr)
        self.assertEqual(len(re.findall(r"process \d+ \(endings\)", result.stderr)), 4)

    def test_a_signal_ends_a_daemon_that_is_followed(self):
        process = subprocess.Popen(
            [HEAPCORE, "run", *COUNT, "--follow-forks", "--", self.program, "daemon",
             os.path.join(self.folder, "never")], stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        while "it left processes such as" not in process.stderr.readline():
            self.assertIsNone(process.poll())
        # The daemon may not be there yet; a second signal would end heapcore's look at its end.
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(TIMEOUT / 4)
        _, said = process.communicate(timeout=TIMEOUT)
        self.assertRegex(said, r"process \d+ \(endings\), killed by signal 2 \(Interrupt\)")
        self.assertIn(lost(LOST), said)

    def test_output_and_input_are_the_programs_own(self):
        result = run(*COUNT, "--", self.program, "copy", input="abc", stdin=None)
        self.assertEqual(result.stdout, "abc")
        self.assertEqual(result.returncode, 3, result)
        self.assertIn(lost(LOST), result.stderr)

    def start(self, *words):
        # In a group of its own, whose parent is in this one: in a group that
        # nobody could wake up, nothing is stopped by SIGTSTP.
        process = subprocess.Popen(
            [HEAPCORE, "run", *COUNT, "--", self.program, *words], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: os.setpgid(0, 0))
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_a_signal_to_heapcore_goes_to_the_program(self):
        # Blocked, handled, ignored, and by default.
        for what, status in (("b", 21), ("h", 20), ("i", 21), ("d", 143)):
            with self.subTest(what=what):
                process = self.start("signal", what)
                process.send_signal(signal.SIGTERM)
                output, errors = process.communicate(timeout=TIMEOUT)
                self.assertEqual(process.returncode, status, errors)
                self.assertIn(lost(LOST), errors)

    def test_killing_heapcore_kills_the_program(self):
        process = self.start("sleep")
        process.kill()
        # It would take a minute else, and the pipe is open as long.
        process.communicate(timeout=TIMEOUT / 2)

    def test_ctrl_c_reaches_the_program_as_usual(self):
        for what, status in (("h", 20), ("i", 21), ("d", 130)):
            with self.subTest(what=what):
                pid, terminal = pty.fork()
                if pid == 0:
                    os.execv(HEAPCORE, [HEAPCORE, "run", *COUNT, "--",
                                        self.program, "interrupt", what])
                self.assertIn("ready", self.read(terminal, "ready"))
                os.write(terminal, b"\x03")
                self.assertIn(lost(LOST), self.read(terminal, "allocations use"))
                _, ended = os.waitpid(pid, 0)
                os.close(terminal)
                self.assertEqual(os.waitstatus_to_exitcode(ended), status)

    @staticmethod
    def read(terminal, until):
        text = ""
        deadline = time.monotonic() + TIMEOUT
        while until not in text and time.monotonic() < deadline:
            ready, _, _ = select.select([terminal], [], [], 1)
            try:
                if ready:
                    text += os.read(terminal, 4096).decode()
            except OSError:
                break
        return text

    def test_ctrl_z_stops_the_program_and_it_goes_on(self):
        process = self.start("continue")
        child = self.child_of(self.child_of(process.pid))
        os.kill(child, signal.SIGTSTP)
        self.wait_for_state(child, "tT")
        time.sleep(0.2)
        self.assertIn(self.state(child), "tT")
        os.kill(child, signal.SIGCONT)
        _, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 20, errors)

    @staticmethod
    def child_of(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return int(file.read().split()[0])

    @staticmethod
    def state(pid):
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]

    def wait_for_state(self, pid, states):
        deadline = time.monotonic() + TIMEOUT
        while self.state(pid) not in states and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertIn(self.state(pid), states)

    def test_a_program_that_takes_too_long_is_ended_and_looked_into(self):
        start = time.monotonic()
        result = self.check(["sleep"], 124, options=["--timeout", "1"])
        self.assertLess(time.monotonic() - start, TIMEOUT - 10)
        self.assertIn("after 1 s: sending SIGTERM", result.stderr)

    def test_the_core_is_kept_where_that_is_asked_for(self):
        core = os.path.join(self.folder, "kept")
        self.check(["fork"], 11, options=["--core", core, "--follow-forks"])
        kept = sorted(name for name in os.listdir(self.folder)
                      if name.startswith("kept"))
        self.assertEqual(len(kept), 2, kept)
        self.assertEqual(os.stat(core).st_mode & 0o777, 0o600)
        result = subprocess.run([HEAPCORE, core, "count", "leaked"], text=True,
                                capture_output=True, timeout=TIMEOUT)
        self.assertIn(lost(LOST), result.stdout)

    def test_the_core_is_kept_on_failure_only(self):
        core = os.path.join(self.folder, "failed")
        fine = run("--core-on-failure", core, "--", "true")
        self.assertEqual(fine.returncode, 0, fine)
        self.assertFalse(os.path.exists(core))
        failed = run("--core-on-failure", core, "--", "false")
        self.assertEqual(failed.returncode, 1, failed)
        self.assertIn(f"heapcore {core} explain leakroots", failed.stderr)
        self.assertTrue(os.path.exists(core))

    def test_in_continuous_integration_the_core_of_a_failure_is_kept(self):
        with tempfile.TemporaryDirectory(prefix="heapcore-") as folder:
            for variable in ("RUNNER_TEMP", "TMPDIR"):
                env = {**os.environ, "CI": "true", variable: folder}
                self.assertEqual(run("--", "true", env=env).returncode, 0)
                self.assertEqual(os.listdir(folder), [])
                failed = run("--", "false", env=env)
                kept, = os.listdir(folder)
                self.assertIn(f"heapcore {folder}/{kept} explain leakroots", failed.stderr)
                os.unlink(os.path.join(folder, kept))

    def test_a_core_that_cannot_be_written_is_said(self):
        result = run(*COUNT, "--core", "/nonexistent/core", "--", self.program,
                     "5")
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("/nonexistent/core", result.stderr)

    def test_memory_kept_out_of_cores_is_still_looked_at(self):
        self.check(["hide"], 0)

    def test_the_report_goes_to_a_log_file(self):
        path = os.path.join(self.folder, "log")
        result = run(*COUNT, "--log-file", path, "--", self.program, "4")
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (4, "", ""))
        with open(path, encoding="utf-8") as file:
            self.assertIn(lost(LOST), file.read())

    def test_the_report_is_written_to_files_of_any_format(self):
        path = os.path.join(self.folder, "report.json")
        self.check(["fork"], 11, options=["-o", path, "--follow-forks"])
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["command"], "count leaked")

    def test_a_program_that_is_not_there(self):
        result = run(*COUNT, "--", "./nonexistent")
        self.assertEqual(result.returncode, 127)
        self.assertEqual(
            result.stderr,
            "heapcore: ./nonexistent: No such file or directory\n")
        self.assertEqual(run(*COUNT, "--", self.folder).returncode, 126)

    def test_wrong_usage(self):
        for words in ([], ["--"], ["--timeout", "soon", "--", "true"],
                      ["--no-such-option", "--", "true"],
                      ["-c", "no such command", "--", "true"]):
            with self.subTest(words=words):
                result = run(*words)
                self.assertEqual(result.returncode, 2, result)
                self.assertNotEqual(result.stderr, "")

    def test_a_program_traced_already_is_said_to_be(self):
        # The outer one traces the inner one's program, too. LeakSanitizer cannot be traced.
        result = run(*COUNT, "--", "env", "ASAN_OPTIONS=detect_leaks=0", HEAPCORE, "run", *COUNT,
                     "--", "true")
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("is being traced by process", result.stderr)

    def test_where_tracing_is_forbidden_the_program_is_not_run(self):
        deny = harness.build(os.path.join(self.folder, "deny"), "cc", "-D_GNU_SOURCE", DENY)
        for name, number, message in (
                ("ptrace", 101, "ptrace(2) is refused"),
                ("seccomp", 317, "seccomp filter cannot be installed")):
            with self.subTest(forbidden=name):
                result = subprocess.run(
                    [deny, str(number), HEAPCORE, "run", *COUNT, "--", "echo",
                     "run"], stdin=subprocess.DEVNULL, capture_output=True,
                    text=True, timeout=TIMEOUT,
                    # A sanitizer would have to trace heapcore itself.
                    env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
                if result.returncode == 77:
                    self.skipTest("no filter can be installed")
                self.assertEqual(result.returncode, 3, result)
                self.assertEqual(result.stdout, "")
                self.assertIn(message, result.stderr)

    @unittest.skipUnless(os.path.exists("/usr/bin/setpriv")
                         and os.geteuid() == 0 and os.path.exists("/bin/su"),
                         "needs root, setpriv and su")
    def test_a_set_user_id_program_is_said_to_run_without(self):
        result = subprocess.run(
            ["setpriv", "--reuid", "65534", "--clear-groups", HEAPCORE, "run",
             *COUNT, "--", "su", "-c", "true"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=TIMEOUT)
        self.assertIn("is a set-user-id program", result.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
