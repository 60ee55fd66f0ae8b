#!/usr/bin/env python3
"""
Who allocated what leaked, by a second run with the recorder: against what the program wrote down,
and against valgrind.
"""

import collections
import gzip
import html
import json
import os
import re
import shutil
import subprocess
import unittest

import harness
from harness import LiveTest

OWN = re.compile(r"(by_\w+|first|second|others|recursion)\b")
FLAGS = ("-g", "-O2", "-std=c++17", "-pthread")
WRAPPED = """#include <stdlib.h>
void *x_malloc(size_t size) { return malloc(size); }
void load(void) { void *volatile lost = x_malloc(200); lost = x_malloc(200); lost = NULL; }
void parse(void) { void *volatile lost = x_malloc(100); lost = NULL; }
int main(void) { load(); parse(); return 0; }
"""
CRYSTAL = """
class Coin
  @number : Int32
  def initialize(@number)
  end
end

def make_coin(number)
  Coin.new(number)
end

def make_other(number)
  Coin.new(number)
end

KEPT = [] of Coin
50.times { |i| KEPT << make_coin(i) }
30.times { |i| KEPT << make_other(i) }
done = Channel(Nil).new
spawn { 20.times { |i| KEPT << make_other(i) }; done.send(nil) }
done.receive
"""


