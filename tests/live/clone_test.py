#!/usr/bin/env python3
"""
`snap --fork` of a program that goes on working: the core is of one instant, and
the program sees nothing of it, whatever becomes of heapcore meanwhile.
"""

import contextlib
import glob
import os
import random
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import harness
from core_file import NOTE_UNSHARED, Core

DEADLINE = 100
# Bytes of a core of 400 MiB.
HALTED_AT_MOST = 300 << 20


def status_of(pid, field):
    """A field of /proc/PID/status as text; None: there is no such process."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/status", encoding="ascii",
                  errors="replace") as file:
            for line in file:
                if line.startswith(f"{field}:"):
                    return line.split(":", 1)[1].strip()
    return None


def clones_of(process):
    """Other processes with the program's file."""
    file = os.readlink(f"/proc/{process.pid}/exe")
    found = []
    for link in glob.glob("/proc/[0-9]*/exe"):
        pid = int(link.split("/")[2])
        with contextlib.suppress(OSError):
            if pid != process.pid and os.readlink(link) == file:
                found.append(pid)
    return found


def leads_a_session(pid):
    """Not of a process that has ended meanwhile, such as the one between program and clone."""
    session = status_of(pid, "NSsid")
    return session is not None and session == status_of(pid, "NSpid")


def written_by(pid):
    """The bytes of the largest file that the process has open."""
    sizes = [0]
    for link in glob.glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(OSError):
            status = os.stat(link)
            if stat.S_ISREG(status.st_mode):
                sizes.append(status.st_blocks * 512)
    return max(sizes)


