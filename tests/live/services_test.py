#!/usr/bin/env python3
"""
Programs that nobody wrote for heapcore, each with a cache that grows and with blocks that are lost:
the first screen names both, with the bytes that the language's or the program's own tool says.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import engines
import harness
from harness import LiveTest

PROGRAMS = os.path.join(harness.PROGRAMS, "services")
PYTHON = "/usr/bin/python3"  # which Debian's packages are for
LOST, LOST_SIZE = 200, 5000
NEARLY = 0.01


def needs(name, *words):
    """A command that succeeds only if what is needed is there."""
    found = shutil.which(words[0]) and harness.run(*words).returncode == 0
    return unittest.skipUnless(found, f"there is no {name}")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def get(port, path):
    deadline = time.monotonic() + harness.TIMEOUT
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}") as answer:
                return answer.read().decode()
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def reached(start, references, without=None):
    seen, todo = set(), list(start)
    while todo:
        one = todo.pop()
        if one not in seen and one != without:
            seen.add(one)
            todo += references(one)
    return seen


def held_by(one, start, references, size):
    """The bytes of all that only it leads to, itself included."""
    return sum(map(size, reached(start, references) - reached(start, references, one)))


def held_in_ruby(path, address):
    """Of a file by ObjectSpace.dump_all."""
    objects, roots = {}, []
    with open(path, encoding="utf-8", errors="replace") as file:
        for row in map(json.loads, file):
            if "address" in row:
                objects[row["address"]] = row
            elif row["type"] == "ROOT":
                roots += row.get("references", ())

    def references(one):
        row = objects.get(one, {})
        return row.get("references", []) + ([row["class"]] if "class" in row else [])

    return held_by(address, roots, references, lambda one: objects.get(one, {}).get("memsize", 0))


class Snapshot:
    """A file by v8.writeHeapSnapshot()."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        meta = data["snapshot"]["meta"]
        self.strings = data["strings"]
        self.names, self.sizes, counts = (
            data["nodes"][meta["node_fields"].index(field)::len(meta["node_fields"])]
            for field in ("name", "self_size", "edge_count"))
        types, named, targets = (data["edges"][i::len(meta["edge_fields"])] for i in range(3))
        kinds, self.edges, at = meta["edge_types"][0], [], 0
        self.variables = {}
        for count in counts:
            edges = range(at, at + count)
            at += count
            self.edges.append([targets[i] // len(meta["node_fields"]) for i in edges
                               if kinds[types[i]] != "weak"])
            self.variables.update((self.strings[named[i]], targets[i] // len(meta["node_fields"]))
                                  for i in edges if kinds[types[i]] == "context")

    def held_by(self, variable):
        return held_by(self.variables[variable], [0], self.edges.__getitem__,
                       self.sizes.__getitem__)


@unittest.skipIf(harness.SANITIZED, "others are enough")
class ServicesTest(LiveTest):
    def lose(self, *flags):
        return self.compile("lose.so", "services/lose.c",
                            flags=("-g", "-O1", "-shared", "-fPIC", "-D_GNU_SOURCE", *flags))

    def launch(self, *command, **variables):
        process = harness.launch(command, self.folder,
                                 env=harness.environment(**variables), stderr=subprocess.DEVNULL)
        self.addCleanup(harness.end, process)
        return process

    def service(self, *command, **variables):
        """The process and its port, which it says."""
        process = self.launch(*command, **variables)
        harness.wait_for_line(process, "ready")
        return process, int(process.said[-1])

    def screen(self, pid):
        """Holders and leaks as the first screen's tables have them."""
        core = self.path("core")
        # Who has its answer may be quicker than what served it: frames of that refer to the cache.
        harness.settle_pid(pid)
        harness.ask("snap", "-q", "-o", core, str(pid))
        self.text = harness.ask(core, expected=(harness.FINE, harness.INCOMPLETE)).stdout
        tables = harness.tables("-q", core, "info", expected=(harness.FINE, harness.INCOMPLETE))
        return tables["suspect"], tables["leaked kind"]

    def check_holder(self, holders, name, truth, delta=NEARLY):
        row = next((row for row in holders if row["owner"].startswith(name)), None)
        self.assertTrue(row, (name, holders))
        self.assertAlmostEqual(row["retained"] / truth, 1, delta=delta, msg=(row, truth))

    def check_leak(self, leaks, lost=LOST):
        self.assertTrue(leaks, self.text)
        self.assertAlmostEqual(leaks[0]["leak_roots"] / lost, 1, delta=0.02, msg=leaks[0])
        self.assertAlmostEqual(leaks[0]["bytes"] / lost / LOST_SIZE, 1, delta=0.03, msg=leaks[0])

    def check_python(self, program, name, count):
        process, port = self.service(PYTHON, os.path.join(PROGRAMS, program))
        get(port, f"fill/{count}")
        get(port, f"lose/{LOST}")
        truth = int(get(port, "truth"))
        holders, leaks = self.screen(process.pid)
        self.check_holder(holders, name, truth)
        self.check_leak(leaks)

    @needs("flask", PYTHON, "-c", "import flask")
    def test_flask(self):
        self.check_python("flask_service.py", "__main__.CACHE (dict)", 3000)
        self.assertIn("  __main__.CACHE (dict) ", self.text)

    @needs("django", PYTHON, "-c", "import django")
    def test_django(self):
        self.check_python("django_service.py",
                          "django.core.cache.backends.locmem._caches[''] (", 3000)
        self.assertIn("._caches['']  ", self.text)

    @needs("numpy", PYTHON, "-c", "import numpy")
    def test_numpy(self):
        """Elements are named by their array's dtype and shape; views of others have none."""
        core, truth = self.core_of_script(PYTHON, """if True:
            import json, sys, time, numpy
            owners = [numpy.zeros((300, 400)), numpy.arange(5000), numpy.zeros(700, "complex128"),
                      numpy.array([[object() for i in range(20)]]), numpy.zeros((3, 4, 5), "float32")]
            views = [owners[0][2:], owners[1][1::2], numpy.frombuffer(bytes(5000))]
            one = lambda array: [array.ctypes.data, f"{array.dtype.name} {array.shape}"]
            with open(sys.argv[1], "w") as file:
                json.dump([[one(array) for array in arrays] for arrays in (owners, views)], file)
            print("ready", flush=True)
            time.sleep(1000)
            """)
        with open(truth, encoding="ascii") as file:
            owners, views = json.load(file)
        found = harness.addresses("-q", core, "enumerate", "used", "%NumpyData")
        for address, text in owners:
            self.assertIn(address, found)
            described = harness.ask("-q", core, "describe", hex(address)).stdout
            self.assertRegex(described, re.escape(f": {text.replace('object', 'object_')}.\n"))
        self.assertFalse(found & {address for address, _ in views})
        # Views refer to the elements as well, but they are the array's.
        self.check_holder(harness.rows("suspect", "-q", core, "info"),
                          "__main__.owners[0] (numpy.ndarray)", 300 * 400 * 8)

    @needs("sinatra", "ruby", "-e", "require 'sinatra/base'")
    def test_sinatra(self):
        port = free_port()
        process = self.launch("ruby", os.path.join(PROGRAMS, "sinatra_service.rb"), str(port),
                              self.path("objects"))
        get(port, "fill/10000")
        get(port, f"lose/{LOST}")
        address = get(port, "truth")
        holders, leaks = self.screen(process.pid)
        truth = held_in_ruby(self.path("objects"), address)
        self.check_holder(holders, "App::SESSIONS (Hash)", truth)
        self.check_leak(leaks)

    @needs("express", "node", "-r", "/usr/share/nodejs/express/package.json", "-e", "")
    def test_express(self):
        program = os.path.join(PROGRAMS, "express_service.cjs")
        process, port = self.service("node", program, self.path("objects.heapsnapshot"),
                                     LD_PRELOAD=self.lose(), NODE_PATH="/usr/share/nodejs")
        get(port, "fill/1000")
        holders, leaks = self.screen(process.pid)
        get(port, "truth")
        truth = Snapshot(self.path("objects.heapsnapshot"))
        # Some memory of Buffers seems held by words that V8 left in blocks of malloc, too.
        for variable, delta in ("sessions", NEARLY), ("pages", 0.1):
            self.check_holder(holders, f"{program}: {variable} (Map)", truth.held_by(variable),
                              delta)
        self.check_leak(leaks)

    @needs("redis-server", "redis-server", "--version")
    def test_redis(self):
        port = free_port()
        process = self.launch("redis-server", "--port", str(port), "--save", "",
                              "--enable-debug-command", "yes", LD_PRELOAD=self.lose())

        def ask(text):
            return harness.run("redis-cli", "-p", str(port), input=text).stdout

        while ask("ping").strip() != "PONG":
            time.sleep(0.05)
        ask("debug populate 5000 key 2000")
        usage = sum(map(int, ask("".join(f"memory usage key:{i}\n" for i in range(5000))).split()))
        holders, leaks = self.screen(process.pid)
        # MEMORY USAGE leaves out the table.
        self.assertRegex(holders[0]["owner"], r"\bserver\b")
        self.assertAlmostEqual(holders[0]["retained"] / (usage + 8 * 8192), 1, delta=NEARLY)
        self.check_leak(leaks)

    def counted(self, command, text):
        """What such a program says that it has with this configuration, and the process."""
        counted, given = self.path("counted"), self.path("configuration")
        with open(given, "w", encoding="utf-8") as file:
            file.write(text)
        if os.path.exists(counted):
            os.remove(counted)
        process = self.launch(*command, given, LD_PRELOAD=self.lose("-DCOUNT"), COUNTED=counted)
        harness.wait_for_truth(process, counted, 20)
        with open(counted, encoding="ascii") as file:
            return int(file.readline()), process

    def check_counted(self, command, text):
        """The holders, and what the program counted of what it did not lose."""
        used, process = self.counted(command, text)
        holders, leaks = self.screen(process.pid)
        self.check_leak(leaks)
        return holders, used - leaks[0]["bytes"]

    @needs("nginx", "nginx", "-v")
    def test_nginx(self):
        entries = "".join(f"key{i} \"/{'x' * 500}/{i}\";\n" for i in range(20000))
        holders, truth = self.check_counted(["nginx", "-e", "stderr", "-c"], f"""
            daemon off; master_process off; pid {self.path("pid")}; events {{ }}
            http {{ access_log off; map_hash_max_size 100000; map_hash_bucket_size 256;
                    map $arg_key $place {{ {entries} default "/"; }}
                    server {{ listen 127.0.0.1:{free_port()}; }} }}""")
        self.assertIn("nginx pool of the configuration", [row["owner"] for row in holders])
        held = sum(row["retained"] for row in holders)
        self.assertAlmostEqual(held / truth, 1, delta=NEARLY, msg=(holders, truth))

    @needs("cmake", "/usr/bin/cmake", "--version")
    def test_cmake(self):
        holders, truth = self.check_counted(["/usr/bin/cmake", "-P"], """
            foreach(i RANGE 40000)
              set(option_${i} "a value;of some;length ${i}" CACHE STRING "help for ${i}")
            endforeach()
            execute_process(COMMAND sleep 600)""")
        # main() has all of it, but a word that was left in a text of a static variable may, too.
        self.assertRegex(holders[0]["owner"], r" in (static data of )?cmake")
        self.assertEqual(holders[0]["kind"], "%MapOrSetNode")
        self.assertAlmostEqual(holders[0]["count"], 40000, delta=100)
        held = sum(row["retained"] for row in holders)
        self.assertAlmostEqual(held / truth, 1, delta=0.05, msg=(truth, holders))

    def contexts(self, psql):
        """The bytes of PostgreSQL's memory contexts, by name."""
        path = self.path("contexts")
        psql.stdin.write(f"""\\o {path}
            SELECT name, sum(total_bytes) FROM pg_backend_memory_contexts GROUP BY name;
            SELECT 'ready';
            \\o
            """)
        psql.stdin.flush()
        harness.wait_for_truth(psql, path)
        with open(path, encoding="utf-8") as file:
            rows = (line.split("|") for line in file.read().splitlines()[:-1])
            return {name: int(size) for name, size in rows}

    @needs("postgres", "psql", "--version")
    def test_postgres(self):
        with engines.postgres(self.folder) as variables:
            (major,) = re.findall(r"psql \(PostgreSQL\) (\d+)",
                                  harness.run("psql", "--version").stdout)
            library = self.compile("service.so", "services/postgres_service.c",
                                   flags=("-g", "-O1", "-shared", "-fPIC", f"-DMAJOR={major}"))
            os.chmod(library, 0o755)
            with subprocess.Popen(["psql", "-qtAX", "-v", "ON_ERROR_STOP=1"], text=True,
                                  stdin=subprocess.PIPE, env={**os.environ, **variables}) as psql:
                self.addCleanup(harness.end, psql)
                psql.stdin.write(f"""LOAD '{library}';
                    \\o {self.path("backend")}
                    SELECT pg_backend_pid();
                    \\o
                    DO $$ BEGIN FOR i IN 1..1000 LOOP
                        EXECUTE format('PREPARE q%s AS SELECT relname FROM pg_class WHERE relpages > %s', i, i);
                    END LOOP; END $$;
                    """)
                truth = self.contexts(psql)
                with open(self.path("backend"), encoding="ascii") as file:
                    backend = int(file.read())
                holders, leaks = self.screen(backend)
        self.assertEqual(holders[0]["owner"], "memory context planned routes")
        # malloc() rounds mapped blocks up to pages: three of the cache's seven.
        for name, delta in (("planned routes", NEARLY), ("CachedPlanSource", NEARLY),
                            ("CacheMemoryContext", 0.02)):
            self.check_holder(holders, f"memory context {name}", truth[name], delta)
        self.check_leak(leaks)


if __name__ == "__main__":
    unittest.main()
