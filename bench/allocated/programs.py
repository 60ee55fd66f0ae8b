"""The programs that bench/types builds, and the load of each."""

import contextlib
import json
import os
import pathlib
import shutil
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
    their names. headed: those that put a header of their own before what they
    give. types, values: macros, with the number of the argument that is
    the type, or a pointer to what is allocated. functions: what they allocate,
    where no sizeof says so, or several that it may be. unsaid: functions that
    count bytes, of what neither they nor their callers say.
    """
    wrappers: str = ""
    unsaid: str = ""
    headed: str = ""
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


def start_git(run):
    run.call("init", "-q", ".")
    lines = []
    for i in range(ITEMS // 2):
        mark = f"commit refs/heads/branch{i % 20}\nmark :{2 * i + 1}\n"
        lines += [mark + f"committer A U Thor <a{i % 9}@b.c> {10**9 + i} +0000",
                  f"data 9\nchange {i % 10}\n"]
        if i > 20:
            lines += [f"from :{2 * (i - 20) + 1}"]
        if i > 50 and i % 7 == 0:
            lines += [f"merge :{2 * (i - 33) + 1}"]
        for name in (f"folder{i % 30}/file{i % 100}", f"file{i % 40}"):
            text = f"line {i}\n" * (i % 5 + 1)
            lines += [f"M 644 inline {name}", f"data {len(text)}\n{text}"]
        if i % 50 == 0:
            lines += [f"reset refs/tags/tag{i}", f"from :{2 * i + 1}", ""]
    run.call("fast-import", "--quiet", input="\n".join(lines).encode() + b"\n")
    process = run.open("rev-list", "--objects", "--topo-order", "--all")
    return wait_until_idle(process.pid)


def start_tmux(run):
    command = ("-S", str(run.folder / "socket"), "-f", "/dev/null")
    fill = "seq 1 300; cat"
    run.call(*command, "new-session", "-d", "-s", "s0", "-x", "200", "-y",
             "50", fill)
    run.stack.callback(subprocess.run, [run.binary, *command, "kill-server"],
                       capture_output=True, check=False)
    pid = int(run.call(*command, "display-message", "-p", "#{pid}").stdout)
    for i in range(30):
        run.call(*command, "new-window", "-t", "s0", "-n", f"window{i}", fill)
        run.call(*command, "split-window", "-t", f"s0:{i + 1}", fill)
        run.call(*command, "set-environment", f"NAME{i}", f"value {i}")
        run.call(*command, "set-buffer", "-b", f"buffer{i}", "text " * i)
    for i in range(200):
        run.call(*command, "bind-key", "-T", f"table{i % 5}", f"M-{chr(97 + i % 26)}",
                 "if-shell", "true", f"display {i} ; list-keys", ";",
                 "select-window", "-t", str(i % 20))
    for i in range(10):
        run.call(*command, "new-session", "-d", "-s", f"session{i}", fill)
        run.call(*command, "set-hook", "-g", f"after-split-window[{i}]",
                 "display hook")
    return wait_until_idle(pid)


def connect_all(run, path, count):
    """Clients of a server's socket, once there is one."""
    while not path.exists():
        time.sleep(0.1)
    time.sleep(0.5)
    for _ in range(count):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(path))
        run.stack.callback(client.close)
        yield client


def start_haproxy(run):
    path = run.folder / "socket"
    rules = "".join(f"use_backend b{i} if {{ hdr(host) -i h{i}.example }}\n"
                    for i in range(1000))
    servers = "".join(f"""backend b{i}
        server s{i} 127.0.0.1:{20000 + i}
        http-request set-header X-Backend {i}\n""" for i in range(1000))
    config = run.write("haproxy.cfg", f"""global
        maxconn 400
        nbthread 2
        defaults
        mode http
        timeout client 300s
        timeout server 300s
        timeout connect 300s
        frontend f
        bind unix@{path}
        {rules}default_backend b0\n{servers}""")
    process = run.open("-db", "-f", str(config))
    for number, client in enumerate(connect_all(run, path, 200)):
        client.sendall(f"GET / HTTP/1.1\r\nHost: h{number}.example\r\n"
                       f"X-Text: {'x' * 500}\r\n".encode())
    return wait_until_idle(process.pid)


def start_memcached(run):
    path = run.folder / "socket"
    process = run.open("-u", "root", "-s", str(path), "-m", "64", "-t", "2")
    for number, client in enumerate(connect_all(run, path, 50)):
        for i in range(ITEMS // 25):
            value = "v" * (10 + i * 7 % 2000)
            client.sendall(f"set key:{number}:{i} 0 0 {len(value)}\r\n{value}"
                           "\r\n".encode())
            client.recv(100)
    return wait_until_idle(process.pid)


def start_dnsmasq(run):
    lines = [f"address=/host{i}.example/10.0.{i // 250}.{i % 250}\n"
             for i in range(3000)]
    lines += [f"txt-record=t{i}.example,some text {i}\n" for i in range(500)]
    lines += [f"dhcp-host=00:00:00:00:{i // 250:02}:{i % 250 % 100:02},h{i}\n"
              for i in range(100)]
    config = run.write("dnsmasq.conf", "".join(lines))
    process = run.open("-k", "-C", str(config), "-u", "root", "--port=0",
                       "--no-resolv", "--pid-file=", "--cache-size=5000")
    return wait_until_idle(process.pid)


def start_nginx(run):
    servers = "".join(f"""
        server {{
            listen unix:{run.folder}/s{i % 5};
            server_name host{i}.example *.host{i}.example ~^re{i}.*$;
            root /nowhere/{i};
            location /path{i}/ {{ proxy_pass http://up{i % 20}/x; }}
            location ~ \\.ext{i}$ {{ add_header X-Name value{i}; return 200; }}
            location = /exact{i} {{ rewrite ^/(.*)$ /other/$1 last; }}
            set $variable{i} value;
        }}""" for i in range(300))
    upstreams = "".join(
        f"upstream up{i} {{ server unix:/nowhere{i}; keepalive 4; }}\n"
        f"map $host $mapped{i} {{ default 0; a{i} 1; ~b{i} 2; }}\n"
        for i in range(20))
    (run.folder / "logs").mkdir()
    config = run.write("nginx.conf", f"""
        daemon off; master_process off; pid {run.folder}/pid;
        error_log /dev/null;
        events {{ worker_connections 512; }}
        http {{ access_log off; server_names_hash_bucket_size 256;
        variables_hash_max_size 8192; server_names_hash_max_size 8192;
        {upstreams} {servers} }}""".replace("\\\\", "\\"))
    process = run.open("-p", str(run.folder), "-c", str(config))
    path = run.folder / "s4"
    while not path.exists():
        time.sleep(0.1)
    time.sleep(0.5)
    for i in range(200):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(path))
        run.stack.callback(client.close)
        client.sendall(f"GET /path{i}/a.ext{i} HTTP/1.1\r\nHost: host{i}"
                       ".example\r\nX-Some: header\r\n".encode())
        if i % 2:
            client.sendall(b"\r\nGET /more HTTP/1.1\r\nHost: ")
    return wait_until_idle(process.pid)