def children_of(pid):
    """Ended ones included."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(path,
                                                encoding="ascii") as file:
            found += file.read().split()
    return found


def wait_until(condition, what):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"in vain waited for: {what}")
        time.sleep(0.001)


class Worker:
    """The program below, and what it is asked by a socket."""

    def __init__(self, command, **options):
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(DEADLINE)
        with theirs:
            self.process = subprocess.Popen(
                [*command], stdin=theirs, stdout=subprocess.PIPE, text=True,
                **options)
        self.places = {}
        for line in self.process.stdout:
            if line == "ready\n":
                break
            name, address = line.split()
            self.places[name] = int(address, 16)
        self.pid = self.process.pid
        self.answers = self.socket.makefile("r", encoding="ascii")

    def ask(self, question):
        self.socket.sendall(f"{question}\n".encode())
        return self.answers.readline().strip()

    def report(self):
        words = self.ask("report").split()
        return dict(zip(words[::2], map(int, words[1::2])))

    def end(self):
        self.answers.close()
        self.socket.close()
        harness.end(self.process)


class CloneTest(harness.LiveTest):
    @classmethod
    def setUpClass(cls):
        cls.built = tempfile.TemporaryDirectory(prefix="heapcore-test-")
        cls.addClassCleanup(cls.built.cleanup)
        cls.program = harness.build(os.path.join(cls.built.name, "worker"), "cc",
                                    *harness.FLAGS.split(), "-w", "-x", "c", "-", text=PROGRAM)

    def work(self, *options, megabytes=64, command=(), **others):
        worker = Worker([*command, self.program, str(megabytes), *options],
                        **others)
        self.addCleanup(worker.end)
        return worker

    def clone(self, worker, *options):
        core = self.path("core")
        result = harness.run(harness.HEAPCORE, "snap", "--fork", *options,
                             "-o", core, str(worker.pid))
        if re.search("may not be traced|pidfd_open", result.stderr):
            raise harness.Skipped(result.stderr)
        self.assertEqual(result.returncode, 0, result.stderr)
        return core

    def open(self, path):
        core = Core(path)
        self.addCleanup(core.close)
        return core

    def check_unharmed(self, worker, returned=0, **expected):
        """
        It runs, noticed nothing, and has no child left; at most so many calls
        returned.
        """
        wait_until(lambda: not clones_of(worker.process), "no clone")
        wait_until(lambda: not children_of(worker.pid), "no child")
        wait_until(lambda: status_of(worker.pid, "TracerPid") == "0",
                   "the program to be let go")
        report = worker.report()
        self.assertLessEqual(report.pop("returned"), returned)
        self.assertEqual(report, {"children": 0, "SIGCHLD": 0, "SIGRT": 0,
                                  **expected})

    def test_the_core_is_of_one_instant(self):
        worker = self.work()
        for _ in range(5):
            core = self.open(self.clone(worker))
            first, second = (
                struct.unpack("<Q", core.read(worker.places[name], 8))[0]
                for name in ("first", "second"))
            self.assertIn(first - second, (0, 1))
            self.assertGreater(first, 0)
        self.check_unharmed(worker)

    def test_its_answers_are_those_of_a_plain_core(self):
        worker = self.work()
        commands = ["count used", "count free", "summarize used",
                    "summarize leaked"]
        answers = []
        for option in ("--fork", "--no-fork"):
            core = self.path(f"core{option}")
            harness.ask("snap", option, "-o", core, str(worker.pid))
            answers.append([harness.ask("-q", core, *command.split(),
                                        expected=(0, 1, 3)).stdout
                            for command in commands])
        self.assertEqual(*answers)

    def test_what_a_clone_lacks_is_there_and_named(self):
        worker = self.work()
        path = self.clone(worker)
        core = self.open(path)
        ranges = list(struct.iter_unpack("<QQ", core.find(NOTE_UNSHARED)[0]))
        for name in ("dontfork", "wipeonfork", "shared", "private"):
            with self.subTest(memory=name):
                address = worker.places[name]
                self.assertTrue(core.read(address, 16).startswith(
                    name.encode() + b"\0"))
                self.assertEqual(any(start <= address < end
                                     for start, end in ranges),
                                 name != "private")
        said = harness.ask("-c", "count used", path, expected=(0, 1, 3)).stderr
        self.assertIn("of memory that a clone lacks", said)

    def test_a_busy_server_answers_all_requests_meanwhile(self):
        worker = self.work(megabytes=200)
        done, answers = threading.Event(), []

        def request():
            while not done.is_set() or len(answers) < 1000:
                answers.append(worker.ask(f"add {len(answers)} 1"))

        client = threading.Thread(target=request)
        client.start()
        for _ in range(3):
            self.clone(worker)
        done.set()
        client.join()
        self.assertEqual(answers, [str(i + 1) for i in range(len(answers))])
        self.check_unharmed(worker)

    def test_signals_are_not_lost(self):
        worker = self.work()
        sent, done = [0], threading.Event()

        def send():
            while not done.is_set() and sent[0] < 5000:
                os.kill(worker.pid, signal.SIGRTMIN)
                sent[0] += 1
                time.sleep(0.0002)

        sender = threading.Thread(target=send)
        sender.start()
        for _ in range(5):
            self.clone(worker)
        done.set()
        sender.join()
        wait_until(lambda: worker.report()["SIGRT"] == sent[0], "all signals")
        self.check_unharmed(worker, SIGRT=sent[0])

    def snap_halted(self, worker):
        """heapcore, stopped while it writes; the clone is there meanwhile."""
        for _ in range(10):
            command = subprocess.Popen(
                [harness.HEAPCORE, "snap", "-q", "--fork", "-o",
                 self.path("core"), str(worker.pid)])
            self.addCleanup(command.wait)
            self.addCleanup(command.send_signal, signal.SIGCONT)
            # The keeper has let go of the program, and the clone of its files.
            wait_until(lambda: command.poll() is not None or any(
                map(leads_a_session, clones_of(worker.process))), "a clone")
            command.send_signal(signal.SIGSTOP)
            # Had all been written, the keeper would end the clone now; unless heapcore was
            # stopped before it could say so.
            time.sleep(0.2)
            if clones_of(worker.process) and written_by(command.pid) < HALTED_AT_MOST:
                return command
            print("RETRIED: the core was written before heapcore was stopped")
            command.send_signal(signal.SIGCONT)
            command.wait(DEADLINE)
        raise harness.Skipped("the core was written too quickly")

    def test_a_clone_keeps_no_file_open_and_is_in_no_group(self):
        ours, theirs = os.pipe()
        worker = self.work(megabytes=400, pass_fds=[theirs])
        os.close(theirs)
        command = self.snap_halted(worker)
        [clone] = clones_of(worker.process)
        self.assertEqual(os.listdir(f"/proc/{clone}/fd"), [])
        self.assertNotEqual(os.getpgid(clone), os.getpgid(worker.pid))
        self.assertNotEqual(os.getsid(clone), os.getsid(worker.pid))
        self.assertEqual(children_of(worker.pid), [])
        self.assertEqual(worker.ask(f"close {theirs}"), "closed")
        self.assertEqual(os.read(ours, 1), b"")
        os.close(ours)
        command.send_signal(signal.SIGCONT)
        self.assertEqual(command.wait(DEADLINE), 0)
        self.check_unharmed(worker)

    def test_a_killed_clone_spoils_the_core_and_not_the_program(self):
        worker = self.work(megabytes=400)
        command = self.snap_halted(worker)
        clone = clones_of(worker.process)[0]
        os.kill(clone, signal.SIGKILL)
        # While it waits for a processor to end on, its memory can still be read.
        wait_until(lambda: (status_of(clone, "State") or "Z").startswith("Z"),
                   "the clone to end")
        command.send_signal(signal.SIGCONT)
        self.assertEqual(command.wait(DEADLINE), 3)
        self.assertFalse(os.path.exists(self.path("core")))
        self.check_unharmed(worker)

    def check_killed(self, worker, rounds):
        chance = random.Random(rounds)
        for number in range(1, rounds + 1):
            command = subprocess.Popen(
                [harness.HEAPCORE, "snap", "-q", "--fork", "-o",
                 self.path("core"), str(worker.pid)])
            time.sleep(chance.uniform(0, 0.05))
            command.kill()
            command.wait()
            # epoll_wait() may return when its thread is merely stopped, and who would have
            # begun it anew is gone.
            self.check_unharmed(worker, returned=number)

    def test_heapcore_may_be_killed_at_any_moment(self):
        self.check_killed(self.work(), 60 if harness.ALL_VARIANTS else 20)

    def test_heapcore_may_be_killed_where_orphans_return(self):
        self.check_killed(self.work("subreaper"), 40 if harness.ALL_VARIANTS else 15)

    def check_each_step(self, *options):
        """The keeper is killed at each of its calls of ptrace(2)."""
        if not shutil.which("strace"):
            self.skipTest("there is no strace")
        worker = self.work(*options, megabytes=4)
        for step in range(1, 1000):
            result = harness.run(
                "strace", "-f", "-o", "/dev/null", "-e", "trace=ptrace", "-e",
                f"inject=ptrace:signal=SIGKILL:when={step}", harness.HEAPCORE,
                "snap", "-q", "--fork", "-o", self.path("core"),
                str(worker.pid))
            if "ptrace" in result.stderr:
                self.skipTest(result.stderr)
            wait_until(lambda: not clones_of(worker.process),
                       f"no clone, step {step}")
            wait_until(lambda: not children_of(worker.pid),
                       f"no child, step {step}")
            self.assertEqual(worker.ask("add 1 1"), "2", step)
            if result.returncode == 0:
                break
        else:
            self.fail(f"no step is the last: {result.stderr}")
        report = worker.report()
        self.assertEqual((report["SIGCHLD"], report["SIGRT"]), (0, 0))
        # epoll_wait() may return when its thread is merely stopped, and a look
        # for clones may find one until it has ended.
        self.assertLessEqual(report["returned"], 1)

    @unittest.skipIf(harness.SANITIZED, "takes long")
    def test_the_keeper_may_be_killed_at_each_step(self):
        self.check_each_step()

    @unittest.skipIf(harness.SANITIZED, "takes long")
    @harness.among_all
    def test_the_keeper_may_be_killed_where_orphans_return(self):
        self.check_each_step("subreaper")

    def test_a_subreaper_sees_nothing(self):
        worker = self.work("subreaper")
        for _ in range(3):
            self.clone(worker)
        self.check_unharmed(worker)

    def test_the_first_process_of_a_namespace_sees_nothing(self):
        if harness.run("unshare", "-pf", "true").returncode != 0:
            self.skipTest("no namespace of processes may be made")
        inside = self.work(command=("unshare", "-pf"))
        [pid] = children_of(inside.pid)
        inside.pid = int(pid)
        self.clone(inside)
        self.assertEqual(children_of(pid), [])
        self.assertEqual(inside.report()["SIGCHLD"], 0)

    def test_a_filter_that_kills_is_not_met(self):
        worker = self.work("seccomp")
        core = self.path("core")
        result = harness.run(harness.HEAPCORE, "snap", "--fork", "-o", core,
                             str(worker.pid))
        if result.returncode != 0:
            self.assertIn("seccomp filter", result.stderr)
        self.check_unharmed(worker)

    def test_watched_memory_is_not_cloned(self):
        worker = self.work("userfaultfd")
        if "userfaultfd" not in worker.places:
            self.skipTest("userfaultfd(2) is not allowed")
        result = harness.run(harness.HEAPCORE, "snap", "--fork", "-o",
                             self.path("core"), str(worker.pid))
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn(f"process {worker.pid} cannot be cloned: its memory is "
                      "watched by userfaultfd(2)", result.stderr)
        self.assertFalse(os.path.exists(self.path("core")))
        self.check_unharmed(worker)

    def test_a_stopped_process_is_not_cloned(self):
        worker = self.work()
        os.kill(worker.pid, signal.SIGSTOP)
        wait_until(lambda: status_of(worker.pid, "State")[0] == "T", "a stop")
        result = harness.run(harness.HEAPCORE, "snap", "--fork", "-o",
                             self.path("core"), str(worker.pid))
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("it is stopped", result.stderr)
        os.kill(worker.pid, signal.SIGCONT)
        # Of itself, that ends epoll_wait(), if its thread has come so far.
        self.check_unharmed(worker, returned=1)

    def group(self, controller):
        group, limit = harness.control_group(controller, f"heapcore-test-{os.getpid()}")
        self.addCleanup(harness.remove_group, group)
        return group, limit

    def test_memory_of_a_group_that_is_cached_files_is_not_short(self):
        (group, limit), file = self.group("memory"), self.path("file")
        with open(file, "wb") as written:
            written.truncate(100 << 20)
        worker = self.work(command=(
            "sh", "-c", f'echo $$ >{group}/cgroup.procs; cat {file} '
            '>/dev/null; exec "$@"', "sh"))
        for megabytes, expected in ((172, 0), (72, 3)):
            with open(limit, "w", encoding="ascii") as written:
                written.write(str(megabytes << 20))
            result = harness.run(harness.HEAPCORE, "snap", "--fork", "-o",
                                 self.path("core"), str(worker.pid))
            self.assertEqual(result.returncode, expected, result.stderr)
        self.assertIn("near the limit of memory", result.stderr)
        self.check_unharmed(worker)

    def test_a_group_near_its_limit_is_not_cloned(self):
        group, limit = self.group("pids")
        worker = self.work()
        self.addCleanup(worker.end)
        for name, text in ((f"{group}/cgroup.procs", worker.pid), (limit, 20)):
            with open(name, "w", encoding="ascii") as file:
                file.write(str(text))
        result = harness.run(harness.HEAPCORE, "snap", "--fork", "-o",
                             self.path("core"), str(worker.pid))
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("near the limit of processes", result.stderr)
        self.check_unharmed(worker)


# Threads wait in all kinds of calls, which nobody ends; two words are counted
# up one after the other; and what the process learns of children and signals
# is counted. The main thread answers questions.
PROGRAM = r"""
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, APART = 64 };
static volatile sig_atomic_t children_signals, real_time_signals;
static _Atomic int children_seen, returned;
static int all_children = __WALL, pipe_ends[2];

