"""The programs that bench/types builds, and the load of each."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import time
from typing import Callable, NamedTuple

FLAGS = "-O2 -g"
MAKE = "make -s -j2"
ITEMS = 5000


class Site(NamedTuple):
    """How the source of a program tells what it allocates.

    wrappers: functions that only pass a size on, besides those with "alloc" in
    their names. types, values: macros, with the number of the argument that is
    the type, or a pointer to what is allocated. functions: what they allocate,
    where no sizeof says so.
    """
    wrappers: str = ""
    functions: dict = {}
    types: dict = {}
    values: dict = {}


class Program(NamedTuple):
    name: str
    package: str  # of Debian's sources
    build: str
    binary: str  # below the sources
    # Starts it, loads it, and leaves it in the middle of something.
    start: Callable  # (Run) -> pid
    site: Site = Site()
    held_out: bool = False
    # What Debian leaves out of the sources is made by tools that need not be
    # installed: in a copy of this machine.
    generate: str = ""


class Run:
    """A program while it is loaded: its folder, and what must end with it."""

    def __init__(self, folder, binary, preload, stack):
        self.folder = folder
        self.binary = binary
        self.stack = stack
        self.environment = os.environ | {
            "LD_PRELOAD": str(preload), "LC_ALL": "C.UTF-8",
            "HOME": str(folder), "TERM": "xterm"}

    def open(self, *arguments, binary=None, **options):
        """The program, which is killed in the end; reading a pipe unless told."""
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE,
                   "stderr": subprocess.DEVNULL} | options
        process = subprocess.Popen(
            [binary or self.binary, *arguments], cwd=self.folder,
            env=self.environment, **options)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def call(self, *arguments, binary=None, **options):
        return subprocess.run([binary or self.binary, *arguments],
                              cwd=self.folder, env=self.environment,
                              check=True, capture_output=True, **options)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path


def wait_for_line(process, wanted=b"ready"):
    for line in process.stdout:
        if line.rstrip().endswith(wanted):
            return process.pid
    raise RuntimeError(f"{process.args[0]} ended before it said {wanted}")


def processor_time(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1]
    return fields.split()[11:13]


def wait_until_idle(pid):
    """Until the process has waited for a second."""
    last, since = None, time.monotonic()
    while time.monotonic() - since < 1:
        time.sleep(0.1)
        taken = processor_time(pid)
        if taken != last:
            last, since = taken, time.monotonic()
    return pid


def feed(process, text):
    process.stdin.write(text.encode())
    process.stdin.flush()


def start_redis(run):
    path = run.folder / "socket"
    process = run.open("--port", "0", "--unixsocket", str(path),
                       "--save", "", "--dir", str(run.folder))
    while not path.exists():
        time.sleep(0.1)

    def connect():
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(path))
        run.stack.callback(client.close)
        return client

    commands = []
    for i in range(ITEMS):
        commands += [
            f"SET string:{i} value-{i}-{'x' * (i % 90)}",
            f"SET number:{i} {i * 1000003}",
            f"HSET hash:{i % 100} field:{i} {'v' * (i % 80)}",
            f"RPUSH list:{i % 50} element-{i}",
            f"ZADD sorted:{i % 20} {i} member-{i}",
            f"SADD set:{i % 40} member-{i} {i}",
            f"XADD stream:{i % 5} * name {i} value v{i}",
            f"EXPIRE string:{i} 100000",
        ]
    commands += [f"SUBSCRIBE channel:{i}" for i in range(200)]
    client = connect()
    client.sendall("".join(line + "\r\n" for line in commands).encode())
    clients = [connect() for _ in range(50)]
    for number, other in enumerate(clients):
        other.sendall(f"CLIENT SETNAME c{number}\r\nBLPOP none:{number} 0\r\n"
                      .encode())
    others = [connect() for _ in range(10)]
    for other in others:
        other.sendall(b"EVAL \"return redis.call('get', KEYS[1])\" 1 number:1"
                      b"\r\nWATCH string:1\r\nMULTI\r\nSET a b\r\nGET a\r\n")
    wait_until_idle(process.pid)
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while client.recv(1 << 20):
            pass
    return wait_until_idle(process.pid)


SHELL = f"""
declare -A table
names=()
for ((i = 0; i < {ITEMS}; i++)); do
    table[key$i]="value $i"
    names+=("name $i")
    eval "f$i() {{ if [[ \\$1 == x* ]]; then echo $i \\"\\$1\\"; else \\
