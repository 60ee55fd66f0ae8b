#!/usr/bin/env python3
"""
heapcore serve answers a browser with what the commands say, page by page, to several clients at
once, and refuses all others. The page itself is tested in serve_viewers_test.py.
"""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

from harness import FINE, HEAPCORE, INCOMPLETE, ROOT, USAGE, LiveTest, ask, snap
from served import DEADLINE, Server

sys.path.append(os.path.join(ROOT, "tests", "cli"))
import hostile_text_test  # noqa: E402

ENDLESS = ("sql WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number) "
           "SELECT count(*) FROM number")
OTHER_TOKEN = "0" * 32


class ServeTest(LiveTest):
    def core(self, name="core"):
        process = self.start([self.compile("owners", "owners.c", flags=("-g", "-O2"))])
        return snap(process, self.path(name))

    def serve(self, *words, **variables):
        server = Server("--no-open", *words, **variables)
        self.addCleanup(server.kill)
        return server


class AnswersTest(ServeTest):
    def test_it_says_what_the_commands_say(self):
        core = self.core()
        server = self.serve(core)
        for words in (["info"], ["summarize", "used"], ["list", "used"],
                      ["sql", "SELECT count(*) FROM allocation"]):
            expected = json.loads(ask("-q", "--format", "json", core, *words).stdout)
            self.assertEqual(server.run(" ".join(words), rows=1000), expected)
        self.assertEqual(server.stop(), (FINE, ""))

    def test_it_tells_its_state(self):
        core = self.core()
        server = self.serve(core, core)
        server.wait_until_ready()
        state = server.get("/api/state")
        self.assertEqual((state["core"], state["size"], state["old"], state["content"]),
                         (core, os.path.getsize(core), ["core"], True))
        self.assertEqual((state["working"], state["stage"], state["findings"]), (False, None, []))
        self.assertEqual(state["process"], server.run("info")["tables"][0]["rows"][0]["process"])
        self.assertIn("owners", state["command"])

    def test_pages_are_parts_of_the_whole(self):
        server = self.serve(self.core())
        query = ("sql WITH RECURSIVE number(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number "
                 "WHERE n < 49999) SELECT n, hex(zeroblob(n % 99)) AS more FROM number")
        for start in (0, 1, 255, 256, 25000, 49990):
            table, = server.run(query, **{"from": start, "rows": 20})["tables"]
            end = min(start + 20, 50000)
            self.assertEqual((table["total"], table["from"]), (50000, start))
            self.assertEqual(table["rows"], [{"n": n, "more": "00" * (n % 99)}
                                             for n in range(start, end)])
        table, = server.run(query, **{"from": 50000})["tables"]
        self.assertEqual((table["rows"], table["total"]), ([], 50000))

    def test_one_table_is_paged_alone(self):
        server = self.serve(self.core())
        whole = server.run("list used", rows=1000)["tables"]
        self.assertEqual([table["name"] for table in whole], ["allocation", "total"])
        self.assertNotIn("total", whole[0])
        page, = server.run("list used", **{"from": 3, "rows": 2, "table": 0})["tables"]
        self.assertEqual(page["rows"], whole[0]["rows"][3:5])
        page, = server.run("list used", table=1)["tables"]
        self.assertEqual(page, whole[1])
        self.assertEqual(server.run("list used", table=2)["tables"], [])

    def test_text_is_what_the_prompt_prints(self):
        core = self.core()
        server = self.serve(core)
        expected = ask("-q", core, "summarize", "used").stdout
        self.assertEqual(server.get("/api/text", command="summarize used"),
                         {"text": expected, "truncated": False, "failed": False})
        answer = server.get("/api/text", command="summarize usd")
        self.assertTrue(answer["failed"])
        self.assertIn("did you mean 'used'?", answer["text"])
        many = ("sql WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number) "
                "SELECT n FROM number")
        answer = server.get("/api/text", command=many + " LIMIT 100000")
        self.assertEqual((answer["truncated"], answer["failed"]), (True, False))
        self.assertLess(len(answer["text"]), 256 << 10)

    def test_text_of_a_format_is_no_table(self):
        core = self.core()
        server = self.serve(core)
        self.assertEqual(server.run("export folded"),
                         {"text": ask("-q", core, "export", "folded").stdout, "truncated": False})

    def test_words_are_completed(self):
        server = self.serve(self.core())
        for line, word in (("summ", "summarize"), ("list us", "used"),
                           ("list used --sort-by by", "bytes"), ("list used --lim", "--limit")):
            self.assertIn(word, server.get("/api/complete", line=line)["words"])
        self.assertEqual(server.get("/api/complete", line="lixt used ")["words"], [])

    def test_errors_are_sentences(self):
        server = self.serve(self.core())
        for command, mistake in (("lixt", "unknown command 'lixt'"), ("", "no command"),
                                 ("list 'used", "quote"), ("list usd", "did you mean 'used'?"),
                                 ("sql SELECT x", "no such column"), ("explain", "address or a set")):
            self.assertIn(mistake, server.run(command)["error"])
        server.get("/api/run", expected=400)
        server.run("list used", expected=400, rows="many")

    def test_a_core_that_is_none_ends_it(self):
        path = self.path("none")
        with open(path, "wb") as file:
            file.write(b"no core at all")
        server = self.serve(path)
        out, error = server.process.communicate(timeout=DEADLINE)
        self.assertEqual((server.process.returncode, out), (INCOMPLETE, ""))
        self.assertIn("none", error)
        for words in ((self.path("absent"),), (), ("--port", "70000", path), ("--listen", "x", path)):
            run = subprocess.run([HEAPCORE, "serve", *words], capture_output=True, text=True,
                                 timeout=DEADLINE)
            self.assertEqual((run.returncode, run.stdout), (USAGE, ""))


