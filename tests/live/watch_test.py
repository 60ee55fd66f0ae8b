#!/usr/bin/env python3
"""
`heapcore watch`: a process whose memory runs out leaves a core and who held it, in time; one that is
quiet leaves nothing.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import harness
from harness import FINE, INCOMPLETE, USAGE

# Grows by as many blocks as it reads, or without end. It writes down what it holds.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {
    struct entry *next;
    char text[4000];
};

struct entry *the_cache;

static void grow(void)
{
    struct entry *entry = malloc(sizeof(*entry));

    memset(entry->text, 'x', sizeof(entry->text));
    memcpy(entry->text, "Secret!", 7);
    entry->next = the_cache;
    the_cache = entry;
}

int main(void)
{
    int count;

    while (scanf("%d", &count) == 1) {
        for (int i = 0; i != count; i++) {
            grow();
            if (count < 0 && i % 10 == 0)
                usleep(4000);
        }
        puts("done");
        fflush(stdout);
    }
}
"""

MEGABYTES = 1 << 20
ENTRY = 4008


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class WatchTest(harness.LiveTest):
    def setUp(self):
        super().setUp()
        self.answers = self.path("answers")
        self.program = self.compile("worker", text=PROGRAM, flags=("-g", "-O1"))

    def begin(self, group=None):
        """The program, in that group."""
        command = [self.program]
        if group:
            command = ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$0"', self.program]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, bufsize=1)
        self.addCleanup(harness.end, process)
        self.grow(process, 1)
        return process

    def grow(self, process, count):
        process.stdin.write(f"{count}\n")
        if count > 0:
            self.assertEqual(process.stdout.readline(), "done\n")

    def watch(self, *words, first="watching"):
        process = subprocess.Popen(
            [harness.HEAPCORE, "watch", "-o", self.answers, *map(str, words)],
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(harness.end, process)
        self.assertIn(first, process.stderr.readline())
        return process

    def looks(self):
        """The folders of all looks, the oldest first."""
        return sorted(os.path.join(self.answers, name) for name in os.listdir(self.answers)
                      if name[0].isdigit())

    def wait_for_look(self, number):
        """The folder of the look of that number, once all is in it."""
        deadline = time.monotonic() + harness.TIMEOUT
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                folders = self.looks()
                latest = os.path.join(self.answers, os.readlink(f"{self.answers}/latest"))
                if len(folders) >= number and folders[number - 1] == latest:
                    return latest
            time.sleep(0.01)
        raise AssertionError(f"no look {number}")

    def end(self, watch, status=FINE):
        watch.send_signal(signal.SIGTERM)
        return self.ended(watch, status)

    def ended(self, watch, *statuses):
        said = watch.stderr.read()  # what of it was read already is in its buffer
        watch.wait(timeout=harness.TIMEOUT)
        self.assertIn(watch.returncode, statuses or (FINE,), said)
        return said

    def make_group(self, process):
        """Files of a group as the kernel's version 2 has them, which change when told."""
        group = self.path("group")
        os.mkdir(group)
        write(f"{group}/cgroup.procs", f"{process.pid}\n")
        write(f"{group}/memory.max", f"{100 * MEGABYTES}\n")
        write(f"{group}/memory.high", "max\n")
        write(f"{group}/memory.stat", "anon 0\ninactive_file 0\n")
        write(f"{group}/memory.events", "low 0\nhigh 0\noom_kill 0\n")
        self.use(group, 10)
        return group

    def use(self, group, megabytes):
        write(f"{group}/memory.new", f"{megabytes * MEGABYTES}\n")
        os.rename(f"{group}/memory.new", f"{group}/memory.current")

    def kernels_group(self, name, megabytes=None):
        group, limit = harness.control_group("memory", name)
        self.addCleanup(harness.remove_group, group)
        if megabytes:
            write(limit, str(megabytes * MEGABYTES))
        return group

    def test_a_group_near_its_limit_is_looked_into_and_what_grew_is_named(self):
        process = self.begin()
        group = self.make_group(process)
        told = self.path("told")
        watch = self.watch("--exec", f"env >{told}.new; mv {told}.new {told}", group)
        self.grow(process, 1000)
        self.use(group, 86)
        first = self.wait_for_look(1)
        self.assertIn("the_cache (worker)", read(f"{first}/screen.txt"))
        self.assertFalse(os.path.exists(f"{first}/growth.txt"))
        reason = json.loads(read(f"{first}/reason.json"))
        self.assertEqual((reason["cause"], reason["process"], reason["used"], reason["limit"]),
                         ("memory", process.pid, 86 * MEGABYTES, 100 * MEGABYTES))
        self.grow(process, 500)
        # Half of what was left.
        self.use(group, 94)
        second = self.wait_for_look(2)
        self.assertIn(f"the_cache (worker): +{500 * ENTRY:,} bytes in +500 allocations",
                      read(f"{second}/growth.txt"))
        metrics = read(f"{self.answers}/metrics.prom")
        self.assertIn(f'heapcore_growth_bytes{{process="worker",kind="struct entry"}} {500 * ENTRY}\n',
                      metrics)
        self.assertRegex(metrics, r'heapcore_heap_bytes\{process="worker",set="used"\} 60\d{5}\n')
        self.assertTrue(metrics.endswith("\n# EOF\n"))
        # The core is one as any other.
        self.assertIn("1,501 allocations", harness.ask(
            f"{second}/core.zst", "count", "used", "struct entry").stdout)
        said = self.end(watch)
        self.assertIn(f"{second}: memory, 94.0 MiB of 100.0 MiB in use", said)
        while not os.path.exists(told):
            time.sleep(0.01)
        for line in (f"HEAPCORE_PID={process.pid}", "HEAPCORE_CAUSE=memory", "HEAPCORE_NAME=worker"):
            self.assertIn(f"{line}\n", read(told))
        self.assertRegex(read(told), rf"HEAPCORE_SCREEN={self.answers}/\S+/screen.txt\n")
        self.assertRegex(read(told), rf"HEAPCORE_CORE={self.answers}/\S+/core.zst\n")

    def test_pages_of_files_and_little_use_leave_nothing(self):
        process = self.begin()
        group = self.make_group(process)
        watch = self.watch("--growth", "50M/h", group)
        write(f"{group}/memory.stat", f"anon 0\ninactive_file {60 * MEGABYTES}\n")
        self.use(group, 99)
        self.grow(process, 2000)
        # What is asked for comes after what was not.
        watch.send_signal(signal.SIGUSR1)
        reason = json.loads(read(f"{self.wait_for_look(1)}/reason.json"))
        self.assertEqual(reason["cause"], "asked")
        self.end(watch)
        self.assertEqual(len(self.looks()), 1)

    def test_only_a_core_without_contents_stays(self):
        """What grew is the truth to the byte: the cores that stay are compared."""
        process = self.begin()
        watch = self.watch(process.pid)
        self.grow(process, 100)
        for number in 1, 2:
            watch.send_signal(signal.SIGUSR1)
            folder = self.wait_for_look(number)
            self.assertEqual(sorted(os.listdir(folder))[0], "core.zst")
            unpacked = subprocess.run(["zstd", "-dc", f"{folder}/core.zst"], check=True,
                                      stdout=subprocess.PIPE).stdout
            # Where the program writes it, it stands in code.
            self.assertLess(unpacked.count(b"Secret!"), 10)
            self.grow(process, 50)
        growth = json.loads(read(f"{folder}/growth.json"))["tables"]
        rows = next(table["rows"] for table in growth if table["name"] == "growth")
        self.assertEqual([(row["kind"], row["growth"]) for row in rows],
                         [("struct entry", 50 * ENTRY)])
        self.assertIn("the_cache (worker): +200,400 bytes in +50 allocations",
                      read(f"{folder}/growth.txt"))
        self.assertNotIn("kept whole", self.end(watch))

    def look_once(self, process, *words):
        """The names of files of cores that a look leaves, and what it says."""
        watch = self.watch(*words, process.pid)
        watch.send_signal(signal.SIGUSR1)
        folder = self.wait_for_look(len(self.looks()) + 1)
        said = self.end(watch)
        return folder, [name for name in sorted(os.listdir(folder)) if "core" in name], said

    def test_a_whole_core_stays_where_it_is_wanted(self):
        folder, names, said = self.look_once(self.begin(), "--whole")
        self.assertEqual(names, ["core"])
        self.assertNotIn("kept whole", said)
        with open(f"{folder}/core", "rb") as core:
            self.assertIn(b"Secret!xxxx", core.read())

    def test_a_whole_core_stays_where_no_other_can_be_made(self):
        if not shutil.which("musl-gcc"):
            raise harness.Skipped("there is no musl-gcc")
        self.program = self.compile("with_musl", compiler="musl-gcc", text=PROGRAM)
        process = self.begin()
        folder, names, said = self.look_once(process)
        self.assertEqual(names, ["core"])
        self.assertIn(f"{folder}/core is kept whole: a slim core cannot have a heap of musl yet",
                      said)
        folder, names, said = self.look_once(process, "--slim")
        self.assertEqual(names, [])
        self.assertIn("none without contents could be made, so it is removed", said)

    def test_growth_of_a_process(self):
        process = self.begin()
        watch = self.watch("--growth", "8M/16s", process.pid)
        self.grow(process, 4000)
        first = self.wait_for_look(1)
        self.assertEqual(json.loads(read(f"{first}/reason.json"))["cause"], "growth")
        process.kill()
        process.wait()
        self.assertIn(f"{process.pid} has ended; 1 look in {self.answers}", self.ended(watch))

    def test_looks_are_limited_in_number_and_room(self):
        process = self.begin()
        group = self.make_group(process)
        self.grow(process, 1000)
        watch = self.watch("--whole", "--max", "1/h", "--room", "10M", group)
        self.use(group, 86)
        self.wait_for_look(1)
        self.use(group, 95)
        self.assertIn("memory, 86.0 MiB", watch.stderr.readline())
        self.assertIn("no look (memory): 1 were taken within an hour (--max)",
                      watch.stderr.readline())
        # Who asks gets one; two cores of 4 MB have room, and three do not.
        for number in (2, 2):
            before = self.looks()[-1]
            watch.send_signal(signal.SIGUSR1)
            while self.looks()[-1] == before:
                time.sleep(0.01)
            last = self.wait_for_look(number)
        self.assertNotEqual(last, before)
        self.grow(process, 3000)
        watch.send_signal(signal.SIGUSR1)
        for line in watch.stderr:
            if "has no room" in line:
                break
        self.assertIn("in 10.0 MiB of --room", line)
        self.assertEqual(self.looks(), [before, last])
        self.end(watch, INCOMPLETE)

    def test_the_kernel_kills_and_an_answer_is_left(self):
        group = self.kernels_group(f"heapcore-test-{os.getpid()}", 48)
        process = self.begin(group)
        watch = self.watch(process.pid)
        self.grow(process, 9000)
        self.grow(process, -1)
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), -signal.SIGKILL)
        # The kernel may kill in the midst of a look.
        self.assertIn("has ended, killed for want of memory",
                      self.ended(watch, FINE, INCOMPLETE))
        for folder in self.looks():
            self.assertIn("the_cache (worker)", read(f"{folder}/screen.txt"))
        self.assertTrue(self.looks())

    def test_what_would_bring_the_kill_is_refused(self):
        group = self.kernels_group(f"heapcore-test-{os.getpid()}", 96)
        process = self.begin(group)
        in_memory = f"/dev/shm/heapcore-test-{os.getpid()}"
        self.addCleanup(harness.run, "rm", "-rf", in_memory)
        for folder, within, expected in ((in_memory, True, INCOMPLETE), (in_memory, False, FINE),
                                         (self.answers, True, FINE)):
            enter = f"echo $$ >{group}/cgroup.procs; " if within else ""
            watch = subprocess.Popen(
                ["sh", "-c", f'{enter}exec "$0" "$@"', harness.HEAPCORE, "watch", "-o", folder,
                 str(process.pid)], stderr=subprocess.PIPE, text=True)
            self.addCleanup(harness.end, watch)
            self.assertIn("watching", watch.stderr.readline())
            if expected == FINE:
                self.end(watch)
            else:
                self.assertIn("is in memory (tmpfs) that counts against the limit",
                              self.ended(watch, expected))

    def test_a_unit_is_waited_for(self):
        name = f"heapcore-test-{os.getpid()}.service"
        watch = self.watch(name, first=f"waiting for {name}")
        group = self.kernels_group(name, 96)
        first, second = self.begin(group), self.begin(group)
        self.grow(second, 100)
        watch.send_signal(signal.SIGUSR1)
        reason = json.loads(read(f"{self.wait_for_look(1)}/reason.json"))
        # The larger one.
        self.assertEqual((reason["process"], reason["limit"]), (second.pid, 96 * MEGABYTES))
        for process in first, second:
            process.kill()
            process.wait()
        self.assertIsNone(watch.poll())
        self.end(watch)

    def test_the_largest_of_a_name_is_waited_for(self):
        os.rename(self.program, f"{self.program}-{os.getpid()}")
        self.program += f"-{os.getpid()}"
        name = os.path.basename(self.program)
        watch = self.watch(f"name:{name}", first=f"waiting for name:{name}")
        process = self.begin()
        self.grow(process, 100)
        watch.send_signal(signal.SIGUSR1)
        reason = json.loads(read(f"{self.wait_for_look(1)}/reason.json"))
        self.assertEqual((reason["process"], reason["name"]), (process.pid, name))
        self.end(watch)

    def test_recipes_start(self):
        """The unit of systemd and the pod of docs/watch.md, but for the paths."""
        recipes = []
        with open(f"{harness.ROOT}/packaging/heapcore-watch@.service", encoding="utf-8") as file:
            recipes += re.findall(r"(?m)^ExecStart=\S*heapcore (watch .*)$", file.read())
        with open(f"{harness.ROOT}/docs/fleet/watch.yaml", encoding="utf-8") as file:
            recipes += [" ".join(re.findall(r"(?m)^        - ((?!/)\S+)$", file.read()))]
        self.assertEqual(len(recipes), 2)
        for recipe in recipes:
            words = (recipe.replace("$OPTIONS", "--room 20G").replace("%S/heapcore/%i", self.answers)
                     .replace("=/cores", f"={self.answers}").replace("%i", "no-such-shop")
                     .replace("name:shop", "name:no-such-shop").split())
            watch = subprocess.Popen([harness.HEAPCORE, *words], stderr=subprocess.PIPE, text=True)
            self.addCleanup(harness.end, watch)
            self.assertIn("waiting for", watch.stderr.readline())
            self.end(watch)

    def test_wrong_usage(self):
        process = self.begin()
        for words in ((), (str(process.pid),), ("-o", self.answers),
                      ("-o", self.answers, "--memory", "101%", str(process.pid)),
                      ("-o", self.answers, "--growth", "5M", str(process.pid)),
                      ("-o", self.answers, "--max", "many", str(process.pid)),
                      ("-o", self.answers, "--slim", "--whole", str(process.pid)),
                      ("-o", self.answers, "no.such"), ("-o", self.answers, "/no/such"),
                      ("-o", self.program, str(process.pid)),
                      ("-o", self.answers, str(process.pid), str(process.pid))):
            result = harness.run(harness.HEAPCORE, "watch", *words)
            self.assertEqual(result.returncode, USAGE, (words, result.stderr))


if __name__ == "__main__":
    unittest.main()
