"""
What a core names is not trusted, files may change while they are read, and
those that are made harm nobody.
"""

import os
import shutil
import stat
import subprocess
import tempfile
import unittest

import harness

HEAPCORE = os.environ["HEAPCORE"]
PROGRAM = os.path.join(
    os.environ["SOURCE_DIR"], "tests/cli/programs/secrets.cpp")
FINE, WRONG_USAGE, NOT_ANALYSED = 0, 2, 3
FUNCTION = "secrets.cpp"
TIMEOUT = 60
NOBODY = 65534


class Place(unittest.TestCase):
    """A program, which the core names by its path, and its core."""

    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="heapcore-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = os.path.realpath(folder.name)
        cls.program = cls.path("program")
        cls.copy = cls.path("copy")
        cls.core = cls.path("core")
        subprocess.run(["c++", "-g", "-O0", *cls.FLAGS, "-o", cls.program,
                        PROGRAM], check=True, cwd=cls.folder)
        shutil.copy(cls.program, cls.copy)
        environment = harness.environment(SECRET="s")
        with harness.ended(harness.launch([cls.program],
                                          env=environment)) as process:
            process.stdout.readline()
            harness.settle(process)
            harness.snap(process, cls.core)

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    @staticmethod
    def run_heapcore(*words, **options):
        return subprocess.run([HEAPCORE, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True,
                              timeout=TIMEOUT, **options)


class NamedFilesTest(Place):
    def calls(self, *options):
        run = self.run_heapcore(*options, self.core, "backtrace")
        self.assertGreaterEqual(run.returncode, 0)
        return run.stdout

    def put(self, make):
        os.unlink(self.program)
        make(self.program)

    def tearDown(self):
        if os.path.isdir(self.program):
            os.rmdir(self.program)
        else:
            os.unlink(self.program)
        shutil.copy(self.copy, self.program)

    def test_file_itself_is_used(self):
        self.assertIn(FUNCTION, self.calls())

    def test_what_is_no_regular_file_is_left_alone(self):
        for make in (os.mkfifo, os.mkdir,
                     lambda path: os.symlink("/dev/zero", path),
                     lambda path: os.symlink("/dev/tty", path),
                     lambda path: os.symlink(path, path)):
            self.put(make)
            self.assertNotIn(FUNCTION, self.calls())
            self.tearDown()

    def test_file_of_another_build_is_left_alone(self):
        def make_large(path):
            with open(path, "wb") as file:
                file.truncate(1 << 42)

        def make_other(path):
            shutil.copy("/bin/true", path)

        for make in (make_large, make_other):
            self.put(make)
            self.assertNotIn(FUNCTION, self.calls())

    def test_links_do_not_lead_out_of_the_sysroot(self):
        root = self.path("root")
        inside = root + self.program
        os.makedirs(os.path.dirname(inside))
        shutil.copy(self.copy, inside)
        self.assertIn(FUNCTION, self.calls("--sysroot", root))
        self.check_links(inside, root)

    def test_paths_may_begin_with_the_sysroot(self):
        for root in (self.folder, self.folder + "/", os.path.relpath(self.folder)):
            self.assertIn(FUNCTION, self.calls("--sysroot", root))
        self.assertNotIn(FUNCTION, self.calls("--sysroot", self.folder[:-1]))
        outside = tempfile.NamedTemporaryFile(prefix="heapcore-")
        with outside, open(self.copy, "rb") as file:
            shutil.copyfileobj(file, outside)
            outside.flush()
            self.put(lambda path: os.symlink(outside.name, path))
            self.assertIn(FUNCTION, self.calls())
            self.assertNotIn(FUNCTION, self.calls("--sysroot", self.folder))

    def check_links(self, inside, root):
        up = "../" * 20
        for target in (self.copy, up + self.copy):
            os.unlink(inside)
            os.symlink(target, inside)
            self.assertNotIn(FUNCTION, self.calls("--sysroot", root))


class SplitFilesTest(Place):
    """What was split off is named by the program, and opened by libdw."""

    FLAGS = ("-gsplit-dwarf",)

    def test_fifo_is_not_waited_for(self):
        for name in os.listdir(self.folder):
            if name.endswith(".dwo"):
                os.unlink(self.path(name))
                os.mkfifo(self.path(name))
        self.assertTrue(any(stat.S_ISFIFO(os.stat(self.path(name)).st_mode)
                            for name in os.listdir(self.folder)))
        run = self.run_heapcore(self.core, "backtrace")
        self.assertIn("main()", run.stdout)


class VanishingFilesTest(Place):
    def test_file_that_is_cut_while_it_is_read_is_told(self):
        core = self.path("cut.core")
        shutil.copy(self.core, core)
        with subprocess.Popen([HEAPCORE, "-q", core], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as run:
            run.stdin.write("dump 1000 8\n")
            run.stdin.flush()
            run.stdout.readline()
            os.truncate(core, 4096)
            output, errors = run.communicate(
                "show writable\ncount used\n", timeout=TIMEOUT)
        self.assertEqual(run.returncode, NOT_ANALYSED, errors)
        self.assertIn("was truncated while it was read", errors)


class OutputFilesTest(Place):
    def setUp(self):
        self.shared = self.path("shared")
        os.mkdir(self.shared)
        os.chmod(self.shared, 0o1777)
        self.addCleanup(shutil.rmtree, self.shared)
        self.victim = self.path("victim")
        with open(self.victim, "w") as file:
            file.write("precious")

    def place(self, name):
        return os.path.join(self.shared, name)

    def check_private(self, path):
        status = os.lstat(path)
        self.assertTrue(stat.S_ISREG(status.st_mode))
        self.assertEqual(status.st_mode & 0o777, 0o600)

    def check_spared(self):
        with open(self.victim) as file:
            self.assertEqual(file.read(), "precious")

    def write(self, way, path):
        """Have the file made in one of the ways; returns the status."""
        if way == "-o":
            run = self.run_heapcore("-o", f"text:{path}", self.core, "count",
                                    "used")
        elif way == ">":
            run = self.run_heapcore("-c", f"count used > {path}", self.core)
        elif way == ">>":
            run = self.run_heapcore("-c", f"count used >> {path}", self.core)
        elif way == "run":
            run = self.run_heapcore("run", "--core", path, "--", "/bin/true")
        elif way == "log":
            run = self.run_heapcore("run", f"--log-file={path}", "--",
                                    "/bin/true")
        else:
            with subprocess.Popen(["sleep", "60"]) as process:
                try:
                    run = self.run_heapcore("snap", "-o", path,
                                            str(process.pid))
                finally:
                    process.kill()
        return run.returncode

    WAYS = ("-o", ">", ">>", "log", "snap", "run")

    def test_new_files_are_for_their_owner_only(self):
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        for way in self.WAYS:
            with self.subTest(way=way):
                path = self.place("new")
                self.assertEqual(self.write(way, path), FINE)
                self.check_private(path)
                os.unlink(path)

    def test_planted_links_are_not_followed(self):
        for way in self.WAYS:
            for link in (os.symlink, os.link):
                with self.subTest(way=way, link=link.__name__):
                    path = self.place("planted")
                    link(self.victim, path)
                    self.write(way, path)
                    self.check_spared()
                    os.unlink(path)

    @unittest.skipIf(os.geteuid() != 0, "only root can be somebody else")
    def test_planted_files_get_no_contents(self):
        for way in self.WAYS:
            with self.subTest(way=way):
                path = self.place("planted")
                with open(path, "w") as file:
                    os.fchmod(file.fileno(), 0o666)
                    os.fchown(file.fileno(), NOBODY, NOBODY)
                with open(path) as planted:
                    self.write(way, path)
                    self.assertEqual(planted.read(), "")
                os.unlink(path)


if __name__ == "__main__":
    unittest.main()