class OlderTest(ServeTest):
    def test_older_cores_are_known_by_name(self):
        core = self.core()
        older, other = self.path("older"), self.path("other")
        shutil.copy(core, older)
        shutil.copy(core, other)
        server = self.serve(core, older)
        expected = json.loads(ask("-q", "--format", "json", core, "diff", older).stdout)
        self.assertEqual(server.run("diff older"), expected)
        self.assertEqual(server.run("report older")["command"], "report " + older)
        for command in ("diff other", f"diff {other}", f"diff {older}", "diff ../older",
                        "gate --max-growth 1 --compare other", f"report {other}"):
            self.assertIn("none of the older cores", server.run(command)["error"])
        self.assertIn("tables", server.run("gate --max-growth 1 --compare older"))

    def test_sets_that_change_make_new_answers(self):
        server = self.serve(self.core())
        server.run("let mine = used --max-size 100")
        few = server.run("count mine")["tables"][0]["rows"][0]["count"]
        server.run("let mine = used")
        self.assertGreater(server.run("count mine")["tables"][0]["rows"][0]["count"], few)


class TogetherTest(ServeTest):
    def wait_for_work(self, server, is_working):
        end = time.monotonic() + DEADLINE
        while server.get("/api/state")["working"] != is_working:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def ask_and_leave(self, server, command):
        """Send a request, as a browser that is killed later."""
        connection = socket.create_connection((server.address, server.port), DEADLINE)
        query = urllib.parse.urlencode({"command": command})
        connection.sendall(f"GET /api/run?{query} HTTP/1.1\r\nHost: {server.host}\r\n"
                           f"Cookie: {server.cookie}\r\n\r\n".encode())
        return connection

    def test_a_closed_connection_ends_its_work(self):
        server = self.serve(self.core())
        server.wait_until_ready()
        first, second = (self.ask_and_leave(server, ENDLESS + f" -- {i}") for i in range(2))
        self.wait_for_work(server, True)
        second.close()
        first.close()
        self.wait_for_work(server, False)
        self.assertIn("tables", server.run("count used"))

    def test_work_is_cancelled_by_its_id(self):
        server = self.serve(self.core())
        server.wait_until_ready()
        answers = []

        def ask_endlessly(number):
            answers.append(server.run(ENDLESS, expected=503, id=number))

        threads = [threading.Thread(target=ask_endlessly, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        self.wait_for_work(server, True)
        while any(thread.is_alive() for thread in threads):
            server.get("/api/cancel", id="none")
            for i in range(2):
                server.get("/api/cancel", id=i)
            time.sleep(0.02)
        self.assertEqual(answers, 2 * [{"error": "cancelled"}])
        self.assertIn("tables", server.run("count used"))

    def test_the_first_rows_come_while_the_command_runs(self):
        server = self.serve(self.core())
        server.wait_until_ready()
        self.assertEqual(server.get("/api/first", id="none"), {"tables": []})
        query = "sql SELECT a.address, b.size FROM allocation AS a, allocation AS b, allocation AS c, allocation AS d"
        thread = threading.Thread(target=server.run, args=(query, 503), kwargs={"id": "long"})
        thread.start()
        while not (found := server.get("/api/first", id="long"))["tables"]:
            self.assertTrue(thread.is_alive())
        self.assertEqual((len(found["tables"][0]["rows"]), found["complete"]), (200, False))
        self.assertEqual(list(found["tables"][0]["rows"][0]), list(found["tables"][0]["kinds"]))
        self.assertEqual(server.get("/api/first", id="other"), {"tables": []})
        server.get("/api/cancel", id="long")
        thread.join()
        self.assertEqual(server.get("/api/first", id="long"), {"tables": []})

    def test_two_clients_and_one_that_is_killed(self):
        core = self.core()
        server = self.serve(core)
        commands = ["summarize used", "tree used", "list used", "bill", "count leaked"] * 4
        expected = {words: json.loads(ask("-q", "--format", "json", core, *words.split()).stdout)
                    for words in set(commands)}
        wrong = []

        def client(own):
            for words in own:
                if server.run(words, rows=1000) != expected[words]:
                    wrong.append(words)

        killed = [self.ask_and_leave(server, ENDLESS) for _ in range(3)]
        threads = [threading.Thread(target=client, args=(own,))
                   for own in (commands, commands[::-1])]
        for thread in threads:
            thread.start()
        for connection in killed:
            connection.close()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_it_ends_in_the_midst_of_work(self):
        server = self.serve(self.core())
        server.wait_until_ready()
        connections = [self.ask_and_leave(server, ENDLESS) for _ in range(3)]
        self.wait_for_work(server, True)
        self.assertEqual(server.stop(signal.SIGTERM), (FINE, ""))
        for connection in connections:
            connection.close()


class AttacksTest(ServeTest):
    def test_only_its_own_page_may_ask(self):
        server = self.serve(self.core())
        port = server.port
        for headers in ({"Host": f"evil.example:{port}"}, {"Host": "127.0.0.1"},
                        {"Host": f"127.0.0.1:{port}.evil.example"}, {"Host": f"127.0.0.1:{port}x"},
                        {"Host": f"[::1:{port}"}, {"Host": ":"}, {"Host": ""},
                        {"Origin": "http://evil.example"}, {"Origin": "null"},
                        {"Origin": f"https://{server.host}"}, {"Origin": f"http://{server.host}0"},
                        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
                        {"Cookie": None}, {"Cookie": f"heapcore_{port}={OTHER_TOKEN}"},
                        {"Cookie": f"heapcore_{port}="}, {"Cookie": f"heapcore={server.token}"},
                        {"Cookie": f"heapcore_{port}={server.token}0"}):
            for path in ("/", "/page.js", "/api/state", "/api/run?command=info", "/none"):
                status, sent, text = server.request(path, headers=headers)
                self.assertEqual(status, 403, headers)
                self.assertNotIn("owners", text)
                self.assertNotIn(server.token, text + str(sent))
        for headers in ({"Host": f"localhost:{port}"}, {"Origin": f"http://{server.host}"},
                        {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
            self.assertEqual(server.request("/api/state", headers=headers)[0], 200)

    def test_the_token_becomes_a_cookie(self):
        server = self.serve(self.core())
        status, sent, _ = server.request(f"/?token={server.token}", headers={"Cookie": None})
        self.assertEqual((status, sent["Location"]), (303, "/"))
        self.assertEqual(sent["Set-Cookie"],
                         f"{server.cookie}; Path=/; HttpOnly; SameSite=Strict")
        for path in (f"/?token={OTHER_TOKEN}", "/?token=", f"/api/state?token={server.token}",
                     f"/?token={server.token[:-1]}"):
            status, sent, _ = server.request(path, headers={"Cookie": None})
            self.assertEqual((status, sent["Set-Cookie"]), (403, None))

    def test_answers_are_strict(self):
        server = self.serve(self.core())
        for path in ("/", "/page.js", "/page.css", "/api/state", "/none",
                     f"/?token={server.token}"):
            _, sent, _ = server.request(path)
            self.assertTrue(sent["Content-Security-Policy"].startswith("default-src 'none'; "))
            self.assertNotIn("unsafe", sent["Content-Security-Policy"])
            self.assertEqual((sent["X-Content-Type-Options"], sent["Referrer-Policy"],
                              sent["Cache-Control"], sent["Access-Control-Allow-Origin"]),
                             ("nosniff", "no-referrer", "no-store", None))

    def test_only_reading_is_answered(self):
        server = self.serve(self.core())
        secret = self.path("secret")
        with open(secret, "w", encoding="utf-8") as file:
            file.write("count used\n")
        made = self.path("made")
        for command in (f"source {secret}", "redirect on", "history", "quit", f"count used > {made}",
                        f"count used >> {made}", f"count used | tee {made}",
                        f"export folded -o {made}", f"export sqlite --output={made}",
                        f"gate --baseline {made} --update-baseline", f"gate --suppress={secret}",
                        f"gate /suppress {secret}", "gate --self-check", "report " + secret):
            for path in ("/api/run", "/api/text"):
                self.assertEqual(list(server.get(path, command=command)), ["error"], command)
        self.assertFalse(os.path.exists(made))
        self.assertIn("tables", server.run("count used"))

    def test_other_requests_are_refused(self):
        server = self.serve(self.core())
        for method, body in (("POST", "x"), ("POST", None), ("PUT", "x" * 100000), ("HEAD", None),
                             ("DELETE", None), ("OPTIONS", None), ("GET", "x"), ("TRACE", None)):
            self.assertEqual(server.request("/api/state", method, body=body)[0], 405, method)
        for path in ("/../../etc/passwd", "/..%2f..%2fetc/passwd", "/page.js/", "//page.js",
                     "/api", "/api/", "/%2e%2e/page.js", "/page/page.js"):
            self.assertEqual(server.request(path)[0], 404, path)
        self.assertEqual(server.request("/api/state?x=" + 9000 * "x")[0], 414)
        self.assertEqual(server.request("/api/run?command=count%20used%00")[0], 414)
        self.assertIn(server.request("/api/state?x=" + 100000 * "x")[0], (414, 431))
        self.assertIn(server.request("/api/state", headers={"X": 100000 * "x"})[0], (400, 413, 431))
        self.assertTrue(server.get("/api/state")["core"])

    def test_half_requests_disturb_nobody(self):
        server = self.serve(self.core())
        open_ones = []
        for text in (b"", b"G", b"GET /api/state HTTP/1.1\r\nHost: x", b"\0" * 1000, b"\r\n" * 1000,
                     b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET\n\n",
                     b"GET / HTTP/1.1\r\nContent-Length: -1\r\nHost: x\r\n\r\n",
                     b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: x\r\n\r\nffffffffff"):
            connection = socket.create_connection((server.address, server.port), DEADLINE)
            connection.sendall(text)
            open_ones.append(connection)
        self.assertIn("tables", server.run("count used"))
        for connection in open_ones:
            connection.close()
        self.assertEqual(server.stop(), (FINE, ""))


class ContentsTest(ServeTest):
    def ask_all(self, server, place):
        """All that all commands say, as it stands in the answers."""
        server.wait_until_ready()
        text = server.request("/api/state")[2]
        for command in place.commands():
            query = urllib.parse.urlencode({"command": command})
            text += "".join(server.request(f"/api/{kind}?{query}")[2] for kind in ("run", "text"))
        return text

    def test_secrets_stay_with_no_content(self):
        place = hostile_text_test.Place(self.path(""), False)
        server = self.serve(place.core)
        self.assertIn(hostile_text_test.SECRET, self.ask_all(server, place))
        server = self.serve("--no-content", place.core)
        text = self.ask_all(server, place)
        self.assertFalse(server.get("/api/state")["content"])
        self.assertNotIn(hostile_text_test.SECRET, text)

    def test_hostile_names_are_text(self):
        place = hostile_text_test.Place(self.path(""), True)
        text = self.ask_all(self.serve(place.core), place)
        self.assertIn("[31mX", text)
        self.assertEqual([letter for letter in set(text) if hostile_text_test.is_harmful(letter)],
                         [])


class PlacesTest(ServeTest):
    def test_a_path_is_listened_at(self):
        path = self.path("socket")
        server = self.serve("--listen", f"unix:{path}", self.core())
        self.assertIn(path, server.line)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(b"GET / HTTP/1.0\r\nHost: localhost:8000\r\n\r\n")
            self.assertIn(b" 403 ", connection.recv(100))
        self.assertEqual(server.stop(), (FINE, ""))
        self.assertFalse(os.path.exists(path))

    def test_who_lets_others_in_is_warned(self):
        core = self.core()
        server = self.serve("--listen", "0.0.0.0:0", core)
        self.assertTrue(server.get("/api/state")["core"])
        for host, status in ((f"evil.example:{server.port}", 403), (f"192.0.2.1:{server.port}", 200)):
            self.assertEqual(server.request("/", headers={"Host": host})[0], status)
        self.assertRegex(server.stop()[1], "warning: others can connect")
        server = self.serve("--listen", "127.0.0.1:0", core)
        self.assertEqual(server.stop(), (FINE, ""))

    def test_a_browser_is_opened_only_where_there_is_one(self):
        core, seen = self.core(), self.path("seen")
        os.mkdir(self.path("bin"))
        program = self.path("bin/xdg-open")
        with open(program, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$1" > "{seen}.new" && mv "{seen}.new" "{seen}"\n')
        os.chmod(program, 0o755)
        path = self.path("bin") + ":" + os.environ["PATH"]
        for words, variables in ((["--no-open"], {"DISPLAY": ":0"}), ([], {}),
                                 ([], {"DISPLAY": ""})):
            server = Server(*words, core, PATH=path, **variables)
            server.wait_until_ready()
            self.assertEqual(server.stop(), (FINE, ""))
            self.assertFalse(os.path.exists(seen))
        server = Server(core, PATH=path, WAYLAND_DISPLAY="wayland-0")
        self.addCleanup(server.kill)
        end = time.monotonic() + DEADLINE
        while not os.path.exists(seen):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        with open(seen, encoding="utf-8") as file:
            address = file.read().strip()
        self.assertNotIn(server.token, address)  # others can see a program's arguments
        path = urllib.parse.urlsplit(address)
        for status in (303, 403):
            self.assertEqual(server.request(f"/?{path.query}", headers={"Cookie": None})[0], status)
        self.assertEqual(server.stop(), (FINE, ""))


if __name__ == "__main__":
    unittest.main()
