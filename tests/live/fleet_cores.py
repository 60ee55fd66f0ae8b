"""
Cores of a fleet: three builds of a program on some hosts, each leaking what it was told to leak.
"""

import contextlib
import json
import os
import sqlite3
import subprocess
import tempfile

import harness

# Each build leaks what those before it do, and a kind more: a struct whose first word is the
# address of a function, by which it is known. The last build mended the first leak.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct item { void (*act)(void); struct item *next; char rest[]; };

static void request(void) { }
static void session(void) { }
static void cached(void) { }
static struct item *cache;

static void make(void (*act)(void), int count, size_t size, struct item **list)
{
	for (int i = 0; i < count; i++) {
		struct item *volatile item = calloc(1, size);

		item->act = act;
		if (list) {
			item->next = *list;
			*list = item;
		}
	}
}

/* What is left behind on the stack holds nothing. */
static __attribute__((noinline)) void overwrite(void)
{
	volatile char stack[8192];

	memset((char *)stack, 0, sizeof(stack));
}

static __attribute__((noinline)) void run(int size)
{
	struct item *unused = NULL;

	make(cached, size, 200, &cache);
	if (BUILD < 3)
		make(request, 5, 72, NULL);
	if (BUILD > 1)
		make(session, 7, 136, NULL);
	make(cached, 1, 200, &unused);
	free(unused);
}

int main(int count, char **arguments)
{
	run(atoi(arguments[1]));
	overwrite();
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
"""
BUILDS = ("1", "2", "3")
USUAL, MUCH = 100, 2000
LARGE = ("2", "host07")
BROKEN = ("2", "host08")
PATTERN = "{build}/{host}/core.*"


def made_rows(path, host, build, kinds, leaks=(), program="service", time=1e9, hours=None):
    """Write rows as of 'facts': bytes by kind, and by fingerprint of a leak."""
    used, leaked = sum(kinds.values()), sum(size for _, size in leaks)
    rows = [{"row": "facts", "program": program, "build_id": f"{build:0>40}", "process": 1,
             "threads": 1, "used": len(kinds), "used_bytes": used, "leaked": len(leaks),
             "leaked_bytes": leaked, "mapped": 2 * used, "resident": used,
             "uptime": hours and 3600 * hours}]
    rows += [{"row": "facts use", "memory": "glibc", "use": "used", "count": 1, "mapped": used,
              "resident": used}]
    rows += [{"row": "facts leak", "fingerprint": leak, "kind": "struct " + leak, "size": 8,
              "roots": size // 8, "allocations": size // 8, "bytes": size, "address": "0x1000",
              "allocated_by": "make_" + leak} for leak, size in leaks]
    rows += [{"row": "facts kind", "kind": kind, "count": size // 8, "bytes": size, "allocated_by": f"make_{kind}"}
             for kind, size in kinds.items()]
    rows += [{"row": "facts core", "path": f"/cores/{host}/{build}/core", "name": "core",
              "time": time, "time_of": "core", "machine": "x86-64", "identity": None, "status": 0,
              "error": None, "version": "0", "host": host, "build": build},
             {"row": "end", "complete": True}]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


class FleetCores(harness.LiveTest):
    @classmethod
    def make_cores(cls, hosts):
        """In cls.cores, and their paths in cls.all, by build and host; then one that is broken."""
        cls.temporary = tempfile.TemporaryDirectory(prefix="heapcore-test-")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.cores = os.path.join(cls.temporary.name, "cores")
        cls.database = os.path.join(cls.temporary.name, "fleet.db")
        cls.all = [cls.make_core(build, host) for build in BUILDS for host in hosts]
        cls.broken = os.path.join(cls.cores, *BROKEN, "core.broken")
        with open(cls.all[0], "rb") as whole, open(cls.broken, "wb") as file:
            file.write(whole.read(60))

    @classmethod
    def program(cls, build):
        path = os.path.join(cls.temporary.name, "server" + build, "server")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.exists(path):
            harness.build(path, "cc", "-O1", "-x", "c", "-", f"-DBUILD={build}",
                          "-Wl,--build-id", text=PROGRAM)
        return path

    @classmethod
    def make_core(cls, build, host):
        """A core of a process of its own, whose memory lies elsewhere."""
        folder = os.path.join(cls.cores, build, host)
        os.makedirs(folder)
        size = MUCH if (build, host) == LARGE else USUAL
        process = subprocess.Popen([cls.program(build), str(size)], stdout=subprocess.PIPE,
                                   text=True)
        with harness.ended(process):
            harness.wait_for_line(process, "ready")
            harness.settle(process)
            return harness.snap(process, os.path.join(folder, f"core.{process.pid}"))

    def ask(self, query, database=None):
        with contextlib.closing(sqlite3.connect(database or self.database)) as connection:
            return connection.execute(query).fetchall()

    def tables_of(self, task, database, *words):
        document = json.loads(harness.ask("fleet", task, database, "--format", "json",
                                          "--limit", "1000", *words).stdout)
        return {table["name"]: table["rows"] for table in document["tables"]}

    def report(self, *words, database=None):
        return self.tables_of("report", database or self.database, *words)
