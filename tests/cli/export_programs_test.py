"""
Exports of programs that nobody wrote for heapcore, in the viewers that they are
for: each opens them, and its sums are those of `count used`.
"""

import json
import os
import shutil
import socket
import unittest
import xml.etree.ElementTree

import browser
import export_test
import harness

RUBY = """
class Session; def initialize(n); @name = "session #{n}"; @items = (0..n % 9).to_a; end; end
SESSIONS = (1..3000).to_h { |n| ["key #{n}", Session.new(n)] }
$stdout.sync = true
puts "ready"
gets
"""
CMAKE = """
foreach(i RANGE 3000)
  set(variable_${i} "a value;of some;length ${i}")
  set_property(GLOBAL APPEND PROPERTY list_${i} ${variable_${i}})
endforeach()
execute_process(COMMAND ${CMAKE_COMMAND} -E echo ready)
execute_process(COMMAND sleep 600)
"""
CRYSTAL = """
require "socket"
class Session
  property name : String, seen : Array(Int32)
  def initialize(@name, @seen); end
end
sessions = {} of String => Session
2000.times { |i| sessions["key #{i}"] = Session.new("session #{i}", [i, i + 1]) }
server = UNIXServer.new ARGV[0]
spawn { puts "ready"; STDOUT.flush }
while client = server.accept?
  client.puts sessions.size
end
"""
# The worker of Chromium's developer tools that reads heap snapshots.
DEVTOOLS = "devtools://devtools/bundled/"
LOAD = """(async () => {
 const start = () => new Promise((done, failed) => {
  const worker = new Worker('%sentrypoints/heap_snapshot_worker/' +
                            'heap_snapshot_worker-entrypoint.js', {type: 'module'});
  worker.onerror = () => failed(new Error('no worker'));
  worker.addEventListener('message', (event) => event.data === 'workerReady' && done(worker));
 });
 let calls = 0;
 const call = (worker, message, ports = []) => new Promise((done, failed) => {
  const callId = ++calls;
  worker.addEventListener('message', ({data}) => {
   if (data.callId === callId)
    data.error ? failed(new Error(data.error)) : done(data.result);
  });
  worker.postMessage({objectId: 1, methodArguments: [], ...message, callId}, ports);
 });
 const [first, second, channel] = [await start(), await start(), new MessageChannel()];
 await call(second, {disposition: 'setupForSecondaryInit'}, [channel.port1]);
 await call(first, {disposition: 'createLoader'});
 for (const part of %s)
  await call(first, {disposition: 'method', methodName: 'write', methodArguments: [part]});
 await call(first, {disposition: 'method', methodName: 'close'});
 await call(first, {disposition: 'factory', methodName: 'buildSnapshot', newObjectId: 2},
            [channel.port2]);
 const get = (methodName) => call(first, {disposition: 'getter', objectId: 2, methodName});
 return [await get('nodeCount'), await get('totalSize')];
})()"""


def needs(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    return unittest.skipIf(missing, f"there is no {' and no '.join(missing)}")


@unittest.skipIf(harness.SANITIZED, "others are enough")
class Programs(harness.LiveTest):
    """What is done with the core of each program."""

    core = None

    def take(self, process):
        self.core = export_test.Core(harness.snap(process, self.path("core")))
        self.count, self.size = self.core.count("used")

    def export(self, name, *words):
        path = self.path("export." + name)
        self.core.run("export", name, *words, "-o", path)
        return path

    def view(self, *command):
        result = harness.run(*command)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def look(self):
        """All viewers, one after another: a core is made only once."""
        for look in (self.look_at_stacks, self.look_at_pictures, self.look_in_browser,
                     self.look_at_heaps):
            look()

    def look_at_stacks(self):
        with open(self.export("folded"), encoding="utf-8") as file:
            self.assertEqual(sum(export_test.folded(file.read()).values()), self.size)
        self.assertIn(f" of {self.size}B total",
                      self.view("go", "tool", "pprof", "-top", "-unit=B",
                                "-sample_index=inuse_space", self.export("pprof")))
        self.assertIn(f"calls to allocation functions: {self.count} ",
                      self.view("heaptrack_print", "-f", self.export("heaptrack")))

    def look_at_pictures(self):
        for graph in "kinds", "dominators", "references":
            drawn = self.view("dot", "-Tsvg", self.export("dot", "--graph", graph))
            xml.etree.ElementTree.fromstring(drawn)
            self.assertIn("<polygon", drawn)

    def look_in_browser(self):
        page = browser.Browser()
        self.addCleanup(page.close)
        page.open(self.export("svg"))
        self.assertGreater(page.run("document.querySelectorAll('.f').length"), 5)
        self.assertEqual(page.complaints(), [])
        report = self.path("report.html")
        harness.ask("-q", "report", self.core.path, "-o", report)
        page.open(report)
        self.assertIn("Who holds the memory", page.run("document.body.innerText"))
        self.assertEqual(page.complaints(), [])

    def look_at_heaps(self):
        text = self.core.text("export", "heapsnapshot")
        parts = [text[place:place + (1 << 20)] for place in range(0, len(text), 1 << 20)]
        page = browser.Browser()
        self.addCleanup(page.close)
        page.go(DEVTOOLS + "inspector.html")
        nodes, size = page.run(LOAD % (DEVTOOLS, json.dumps(parts)))
        self.assertEqual(size, self.size)
        self.assertEqual(nodes, json.loads(text)["snapshot"]["node_count"])


@needs("dot", "go", "heaptrack_print", "chromium")
@unittest.skipIf("sanitize" in os.environ["BUILD_DIR"], "others are enough")
class ExportProgramsTest(Programs):
    @needs("ruby")
    def test_ruby(self):
        self.take(self.start(["ruby", "-e", RUBY]))
        self.look()

    @needs("cmake")
    @harness.among_all
    def test_cmake(self):
        script = self.path("script.cmake")
        with open(script, "w", encoding="utf-8") as file:
            file.write(CMAKE)
        self.take(self.start(["cmake", "-P", script]))
        self.look()

    @needs("crystal")
    @harness.among_all
    def test_crystal_server(self):
        server = harness.build_crystal(self.path("server"), CRYSTAL)
        self.take(self.start([server, self.path("socket")]))
        self.look()

    @needs("redis-server")
    def test_redis(self):
        path = self.path("socket")
        process = harness.launch(["redis-server", "--port", "0", "--unixsocket", path],
                                 self.folder)
        self.addCleanup(harness.end, process)
        for line in process.stdout:
            if "ready to accept connections" in line.lower():
                break
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(b"".join(b"RPUSH list%d some text\r\n" % number
                                        for number in range(3000)) + b"QUIT\r\n")
            with connection.makefile("rb") as answers:
                self.assertEqual(answers.read(), 3000 * b":2\r\n" + b"+OK\r\n")
        self.take(process)
        self.look()


if __name__ == "__main__":
    unittest.main()
