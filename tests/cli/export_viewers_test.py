"""
Exports in the viewers that they are for. A viewer that is not installed skips
its test; scripts/test --viewers installs those that are small.
"""

import json
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

import export_test

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
TIMEOUT = 120

# What a person does with the flame graph, and what is seen then.
CLICKS = """<script><![CDATA[
const seen = {errors: []};
addEventListener('error', event => seen.errors.push(event.message));
addEventListener('load', () => {
 const frame = name => all.filter(f => f.name === name)[0];
 const width = name => Math.round(+frame(name).r.getAttribute('width'));
 const shown = name => frame(name).g.style.display !== 'none';
 seen.before = [width('the heap'), width('cache_kind')];
 frame('cache_kind').g.dispatchEvent(new Event('click'));
 seen.zoomed = [width('cache_kind'), width('cache (retained)'), shown('node_kind')];
 document.getElementById('back').dispatchEvent(new Event('click'));
 seen.back = [width('the heap'), width('cache_kind'), shown('node_kind')];
 mark('entry_');
 seen.hits = all.filter(f => f.g.classList.contains('hit')).map(f => f.name);
 frame('node_kind').g.dispatchEvent(new Event('mouseenter'));
 seen.info = info.textContent;
 seen.requests = performance.getEntriesByType('resource').map(entry => entry.name);
 document.documentElement.setAttribute('data-seen', JSON.stringify(seen));
});
]]></script>
</svg>"""

def needs(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    return unittest.skipIf(missing, f"there is no {' and no '.join(missing)}")


class ViewersTest(export_test.ExportTest):
    def export(self, name, *words):
        path = self.file(name)
        self.core.run("export", name, *words, "-o", path)
        return path

    def view(self, *command):
        return subprocess.run(command, check=True, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TIMEOUT).stdout

    def browse(self, path):
        """What a page consists of once its scripts ran."""
        with tempfile.TemporaryDirectory(prefix="heapcore-") as folder:
            return self.view(BROWSER, "--headless", "--no-sandbox", "--disable-gpu",
                             "--user-data-dir=" + folder, "--virtual-time-budget=10000",
                             "--dump-dom", "file://" + path)

    @needs("dot")
    def test_graphviz_draws_each_graph(self):
        for graph in ("kinds", "dominators", "references"):
            drawn = self.view("dot", "-Tsvg", self.export("dot", "--graph", graph))
            xml.etree.ElementTree.fromstring(drawn)
            self.assertIn("cache_kind", drawn)

    @needs("go")
    def test_pprof_adds_up(self):
        size = self.core.count("used")[1]
        text = self.view("go", "tool", "pprof", "-top", "-unit=B", "-sample_index=inuse_space",
                         self.export("pprof"))
        self.assertIn(f"100% of {size}B total", text)
        self.assertRegex(text, r"40B +[0-9.]+% +[0-9.]+% +1216B +[0-9.]+% +cache_kind")

    @needs("heaptrack_print")
    def test_heaptrack_finds_the_stacks(self):
        path = self.file("costs.folded")
        text = self.view("heaptrack_print", "-f", self.export("heaptrack"),
                         "--flamegraph-cost-type", "leaked", "-F", path)
        self.assertIn(f"calls to allocation functions: {self.core.count('used')[0]} ", text)
        with open(path, encoding="utf-8") as file:
            paths = export_test.folded(file.read().replace("; ", " "))
        self.assertEqual(paths, self.folded)

    @unittest.skipUnless(BROWSER, "there is no chromium")
    def test_a_browser_zooms_and_searches_the_flame_graph(self):
        with open(self.export("svg"), encoding="utf-8") as file:
            text = file.read()
        path = self.file("clicked.svg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("</svg>\n", CLICKS))
        root = xml.etree.ElementTree.fromstring(self.browse(path))
        seen = json.loads(root.get("data-seen"))
        whole = self.core.count("used")[1]
        self.assertEqual(seen["errors"], [])
        self.assertEqual(seen["requests"], [])
        self.assertEqual(seen["before"], [1200, round(1200 * 1216 / whole)])
        self.assertEqual(seen["zoomed"], [1200, 1200, False])
        self.assertEqual(seen["back"], [*seen["before"], True])
        self.assertEqual(set(seen["hits"]), {"entry_kind"})
        self.assertIn("node_kind: 144 bytes in 4 allocations", seen["info"])


if __name__ == "__main__":
    unittest.main()
