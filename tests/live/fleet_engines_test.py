"""
The recipes of docs/fleet.md and docs/fleet, run by the engines they are for: the rows that these
make of some cores, once loaded, are what 'heapcore fleet' tells of the same cores.
"""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import unittest

import engines
import fleet_cores
import harness

DOCUMENTS = os.path.join(harness.ROOT, "docs")
HOSTS = ["host07", "host08"]
# A core by what it tells itself.
CORE = "build_id || ' ' || process"


def document(name):
    with open(os.path.join(DOCUMENTS, name), encoding="utf-8") as file:
        return file.read()


def recipe(word):
    """The line of docs/fleet.md that has the word."""
    return next(line for line in re.findall(r"(?m)^    (.*)", document("fleet.md")) if word in line)


@unittest.skipIf(harness.SANITIZED, "others are enough: this is about other programs")
class EnginesTest(fleet_cores.FleetCores):
    @classmethod
    def setUpClass(cls):
        cls.make_cores(HOSTS)
        # The recipes have no host of a core.
        harness.ask("fleet", "-q", "-o", cls.database, cls.cores)

    def setUp(self):
        super().setUp()
        os.symlink(harness.HEAPCORE, self.path("heapcore"))
        os.symlink(self.cores, self.path("cores"))
        self.search = self.folder + os.pathsep + os.environ["PATH"]
        with open(self.path("cores.txt"), "w", encoding="utf-8") as file:
            file.write("".join(core + "\n" for core in [*self.all, self.broken]))

    def execute(self, script, status=None, **variables):
        """The script, which may fail: a core is broken."""
        run = harness.run("bash", "-c", script, cwd=self.folder,
                          env={**os.environ, "PATH": self.search, **variables})
        self.said = run.stdout + run.stderr
        if status is not None:
            self.assertEqual(run.returncode, status, self.said)

    def contents(self, database):
        columns = {
            "core": "program, used, used_bytes, leaked, leaked_bytes, mapped, resident",
            "leak": "fingerprint, leak.kind, leak.roots, leak.bytes, address",
            "kind": "kind.kind, count, bytes", "bill": "memory, use, bill.mapped, bill.resident",
            "finding": "message, 0"}
        joined = {table: f"core JOIN {table} ON core = id" for table in columns}
        joined["core"] = "core"
        return {table: sorted(self.ask(f"SELECT {CORE}, {names} FROM {joined[table]}"
                                       " WHERE error IS NULL", database), key=repr)
                for table, names in columns.items()}

    def check_rows(self):
        """They are those of all cores; the broken one is there with its error."""
        database = self.path("rows.db")
        run = harness.run(harness.HEAPCORE, "fleet", "-o", database, self.path("rows"))
        self.assertIn(f"{len(self.all)} analysed, 1 failed", run.stderr, self.said)
        self.assertEqual(*(self.ask("SELECT origin, error FROM core WHERE error IS NOT NULL", each)
                           for each in (database, self.database)))
        self.assertEqual(self.contents(database), self.contents(self.database))

    def test_builds_without_a_tag_are_known_by_the_first_digits(self):
        for row in self.report()["fleet build"]:
            chosen = self.report("--select", f"build={row['build']}")["fleet"][0]
            self.assertEqual(len(row["build"]), 12)
            self.assertEqual(chosen["cores"], len(HOSTS))

    def test_xargs(self):
        self.execute("mkdir rows; " + recipe("xargs"))
        self.check_rows()

    def test_parallel_over_ssh(self):
        """Two names of this machine, with a server of ssh that only this test has."""
        engines.need("parallel")
        os.mkdir(self.path("ssh"))
        with engines.ssh_hosts(self.path("ssh"), ["one", "two"], self.search) as ssh:
            engines.write(self.path("hosts"), f"2/{ssh} one\n2/{ssh} two\n")
            self.execute("mkdir rows; " + recipe("parallel"))
        self.check_rows()

    def test_slurm(self):
        """An array of a cluster that is this machine."""
        script = document("fleet/slurm.sh")
        engines.write(self.path("slurm.sh"), script)
        submit = re.search(r"(?m)^# .*: (sbatch .*)$", script).group(1)
        os.mkdir(self.path("slurm"))
        os.chmod(self.folder, 0o755)
        with engines.slurm(self.path("slurm")) as variables:
            self.execute(f"timeout 60 {submit}", SBATCH_WAIT="1", **variables)
        self.check_rows()

    def test_kubernetes(self):
        """The Job follows the schema, and its script does each index."""
        try:
            import yaml
        except ImportError:
            self.skipTest("there is no python3-yaml")
        job = yaml.safe_load(document("fleet/kubernetes.yaml"))
        script = job["spec"]["template"]["spec"]["containers"][0]["command"]
        for index in range(len(self.all) + 1):
            self.execute(" ".join(map(shlex.quote, script)), 0, JOB_COMPLETION_INDEX=str(index))
        self.check_rows()
        self.assertEqual(self.mistakes(job, "IoK8sApiBatchV1Job"), "")
        job["spec"]["completionMod"] = job["spec"].pop("completionMode")
        job["spec"]["backoffLimit"] = "many"
        self.assertRegex(self.mistakes(job, "IoK8sApiBatchV1Job"),
                         r"/spec/backoffLimit type .*\n(.*\n)*/spec/completionMod is unknown")

    @staticmethod
    def mistakes(thing, schema):
        """What the schema of Kubernetes says is wrong."""
        modules = engines.node_modules("kubernetes-models")
        return harness.run("node", os.path.join(harness.ROOT, "tests/live/kubernetes_schema.cjs"), modules, schema,
                           input=json.dumps(thing)).stdout

    def test_pods_that_watch_and_receive(self):
        """They follow the schemas, and the shell takes their script."""
        try:
            import yaml
        except ImportError:
            self.skipTest("there is no python3-yaml")
        for name, schema in (("receive", "IoK8sApiAppsV1DaemonSet"), ("watch", "IoK8sApiCoreV1Pod")):
            thing = yaml.safe_load(document(f"fleet/{name}.yaml"))
            self.assertEqual(self.mistakes(thing, schema), "")
            thing["spec"]["unknown"] = 1
            self.assertIn("/spec/unknown is unknown", self.mistakes(thing, schema))
        script = yaml.safe_load(document("fleet/receive.yaml"))["spec"]["template"]["spec"]["containers"][0]["command"][2]
        self.assertEqual(harness.run("sh", "-n", "-c", script).stderr, "")

    def test_spark(self):
        """What pipe() runs gets paths, and writes the rows of each with its core."""
        tree = ast.parse(document("fleet/spark.py"))
        facts = next(ast.literal_eval(node.value) for node in tree.body
                     if isinstance(node, ast.Assign) and node.targets[0].id == "FACTS")
        run = harness.run("bash", "-c", f"{facts} <cores.txt", cwd=self.folder,
                          env={**os.environ, "PATH": self.search})
        rows = [json.loads(line) for line in run.stdout.splitlines()]
        ends = {row["core"]: row["error"] for row in rows if row["row"] == "facts core"}
        self.assertEqual(set(ends), {*self.all, self.broken})
        self.assertEqual([core for core, error in ends.items() if error], [self.broken])
        self.assertEqual(sum(row.get("bytes", 0) for row in rows if row["row"] == "facts leak"),
                         self.ask("SELECT sum(leaked_bytes) FROM core")[0][0])
        if not shutil.which("pyflakes3"):
            self.skipTest("there is no pyflakes3")
        subprocess.run(["pyflakes3", os.path.join(DOCUMENTS, "fleet/spark.py")], check=True)


if __name__ == "__main__":
    unittest.main()
