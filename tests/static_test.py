"""
A program that was linked statically (-DSTATIC=ON) runs where there is nothing else: in a root that
has it, a core, /proc and /tmp. scripts/static runs this.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

HEAPCORE = os.environ["HEAPCORE"]
CORE = os.path.join(os.environ["SOURCE_DIR"], "testdata/cores/bookworm-small.core.xz")
TIMEOUT = 120

# It leaks three blocks, and waits for the end of its input.
LEAKS = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	for (int i = 0; i < 3; i++)
		*(volatile char *)malloc(40) = 'x';
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		continue;
	return 0;
}
"""

FILL = b"""EVAL "for i = 1, 100000 do redis.call('SET', 'key:' .. i, string.rep('x', 100)) end return 100000" 0\r\n"""

# The arguments: the new root, then the command in it.
ENTER = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'


class StaticTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="heapcore-root-")
        cls.addClassCleanup(folder.cleanup)
        cls.root = folder.name
        shutil.copy(HEAPCORE, os.path.join(cls.root, "heapcore"))
        shutil.copy(CORE, os.path.join(cls.root, "core.xz"))
        for name in ("tmp", "proc"):
            os.mkdir(os.path.join(cls.root, name))
        subprocess.run(["cc", "-static", "-w", "-xc", "-", "-o", os.path.join(cls.root, "leaks")],
                       input=LEAKS, text=True, check=True)

    def command(self, *words):
        """In namespaces of mounts and processes of its own, so that /proc can be had."""
        return ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-mpf", "--kill-child",
                "sh", "-c", ENTER, self.root, *words]

    def run_in_root(self, *words, **options):
        return subprocess.run(self.command(*words), capture_output=True, text=True, check=False,
                              timeout=TIMEOUT, env={}, **options)

    def test_it_answers(self):
        run = self.run_in_root("/heapcore", "-q", "/core.xz", "count", "used")
        self.assertRegex(run.stdout, r"^\d[\d,]* allocations use [\d,]+ bytes", run.stderr)
        run = self.run_in_root("/heapcore", "/core.xz", stdin=subprocess.DEVNULL)
        self.assertIn("what is in it", run.stdout, run.stderr)

    def test_it_runs_a_program_and_finds_its_leaks(self):
        run = self.run_in_root("/heapcore", "run", "--", "/leaks", stdin=subprocess.DEVNULL)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("3 x unrecognized allocation of 40 bytes", run.stderr)

    def test_it_takes_a_core_of_a_process(self):
        if os.geteuid() != 0:
            self.skipTest("only root enters namespaces that others made")
        with subprocess.Popen(self.command("/leaks"), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as unshare:
            self.assertEqual(unshare.stdout.readline(), "ready\n")
            with open(f"/proc/{unshare.pid}/task/{unshare.pid}/children", encoding="ascii") as file:
                process = file.read().strip()
            snap = subprocess.run(["nsenter", "-t", process, "-m", "-p", "-r", "-w", "/heapcore",
                                   "snap", "-q", "--fork", "-o", "/tmp/core", "1"], check=False,
                                  capture_output=True, text=True)
            unshare.stdin.close()
        self.assertEqual(snap.returncode, 0, snap.stderr)
        run = self.run_in_root("/heapcore", "-q", "/tmp/core", "count", "leaked")
        self.assertEqual(run.stdout, "3 allocations use 120 bytes.\n", run.stderr)

    @unittest.skipUnless(shutil.which("redis-server"), "there is no redis-server")
    def test_redis_is_looked_into_beside_it(self):
        """From namespaces that have only the static file: a core of a running redis, and its first screen."""
        path = os.path.join(self.root, "tmp/redis.socket")
        beside = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "sh", "-c", ENTER, self.root, "/heapcore"]
        with subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", ""],
                              stdout=subprocess.PIPE, text=True) as redis:
            self.addCleanup(redis.kill)
            for line in redis.stdout:
                if "Ready to accept connections" in line or "ready to accept connections" in line:
                    break
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(TIMEOUT)
                client.connect(path)
                client.sendall(FILL)
                self.assertEqual(client.recv(100), b":100000\r\n")
            start = time.monotonic()
            for words in (["snap", "-o", "/tmp/core", str(redis.pid)],
                          ["--sysroot", f"/proc/{redis.pid}/root", "/tmp/core"]):
                done = subprocess.run([*beside, *words], capture_output=True, text=True, check=False,
                                      timeout=TIMEOUT, env={}, stdin=subprocess.DEVNULL)
                self.assertEqual(done.returncode, 0, done.stderr)
            print(f"redis: a core and its first screen took {time.monotonic() - start:.1f} s")
            redis.kill()
        self.assertRegex(done.stdout, r"\Aredis-server .*\(process \d+, \d+ threads\)\n")
        self.assertRegex(done.stdout, r"Heap: [\d,]+ bytes, [34]\d\d,\d{3} allocations")
        self.assertIn("server (redis-", done.stdout)

    def test_it_writes_a_report(self):
        run = self.run_in_root("/heapcore", "report", "/core.xz", "-o", "/tmp/page.html")
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(os.path.join(self.root, "tmp/page.html"), encoding="utf-8") as file:
            self.assertIn("</html>", file.read())

    def test_it_serves(self):
        with subprocess.Popen(self.command("/heapcore", "serve", "--listen", "unix:/tmp/socket",
                                           "/core.xz"),
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) as server:
            self.assertIn("/tmp/socket", server.stdout.readline())
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(TIMEOUT)
                client.connect(os.path.join(self.root, "tmp/socket"))
                client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertRegex(client.recv(100), rb"^HTTP/1\.1 \d+ ")
            server.kill()


if __name__ == "__main__":
    unittest.main()
