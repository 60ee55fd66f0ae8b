#!/usr/bin/env python3
"""
The pages of a fleet: its leaks, builds, hosts and growth, and who holds the memory of a core of it.
"""

import html
import os
import re
import unittest
import urllib.parse

import fleet_cores
import harness
from served import Server

EVIL = "<script>alert('\"&')</script>"


def text_of(page):
    return html.unescape(re.sub("<[^>]*>", " ", page))


class ServeFleetTest(fleet_cores.FleetCores):
    @classmethod
    def setUpClass(cls):
        cls.make_cores(["host08"])
        harness.ask("fleet", "--path-tags", fleet_cores.PATTERN, "-o", cls.database, cls.cores)
        made = os.path.join(cls.temporary.name, "made")
        os.mkdir(made)
        for host in range(8):
            fleet_cores.made_rows(os.path.join(made, f"{host}.ndjson"), f"made{host}", "1.5" if host < 4 else "1.6",
                                  {EVIL: 10000 + host if host < 4 else 40000 + host}, time=1e9 + host)
        harness.ask("fleet", "-o", cls.database, made)
        cls.server = Server("--no-open", cls.database)
        cls.addClassCleanup(cls.server.kill)

    def page(self, path, expected=200, **arguments):
        status, headers, text = self.server.request(path + "?" + urllib.parse.urlencode(arguments))
        self.assertEqual(status, expected, text)
        if expected == 200:
            self.assertIn("text/html", headers["Content-Type"])
            self.assertIn("script-src 'self'", headers["Content-Security-Policy"])
        return text

    def test_the_first_page_has_leaks_builds_hosts_and_growth(self):
        page = self.page("/")
        titles = re.findall("<h2>(.*?)</h2>", page)
        for title in ("Leaks", "Builds", "Growth by the build that brought it", "Hosts", "Doubtful cores"):
            self.assertIn(title, titles)
        for leak in self.report()["fleet leak"]:
            self.assertIn(f'href="/leak?of={leak["fingerprint"]}"', page)
        self.assertIn("made7", page)
        self.assertIn(f"{40000 + 5:,}", page)
        self.assertNotIn("<script", page)
        self.assertIn(EVIL, text_of(page))

    def test_a_leak_has_its_builds_and_leads_to_a_core(self):
        leak = self.report()["fleet leak"][0]
        page = self.page("/leak", of=leak["fingerprint"])
        self.assertIn(leak["kind"], text_of(page))
        cores = [urllib.parse.unquote(found) for found in re.findall(r'href="/core\?of=([^"]*)"', page)]
        self.assertTrue(set(cores) <= set(self.all) and cores)
        self.assertIn("bytes.", self.page("/core", of=cores[0]))

    def test_only_cores_of_the_file_are_opened_and_only_pages_answered(self):
        self.page("/core", 404, of="/etc/passwd")
        self.page("/leak", 404)
        self.page("/api/run", 404, command="count used")
        self.page("/leak", 500, of="nothing")
        self.assertEqual(self.server.request("/", headers={"Cookie": None})[0], 403)
        self.assertEqual(self.server.request("/page.css")[0], 200)


if __name__ == "__main__":
    unittest.main()