static void count(int number)
{
	if (number == SIGCHLD)
		children_signals++;
	else
		__atomic_add_fetch(&real_time_signals, 1, __ATOMIC_RELAXED);
}

static void *count_up(void *data)
{
	volatile uint64_t *first = data, *second = first + APART * PAGE / 8;

	for (uint64_t i = 1;; i++) {
		*first = i;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		*second = i;
		if (i % 1024 == 0)
			usleep(10);
	}
}

static void *look_for_children(void *data)
{
	for (;;) {
		if (waitpid(-1, NULL, WNOHANG | all_children) >= 0 ||
		    errno != ECHILD)
			children_seen++;
		usleep(20);
	}
}

static void *wait_in_epoll(void *data)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0);

	epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_ends[0], &event);
	epoll_wait(epoll, &event, 1, -1);
	returned++;
	return NULL;
}

static void *wait_in_poll(void *data)
{
	struct pollfd file = { pipe_ends[0], POLLIN, 0 };

	poll(&file, 1, 1000000);
	returned++;
	return NULL;
}

static void *wait_in_ppoll(void *data)
{
	struct pollfd file = { pipe_ends[0], POLLIN, 0 };
	sigset_t mask;

	sigfillset(&mask);
	ppoll(&file, 1, NULL, &mask);
	returned++;
	return NULL;
}

