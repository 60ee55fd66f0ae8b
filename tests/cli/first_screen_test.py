"""
What heapcore begins with, in a terminal of 24 lines and 80 columns and in a pipe: it names what the
programs say they hold, and what they lost, with the right bytes.
"""

import re
import shutil
import subprocess
import unittest

import front_end
import harness
from harness import LiveTest, rows

LINES, WIDTH = 24, 80
SEQUENCE = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")
PROMPT = "heapcore> "
HOLDER = re.compile(r" *([\d,]+) +(\d+) %  (\S.*?)  +(\S.*)")
LEAK = re.compile(r" *([\d,]+) +([\d,]+)  (\S.*?)  +(\S.*)")

PYTHON = """
import ctypes, sys, time


class Listener:
    def __init__(self, number):
        self.name = "listener %d" % number
        self.queue = [number] * 20


def size(*objects):
    return sum((sys.getsizeof(each) + 15) // 16 * 16 for each in objects)


CACHE, LISTENERS = {}, []
C = ctypes.CDLL(None)
C.malloc.restype = ctypes.c_void_p
with open(sys.argv[1], "w") as truth:
    for number in range(20000):
        CACHE["key %d" % number] = ("value %d" % number) * 10
    print("CACHE", size(CACHE) + sum(size(*both) for both in CACHE.items()), file=truth)
    for number in range(20000):
        LISTENERS.append(Listener(number))
    for number in range(200):
        C.malloc(5000)
    print("lost", 200 * 5000, file=truth)
print("ready", flush=True)
time.sleep(1e6)
"""