for a in 1 2 3; do case \\$a in 1|2) : ;; *) return ;; esac; done; fi; }}"
    export "variable_$i=${{names[i]}}"
    ((i % 10)) || alias a$i="ls -l $i"
done
trap 'echo interrupted' INT
outer() {{
    local one=1 two=(a b c)
    while true; do
        echo ready | cat
        read -r line || break
    done
}}
for turn in {{1..100}}; do outer "$turn" "${{names[@]:0:100}}"; done
"""


def start_bash(run):
    return wait_for_line(run.open(run.write("load.sh", SHELL)))


LUA = f"""
local Account = {{}}
Account.__index = Account
function Account.new(i)
  return setmetatable({{name = "account " .. i, balance = i * 1.5,
    history = {{i, i + 1, i + 2}}}}, Account)
end
local accounts, threads, functions = {{}}, {{}}, {{}}
for i = 1, {ITEMS} do
  accounts["key" .. i] = Account.new(i)
  functions[i] = function(x) accounts[i] = x; return i + #threads end
  if i % 10 == 0 then
    threads[#threads + 1] = coroutine.create(function(a)
      local text = string.rep("long text ", 10) .. i
      coroutine.yield(a, text)
    end)
    coroutine.resume(threads[#threads], i)
    functions[#functions + 1] =
      load("local a, b = ... return function() return a + b + " .. i .. " end")
  end
end
local file = io.open("load.lua")
print("ready"); io.stdout:flush()
io.read()
"""


def start_lua(run):
    return wait_for_line(run.open(run.write("load.lua", LUA)))


JQ = """
def total(f): reduce .[] as $x (0; . + ($x | f));
def deep($n): if $n == 0 then {leaf: true} else {child: deep($n - 1)} end;
reduce inputs as $item ({};
  .[$item.group] += [$item | {name, size, more: deep(3), note: .tags | join(",")}]
  | .sizes[$item.name] = ($item.size * 2))
| .. | numbers
"""


def start_jq(run):
    process = run.open("-n", "-f", str(run.write("load.jq", JQ)))
    for i in range(ITEMS):
        feed(process, json.dumps(
            {"group": f"group {i % 50}", "name": f"name-{i}", "size": i * 1.5,
             "tags": [f"tag{i % 7}", "x" * (i % 60)],
             "nested": {"a": [1, 2, {"b": None}]}}) + "\n")
    feed(process, '{"group": "last", "name": ["half')
    return wait_until_idle(process.pid)


def makefile():
    lines = ["SHELL = /bin/sh", "V := $(shell echo shell)",
             "define recipe", "@echo building $@ from $^", "endef",
             "vpath %.c src", ".SUFFIXES: .c .o", ".PHONY: all wait"]
    for i in range(ITEMS):
        lines += [f"NAME_{i} = object{i}.o $(V)",
                  f"LIST := $(LIST) object{i % 50}.o" if i % 20 == 0 else "",
                  f"object{i}.o: source{i}.c header{i % 100}.h | folder{i % 9}",
                  "\t$(recipe)",
                  f"source{i}.c:", "\t@:",
                  f"object{i}.o: FLAGS{i % 30} += -DN={i}"]
    lines += ["%.h:", "\t@:", "folder%:", "\t@:",
              "lib%.a: %.o", "\tar $@ $<",
              "all: wait " + " ".join(f"object{i}.o" for i in range(ITEMS)),
              "wait: object1.o $(wildcard /usr/include/*.h)",
              "\t@echo ready; cat"]
    return "\n".join(lines) + "\n"


def start_make(run):
    run.write("Makefile", makefile())
    return wait_for_line(run.open("all"))


def sql():
    lines = ["PRAGMA cache_size = 5000;"]
    for i in range(150):
        lines += [f"CREATE TABLE t{i}(id INTEGER PRIMARY KEY, name TEXT NOT "
                  f"NULL DEFAULT 'n{i}', size REAL CHECK (size >= 0), other "
                  f"INTEGER REFERENCES t{max(i - 1, 0)}(id));",
                  f"CREATE INDEX i{i} ON t{i}(name, size) WHERE size > {i};",
                  f"CREATE VIEW v{i} AS SELECT a.name, count(*) AS n FROM t{i} "
                  f"a JOIN t{max(i - 1, 0)} b ON a.other = b.id GROUP BY 1;",
                  f"CREATE TRIGGER g{i} AFTER UPDATE OF name ON t{i} BEGIN "
                  f"UPDATE t{i} SET size = size + 1 WHERE id = new.id; "
                  f"INSERT INTO t{i}(name, size) VALUES ('new', 1.5); END;"]
    lines += ["WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c "
              f"LIMIT {ITEMS}) INSERT INTO t0 SELECT x, 'name ' || x, x, x "
              "FROM c;", "CREATE TEMP TABLE s AS SELECT * FROM t0;",
              "SELECT 'ready';",
              "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
              "SELECT count(*), group_concat(s.name), sum(v1.n) FROM c, v1 "
              "JOIN s ON s.id = c.x % 50 LEFT JOIN t2 ON t2.name LIKE s.name "
              "WHERE s.size IN (SELECT size FROM t0 WHERE id > c.x - 100) OR "
              "c.x > 0 GROUP BY s.other ORDER BY 1;"]
    return "\n".join(lines) + "\n"


def start_sqlite(run):
    process = run.open("-batch")
    feed(process, sql())
    pid = wait_for_line(process)
    time.sleep(2)
    return pid


LUA_SITE = Site(
    wrappers=r"l_alloc|luaM_\w+_|luaC_newobj|luaM_saferealloc_|realloc\w*",
    functions={"createstrobj": "TString", "luaF_newLclosure": "LClosure",
               "luaF_newCclosure": "CClosure", "luaS_newudata": "Udata"},
    types={"luaM_new": 1, "luaM_newvector": 2, "luaM_growvector": 4,
           "luaM_reallocvector": 4, "luaM_reallocvchar": 0},
    values={"luaM_shrinkvector": 1})

BASH_SITE = Site(
    wrappers=r"sh_x\w+|x(m|re)alloc|wlist_\w+",
    types={"ocache_alloc": 1})

PROGRAMS = (
    Program("redis", "redis", f"{MAKE} -C src MALLOC=libc OPTIMIZATION=-O2 "
            "DEBUG=-g redis-server", "src/redis-server", start_redis,
            Site(wrappers=r"z\w*alloc\w*|s_(m|re)alloc\w*|hi_\w+alloc")),
    Program("bash", "bash", f"./configure -q --without-bash-malloc "
            f"CFLAGS='{FLAGS}' && {MAKE}", "bash", start_bash, BASH_SITE),
    Program("lua", "lua5.4", "cd src && echo '#define DEB_HOST_MULTIARCH \"x86_64-linux-gnu\"' > "
            f"lua5.4-deb-multiarch.h && gcc -std=gnu99 {FLAGS} "
            "-DLUA_COMPAT_5_3 -DLUA_USE_LINUX -Wl,-E -o lua "
            "$(ls *.c | grep -v luac.c) -lm -ldl", "src/lua", start_lua,
            LUA_SITE),
    Program("jq", "jq", "./configure -q --disable-shared --disable-docs "
            f"--with-oniguruma=no CFLAGS='{FLAGS}' && {MAKE} "
            f"src/builtin.inc && {MAKE} jq", "jq", start_jq,
            Site(wrappers=r"jv_mem_\w+"), generate="autoreconf -fi"),
    Program("make", "make-dfsg", f"./configure -q CFLAGS='{FLAGS}' && {MAKE}",
            "make", start_make, generate="autoreconf -fi"),
    Program("sqlite3", "sqlite3", "./configure -q --disable-shared "
            f"--disable-readline --disable-tcl CFLAGS='{FLAGS}' && "
            f"{MAKE} sqlite3", "sqlite3", start_sqlite,
            Site(wrappers=r"sqlite3\w*(Malloc|Realloc|Alloc)\w*|"
                 r"sqlite3Db\w+Raw\w*|dbMallocRawFinish")),
)