static void *wait_in_read(void *data)
{
	char byte;

	if (read(pipe_ends[0], &byte, 1))
		returned++;
	returned++;
	return NULL;
}

static void *wait_in_sleep(void *data)
{
	nanosleep(&(struct timespec){ 1000000, 0 }, NULL);
	returned++;
	return NULL;
}

static void *wait_for_signal(void *data)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigwait(&set, &number);
	returned++;
	return NULL;
}

static void *wait_for_lock(void *data)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&lock);
	returned++;
	return NULL;
}

static void begin(void *(*work)(void *), void *data)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work, data);
}

static char *provide(const char *name, size_t size, int flags, int advice)
{
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_ANONYMOUS | flags, -1, 0);

	strcpy(memory, name);
	if (advice)
		madvise(memory, size, advice);
	printf("%s %p\n", name, (void *)memory);
	return memory;
}

static void install_filter(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 5, steps };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static void watch_memory(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = {
		.range = { (uintptr_t)mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			   PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int file = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (file >= 0 && ioctl(file, UFFDIO_API, &api) == 0 &&
	    ioctl(file, UFFDIO_REGISTER, &area) == 0)
		printf("userfaultfd %#llx\n", area.range.start);
}

static void answer(FILE *questions)
{
	char line[64];
	long one, other;

	while (fgets(line, sizeof(line), questions)) {
		if (sscanf(line, "add %ld %ld", &one, &other) == 2)
			dprintf(0, "%ld\n", one + other);
		else if (sscanf(line, "close %ld", &one) == 1)
			dprintf(0, close((int)one) ? "failed\n" : "closed\n");
		else
			dprintf(0,
				"children %d SIGCHLD %d SIGRT %d returned %d\n",
				children_seen, children_signals,
				real_time_signals, returned);
	}
}

int main(int arguments, char **argument)
{
	const char *option = arguments > 2 ? argument[2] : "";
	struct sigaction action = { .sa_handler = count,
				    .sa_flags = SA_RESTART };
	size_t size = strtoul(argument[1], NULL, 10) << 20;
	char *pair = provide("first", (APART + 1) * PAGE, MAP_PRIVATE, 0);
	char *memory = provide("private", size, MAP_PRIVATE, MADV_NOHUGEPAGE);
	sigset_t set;

	printf("second %p\n", (void *)(pair + APART * PAGE));
	for (size_t i = 64; i < size; i += 64)
		memory[i] = (char)i | 1;
	provide("dontfork", PAGE, MAP_PRIVATE, MADV_DONTFORK);
	provide("wipeonfork", PAGE, MAP_PRIVATE, MADV_WIPEONFORK);
	provide("shared", PAGE, MAP_SHARED, 0);
	if (strcmp(option, "userfaultfd") == 0)
		watch_memory();
	if (strcmp(option, "subreaper") == 0) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		all_children = 0;
	}
	sigaction(SIGCHLD, &action, NULL);
	sigaction(SIGRTMIN, &action, NULL);
	if (pipe(pipe_ends))
		return 1;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	begin(wait_in_epoll, NULL);
	begin(wait_in_poll, NULL);
	begin(wait_in_ppoll, NULL);
	begin(wait_in_read, NULL);
	begin(wait_in_sleep, NULL);
	begin(wait_for_signal, NULL);
	begin(wait_for_lock, NULL);
	begin(count_up, pair);
	sigdelset(&set, SIGUSR2);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	begin(look_for_children, NULL);
	/* Blocks that are in use, and one that is lost. */
	for (int i = 0; i < 1000; i++) {
		void **block = malloc(100);

		*block = memory;
		((void **)(memory + PAGE))[i] = i == 500 ? NULL : block;
	}
	usleep(20000);
	if (strcmp(option, "seccomp") == 0)
		install_filter();
	puts("ready");
	fflush(stdout);
	answer(fdopen(dup(0), "r"));
	return 0;
}
"""


if __name__ == "__main__":
    unittest.main()