ONE_LOST = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char *kept;
__attribute__((noinline)) static void lose(void)
{
    *(void *volatile *)calloc(1, 64) = calloc(1, 20000);
}
int main(void)
{
    volatile char stack[1 << 14];

    lose();
    for (size_t i = 0; i < sizeof(stack); i++)
        stack[i] = 0;
    kept = memset(malloc(30000), 1, 30000);
    puts("ready");
    fflush(stdout);
    pause();
    return kept == NULL;
}
"""


def number(text):
    return int(text.replace(",", ""))


class FirstScreenTest(LiveTest):
    def core_of_holders(self, *arguments):
        process = self.start([self.compile("holders", "holders.cpp", compiler="c++",
                                           flags=("-g", "-O1")), *arguments])
        truth = {owner: int(size) for owner, size in (line.split() for line in process.said)}
        return harness.snap(process, self.path("core")), truth

    def on_terminal(self, core, *options):
        """The screen's lines, up to the prompt."""
        words = ["sh", "-c", f"stty rows {LINES} cols {WIDTH}; exec \"$@\"", "sh",
                 front_end.HEAPCORE, *options, core]
        terminal = front_end.Terminal([shutil.which("sh"), *words[1:]], self.path(""), {
            "TERM": "xterm", "NO_COLOR": "1", "INPUTRC": "/dev/null", "HOME": self.path("")})
        text = terminal.expect(PROMPT)[:-len(PROMPT)]
        terminal.send("quit\n")
        terminal.wait()
        lines = SEQUENCE.sub("", text).replace("\r\n", "\n").split("\n")
        return [line.rpartition("\r")[2] for line in lines[:-1]]

    def in_a_pipe(self, core):
        run = subprocess.run([front_end.HEAPCORE, core], stdin=subprocess.DEVNULL, text=True,
                             capture_output=True, check=False)
        return run.stdout.splitlines()

    def check_fits(self, lines):
        self.assertLessEqual(len(lines), LINES, lines)
        self.assertLessEqual(max(map(len, lines)), WIDTH, lines)

    def screen(self, core):
        """The lines; holders, [(name, (bytes, percent, content))]; and leaks, likewise, by kind."""
        lines = self.on_terminal(core)
        self.check_fits(lines)
        piped = self.in_a_pipe(core)
        self.check_fits(piped)
        self.assertEqual([re.sub(r" \(\d+ \w+ ago\)$", "", line) for line in lines[:-1]], piped)
        holders, leaks = ([(match[3], (number(match[1]), number(match[2]), match[4]))
                           for match in map(pattern.fullmatch, lines) if match]
                          for pattern in (HOLDER, LEAK))
        return lines, holders, leaks

    def check_same_numbers(self, core, holders, leaks):
        """As the tables for programs have them."""
        told = [(row["retained"], row["percent"])
                for row in rows("suspect", "-q", core, "info")]
        self.assertEqual([(size, percent) for _, (size, percent, _) in holders], told[:5])
        told = [(row["bytes"], row["leak_roots"])
                for row in rows("leaked kind", "-q", core, "info")]
        self.assertEqual([(size, count) for _, (size, count, _) in leaks],
                         told[:len(leaks)])

    def test_names_of_a_program_in_cxx(self):
        core, truth = self.core_of_holders("lose")
        lines, holders, leaks = self.screen(core)
        names = dict(holders)
        orders = next(name for name in names if name.startswith("orders"))
        self.assertEqual(names[orders][::2], (truth["orders"], "20,000 std::map<...> node"))
        self.assertEqual(names["sessions (holders)"][0], truth["sessions"])
        (kind, (size, _, maker)), = leaks
        self.assertEqual(kind, "job")
        self.assertAlmostEqual(size / truth["job"], 1, delta=0.01)
        self.assertRegex(maker, r"^lose \(holders\.cpp:\d+\)$")
        self.check_same_numbers(core, holders, leaks)
        self.assertRegex(lines[0], r"holders lose \(process \d+, 1 thread\)$")
        self.assertRegex(lines[1], r"^Core core: [\d.]+ MiB, of 20\S+Z \(\d+ seconds? ago\)$")
        self.assertNotIn("Ended by", "".join(lines))
        self.assertRegex("\n".join(lines), r"\nNext: 'explain [0-9a-f]+' shows ")

    def test_what_resident_memory_is_adds_up(self):
        core, truth = self.core_of_holders("lose")
        row, = rows("resident", "-q", core, "info")
        bill, = [row for row in rows("use", "-q", core, "bill") if row["memory"] == "total"]
        self.assertEqual(row["resident"], bill["resident"])
        self.assertEqual(row["resident"], sum(row[part] for part in (
            "used", "leaked", "garbage", "free", "other")))
        self.assertAlmostEqual(row["leaked"] / truth["job"], 1, delta=0.01)
        heaps, = rows("heaps", "-q", core, "bill")
        self.assertEqual(row["used"] + row["leaked"], heaps["used"])

    def test_without_leaks(self):
        core, _ = self.core_of_holders()
        lines, _, leaks = self.screen(core)
        self.assertEqual(leaks, [])
        self.assertIn("Nothing leaked.", lines)

    def test_what_leaked_is_no_holder(self):
        process = self.start([self.compile("one_lost", text=ONE_LOST, flags=("-g", "-O1"))])
        _, holders, leaks = self.screen(harness.snap(process, self.path("core")))
        self.assertEqual(holders[0][0], "kept (one_lost)")
        self.assertEqual([name for name, _ in holders if "leaked" in name], [])
        self.assertEqual([row[:2] for _, row in leaks], [(20008 + 72, 1)])

    def test_what_ended_the_process(self):
        program = self.compile("holders", "holders.cpp", compiler="c++", flags=("-g", "-O1"))
        run = harness.run(harness.HEAPCORE, "run", "--core", self.path("kept"), "--",
                          program, "abort")
        core = self.path("kept")
        lines, _, _ = self.screen(core)
        self.assertRegex(lines[2],
                         r"^Ended by signal 6 \(Aborted\) in main\(\) at holders\.cpp:\d+\.$", run.stderr)

    def test_a_damaged_core(self):
        core, _ = self.core_of_holders("lose")
        with open(core, "rb") as file:
            whole = file.read()
        with open(core, "wb") as file:
            file.write(whole[:len(whole) * 3 // 4])
        lines = self.on_terminal(core)
        self.check_fits(lines)
        self.assertRegex("\n".join(lines), r"\nwarning: .* truncated")
        self.assertRegex("\n".join(lines), r"\nNext: 'info --notes' says why ")
        self.check_fits(self.in_a_pipe(core))

    def test_what_memory_is_short_for_is_left_out(self):
        core, _ = self.core_of_holders("lose")
        for limit in range(1000, 20000, 250):  # from counts not being possible on
            run = harness.run(harness.HEAPCORE, "-q", "--max-memory", f"{limit}K", core, "info")
            if run.stdout:
                break
        self.assertEqual(run.returncode, harness.INCOMPLETE, run.stderr)
        self.assertRegex(run.stdout, r"\nHeap: [\d,]+ bytes, [\d,]+ allocations; ")
        self.assertIn("\nThe holders are not known: memory is short.\n", run.stdout)
        self.assertRegex(run.stdout, r"\nwarning: out of memory in ")

    def test_quiet_says_only_what_was_asked(self):
        core, _ = self.core_of_holders()
        self.assertEqual(self.on_terminal(core, "-q"), [])

    def test_names_of_python(self):
        core, truth = self.core_of_script("python3", PYTHON)
        with open(truth, encoding="utf-8") as file:
            truth = {name: int(size) for name, size in (line.split() for line in file)}
        _, holders, leaks = self.screen(core)
        names = {name.split()[0]: row for name, row in holders}
        self.assertAlmostEqual(names["__main__.CACHE"][0] / truth["CACHE"], 1, delta=0.02)
        self.assertRegex(names["__main__.LISTENERS"][2], r"^[\d,]+ __main__\.Listener$")
        size, count, _ = leaks[0][1]
        self.assertAlmostEqual(size / truth["lost"], 1, delta=0.01)
        self.assertAlmostEqual(count / 200, 1, delta=0.01)


if __name__ == "__main__":
    unittest.main()