SQL_SETUP = "".join(f"""
CREATE TABLE t{i}(id serial PRIMARY KEY, name text NOT NULL DEFAULT 'n{i}',
  size numeric CHECK (size >= 0), at timestamptz DEFAULT now());
CREATE INDEX ON t{i}(name, lower(name)) WHERE size > {i};
CREATE VIEW v{i} AS SELECT a.name, count(*) FROM t{i} a JOIN t{i} b USING (id)
  GROUP BY 1;
CREATE FUNCTION f{i}(a int) RETURNS int LANGUAGE plpgsql AS $$
  DECLARE r record; BEGIN FOR r IN SELECT * FROM t{i} LOOP a := a + r.id;
  END LOOP; RETURN a; END $$;
INSERT INTO t{i}(name, size) SELECT 'name ' || x, x FROM
  generate_series(1, 200) x;
PREPARE p{i}(int) AS SELECT * FROM v{i} JOIN t{i} USING (name) WHERE id > $1;
SELECT f{i}(1); EXECUTE p{i}(3);
""" for i in range(40))


def start_postgres(run):
    """It refuses to run as root."""
    data = run.folder / "data"
    shutil.chown(run.folder, "nobody")
    setpriv = ("setpriv", "--reuid=nobody", "--regid=nogroup",
               "--clear-groups")
    run.call(*setpriv[1:], str(run.binary.with_name("initdb")), "-A", "trust",
             "-N", "-D", str(data), binary=setpriv[0])
    run.open(*setpriv[1:], str(run.binary), "-D", str(data), "-k",
             str(run.folder), "-c", "listen_addresses=", binary=setpriv[0])
    while not list(run.folder.glob(".s.PGSQL*[0-9]")):
        time.sleep(0.1)
    time.sleep(1)
    process = run.open("-h", str(run.folder), "-U", "nobody", "-qAt",
                       "postgres", binary=run.binary.with_name("psql"))
    feed(process, SQL_SETUP + "SELECT 'pid ' || pg_backend_pid();\n")
    for line in process.stdout:
        if line.startswith(b"pid "):
            pid = int(line.split()[1])
            break
    feed(process, "SELECT v1.name, (SELECT max(id) FROM t3 WHERE size < "
         "length(v1.name)), pg_sleep(1000) FROM v1 JOIN v2 USING (name) "
         "WHERE name IN (SELECT name FROM t4) ORDER BY 1;\n")
    return wait_until_idle(pid)


PERL = f"""
package Account;
sub new {{ my ($class, %with) = @_; return bless {{ %with }}, $class }}
sub total {{ my $self = shift; my $sum = 0; $sum += $_ for @{{$self->{{history}}}};
  return $sum }}
package main;
my (%table, @closures, @lines);
for my $i (1 .. {ITEMS}) {{
  $table{{"key$i"}} = Account->new(name => "account $i", balance => $i * 1.5,
    history => [$i, $i + 1, $i + 2]);
  push @closures, sub {{ $table{{"key$i"}}->total + $_[0] }};
  push @lines, "line $i: " . join(",", map {{ $_ * $i }} 1 .. 5);
  eval "sub f$i {{ my \$x = shift; return \$x =~ /^(a|b$i)+\$/ ? $i : 0 }}"
    if $i % 10 == 0;
}}
my %index = map {{ split /: / }} @lines;
local $| = 1;
print "ready\\n";
<STDIN>;
"""


def start_perl(run):
    return wait_for_line(run.open(run.write("load.pl", PERL)))


VIM = f"""
set nocompatible hidden undolevels=1000
for i in range(1, 20)
  execute 'edit file' .. i
  call setline(1, map(range({ITEMS // 10}), {{k, v -> 'line ' .. v .. ' of ' .. i}}))
  for j in range(1, 50)
    call setline(j, 'changed ' .. j)
    execute 'normal! ' .. j .. 'Goadded' .. j
  endfor
endfor
let table = {{}}
for i in range({ITEMS})
  let table['key' .. i] = #{{name: 'n' .. i, list: [i, i + 1.5, [i]]}}
  execute 'let g:var' .. i .. ' = "value ' .. i .. '"'
endfor
for i in range(500)
  execute 'map ,m' .. i .. ' :echo ' .. i .. '<CR>'
  execute 'abbreviate a' .. i .. ' text' .. i
  execute 'autocmd BufRead *.e' .. i .. ' set nu'
  execute 'highlight group' .. i .. ' ctermfg=1'
  execute 'syntax match group' .. i .. " /word" .. i .. "\\>/"
  execute "function! F" .. i .. "(a, b)\nlet l:x = a:a + " .. i .. "\nif l:x\nreturn a:b\nendif\nendfunction"
endfor
split | vsplit | tabnew
"""


def start_vim(run):
    os.environ["VIMRUNTIME"] = str(run.binary.parent.parent / "runtime")
    process = run.open("-es", "-u", "NONE", "-S",
                       str(run.write("load.vim", VIM)))
    time.sleep(2)
    return wait_until_idle(process.pid)


def start_zsh(run):
    load = SHELL.replace("declare", "typeset").replace("${names[i]}",
                                                       "${names[i+1]}")
    return wait_for_line(run.open("-f", str(run.write("load.zsh", load))))


def start_cppcheck(run):
    # Of a small file: of a large one, nothing but tokens of the preprocessor.
    source = next(run.binary.parent.parent.glob("sqlite3/src/select.c"))
    process = run.open("-q", "--enable=all", str(source))
    while int(processor_time(process.pid)[0]) < 800:
        time.sleep(0.1)
    return process.pid


def start_hunspell(run):
    words = sorted({f"{a}{b}{c}{d}" for a in ("ba", "ke", "tri", "no", "su")
                    for b in "lmnrst" for c in ("a", "ei", "o", "u", "ai")
                    for d in ("", "n", "ster", "low", "m", "ck")})
    run.write("load.dic", f"{len(words)}\n" + "".join(
        f"{word}{('', '/A', '/AB', '/B')[i % 4]}\n"
        for i, word in enumerate(words)))
    run.write("load.aff", "SET UTF-8\nTRY estroa\nREP 2\nREP f ph\nREP k ck\n"
              "MAP 1\nMAP uo\nPFX A Y 40\n" + "".join(
                  f"PFX A 0 {a}{b} .\n" for a in "vwxyz" for b in "aeiouyää")
              + "SFX B Y 40\n" + "".join(
                  f"SFX B 0 {b}{a} [^{a}]\n" for a in "vwxyz" for b in "aeiouyäö"))
    process = run.open("-a", "-d", str(run.folder / "load"))
    feed(process, "".join(f"{word}x\n" for word in words[::20]))
    return wait_until_idle(process.pid)


