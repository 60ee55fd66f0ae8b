#!/usr/bin/env python3
"""
testdata/programs/variables.c says where its variables, their members and
elements are, and what its pointers lead to: what commands take for addresses.
"""

import os
import re
import shutil
import unittest

from harness import FINE, USAGE, LiveTest, addresses, ask, places_said, snap, tables


class VariablesTest(LiveTest):
    def core(self, *flags, compiler="gcc", name="program"):
        """A core, and the address of each path."""
        program = self.compile(name, "variables.c", "variables_other.c", "truth.c",
                               compiler=compiler, flags=flags)
        process = self.start([program])
        truth = places_said(process)
        self.assertGreater(len(truth), 30)
        return snap(process, self.path(name + ".core")), truth

    def ask(self, core, *questions, expected=(FINE,)):
        words = [word for question in questions for word in ("-c", question)]
        return ask("-q", *words, core, expected=expected)

    def fails(self, core, question):
        """What is said of a question that is no good, and nothing is answered."""
        answer = self.ask(core, question, expected=(USAGE,))
        self.assertEqual(answer.stdout, "")
        return answer.stderr.removeprefix("heapcore: ").strip()

    def check_paths(self, core, truth):
        """Each path is where the program says; `&` makes no difference to what is no pointer."""
        lines = self.ask(core, *(f"dump '{path}' 1" for path in truth)).stdout.splitlines()
        for path, said, dumped in zip(truth, lines[::2], lines[1::2]):
            self.assertTrue(said.startswith(path.removeprefix("&") + " (in program"), said)
            self.assertTrue(said.endswith(f" 0x{truth[path]:x}."), said)
            self.assertTrue(dumped.startswith(f"{truth[path]:x}:"), dumped)
        self.assertEqual(len(lines), 2 * len(truth))

    def test_paths_are_where_the_program_says(self):
        self.check_paths(*self.core("-g", "-O0"))
        self.check_paths(*self.core("-g", "-O2", "-gdwarf-4", name="program2"))

    def called(self, *command, **options):
        """How the program is called whose variable it is, by whichever name one asks for that."""
        core = snap(self.start(list(command), **options), self.path("core"))
        told = [self.ask(core, f"dump {scope}grid 1").stdout for scope in ("", "program::")]
        return {re.search(r"grid \(in (\S+),", text)[1] for text in told}

    def test_a_program_is_called_as_it_was_started(self):
        """But not by a name with less of a version, a script's, or one that is no file's."""
        program = self.compile("program", "variables.c", "variables_other.c", "truth.c",
                               flags=("-g",))
        for name in "redis", "pro":
            os.symlink(program, self.path(name))
        with open(self.path("script"), "w", encoding="utf-8") as file:
            file.write(f"#!{program}\n")
        os.chmod(self.path("script"), 0o755)
        self.assertEqual(self.called(self.path("redis")), {"redis"})
        self.assertEqual(self.called(self.path("pro")), {"program"})
        self.assertEqual(self.called(self.path("script")), {"program"})
        self.assertEqual(self.called("bash", "-c", f"exec -a other {program}"), {"program"})

    @unittest.skipUnless(shutil.which("clang"), "no clang")
    def test_clang(self):
        self.check_paths(*self.core("-g", "-O2", compiler="clang"))

    def test_what_is_no_pointer_is_where_it_is(self):
        core, truth = self.core("-g", "-O2")
        said = self.ask(core, "dump server.db[1].id 4", "dump grid 4").stdout.splitlines()
        self.assertTrue(said[0].endswith(f" is at 0x{truth['&server.db[1].id']:x}."), said)
        self.assertTrue(said[2].endswith(f" is at 0x{truth['&grid']:x}."), said)

    def test_commands_take_variables_for_addresses(self):
        core, truth = self.core("-g", "-O2")
        place = truth["server.db[0].dict"]
        own = truth["&server.db[0].dict"]
        said = self.ask(core, "explain server.db[0].dict").stdout
        self.assertTrue(said.startswith(
            "server.db[0].dict (in program, of type struct dict *) is at "
            f"0x{own:x}, and points to 0x{place:x}.\n"
            f"Address 0x{place:x} is at offset 0x0 of\nan anchored allocation at 0x{place:x} "),
            said)
        for command in "describe", "explain", "show", "istype":
            behind = " dict" if command == "istype" else ""
            with_path = self.ask(core, f"{command} server.db[0].dict{behind}").stdout
            with_number = self.ask(core, f"{command} {place:x}{behind}").stdout
            self.assertEqual(with_path.partition("\n")[2], with_number)
        self.assertIn('"a key of an entry"', self.ask(
            core, "string server.db[0].dict->table[2]->next->key").stdout)

    def test_sets_take_variables_for_addresses(self):
        core, truth = self.core("-g", "-O2")
        place = truth["server.db[0].dict"]
        for question in ("enumerate incoming {}", "enumerate pointers {}", "count outgoing {}",
                         "enumerate chain {}.table[2] 0", "enumerate used or outgoing {}"):
            number = f"{truth['server.db[0].dict->table[2]']:x}" if "chain" in question \
                else f"{place:x}"
            self.assertEqual(
                self.ask(core, question.format("server.db[0].dict")).stdout,
                self.ask(core, question.replace(".table[2]", "").format(number)).stdout)
        self.assertIn(truth["&server.db[0].dict"],
                      addresses("-q", core, "enumerate", "pointers", "server.db[0].dict"))
        # What is for programs has nothing else; what it stood for is noted beside it.
        told = ask("-c", "enumerate allocation entries", core)
        self.assertEqual(told.stdout, f"0x{truth['entries']:x}\n")
        self.assertIn(f"entries (in program, of type struct entry *) is at "
                      f"0x{truth['&entries']:x}, and points to 0x{truth['entries']:x}\n",
                      told.stderr)

    def test_tables_have_a_row_of_it(self):
        core, truth = self.core("-g", "-O2")
        rows = tables("-c", "dump entries 8", core)["variable"]
        self.assertEqual(rows, [{"variable": "entries", "module": "program",
                                 "type": "struct entry *", "address": f"0x{truth['&entries']:x}",
                                 "target": f"0x{truth['entries']:x}"}])

    def test_words_that_are_no_variables_get_the_message_that_they_always_got(self):
        core, _ = self.core("-g", "-O2")
        bare = self.path("bare.core")
        program = self.compile("bare", "variables.c", "variables_other.c", "truth.c",
                               compiler="gcc", flags=("-s",))
        process = self.start([program])
        list(process.said)
        snap(process, bare)
        for question in ("explain nosuch", "dump nosuch 8", "list incoming nosuch",
                         "explain usde", "explain constant", "explain shop::Session"):
            self.assertEqual(self.fails(core, question), self.fails(bare, question))
        # Types are not read for them.
        costs = ask("-v", "-c", "explain nosuch", core, expected=(USAGE,)).stderr
        self.assertNotIn("type table", costs)

    def test_mistakes_are_named(self):
        core, truth = self.core("-g", "-O2")
        for question, message in (
                ("dump server.foo 8", "struct server has no member 'foo'; "
                                      "it has network, db, current, opaque, nothing"),
                ("dump server.db[2] 8",
                 "index 2 is beyond struct database[2], the type of 'server.db'"),
                ("dump grid[1][4] 8", "index 4 is beyond int[4], the type of 'grid[1]'"),
                ("dump entries.key.x 8", "'entries.key' is a null pointer"),
                ("dump server.db[1].id.x 8",
                 "'server.db[1].id' is of type int, which has no members"),
                ("dump *grid[0][0] 8", "'grid[0][0]' is of type int, which is no pointer"),
                ("dump server.opaque->x 8",
                 "no debug information has the members of struct opaque"),
                ("dump &constant 8",
                 "no global variable 'constant'"),
                ("dump nosuch.x 8", "no global variable 'nosuch'"),
                ("dump serverr.x 8", "no global variable 'serverr'; "
                 "did you mean 'server'?"),
                ("dump server.db[x] 8", "an index is expected at 'x]'"),
                ("dump server..x 8", "a member is expected at '.x'"),
                ("dump (server 8", "')' is expected at the end"),
                ("dump server.nothing 8",
                 f"'server.nothing', at 0x{truth['&server.current'] + 16:x}, "
                 "is a null pointer: '&server.nothing' is its place")):
            self.assertEqual(self.fails(core, question), message)

    def test_one_of_several_variables_is_chosen(self):
        core, truth = self.core("-g", "-O2")
        self.assertEqual(self.fails(core, "dump ticks 8"),
                         "several variables are called 'ticks': "
                         "say which by variables.c::ticks, variables_other.c::ticks")
        said = self.ask(core, "dump tell_static::calls 8").stdout
        self.assertIn(f" is at 0x{truth['&calls']:x}.\n", said)
        self.assertRegex(self.fails(core, "dump libc.so.6::ticks 8"), "no variable|not an address")

    def test_classes_and_namespaces_have_variables(self):
        program = self.compile("shop", compiler="g++", flags=("-g", "-O1"), text="""
            #include <stdio.h>
            #include <unistd.h>
            struct Base { virtual ~Base() {} int number = 1; };
            namespace app {
            struct Session : Base { static int count; Session *next = nullptr; };
            int Session::count = 3;
            static Session *volatile latest;
            volatile Session *all[2];
            namespace { volatile int hidden = 5; }
            const volatile void *touch() { static volatile int calls; calls++; return &calls; }
            }
            int main()
            {
                static app::Session fixed;
                static app::Session &reference = fixed;
                app::latest = new app::Session;
                app::all[1] = app::latest;
                app::hidden++;
                app::Session *latest = app::latest;
                const volatile void *places[] = {
                    &app::latest, &app::Session::count, &latest->next, &latest->number,
                    &app::all[1], &app::hidden, app::touch(), &reference.next };
                for (const volatile void *place : places)
                    printf("%lx\\n", (long)place);
                puts("ready");
                fflush(stdout);
                pause();
            }""")
        process = self.start([program])
        places = [int(line, 16) for line in process.said if line.strip() != "ready"]
        core = snap(process, self.path("core"))
        for paths, place in zip((("app::latest", "latest"), ("app::Session::count",),
                                 ("app::latest->next",), ("latest->number",),
                                 ("app::all[1]", "all[1]"), ("hidden",),
                                 ("touch::calls", "app::touch::calls"), ("fixed.next",)), places):
            for path in paths:
                said = self.ask(core, f"dump &{path} 8").stdout
                self.assertTrue(said.partition("\n")[0].endswith(f" is at 0x{place:x}."), said)
        for word in "app::Session", "Session", "app::nosuch":
            self.assertEqual(self.fails(core, f"explain {word}"), f"unknown set '{word}'")

    def test_variables_that_only_symbols_know(self):
        core, _ = self.core("-O2")
        said = self.ask(core, "dump server 8").stdout
        self.assertTrue(re.match(r"server \(in program\) is at 0x\w+\.\n", said), said)
        self.assertEqual(self.fails(core, "dump server.db 8"),
                         "no debug information has the type of 'server'")


if __name__ == "__main__":
    unittest.main()
