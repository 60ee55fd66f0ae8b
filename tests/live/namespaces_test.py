#!/usr/bin/env python3
"""
Processes in namespaces of their own, as in a container: of users, mounts,
process numbers and times. Cores of them, from outside and by the kernel, are
read as any other, and times are those of the outside.
"""

import glob
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import harness
import truth

UNSHARE = ("unshare", "-rmpfT", "--kill-child", "--boottime", "100000", "--monotonic", "5000")
SECONDS = 60
# A file system of the given files alone, all of whose folders are in its root.
TURN = """
import ctypes, os, shutil, subprocess, sys

PIVOT_ROOT, DETACH = 155, 2
root, program, *libraries = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "none", root], check=True)
for library in libraries:
    os.makedirs(os.path.dirname(root + library), exist_ok=True)
    shutil.copy(library, root + library)
shutil.copy(program, root + "/shop")
os.mkdir(root + "/proc")
subprocess.run(["mount", "--rbind", "/proc", root + "/proc"], check=True)
os.chdir(root)
c = ctypes.CDLL(None)
if c.syscall(PIVOT_ROOT, b".", b".") or c.umount2(b".", DETACH):
    sys.exit("the root cannot be turned to")
os.execv("/shop", ["/shop"])
"""


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        child, = map(int, file.read().split())
    return child


def libraries_of(program):
    """Paths of the program's libraries, the loader among them."""
    return re.findall(r"(/\S+) \(0x", harness.run("ldd", program).stdout)


class NamespacesTest(harness.LiveTest):
    def check(self, core):
        self.assertEqual(truth.check(harness.HEAPCORE, core, self.path("truth")), [])
        threads = harness.tables(core, "list", "threads")["thread"]
        self.assertEqual(len(threads), 2)
        return {row["thread"] for row in threads}

    def test_cores_are_read_as_any_other(self):
        if harness.run(*UNSHARE, "true").returncode != 0:
            self.skipTest("no namespaces may be made")
        program = self.compile("small", "small.c", "truth.c", flags=("-O2", "-pthread"))
        # The first process of a namespace would not be ended by the signal.
        outer = self.start([*UNSHARE, "sh", "-c", '"$0"; true', program],
                           truth=self.path("truth"))
        pid = child_of(child_of(outer.pid))
        core = self.path("snapped")
        harness.ask("snap", "-q", "-o", core, str(pid))
        self.assertIn(pid, self.check(core))
        row, = harness.rows("result", core, "sql", "SELECT time FROM core")
        self.assertLess(abs(time.time() - row["time"]), SECONDS)
        obstacle = harness.kernel_core_obstacle()
        if obstacle:
            self.skipTest(obstacle)
        os.kill(pid, signal.SIGABRT)
        outer.wait(timeout=harness.TIMEOUT)
        core, = glob.glob(self.path("core*"))
        self.check(core)

    def test_files_of_a_container_are_found_through_its_root(self):
        """As docs/containers.md has it: the program's file is in a file system of its own."""
        mounting = ("unshare", "-rm", "sh", "-c",
                    'mkdir "$1" && mount -t tmpfs none "$1" && cp "$0" "$1/shop" && exec "$1/shop"')
        if harness.run("unshare", "-rm", "mount", "-t", "tmpfs", "none", self.folder).returncode:
            self.skipTest("no file system may be mounted in a namespace")
        program = self.compile("shop", "tutorial_leak.cpp", compiler="g++", flags=("-g", "-O1"))
        process = self.start([*mounting, program, self.path("inside")])
        core = harness.snap(process, self.path("core"))
        self.assertIn("--sysroot", harness.ask(core, "summarize", "leakroots").stderr)
        outside = harness.ask("--sysroot", f"/proc/{process.pid}/root", core, "info")
        self.assertIn("the_shop (shop)", outside.stdout)
        self.assertIn("shop::Shop::take(int)", outside.stdout)
        core = harness.snap(process, self.path("portable.core"), "--portable")
        self.assertIn("shop::Order", harness.ask(core, "info").stdout)

    def test_of_a_root_without_a_shell(self):
        """Nothing but the program and its libraries is in the root, which the process has turned to."""
        program = self.compile("shop", "tutorial_leak.cpp", compiler="g++", flags=("-g", "-O1"))
        if harness.run("unshare", "-rm", "mount", "-t", "tmpfs", "none", self.folder).returncode:
            self.skipTest("no file system may be mounted in a namespace")
        os.mkdir(self.path("root"))
        process = self.start(["unshare", "-rm", sys.executable, "-c", TURN, self.path("root"), program,
                              *libraries_of(program)])
        self.assertFalse(os.path.exists(f"/proc/{process.pid}/root/bin"))
        answer = harness.ask("-p", str(process.pid), "info")
        self.assertIn("the_shop (shop)", answer.stdout)
        self.assertIn("shop::Shop::take(int)", answer.stdout)
        self.assertNotIn("--sysroot", answer.stderr)
        answers = self.path("answers")
        with subprocess.Popen([harness.HEAPCORE, "watch", "-o", answers, str(process.pid)],
                              stderr=subprocess.PIPE, text=True) as watch:
            watch.stderr.readline()
            watch.send_signal(signal.SIGUSR1)
            while not os.path.exists(f"{answers}/latest"):
                time.sleep(0.01)
            watch.send_signal(signal.SIGTERM)
            watch.stderr.read()
        with open(f"{answers}/latest/screen.txt", encoding="utf-8") as file:
            self.assertIn("the_shop (shop)", file.read())


if __name__ == "__main__":
    unittest.main()