def start_yaml(run):
    lines = []
    for i in range(ITEMS // 5):
        lines += [f"item{i}:", f"  name: value {i} of {ITEMS}", f"  at: [{i}, {i + 1}]",
                  f"  kept: &kept{i} {{ of: item{i // 2}, long: {'x' * (i % 60)} }}",
                  f"  again: *kept{i}"]
    # It waits for who reads what it writes.
    process = run.open(str(run.write("load.yaml", "\n".join(lines) + "\n")))
    return wait_until_idle(process.pid)


JSONNET = f"""
local item(i) = {{ name: "item" + i, double:: i * 2, text: "x" + self.double,
                  at: [i, i + 1, self.name] }};
local sum(i) = if i == 0 then 0 else sum(i - 1) + std.length(item(i).text);
local all = {{ ["key" + i]: item(i) for i in std.range(1, {ITEMS // 25}) }};
std.foldl(function(a, i) a + {{ ["sum" + i]: sum(i % 100), all: all["key" + (1 + i % 100)].at }},
          std.range(1, {ITEMS * 100}), all)
"""


def start_jsonnet(run):
    process = run.open(str(run.write("load.jsonnet", JSONNET)))
    while int(processor_time(process.pid)[0]) < 200:
        time.sleep(0.1)
    return process.pid


def start_ripgrep(run):
    run.write("patterns", "".join(
        f"(name{i}|x{i}+[a-z]{{2,{i % 5 + 3}}})$\n" for i in range(ITEMS // 25)))
    # It waits for who writes to that, with all patterns compiled.
    os.mkfifo(run.folder / "pipe")
    process = run.open("-f", "patterns", "-e", "include", "pipe")
    return wait_until_idle(process.pid)


GAWK = f"""
function walk(node, depth) {{
  return depth ? walk(node["left"], depth - 1) + depth : 0
}}
BEGIN {{
  for (i = 0; i < {ITEMS}; i++) {{
    name["key" i] = "value " i " of " {ITEMS}
    number[i] = i * 1.5
    pair[i % 50, "name" i] = i
    nested[i % 20]["list"][i] = "element " i
    split("a" i ":b:" i, parts, ":")
    if (match(name["key" i], "e" (i % 40))) found[parts[1]] = parts[3]
    text = text sprintf("%d,", i)
  }}
  print "ready"; fflush()
  getline line
}}
function unused(a, b) {{ return a ~ /^x+y*$/ ? substr(b, 2) : gsub(/o/, "0", a) }}
"""


def start_gawk(run):
    return wait_for_line(run.open("-f", str(run.write("load.awk", GAWK)),
                                  stdout=subprocess.PIPE))


def start_lighttpd(run):
    path = run.folder / "socket"
    rules = "".join(f"""$HTTP["host"] == "host{i}.example" {{
          server.document-root = "{run.folder}/host{i}"
          setenv.add-response-header = ( "X-Host" => "host {i}", "X-Number" => "{i}" )
          url.rewrite-once = ( "^/old{i}/(.*)$" => "/new{i}/$1" )
          $HTTP["url"] =~ "^/private{i}/" {{ url.access-deny = ( "~", ".inc{i}" ) }}
        }}\n""" for i in range(500))
    kinds = "".join(f'".t{i}" => "text/x-kind{i}",\n' for i in range(500))
    config = run.write("lighttpd.conf", f"""server.bind = "{path}"
        server.document-root = "{run.folder}"
        server.modules = ( "mod_setenv", "mod_rewrite", "mod_access" )
        server.max-keep-alive-idle = 600
        server.max-read-idle = 600
        mimetype.assign = ( {kinds} "" => "text/plain" )
        {rules}""")
    process = run.open("-D", "-f", str(config), "-m",
                       str(run.binary.parent / ".libs"))
    run.write("page.t1", "text " * 1000)
    for number, client in enumerate(connect_all(run, path, 200)):
        client.sendall(f"GET /page.t1 HTTP/1.1\r\nHost: host{number}.example\r\n"
                       f"X-Text: {'x' * (number * 7)}\r\nCookie: a={number}\r\n\r\n"
                       .encode() * (number % 3))
        client.sendall(f"GET /old{number}/x HTTP/1.1\r\nHost: host{number}"
                       f".example\r\nX-Half: {number}\r\n".encode())
    return wait_until_idle(process.pid)


def start_bird(run):
    routes = "".join(f"route 10.{i // 250}.{i % 250}.0/24 via 192.0.2.{i % 200};\n"
                     for i in range(ITEMS))
    peers = "".join(f"""
        protocol bgp peer{i} {{
          local 127.0.0.1 port {20000 + i} as 65000;
          neighbor 127.0.1.{i} as {65001 + i};
          passive on;
          ipv4 {{ import filter {{ if net ~ [ 10.{i}.0.0/16+ ] then accept; reject; }};
                  export where proto = "lines"; table t{i % 20}; }};
        }}""" for i in range(200))
    tables = "".join(f"ipv4 table t{i};\n" for i in range(20))
    pipes = "".join(f"protocol pipe p{i} {{ table master4; peer table t{i}; "
                    f"export where net ~ 10.{i}.0.0/16; }}\n" for i in range(20))
    config = run.write("bird.conf", f"""router id 192.0.2.1;
        ipv4 table master4;
        {tables}
        function f(int a) {{ if a > 3 then return 1; return a + 2; }}
        protocol device {{ }}
        protocol static lines {{ ipv4; {routes} }}
        {pipes} {peers}""")
    process = run.open("-f", "-c", str(config), "-s", str(run.folder / "socket"),
                       "-P", str(run.folder / "pid"))
    time.sleep(2)
    return wait_until_idle(process.pid)


def start_m4(run):
    lines = ["changequote([, ])"]
    for i in range(ITEMS):
        lines += [f"define([name{i}], [text $1 of {i}, ifelse($2, {i}, [yes], [no])])"]
        if i % 10 == 0:
            lines += [f"pushdef([stack{i % 50}], [value {i}])",
                      f"divert({i % 7 + 1})kept name{i}(x{i}, {i})", "divert(0)"]
    process = run.open("-")
    feed(process, "\n".join(lines) + "\nname1([an argument that")
    return wait_until_idle(process.pid)


MAWK = f"""
BEGIN {{
  for (i = 0; i < {ITEMS}; i++) {{
    name["key" i] = "value " i " of " {ITEMS}
    number[i] = i * 1.5
    pair[i % 50, "name" i] = i
    split("a" i ":b:" i, parts, ":")
    if (match(name["key" i], "e" (i % 40))) found[parts[1]] = parts[3]
  }}
  print "ready"; fflush()
  getline line
}}
function unused(a, b) {{ return a ~ /^x+y*$/ ? substr(b, 2) : gsub(/o/, "0", a) }}
"""


def start_mawk(run):
    return wait_for_line(run.open("-f", str(run.write("load.awk", MAWK))))


DASH = f"""
i=0
while [ $i -lt {ITEMS} ]; do
    eval "f$i() {{ if [ \\$1 = x ]; then echo $i \\"\\$1\\"; else \\
for a in 1 2 3; do case \\$a in 1|2) : ;; *) return ;; esac; done; fi; }}"
    eval "variable_$i='value $i'"
    [ $((i % 10)) -ne 0 ] || alias a$i="ls -l $i"
    [ $((i % 10)) -ne 0 ] || export "variable_$i"
    i=$((i + 1))
done
trap 'echo interrupted' INT
outer() {{
    local one=1 two="$*"
    echo ready
    while read -r line; do echo "$line" >&2; done
}}
outer a "b c" d
"""


def start_dash(run):
    return wait_for_line(run.open(str(run.write("load.sh", DASH))))


def start_tcc(run):
    lines = []
    for i in range(ITEMS // 5):
        lines += [f"struct s{i} {{ struct s{max(i - 1, 0)} *next; int a{i}[{i + 1}]; char *name; }};",
                  f"enum e{i} {{ E{i}_A, E{i}_B = {i} }};", f"#define M{i}(x, y) ((x) + {i} * (y))",
                  f"static int f{i}(struct s{i} *p, int n) {{ int k = M{i}(n, 2); "
                  f"for (; k; k--) p->a{i}[0] += E{i}_B; return p->name ? \"text {i}\"[0] : k; }}",
                  f"int g{i} = {i};"]
    # It waits for who writes to that.
    os.mkfifo(run.folder / "pipe.h")
    source = run.write("load.c", "\n".join(lines) + '\n#include "pipe.h"\n')
    process = run.open("-nostdinc", "-c", str(source))
    return wait_until_idle(process.pid)


MUJS = f"""
function Account(i) {{ this.name = "account " + i; this.balance = i * 1.5;
  this.history = [i, i + 1, String(i) + " text"]; }}
Account.prototype.total = function() {{ return this.balance; }};
var table = {{}}, functions = [], found = [];
for (var i = 0; i < {ITEMS}; ++i) {{
  table["key" + i] = new Account(i);
  functions[i] = (function(n) {{ return function(x) {{ return n + x; }}; }})(i);
  if (i % 50 == 0) found.push(new RegExp("^(a|b" + i + ")+$"), new Date(i), new Error("e" + i));
  if (i % 50 == 0) functions.push(new Function("a", "var b = a + " + i + "; return b"));
}}
print("ready");
readline();
"""


def start_mujs(run):
    return wait_until_idle(run.open(str(run.write("load.js", MUJS))).pid)


JIM = f"""
for {{set i 0}} {{$i < {ITEMS}}} {{incr i}} {{
    set name(key$i) "value $i"
    dict set table [expr {{$i % 50}}] entry$i [list $i [expr {{$i * 1.5}}] text]
    lappend lines "line $i of {ITEMS}"
    proc f$i {{a {{b 2}}}} "if {{\\$a > $i}} {{return \\$b}}; foreach x {{1 2 3}} {{append s \\$x $i}}; set s"
    f$i [expr {{$i % 3}}]
}}
puts ready
flush stdout
gets stdin
"""


def start_jim(run):
    return wait_for_line(run.open(str(run.write("load.tcl", JIM))))


def start_xmllint(run):
    items = "".join(f'<item id="i{i}" kind="k{i % 9}" xml:lang="en"><name>name {i}</name>'
                    f"<n:size>{i}</n:size><!-- note {i} --><![CDATA[raw {i}]]>&known;</item>\n"
                    for i in range(ITEMS))
    path = run.write("load.xml", '<?xml version="1.0"?>\n<!DOCTYPE list [<!ENTITY known "text">'
                     '<!ELEMENT item ANY><!ATTLIST item id ID #REQUIRED>]>\n'
                     f'<list xmlns:n="urn:n">{items}</list>\n')
    process = run.open("--shell", str(path))
    feed(process, "setns n=urn:n\nxpath count(//item[@kind='k3'])\n")
    return wait_until_idle(process.pid)


def start_bc(run):
    process = run.open("-q")
    feed(process, "".join(
        f"define f{i}(x, y[]) {{ auto a, b; a = x * {i}; b = y[{i % 7}]; if (a > b) return (a - b); "
        f"while (b > a) {{ b -= a + {i}.5; }} return (b); }}\n"
        f"v{i} = {i} ^ 7 / 3; w{i % 20}[{i}] = v{i}\n" for i in range(ITEMS // 5)))
    return wait_until_idle(process.pid)


def start_ed(run):
    path = run.write("load.txt", "".join(f"line {i} of the text{' and more' * (i % 9)}\n"
                                         for i in range(ITEMS)))
    process = run.open("-s", str(path))
    feed(process, "10ka\n20kb\ng/9 of/s/text/words/\n100,300m900\n1,400t$\nv/more/d\n")
    return wait_until_idle(process.pid)


def start_units(run):
    definitions = next(run.binary.parent.glob("definitions.units"))
    process = run.open("-f", str(definitions))
    feed(process, "furlongs per fortnight\nm/s\n")
    return wait_until_idle(process.pid)


def start_tidy(run):
    process = run.open("-q", "--show-warnings", "no")
    feed(process, "<html><head><title>load</title></head><body>" + "".join(
        f'<div id="d{i}" class="c{i % 9}" onclick="go({i})"><p>text {i} <b>bold</b> <a href="#d{i // 2}">to {i}</a>'
        f"<!-- note {i} --><ul><li>one<li>two &amp; {i}</ul></div>\n" for i in range(ITEMS)))
    return wait_until_idle(process.pid)


def start_nasm(run):
    lines = []
    for i in range(ITEMS // 5):
        lines += [f"%define limit{i} {i}", f"%macro push{i} 1-2 {i}", "  push %1", f"  add rax, %2 + {i}",
                  "%endmacro", "section .text", f"label{i}:", f"push{i} rbx, limit{i}",
                  f".local: jmp label{i // 2}", "section .data", f"text{i}: db \"text {i}\", 0",
                  f"struc s{i}", ".first: resq 1", f".last: resb {i + 1}", "endstruc"]
    # It waits for who writes to that.
    os.mkfifo(run.folder / "pipe.inc")
    source = run.write("load.asm", "\n".join(lines) + '\n%include "pipe.inc"\n')
    process = run.open("-f", "elf64", "-g", str(source))
    return wait_until_idle(process.pid)


def start_tclsh(run):
    os.environ["TCL_LIBRARY"] = str(run.binary.parent.parent / "library")
    return wait_for_line(run.open(str(run.write("load.tcl", TCL))))


TCL = f"""
oo::class create Account {{
    variable balance name
    constructor {{i}} {{ set balance [expr {{$i * 1.5}}]; set name "account $i" }}
    method total {{}} {{ return $balance }}
}}
for {{set i 0}} {{$i < {ITEMS}}} {{incr i}} {{
    set name(key$i) "value $i"
    dict set table [expr {{$i % 50}}] entry$i [list $i [expr {{$i * 1.5}}] text]
    lappend lines "line $i of {ITEMS}"
    proc f$i {{a {{b 2}}}} "if {{\\$a > $i}} {{return \\$b}}; foreach x {{1 2 3}} {{append s \\$x $i}}; set s"
    f$i [expr {{$i % 3}}]
    if {{$i % 50 == 0}} {{
        lappend accounts [Account new $i]
        namespace eval space$i "variable v $i; proc p {{}} {{variable v; return \\$v}}"
        regexp "^(a|b$i)+$" "b$i" match
        trace add variable name(key$i) write f$i
        after [expr {{1000000 + $i}}] "f$i 1"
        interp alias {{}} alias$i {{}} f$i 1
    }}
}}
puts ready
flush stdout
gets stdin
"""


def start_duktape(run):
    process = run.open("-i", str(run.write("load.js", MUJS.replace("readline();", ""))))
    return wait_until_idle(process.pid)


def start_remind(run):
    lines = [f"SET v{i} {i} + \"text {i}\"\nFSET f{i}(a, b) a + {i} + {'i'}if(b > {i}, \"x\", a * 2 + strlen(a))\n"
             f"REM {i % 28 + 1} Jan +{i % 9} MSG event {i} [f{i}(v{i}, 2)] of %b%\n"
             f"OMIT {i % 28 + 1} {('Feb', 'Mar', 'Apr')[i % 3]}\nPUSH-OMIT-CONTEXT" for i in range(ITEMS // 5)]
    other = run.write("other.rem", "\n".join(f"REM {i % 28 + 1} MSG note {i}" for i in range(ITEMS)))
    os.mkfifo(run.folder / "pipe.rem")
    source = run.write("load.rem", "\n".join(lines) + f"\nINCLUDE {other}\nINCLUDE {run.folder}/pipe.rem\n")
    return wait_until_idle(run.open(str(source), stdout=subprocess.DEVNULL).pid)


def start_cflow(run):
    source = run.write("load.c", "".join(
        f"typedef struct s{i} {{ int a{i}; struct s{i} *next; }} t{i};\n"
        f"static int f{i}(t{i} *p, int n) {{ if (n) return f{i // 2}(p, n - 1) + f{i // 3}(p, 2); "
        f"return p->a{i} + g{i % 50}(n); }}\n" for i in range(ITEMS)))
    os.mkfifo(run.folder / "pipe.c")
    return wait_until_idle(run.open("--all", "--xref", str(source), str(run.folder / "pipe.c")).pid)


def start_sed(run):
    script = "".join(f"/^a{i}*\\(b\\|c{i % 9}\\)$/,/end {i}/{{ s/x{i}\\([a-z]*\\)/y\\1{i}/g; :l{i}\n t l{i}\n }}\n"
                     f"{i + 5}a\\\ntext {i} to append\n{i}!y/abc/xyz/\n" for i in range(1, ITEMS // 10))
    process = run.open("-n", "-f", str(run.write("load.sed", script)))
    feed(process, "".join(f"aaa{i}b and {'more' * (i % 30)}\n" for i in range(50)))
    return wait_until_idle(process.pid)


SCHEME = f"""
(define (account i) (list (string-append "account " (number->string i)) (* i 1.5) (vector i (+ i 1) "text")))
(define accounts '())
(define functions '())
(define (fill i)
  (if (< i {ITEMS})
      (begin (set! accounts (cons (account i) accounts))
             (set! functions (cons (lambda (x) (+ x i)) functions))
             (string->symbol (string-append "symbol" (number->string i)))
             (fill (+ i 1)))))
(fill 0)
(define (text) "{'long text ' * 20}")
"""


def start_tinyscheme(run):
    os.environ["TINYSCHEMEINIT"] = str(run.binary.parent / "init.scm")
    return wait_until_idle(run.open(str(run.write("load.scm", SCHEME)), "-").pid)


def start_flex(run):
    lines = ["%option noyywrap", "%{", "#include <stdio.h>", "%}"]
    lines += [f"NAME{i} [a-z{i % 10}]+" for i in range(100)] + [f"%x STATE{i}" for i in range(100)] + ["%%"]
    for i in range(ITEMS // 5):
        lines += [f'"word{i}" {{ return {i}; }}', f"<STATE{i % 100}>{{NAME{i % 100}}}[0-9]{{2,4}} {{ /* {i} */ }}"]
    process = run.open("-t", stdout=subprocess.DEVNULL)
    feed(process, "\n".join(lines) + "\n")
    return wait_until_idle(process.pid)


def start_cscope(run):
    run.write("load.c", "".join(
        f"struct s{i} {{ int a{i}; }};\n#define M{i}(x) ((x) + {i})\n"
        f"static int f{i}(struct s{i} *p, int n) {{ return M{i}(n) + f{i // 2}(p, n) + g{i % 50}(n); }}\n"
        for i in range(ITEMS)))
    process = run.open("-l", "load.c")
    feed(process, "0f10\n3g7\n2f100\n4a4999\n")
    return wait_until_idle(process.pid)


def start_gperf(run):
    process = run.open(stdout=subprocess.DEVNULL)
    feed(process, "struct word { const char *name; int number; };\n%%\n" + "".join(
        f"word{i}, {i}\n" for i in range(ITEMS)))
    return wait_until_idle(process.pid)


def start_mcpp(run):
    process = run.open("-", stdout=subprocess.DEVNULL)
    feed(process, "".join(f"#define M{i}(x, y) ((x) + M{i // 2}(y, {i}))\n#define N{i} \"text {i}\"\n"
                          f"#ifdef N{i // 3}\nint a{i} = M{i % 9}(1, {i});\n#endif\n" for i in range(ITEMS)))
    return wait_until_idle(process.pid)


def start_gpp(run):
    process = run.open("-C", stdout=subprocess.DEVNULL)
    feed(process, "".join(f"#define M{i}(x,y) x and K{i // 2}(y,{i}) text {i}\n#define N{i} note {i}\n"
                          f"#ifdef N{i // 3}\nM{i % 9}(a,N{i})\n#endif\n" for i in range(ITEMS)))
    return wait_until_idle(process.pid)


NEWLISP = f"""
(define (account i) (list (string "account " i) (mul i 1.5) (list i (+ i 1) "text")))
(set 'accounts '())
(new Tree 'Table)
(dotimes (i {ITEMS})
  (push (account i) accounts)
  (Table (string "key" i) (list i (string "value " i)))
  (set (sym (string "symbol" i)) i)
  (set (sym (string "f" i)) (eval-string (string "(lambda (x) (if (> x " i ") (+ x 1) (append \\"a\\" (string x))))"))))
(set 'grid (array 50 20 (sequence 1 1000)))
"""


def start_newlisp(run):
    process = run.open(str(run.write("load.lsp", NEWLISP)))
    feed(process, '(find "key1" (map first accounts))\n')
    return wait_until_idle(process.pid)


def start_byacc(run):
    lines = [f"%token T{i} {300 + i}" for i in range(ITEMS // 5)]
    lines += [f"%left '{chr(97 + i)}'" for i in range(20)] + ["%%", "all: rule0 | all rule0 ;"]
    for i in range(ITEMS // 5):
        lines += [f"rule{i}: T{i} rule{(i + 1) % 1000} T{i // 2} {{ $$ = $1 + {i}; }}",
                  f"  | T{i // 3} '{chr(97 + i % 20)}' {{ run({i}); }} T{i} %prec 'a' | ;"]
    os.mkfifo(run.folder / "pipe.y")
    process = run.open(str(run.folder / "pipe.y"))
    pipe = open(run.folder / "pipe.y", "w", encoding="ascii")
    run.stack.callback(pipe.close)
    pipe.write("\n".join(lines) + "\n")
    pipe.flush()
    return wait_until_idle(process.pid)


def start_cproto(run):
    process = run.open("-E", "0", "-a", stdout=subprocess.DEVNULL)
    feed(process, "".join(
        f"typedef struct s{i} {{ int a{i}; struct s{i} *next; }} t{i};\nenum e{i} {{ E{i}_A, E{i}_B }};\n"
        f"t{i} *f{i}(t{i} *p, int n, int (*call)(t{i} *, char **)) {{ return p; }}\nextern t{i} v{i}[10];\n"
        for i in range(ITEMS)))
    return wait_until_idle(process.pid)


def start_tinyproxy(run):
    port = 28881
    filters = run.write("filter", "".join(f"^bad{i}\\.example$\n" for i in range(1000)))
    config = run.write("tinyproxy.conf", f"Port {port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 300\n"
                       f"Filter \"{filters}\"\nLogLevel Error\nViaProxyName \"proxy\"\n" + "".join(
                           f"Allow 10.{i // 200}.{i % 200}.0/24\nAddHeader \"X-H{i}\" \"value {i}\"\n"
                           f"Upstream http 10.0.0.{i % 200}:8080 \".site{i}.example\"\nConnectPort {1000 + i}\n"
                           f"ErrorFile {400 + i} \"/e{i}\"\n" for i in range(200)) + "Allow 127.0.0.1\n")
    process = run.open("-d", "-c", str(config))
    wait_until_idle(process.pid)
    for number in range(100):
        client = socket.create_connection(("127.0.0.1", port))
        run.stack.callback(client.close)
        client.sendall(f"GET http://site{number}.example/ HTTP/1.1\r\nHost: site{number}.example\r\n"
                       f"X-Text: {'x' * number}\r\nCookie: a={number}\r\n".encode())
    return wait_until_idle(process.pid)


def start_mksh(run):
    return wait_for_line(run.open(str(run.write("load.sh", DASH))))


def start_ctags(run):
    source = run.write("load.c", "".join(
        f"struct s{i} {{ int a{i}; struct s{i} *next; }};\n#define M{i}(x) ((x) + {i})\nenum e{i} {{ A{i}, B{i} }};\n"
        f"static int f{i}(struct s{i} *p, int n) {{ return M{i}(n); }}\n" for i in range(ITEMS)))
    script = run.write("load.py", "".join(
        f"class C{i}(B{i // 2}):\n    x{i} = {i}\n    def m(self, a):\n        def inner(): pass\n" for i in range(ITEMS // 2)))
    process = run.open("--filter=yes", "--fields=*", stdout=subprocess.DEVNULL)
    feed(process, f"{script}\n{source}\n")
    return wait_until_idle(process.pid)


def start_abc2midi(run):
    os.mkfifo(run.folder / "pipe.abc")
    process = run.open(str(run.folder / "pipe.abc"), stdout=subprocess.DEVNULL)
    pipe = open(run.folder / "pipe.abc", "w", encoding="ascii")
    run.stack.callback(pipe.close)
    pipe.write("X:1\nT:Tune\nM:4/4\nL:1/8\nK:G\n" + "".join(
        f"V:{i % 9 + 1}\n|: \"Am\"A2 B{i % 7 + 1} c/d/ [CEG]2 (3abc !p! ^f :|\nw: word{i} and more of it\n" for i in range(ITEMS // 5)))
    pipe.flush()
    return wait_until_idle(process.pid)


def start_unbound(run):
    config = run.write("unbound.conf", f"server:\n chroot: \"\"\n username: \"\"\n directory: \"{run.folder}\"\n use-syslog: no\n"
                       " pidfile: \"\"\n port: 28855\n interface: 127.0.0.1\n num-threads: 1\n do-daemonize: no\n module-config: \"iterator\"\n" + "".join(
                           f" local-zone: \"z{i}.example.\" static\n local-data: \"h.z{i}.example. IN A 10.0.{i // 250}.{i % 250}\"\n"
                           f" private-domain: \"p{i}.example\"\n access-control: 10.{i // 250}.{i % 250}.0/24 allow\n"
                           for i in range(ITEMS // 5)) + "remote-control:\n control-enable: no\n" + "".join(
                               f"forward-zone:\n name: \"f{i}.example\"\n forward-addr: 10.9.{i // 250}.{i % 250}\n" for i in range(ITEMS // 10)))
    return wait_until_idle(run.open("-d", "-c", str(config)).pid)


def start_busybox(run):
    return wait_for_line(run.open("awk", "-f", str(run.write("load.awk", MAWK))))


def start_troff(run):
    tree = run.binary.parent
    process = run.open("-M", str(tree / "tmac"), "-F", str(tree / "font"), "-F", str(tree), "-T", "ps",
                       stdout=subprocess.DEVNULL)
    feed(process, "".join(
        f".de M{i}\n.ds S{i} text \\\\$1 of {i}\n.nr N{i} +{i}\n.if \\\\n(.$ .br\n..\n.M{i} one\n"
        f".di D{i % 50}\nsome words \\fBin bold\\fP and {i} more, which fill a line or two of it\n.di\n"
        f".ch M{i} {i}u\n.am M{i // 2}\n.tm\n..\n" for i in range(ITEMS // 5)))
    feed(process, "words of a line that is not yet \\s+2full")
    return wait_until_idle(process.pid)


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

def start_tree(run):
    process = run.open("--fromfile", "-s", "-p", ".", stdout=subprocess.DEVNULL)
    feed(process, "".join(f"top{i % 50}/part{i % 700}/file{i}.{'abc'[i % 3]}\n" for i in range(2 * ITEMS)))
    return wait_until_idle(process.pid)


def start_grep(run):
    patterns = run.write("patterns", "".join(
        f"a{i}\\(b\\|c{i % 9}\\)*\\1[x-z{i % 7}]\\{{1,{1 + i % 4}\\}}$\nword{i}.*end\n" for i in range(ITEMS // 10)))
    process = run.open("-f", str(patterns), stdout=subprocess.DEVNULL)
    feed(process, "".join(f"aaa{i}b and {'more' * (i % 30)} word{i} at the end\n" for i in range(50)))
    return wait_until_idle(process.pid)


def start_cmark(run):
    process = run.open(stdout=subprocess.DEVNULL)
    feed(process, "".join(
        f"# Part {i}\n\nSome *words* of `code {i}` and [a link][ref{i % 90}].\n\n- one\n- two {i}\n  > quoted\n\n"
        f"```c{i % 5}\nint a{i};\n```\n\n[ref{i}]: http://example/{i} \"title {i}\"\n\n<div>{i}</div>\n\n" for i in range(ITEMS // 2)))
    return wait_until_idle(process.pid)


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
                 r"sqlite3Db\w+Raw\w*|dbMallocRawFinish",
                 functions={"exprDup": "Expr", "sqlite3ExprListDup": "ExprList",
                            "sqlite3SrcListDup": "SrcList"})),
    Program("git", "git", f"{MAKE} CFLAGS='{FLAGS}' NO_CURL=1 NO_EXPAT=1 "
            "NO_GETTEXT=1 NO_TCLTK=1 NO_PERL=1 NO_PYTHON=1 NO_OPENSSL=1 git",
            "git", start_git,
            Site(values={"ALLOC_ARRAY": 0, "CALLOC_ARRAY": 0,
                         "REALLOC_ARRAY": 0, "ALLOC_GROW": 0,
                         "ALLOC_GROW_BY": 0})),
    Program("tmux", "tmux", f"./configure -q CFLAGS='{FLAGS}' && {MAKE} tmux",
            "tmux", start_tmux),
    Program("nginx", "nginx", f"./configure --with-cc-opt='{FLAGS}' && {MAKE}",
            "objs/nginx", start_nginx,
            Site(wrappers=r"ngx_(m|p|pc|pn)alloc|ngx_alloc|ngx_palloc_\w+")),
    Program("gawk", "gawk", f"./configure -q --disable-extensions CFLAGS='{FLAGS}' "
            f"&& {MAKE} -C support && {MAKE} gawk", "gawk", start_gawk,
            Site(wrappers=r"(m|c|re|e|er|ez)malloc\w*|pma_\w+",
                 # Slabs of all that a "block_item" is the link of.
                 unsaid="more_blocks", values={"emalloc": 0, "ezalloc": 0, "erealloc": 0})),
    Program("lighttpd", "lighttpd", "./configure -q --without-zlib --without-bzip2 "
            f"CFLAGS='{FLAGS}' && {MAKE}", "src/lighttpd", start_lighttpd,
            Site(wrappers=r"ck_\w*alloc\w*")),
    Program("bird", "bird2", "autoreconf -i; ./configure -q --disable-client "
            f"CFLAGS='{FLAGS}' && {MAKE}", "bird", start_bird,
            Site(wrappers=r"x(m|re)alloc|mb_\w*alloc\w*|ralloc",
                 types={"mb_alloc": 1})),
    Program("postgres", "postgresql-15", "./configure -q --without-readline "
            "--without-zlib --prefix=$PWD/installed "
            f"CFLAGS='{FLAGS}' && {MAKE} && make -s install",
            "installed/bin/postgres", start_postgres,
            # Its callers pass the size of the one that begins with it.
            Site(functions={"init_custom_variable": (
                "struct config_bool", "struct config_int", "struct config_real", "struct config_string",
                "struct config_enum")}), held_out=True),
    Program("perl", "perl", f"./Configure -des -Doptimize='{FLAGS}' && "
            f"{MAKE} perl", "perl", start_perl,
            Site(wrappers=r"Perl_safesys\w+|safe\w+",
                 # Arenas, arrays of hashes, layers: Newx(start, size, char).
                 unsaid=r"Perl_more_(sv|bodies)|PerlIO_push|Perl_hv_common|"
                 r"S_hv_auxinit|S_hsplit|Perl_hv_ksplit|S_share_hek_flags",
                 functions={"Perl_newPADNAMEpvn": "PADNAME",
                            "Perl_av_extend_guts": ("SV *", "PADNAME *")},
                 types={"Newx": 2, "Newxz": 2, "Renew": 2}), held_out=True),
    Program("vim", "vim", "./configure -q --with-features=huge --disable-gui "
            f"--without-x --with-tlib=ncurses CFLAGS='{FLAGS}' && {MAKE}",
            "src/vim", start_vim,
            Site(wrappers=r"l?alloc\w*",
                 types={"ALLOC_ONE": 0, "ALLOC_CLEAR_ONE": 0, "ALLOC_MULT": 0,
                        "ALLOC_CLEAR_MULT": 0, "ALLOC_ONE_ID": 0}),
            held_out=True),
    Program("zsh", "zsh", "./configure -q --disable-dynamic --with-tcsetpgrp "
            f"CFLAGS='{FLAGS}' LDFLAGS=-g && {MAKE} -C Src", "Src/zsh",
            start_zsh,
            Site(wrappers=r"z\w*alloc|hcalloc", functions={"ztrdup": "char"}),
            held_out=True),
    Program("haproxy", "haproxy", f"{MAKE} TARGET=linux-glibc haproxy",
            "haproxy", start_haproxy, held_out=True),
    Program("memcached", "memcached", f"./configure -q CFLAGS='{FLAGS}' && "
            f"{MAKE} memcached", "memcached", start_memcached, held_out=True),
    Program("dnsmasq", "dnsmasq", f"{MAKE} CFLAGS='{FLAGS}'",
            "src/dnsmasq", start_dnsmasq, Site(wrappers=r"whine_malloc|safe_malloc"),
            held_out=True),
    Program("cppcheck", "cppcheck", f"{MAKE} CXXFLAGS='{FLAGS} -DNDEBUG' "
            "cppcheck", "cppcheck", start_cppcheck, held_out=True),
    Program("hunspell", "hunspell", "./configure -q --disable-shared "
            f"--disable-nls CXXFLAGS='{FLAGS}' CFLAGS='{FLAGS}' && {MAKE}",
            "src/tools/hunspell", start_hunspell, generate="autoreconf -fi",
            held_out=True),
    Program("yaml-cpp", "yaml-cpp", "cmake -G 'Unix Makefiles' -S . -B made -DYAML_CPP_BUILD_TESTS=OFF "
            f"-DCMAKE_BUILD_TYPE= -DCMAKE_CXX_FLAGS='{FLAGS}' && {MAKE} -C made yaml-cpp-parse", "made/util/parse",
            start_yaml, held_out=True),
    Program("jsonnet", "jsonnet", f"{MAKE} OPT=-O2 jsonnet", "jsonnet", start_jsonnet, held_out=True),
    Program("ripgrep", "rust-ripgrep", "CARGO_PROFILE_RELEASE_DEBUG=2 "
            "cargo build -q -j2 --release", "target/release/rg",
            start_ripgrep, held_out=True),
    Program("m4", "m4", f"./configure -q CFLAGS='{FLAGS}' && {MAKE} AUTOMAKE=: ACLOCAL=: AUTOCONF=: AUTOHEADER=: SUBDIRS='lib src'", "src/m4",
            start_m4, held_out=True),
    Program("mawk", "mawk", f"./configure -q CFLAGS='{FLAGS}' && {MAKE}", "mawk",
            start_mawk, Site(types={"ZMALLOC": 0}), held_out=True),
    Program("dash", "dash", f"autoreconf -fi; ./configure -q CFLAGS='{FLAGS}' && {MAKE}",
            "src/dash", start_dash, Site(wrappers=r"ck\w*alloc|savestr"), held_out=True),
    Program("tcc", "tcc", f"./configure --debug --extra-cflags='{FLAGS}' && {MAKE} tcc", "tcc", start_tcc,
            Site(wrappers=r"tcc_\w*alloc\w*|tal_\w+", unsaid="dynarray_add"), held_out=True),
    Program("mujs", "mujs", f"gcc {FLAGS} -o mujs main.c one.c -lm", "mujs", start_mujs,
            Site(wrappers=r"js_\w*alloc"), held_out=True),
    Program("jimtcl", "jimtcl", f"CFLAGS='{FLAGS}' ./configure --disable-docs && {MAKE} jimsh",
            "jimsh", start_jim, Site(wrappers=r"Jim_\w*Alloc|JimDefaultAllocator"), held_out=True),
    Program("xmllint", "libxml2", "cmake -G 'Unix Makefiles' -S . -B made -DBUILD_SHARED_LIBS=OFF "
            "-DLIBXML2_WITH_PYTHON=OFF -DLIBXML2_WITH_LZMA=OFF -DLIBXML2_WITH_TESTS=OFF "
            f"-DCMAKE_C_FLAGS='{FLAGS}' && {MAKE} -C made xmllint", "made/xmllint", start_xmllint,
            Site(wrappers=r"xml\w*[aA]lloc\w*"), held_out=True),
    Program("bc", "bc", f"./configure -q --without-readline CFLAGS='{FLAGS}' && {MAKE} AUTOMAKE=: ACLOCAL=: AUTOCONF=: MAKEINFO=:", "bc/bc", start_bc,
            Site(wrappers=r"bc_malloc|strcopyof"), held_out=True),
    Program("ed", "ed", f"./configure CFLAGS='{FLAGS}' && {MAKE}", "ed", start_ed, held_out=True),
    Program("units", "units", f"./configure -q --without-readline CFLAGS='{FLAGS}' && {MAKE} units", "units",
            start_units, Site(wrappers=r"mymalloc|dupstr\w*"), held_out=True),
    Program("tidy", "tidy-html5", "cmake -G 'Unix Makefiles' -S . -B made -DBUILD_SHARED_LIB=OFF "
            f"-DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS='{FLAGS}' && {MAKE} -C made tidy", "made/tidy", start_tidy,
            Site(wrappers=r"defaultAlloc|\w*Alloc|\w*Realloc|tmbstrn?dup"), held_out=True),
    Program("nasm", "nasm", f"./configure -q CFLAGS='{FLAGS}' && {MAKE} nasm", "nasm", start_nasm,
            Site(wrappers=r"nasm_\w*alloc\w*|nasm_\w*dup\w*"), held_out=True),
    Program("tclsh", "tcl8.6", f"cd unix && ./configure -q --disable-shared CFLAGS='{FLAGS}' && {MAKE} tclsh",
            "unix/tclsh", start_tclsh, Site(wrappers=r"Tcl\w*(Alloc|Realloc)\w*|AllocateHashTable", types={
                "TclStackAlloc": 1}), held_out=True),
    Program("duktape", "duktape", f"{MAKE} -f Makefile.cmdline CCOPTS='{FLAGS} -std=c99 -Iexamples/cmdline -Isrc "
            "-DDUK_CMDLINE_PRINTALERT_SUPPORT -Iextras/print-alert -DDUK_CMDLINE_CONSOLE_SUPPORT -Iextras/console "
            "-DDUK_CMDLINE_LOGGING_SUPPORT -Iextras/logging -DDUK_CMDLINE_MODULE_SUPPORT -Iextras/module-duktape'",
            "duk", start_duktape, held_out=True),
    Program("remind", "remind", f"./configure -q CFLAGS='{FLAGS}' && {MAKE} -C src remind", "src/remind",
            start_remind, Site(types={"NEW": 0}), held_out=True),
    Program("cflow", "cflow", f"./configure -q --disable-nls CFLAGS='{FLAGS}' && {MAKE} -C gnu && {MAKE} -C src cflow",
            "src/cflow", start_cflow, held_out=True),
    Program("sed", "sed", f"./configure -q --disable-nls CFLAGS='{FLAGS}' && {MAKE} sed/sed", "sed/sed", start_sed,
            Site(wrappers=r"ck_\w*alloc\w*|xmemdup", types={"XCALLOC": 1, "OB_MALLOC": 2}), held_out=True),
    Program("tinyscheme", "tinyscheme", f"gcc {FLAGS} -DUSE_DL=0 -DSTANDALONE=1 -I. -o tinyscheme scheme.c -lm -ldl",
            "tinyscheme", start_tinyscheme, held_out=True),
    Program("flex", "flex", f"./configure -q --disable-nls --disable-shared CFLAGS='{FLAGS}' && {MAKE} -C src AUTOMAKE=: ACLOCAL=: AUTOCONF=: AUTOHEADER=: flex",
            "src/flex", start_flex, generate="autoreconf -fi", held_out=True),
    Program("cscope", "cscope", f"./configure -q CFLAGS='{FLAGS}' && {MAKE}", "src/cscope", start_cscope,
            Site(wrappers=r"my\w*alloc|my_strdup"), held_out=True),
    Program("newlisp", "newlisp", f"gcc -c {FLAGS} -std=gnu89 -fcommon -DNEWLISP64 -DSUPPORT_UTF8 -DLINUX -D_GNU_SOURCE newlisp.c nl-*.c pcre.c "
            "&& gcc -o newlisp newlisp.o nl-*.o pcre.o -lm -ldl", "newlisp", start_newlisp,
            Site(wrappers=r"(alloc|calloc|realloc)Memory"), held_out=True),
    Program("byacc", "byacc", f"./configure -q CFLAGS='{FLAGS}' && {MAKE}", "yacc", start_byacc,
            Site(types={"TMALLOC": 0, "NEW": 0, "NEW2": 1, "TREALLOC": 0, "TCMALLOC": 0}), held_out=True),
    Program("cproto", "cproto", f"./configure -q CFLAGS='{FLAGS}' && {MAKE}", "cproto", start_cproto,
            Site(wrappers=r"xMalloc|xRealloc|xStrdup"), held_out=True),
    Program("tinyproxy", "tinyproxy", f"./configure -q CFLAGS='{FLAGS}' && {MAKE} -C src", "src/tinyproxy",
            start_tinyproxy, Site(wrappers=r"safe\w+|debugging_\w+"), held_out=True),
    Program("busybox", "busybox", f"make -s defconfig && sed -i 's/CONFIG_TC=y/CONFIG_TC=n/' .config && {MAKE} "
            f"EXTRA_CFLAGS='{FLAGS} -fasynchronous-unwind-tables' SKIP_STRIP=y busybox_unstripped", "busybox_unstripped", start_busybox,
            Site(wrappers=r"x\w*alloc|qrealloc|xstrn?dup"), held_out=True),
    Program("troff", "groff", f"./configure -q --without-x CFLAGS='{FLAGS}' CXXFLAGS='{FLAGS}' && {MAKE} AUTOMAKE=: ACLOCAL=: AUTOCONF=: AUTOHEADER=:", "troff",
            start_troff, Site(wrappers=r"_Zn[wa]m|operator new.*"), held_out=True),
    Program("gperf", "gperf", f"./configure -q CFLAGS='{FLAGS}' CXXFLAGS='{FLAGS}' && {MAKE} -C lib && {MAKE} -C src",
            "src/gperf", start_gperf, Site(wrappers=r"_Zn[wa]m|operator new.*"), held_out=True),
    Program("mcpp", "mcpp", f"./configure -q --disable-shared CFLAGS='{FLAGS}' && {MAKE} -C src", "src/mcpp", start_mcpp,
            Site(wrappers=r"xmalloc|xrealloc|save_string"), held_out=True),
    Program("mksh", "mksh", f"CPPFLAGS=-DMKSH_BUILDMEAT HAVE_CAN_NO_EH_FRAME=0 CFLAGS='{FLAGS} -fasynchronous-unwind-tables' sh Build.sh -r", "mksh", start_mksh,
            Site(wrappers=r"aresize2|strn?dup_i\w*", headed="aresize"), held_out=True),
    Program("gpp", "gpp", f"./configure -q CFLAGS='{FLAGS}' && {MAKE} -C src", "src/gpp", start_gpp,
            Site(wrappers=r"my_malloc|my_realloc|my_strdup"), held_out=True),
    Program("ctags", "exuberant-ctags", f"./configure -q CFLAGS='{FLAGS}' && {MAKE} ctags", "ctags", start_ctags,
            Site(wrappers=r"e(M|C|Re)alloc|eStrn?dup", types={"xMalloc": 1, "xCalloc": 1, "xRealloc": 2}), held_out=True),
    Program("abc2midi", "abcmidi", f"autoreconf -fi; ./configure -q CFLAGS='{FLAGS}' && {MAKE} abc2midi", "abc2midi", start_abc2midi,
            Site(wrappers=r"checkmalloc|addstring"), held_out=True),
    Program("unbound", "unbound", f"./configure -q --disable-shared --disable-flto --without-pyunbound --without-pythonmodule "
            f"--disable-systemd CFLAGS='{FLAGS}' && {MAKE} unbound", "unbound", start_unbound,
            Site(wrappers=r"regional_\w+|unbound_stat_\w+"), held_out=True),
    Program("tree", "tree", f"make -s CFLAGS='{FLAGS} -DLINUX -D_LARGEFILE64_SOURCE -D_FILE_OFFSET_BITS=64' LDFLAGS=", "tree", start_tree,
            Site(wrappers=r"xmalloc|xrealloc|scopy"), held_out=True),
    Program("grep", "grep", f"./configure -q --disable-nls --disable-perl-regexp CFLAGS='{FLAGS}' && {MAKE} AUTOMAKE=: ACLOCAL=: AUTOCONF=: AUTOHEADER=: SUBDIRS='lib src'", "src/grep", start_grep,
            Site(wrappers=r"x\w*alloc\w*|xmemdup|ximemdup\w*"), held_out=True),
    Program("awk", "original-awk", f"make -s CC=gcc HOSTCC=gcc CFLAGS='{FLAGS}' YACC='bison -d -b awkgram' a.out", "a.out", start_mawk,
            Site(wrappers=r"tostringN?|strdup"), held_out=True),
    Program("cmark", "cmark", f"cmake -S . -B built -G 'Unix Makefiles' -DCMAKE_BUILD_TYPE= -DCMARK_SHARED=OFF -DCMARK_TESTS=OFF "
            f"-DCMAKE_C_FLAGS='{FLAGS}' && {MAKE} -C built", "built/src/cmark", start_cmark,
            Site(wrappers=r"xcalloc|xrealloc|cmark_strbuf_\w+"), held_out=True),
)