@unittest.skipIf(harness.SANITIZED, "the sanitizer has a malloc of its own")
class StacksTest(LiveTest):
    def run_gate(self, *words, stdin=subprocess.DEVNULL, status=harness.FOUND, **variables):
        """What `run` says, as JSON, and its messages."""
        report = self.path("report.json")
        result = harness.run(harness.HEAPCORE, "run", "-o", report, *words, stdin=stdin,
                             env=harness.environment(**variables))
        self.assertEqual(result.returncode, status, result.stderr)
        with open(report, encoding="utf-8") as file:
            return json.load(file)["tables"], result.stderr

    def stacks(self, tables):
        """How many roots have which of the program's own calls."""
        calls, found = collections.defaultdict(list), collections.Counter()
        for table in tables:
            for row in table["rows"]:
                if table["name"] == "leak call":
                    calls[row["fingerprint"], row["stack"]].append(row["function"])
        for table in tables:
            for row in table["rows"]:
                if table["name"] == "leak stack":
                    names = [OWN.match(name) for name in
                             calls[row["fingerprint"], row["stack"]]]
                    own = [match[1] for match in names if match]
                    found[" ".join(own)] += row["count"]
        return found

    def check(self, program, *words):
        truth = self.path("truth")
        if os.path.exists(truth):
            os.unlink(truth)
        tables, _ = self.run_gate(*words, "--", program, HEAPCORE_TRUTH=truth)
        with open(truth, encoding="ascii") as file:
            lines = (line.split(maxsplit=1) for line in file.read().splitlines())
            expected = {calls: int(count) for count, calls in lines}
        found = self.stacks(tables)
        # Those of the recursion have all its calls.
        found = collections.Counter({
            re.sub(r"( recursion){6}$", " recursion recursion recursion", calls): count
            for calls, count in found.items()})
        self.assertEqual(dict(found), expected)

    def test_stacks_are_those_that_the_program_says(self):
        for flags in (), ("-O0",), ("-fno-omit-frame-pointer",), ("-no-pie",):
            with self.subTest(flags):
                program = self.compile("stacks", "stacks.cpp", flags=(*FLAGS, *flags),
                                       compiler="g++")
                self.check(program)
                self.check(program, "--stacks=always")

    def test_leaks_are_said_with_who_allocated_them(self):
        program = self.compile("stacks", "stacks.cpp", flags=FLAGS, compiler="g++")
        _, text = self.run_gate("--", program)
        self.assertIn("runs once more", text)
        self.assertNotIn("was not recorded", text)
        self.assertRegex(text, r"allocated by by_calloc\(?\)? \(stacks\.cpp:\d+\)")
        self.assertRegex(text, r"Leak \w+: 30 of 50 in a second run were allocated by\n"
                               r"    by_malloc\(.*\) at .*stacks\.cpp:\d+ \(stacks\)\n"
                               r"    first\(\) at")

    def test_a_template_that_returns_something_of_the_library_is_the_caller(self):
        """Its name begins with what it returns: the library's own are skipped."""
        program = self.compile("make", compiler="g++", flags=("-g", "-O0"), text="""
            #include <memory>
            #include <stdio.h>
            struct Conn { long words[9]; };
            template <class T> std::unique_ptr<T> app_make() { return std::make_unique<T>(); }
            Conn *volatile lost;
            int main()
            {
                for (int i = 0; i < 7; i++)
                    lost = app_make<Conn>().release();
                lost = nullptr;
            }
            """)
        _, text = self.run_gate("--", program)
        self.assertRegex(text, r"allocated by std::unique_ptr<Conn> "
                               r"app_make<Conn>\(\) \(<stdin>:\d+\)")

    def test_forges_show_leaks_beside_the_source(self):
        program = self.compile("stacks", "stacks.cpp", flags=FLAGS, compiler="g++")
        with open(os.path.join(harness.PROGRAMS, "stacks.cpp"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        line = next(i for i, text in enumerate(lines, 1) if " = calloc(" in text)
        log, junit = self.path("log.sarif"), self.path("junit.xml")
        result = harness.run(
            harness.HEAPCORE, "run", "-o", log, "-o", f"junit:{junit}", "--", program,
            stdin=subprocess.DEVNULL, cwd=os.path.dirname(harness.PROGRAMS),
            env=harness.environment(GITHUB_ACTIONS="true"))
        self.assertRegex(result.stderr, rf"::error file=programs/stacks\.cpp,line={line},"
                                        r"title=Leak \w+::7 x .* lost, allocated by by_calloc")
        with open(log, encoding="utf-8") as file:
            places = [place["physicalLocation"] for result in json.load(file)["runs"][0]["results"]
                      for place in result["locations"]]
        self.assertIn({"artifactLocation": {"uri": "programs/stacks.cpp"},
                       "region": {"startLine": line}}, places)
        with open(junit, encoding="utf-8") as file:
            self.assertIn("allocated by by_calloc", file.read())

    def test_a_leak_is_told_from_others_by_who_called_a_wrapper(self):
        """What all call is not where it leaks; reports have all calls."""
        source = self.path("wrapped.c")
        with open(source, "w", encoding="ascii") as file:
            file.write(WRAPPED)
        program = harness.build(self.path("wrapped"), "cc", "-g", "-O0", source)
        files = {"sarif": self.path("log.sarif"), "junit": self.path("junit.xml")}
        result = harness.run(
            harness.HEAPCORE, "run", *(f"-o{name}:{path}" for name, path in files.items()), "--",
            program, stdin=subprocess.DEVNULL, cwd=self.folder,
            env=harness.environment(GITHUB_ACTIONS="true"))
        self.assertEqual(
            re.findall(r"(?m)^    allocated by (.*)$", result.stderr),
            ["x_malloc (wrapped.c:2) < load (wrapped.c:3)",
             "x_malloc (wrapped.c:2) < parse (wrapped.c:4)"])
        self.assertEqual(re.findall(r"::error file=(.*),title=.*, allocated by (.*)", result.stderr), [
            (f"wrapped.c,line={line}",
             f"x_malloc (wrapped.c:2) < {name} (wrapped.c:{line}) < main (wrapped.c:5)")
            for line, name in ((3, "load"), (4, "parse"))])
        for path in files.values():
            with open(path, encoding="utf-8") as file:
                self.assertIn("allocated by x_malloc (wrapped.c:2) < load (wrapped.c:3) < main",
                              html.unescape(file.read()))

    def test_nothing_is_run_again_where_nothing_counts(self):
        counter = self.path("counter")
        program = self.compile("count", text="""
            #include <stdio.h>
            #include <stdlib.h>
            int main(int count, char **arguments)
            {
                FILE *file = fopen(arguments[1], "a");
                void *volatile lost = count > 2 ? malloc(500) : NULL;
                lost = NULL;
                fputc('x', file);
                fclose(file);
                return 0;
            }""", flags=("-g", "-O0"))

        def runs(*words):
            with open(counter, encoding="ascii") as file:
                count = len(file.read())
            os.unlink(counter)
            return count

        self.run_gate("--", program, counter, status=harness.FINE)
        self.assertEqual(runs(), 1)
        self.run_gate("--", program, counter, "lose")
        self.assertEqual(runs(), 2)
        self.run_gate("--stacks=never", "--", program, counter, "lose")
        self.assertEqual(runs(), 1)
        self.run_gate("--stacks=always", "--", program, counter, "lose")
        self.assertEqual(runs(), 1)
        self.run_gate("--max-leaked=1", "--", program, counter, "lose", status=harness.FINE)
        self.assertEqual(runs(), 1)
        with subprocess.Popen(["cat"], stdout=subprocess.PIPE, stdin=subprocess.PIPE) as cat:
            _, text = self.run_gate("--", program, counter, "lose", stdin=cat.stdout)
            cat.stdin.close()
        self.assertIn("standard input cannot be read again", text)
        self.assertEqual(runs(), 1)

    def test_a_file_is_read_from_the_beginning_again(self):
        program = self.compile("read", text="""
            #include <stdio.h>
            #include <stdlib.h>
            __attribute__((noinline)) void lose_line(void) { *(char *volatile *)&(char *){0} = malloc(300); }
            int main(void)
            {
                char line[100];
                while (fgets(line, sizeof(line), stdin))
                    lose_line();
                return 0;
            }""", flags=("-g", "-O0"))
        with open(self.path("input"), "w+", encoding="ascii") as file:
            file.write("a\nb\nc\n")
            file.seek(2)
            tables, _ = self.run_gate("--", program, stdin=file)
        rows = [row for table in tables if table["name"] == "leak stack" for row in table["rows"]]
        self.assertEqual([row["count"] for row in rows], [2])

    def test_what_cannot_be_recorded_is_said(self):
        text = """
            #include <stdlib.h>
            int main(void) { void *volatile lost = malloc(500); lost = NULL; return 0; }
            """
        own = """
            #include <stddef.h>
            void *__libc_malloc(size_t size);
            void *malloc(size_t size) { return __libc_malloc(size); }
            """
        flags = ("-g", "-O0")
        cases = {
            "the program is static": self.compile("static", text=text, flags=(*flags, "-static")),
            "no call of malloc() came to the recorder": self.compile("own", text=own + text,
                                                                      flags=flags),
        }
        if os.getuid() == 0:
            program = self.compile("other", text=text, flags=flags)
            os.chmod(os.path.dirname(program), 0o755)
            os.chown(program, 65534, 65534)
            os.chmod(program, 0o4755)
            cases["the program is set-user-id"] = program
        for reason, program in cases.items():
            with self.subTest(reason):
                tables, text = self.run_gate("--", program)
                self.assertIn(f"the calls that allocated the leaks are not known: {reason}", text)
                self.assertFalse(self.stacks(tables))

    def allocations(self, core):
        """The lines of MemProf, as columns."""
        text = harness.run(harness.HEAPCORE, core, "memprof", "allocations").stdout
        return [line.split("\t") for line in text.splitlines()[1:]]

    @unittest.skipUnless(shutil.which("crystal"), "there is no Crystal")
    def test_objects_of_a_collector_have_the_calls_that_made_them(self):
        """In fibers, too; Crystal's own functions are left out in front."""
        core = self.path("core")
        program = harness.build_crystal(self.path("coins"), CRYSTAL, "--debug")
        self.run_gate("--stacks=always", "--core", core, "--", program, status=harness.FINE)
        found = {(columns[2], *re.findall(r"make_\w+|block at program\.cr", columns[3])[:2]):
                 int(columns[0])
                 for columns in self.allocations(core) if columns[2] == "Coin"}
        self.assertEqual(found, {("Coin", "make_coin"): 50, ("Coin", "make_other"): 30,
                                 ("Coin", "make_other", "block at program.cr"): 20})
        result = harness.run(harness.HEAPCORE, core, "export", "alys")
        names = [call.get("name") for line in result.stdout.splitlines()
                 for call in json.loads(line)["stack"]]
        self.assertGreaterEqual(names.count("make_coin"), 50)

    def build_with_library(self, text):
        """A program with that main(), and a library that leaks while it is loaded."""
        library = self.compile("liblost.so", compiler="g++", flags=("-g", "-shared", "-fPIC"), text="""
            #include <stdlib.h>
            struct Registry { void *volatile lost; Registry() { lost = malloc(77); lost = 0; } };
            static Registry registry;
            extern "C" int lib() { return 0; }
            """)
        return self.compile("program", text=text, flags=("-g", "-O0", f"-Wl,{library}", "-ldl"))

    def test_what_a_library_loses_while_it_is_loaded_has_its_calls(self):
        """Its constructors come before the recorder's; `exec` does not end that."""
        program = self.build_with_library("int lib(void); int main(void) { return lib(); }")
        for command in ([program], ["sh", "-c", f"exec {program}"]):
            _, text = self.run_gate("--", *command)
            self.assertRegex(text, r"Leak \w+: 1 of 1 in a second run was allocated by\n"
                                   r"    Registry::Registry\(\) at ")

    def test_calls_of_another_namespace_are_said_to_be_unknown(self):
        """A library that `dlmopen()` loads has a malloc() of its own."""
        program = self.build_with_library("""
            #define _GNU_SOURCE
            #include <dlfcn.h>
            #include <stdlib.h>
            int lib(void);
            int main(void)
            {
                void *other = dlmopen(LM_ID_NEWLM, "liblost.so", RTLD_NOW);
                void *volatile lost = malloc(333);
                lost = NULL;
                return other ? lib() : 9;
            }""")
        folder = os.path.dirname(program)
        _, text = self.run_gate("--", program, LD_LIBRARY_PATH=folder)
        self.assertRegex(text, r"Leak \w+: 1 of 2 in a second run was allocated by\n"
                               r"    Registry::Registry\(\) at ")
        self.assertRegex(text, r"Leak \w+: the calls for 1 of 2 in a second run were not recorded")
        self.assertRegex(text, r"1 of 1 in a second run was allocated by\n    main at ")

    def test_a_leak_of_one_of_both_runs_is_said(self):
        """Each run does what the last did not; the second may end early."""
        program = self.compile("turns", flags=("-g", "-O0"), text="""
            #include <signal.h>
            #include <stdio.h>
            #include <stdlib.h>
            #include <unistd.h>
            __attribute__((noipa)) void lose(int size) { void *volatile lost = malloc(size); lost = NULL; }
            int main(int count, char **arguments)
            {
                lose(70);
                if (unlink(arguments[1]) == 0) {
                    if (count > 2)
                        raise(SIGTERM);
                    lose(500);
                } else {
                    fclose(fopen(arguments[1], "w"));
                    lose(300);
                }
                return 0;
            }""")
        _, text = self.run_gate("--", program, self.path("turn"))
        self.assertRegex(text, r"Leak \w+: a second run did not lose it\n")
        self.assertRegex(text, r"Leak \w+: 1 of 1 in a second run was allocated by\n    lose at ")
        self.assertRegex(text, r"Leak \w+: the calls for 1 of 1 that only a second run lost were not "
                               r"recorded\n")
        _, text = self.run_gate("--", program, self.path("turn"), "die")
        self.assertIn("note: the second run was killed by signal 15 (Terminated)", text)
        self.assertEqual(text.count(": a second run did not lose it\n"), 1)

    def check_viewers(self, core):
        """heaptrack and pprof get the calls, not who holds."""
        text = harness.run(harness.HEAPCORE, core, "export", "heaptrack").stdout
        strings = [line.split(" ", 2)[2] for line in text.splitlines() if line.startswith("s ")]
        for name in "conn_new", "text_new", "main":
            self.assertTrue(any(string.startswith(f"{name} (") for string in strings), strings)
        self.assertFalse(any("kept" in string for string in strings), strings)
        self.assertEqual(sum(line.startswith("+") for line in text.splitlines()), 31)
        profile = self.path("used.pb.gz")
        harness.run(harness.HEAPCORE, core, "export", "pprof", "-o", profile)
        with gzip.open(profile) as file:
            self.assertIn(b"conn_new (", file.read())

    def test_cores_of_a_recorded_run_say_who_allocated(self):
        """In `diff` and `export`."""
        program = self.compile("grow", flags=("-g", "-O0"), text="""
            #include <stdlib.h>
            #include <string.h>
            struct conn { struct conn *next; long words[9]; } *kept;
            char *texts[100];
            struct conn *conn_new(void) { return malloc(sizeof(struct conn)); }
            char *text_new(void) { return strdup("a text that is long enough"); }
            int main(int count, char **arguments)
            {
                for (int i = 0; i < atoi(arguments[1]); i++) {
                    struct conn *conn = conn_new();
                    conn->next = kept;
                    kept = conn;
                    texts[i] = i % 2 ? text_new() : NULL;
                }
                return 0;
            }""")
        cores = {}
        for count in 10, 20:
            cores[count] = self.path(f"{count}.core")
            self.run_gate("--stacks=always", "--core", cores[count], "--", program, str(count),
                          status=harness.FINE)
        result = harness.run(harness.HEAPCORE, "--format=json", cores[20], "diff", cores[10],
                             "--by", "caller")
        rows = [row for table in json.loads(result.stdout)["tables"] for row in table["rows"]]
        found = {row["kind"].split(" (")[0]: row["growth_count"] for row in rows if row.get("kind")}
        self.assertEqual(found, {"conn_new": 10, "text_new": 5})
        result = harness.run(harness.HEAPCORE, cores[20], "export", "alys")
        records = [json.loads(line) for line in result.stdout.splitlines()]
        names = collections.Counter(" ".join(call["name"] for call in record["stack"][-2:])
                                    for record in records)
        self.assertEqual(names["conn_new main"], 20)
        self.assertEqual(names["text_new main"], 10)
        self.check_viewers(cores[20])
        lines = self.allocations(cores[20])
        self.assertIn(["20", "1760", "(class 0)", "conn_new (<stdin>:6) < main (<stdin>:11)"], lines)
        # They travel within the core, packed or not.
        for core in cores.values():
            subprocess.run(["zstd", "-q", core], check=True)
        result = harness.run(harness.HEAPCORE, f"{cores[20]}.zst", "diff", f"{cores[10]}.zst",
                             "--by", "caller")
        self.assertRegex(result.stdout, r"\+10 .* conn_new \(")
        first = next(record for record in records if record["size"] == 88)
        self.assertEqual({*first, *first["stack"][0]}, {"id", "time", "kind", "addr", "size",
                                                        "stack", "ip", "file", "line", "name"})

    def test_threads_lose_no_stack(self):
        """They take and free each other's blocks, move them, and fork meanwhile."""
        program = self.compile("threads", flags=("-g", "-O1", "-pthread"), text="""
            #include <pthread.h>
            #include <stdlib.h>
            #include <sys/wait.h>
            #include <unistd.h>
            enum { SLOTS = 256 };
            static void *slots[SLOTS];
            __attribute__((noipa)) void *lose(void) { return malloc(1000); }
            static void *work(void *data)
            {
                unsigned int seed = (unsigned int)(size_t)data;
                for (int i = 0; i < 100000; i++) {
                    seed = seed * 1103515245 + 12345;
                    void *old = __atomic_exchange_n(&slots[(seed >> 8) % SLOTS],
                                                    malloc(24 + (seed >> 20) % 999), 5);
                    free(i % 5 ? old : realloc(old, 1000));
                    if (i % 1000 == 0)
                        lose();
                    if (i % 20000 == 0 && fork() == 0) {
                        free(malloc(1000));
                        _exit(0);
                    }
                }
                return NULL;
            }
            int main(void)
            {
                pthread_t threads[4];
                for (size_t i = 0; i < 4; i++)
                    pthread_create(&threads[i], NULL, work, (void *)i);
                for (int i = 0; i < 4; i++)
                    pthread_join(threads[i], NULL);
                while (wait(NULL) > 0)
                    ;
                for (int i = 0; i < SLOTS; i++) {
                    free(slots[i]);
                    slots[i] = NULL;
                }
                return 0;
            }""")
        tables, text = self.run_gate("--stacks=always", "--", program)
        self.assertNotIn("was not recorded", text)
        roots = sum(row["roots"] for table in tables if table["name"] == "leak"
                    for row in table["rows"])
        calls = collections.Counter(row["function"] for table in tables
                                    if table["name"] == "leak call" and table["rows"]
                                    for row in table["rows"][:1])
        self.assertEqual(set(calls), {"lose"})
        stacks = [row for table in tables if table["name"] == "leak stack" for row in table["rows"]]
        self.assertEqual(sum(row["count"] for row in stacks), roots)
        self.assertGreater(roots, 0)

    def test_what_had_no_room_is_said(self):
        # 2^18 ways lead to the allocation; three quarters of that is what there is room for.
        program = self.compile("ways", text="""
            #include <stdlib.h>
            static int left;
            __attribute__((noipa)) void go(int depth, int way)
            {
                if (depth == 0) {
                    void *volatile lost = malloc(24);
                    lost = NULL;
                } else if (way >> depth & 1) {
                    go(depth - 1, way);
                    left++;
                } else {
                    go(depth - 1, way);
                    left--;
                }
            }
            int main(void)
            {
                for (int i = 0; i < 1 << 18; i++)
                    go(18, i << 1);
                return 0;
            }""", flags=("-g", "-O1", "-fno-optimize-sibling-calls"))
        _, text = self.run_gate("--", program)
        self.assertIn("65,536 blocks have no recorded caller", text)

    @unittest.skipUnless(shutil.which("valgrind"), "there is no valgrind")
    def test_stacks_are_those_of_valgrind(self):
        program = self.compile("stacks", "stacks.cpp", flags=FLAGS, compiler="g++")
        tables, _ = self.run_gate("--", program)
        text = subprocess.run(harness.valgrind("--leak-check=full", "--num-callers=30", program),
                              capture_output=True, text=True, check=False,
                              env=harness.environment()).stderr
        found = collections.Counter()
        for record in re.split(r"==\d+== \n", text):
            lost = re.search(r"bytes in ([\d,]+) blocks are definitely lost", record)
            if lost:
                names = [OWN.match(name) for name in re.findall(r"(?:at|by) 0x\w+: (\S+)", record)]
                own = " ".join(match[1] for match in names if match)
                found[own] += int(lost[1].replace(",", ""))
        self.assertEqual(self.stacks(tables), found)

    def test_any_glibc_loads_the_recorder(self):
        """A version would be that of the glibc by which heapcore was built, or newer than the program's."""
        library = os.path.join(os.environ["BUILD_DIR"], "recorder/heapcore-recorder.so")
        symbols = harness.run("readelf", "-W", "--dyn-syms", library).stdout
        self.assertIn(" UND dlsym\n", symbols)
        self.assertNotIn("@", symbols)


if __name__ == "__main__":
    unittest.main()
