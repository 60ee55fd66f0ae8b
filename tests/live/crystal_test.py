#!/usr/bin/env python3
"""
Builds testdata/programs/crystal_objects.cr in several ways, and checks that
its objects have the names of their classes in a core of it, its buffers their
owners, its fibers their stacks. In optimised builds less is known, but nothing
may be wrong.

	CRYSTAL_ROOT	the root directory of another system, whose compiler is
			used; see scripts/crystal-matrix
"""

import collections
import concurrent.futures
import csv
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import harness
import layouts

ROOT = os.environ.get("CRYSTAL_ROOT")
PROGRAM = os.path.join(harness.PROGRAMS, "crystal_objects.cr")
TIMEOUT = 300
LOADER = "lib64/ld-linux-x86-64.so.2"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
PATTERNS = ["CrystalArrayBuffer", "CrystalDequeBuffer", "CrystalHashEntries",
            "CrystalHashIndices", "CrystalClosure"]
DESCRIBED = 6
# Enters a root with what the compiler asks of the kernel.
ENTER = """
root=$1
folder=$2
shift 2
mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" &&
mount --bind "$folder" "$root/mnt" || exit
export PATH=/usr/sbin:/usr/bin HOME=/tmp CRYSTAL_CACHE_DIR="/mnt/$CACHE"
exec chroot "$root" sh -c 'cd /mnt && exec "$@"' sh "$@"
"""

OWN = ["Array(Int32)", "Array(Tuple(Int32, Mouse))", "Hash(Int32, Nil)"]
# The longest first: two compilers run at a time.
BUILDS = {
    "release": ["--release"],
    "static": ["--static"],
    "debug": ["--debug"],
}
COMPILERS = 2
# What is done with a core is the same code for all of them.
SANITIZED = harness.SANITIZED
# An optimised build compiles for as long as all others together: the nightly has it.
BUILDS_CHECKED = ["static", "debug"]

Found = collections.namedtuple("Found", "size name is_object")


def compile_program(folder, name, flags):
    """The program, built with the flags, at folder/name."""
    if not ROOT:
        with open(PROGRAM, encoding="utf-8") as file:
            harness.build_crystal(os.path.join(folder, name), file.read(), *flags)
        return
    shutil.copy(PROGRAM, folder)
    command = ["crystal", "build", "crystal_objects.cr", "-o", name, *flags]
    if "--static" not in flags:
        command += ["--link-flags",
                    f"-Wl,--dynamic-linker={ROOT}/{LOADER} "
                    f"-Wl,-rpath={ROOT}/{LIBRARIES}"]
    run = harness.run("unshare", "--map-root-user", "--mount", "sh", "-c", ENTER,
                      "sh", ROOT, folder, *command, cwd=folder, timeout=TIMEOUT,
                      env={**os.environ, "CACHE": f"cache-{name}"})
    if run.returncode:
        raise AssertionError(run.stdout + run.stderr)


class Truth:
    """What the program wrote down."""

    def __init__(self, path):
        self.objects, self.buffers, self.counts = {}, {}, {}
        self.stacked, self.fibers, self.texts = set(), {}, {}
        self.bound, self.held = {}, {}
        self.fields, self.made = [], collections.defaultdict(set)
        with open(path, encoding="utf-8") as file:
            for line in file:
                word, *values = line.rstrip("\n").split(" ")
                if word != "ready":
                    getattr(self, f"take_{word}")(values)

    def take_object(self, values):
        self.objects[int(values[0], 16)] = " ".join(values[3:])

    def take_text(self, values):
        self.texts[int(values[0], 16)] = int(values[1])

    def take_field(self, values):
        self.fields.append((int(values[0], 16), int(values[1]), values[2],
                            " ".join(values[3:])))

    def take_made(self, values):
        self.made[" ".join(values[1:])].add(int(values[0]))

    def take_buffer(self, values):
        self.buffers[int(values[0], 16)] = (values[1], int(values[2], 16))

    def take_bound(self, values):
        self.bound[int(values[0], 16)] = " ".join(values[1:])

    def take_held(self, values):
        self.held[int(values[0], 16)] = (" ".join(values[3:]), int(values[1]),
                                         values[2])

    def take_stacked(self, values):
        self.stacked.add(int(values[0], 16))

    def take_fiber(self, values):
        self.fibers[int(values[0], 16)] = (int(values[1], 16), values[2])

    def take_count(self, values):
        self.counts[" ".join(values[1:])] = int(values[0])


class Core:
    """What heapcore says of a core."""

    def __init__(self, path):
        self.path = path
        self.used = {}
        for row in self.rows("list", "used"):
            if row["row"] == "allocation":
                number = int(row["signature"] or "0", 16)
                self.used[int(row["address"], 16)] = Found(
                    int(row["size"]), row["name"], 0 < number < 1 << 20)

    def run(self, *words):
        return harness.ask(self.path, *words, timeout=TIMEOUT).stdout

    def rows(self, *words):
        text = self.run(*words, "--format", "csv")
        return list(csv.DictReader(text.splitlines()))

    def addresses(self, *words):
        return {int(line, 16)
                for line in self.run("enumerate", *words).split()}

    def fibers(self):
        return {int(row["fiber"], 16):
                (int(row["stack_end"], 16), row["name"] or "-")
                for row in self.rows("list", "fibers") if row["row"] == "fiber"}


@unittest.skipUnless(ROOT or shutil.which("crystal"),
                     "no crystal; scripts/install-dependencies gets it")
class CrystalTest(unittest.TestCase):
    """One core of each build."""

    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="heapcore-crystal-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        compilers = concurrent.futures.ThreadPoolExecutor(COMPILERS)
        cls.addClassCleanup(compilers.shutdown, cancel_futures=True)
        cls.builds = {name: compilers.submit(compile_program, cls.folder,
                                             name, flags)
                      for name, flags in BUILDS.items()
                      if (not SANITIZED and harness.ALL_VARIANTS) or name in BUILDS_CHECKED}

    def path(self, name):
        return os.path.join(self.folder, name)

    def take_core(self, name, *arguments, layout=None):
        directory = self.path("-".join([name, "core", *arguments, str(layout or "")]))
        os.mkdir(directory)
        self.addCleanup(shutil.rmtree, directory)
        truth = os.path.join(directory, "truth")
        process = harness.start([self.path(name), truth, *arguments], truth, directory, layout)
        self.addCleanup(harness.end, process)
        # So that it waits where it will be waiting.
        harness.settle(process)
        return Truth(truth), Core(self.dump(process, directory))

    def dump(self, process, directory):
        """The kernel's core, where gdb is too old for the glibc's stacks."""
        try:
            return harness.gcore(process, directory)
        except harness.Skipped as error:
            obstacle = harness.kernel_core_obstacle()
            if obstacle:
                self.skipTest(f"{error}; {obstacle}")
            return harness.kernel_core(process, directory)

    def build(self, name, layout=None):
        self.builds[name].result()
        return self.take_core(name, layout=layout)

    def build_stripped(self, name, other, *flags):
        """The other build without its symbols, or without what the flags say."""
        self.builds[other].result()
        subprocess.run(["strip", *flags, "-o", self.path(name), self.path(other)],
                       check=True)
        return self.take_core(name)

    def check_named(self, truth, core):
        """Every object has the name of its class."""
        wrong = {
            f"{address:x}": (name, core.used[address].name)
            for address, name in truth.objects.items()
            if address in core.used and core.used[address].name != name
        }
        self.assertEqual(wrong, {})
        self.assertEqual({address: core.used[address].name
                          for address in truth.bound}, truth.bound)
        # All but the empty string, which is the program's.
        missing = {name for address, name in truth.objects.items()
                   if address not in core.used}
        self.assertLessEqual(missing, {"String"})

    def check_counts(self, truth, core):
        counts = collections.Counter(
            found.name for found in core.used.values() if found.is_object)
        # Of these, only the program makes any, and keeps them.
        made = collections.Counter(truth.objects.values())
        self.assertEqual({name: counts[name] for name in OWN},
                         {name: made[name] for name in OWN})
        self.assertEqual({name: counts[name] for name in truth.counts},
                         truth.counts)

    def check_nothing_wrong(self, truth, core):
        """A class has one name at most, its own or one that says less."""
        names = collections.defaultdict(set)
        for address, name in truth.objects.items():
            found = core.used.get(address)
            if found and found.is_object:
                names[found.name].add(name)
        for name, classes in names.items():
            self.assertEqual(len(classes), 1, (name, classes))
            if not name.startswith("type#"):
                self.assertEqual(classes, {name})

    def check_buffers(self, truth, core, names=True):
        """Each buffer has its pattern, and no object is taken for one."""
        found = {address: pattern for pattern in PATTERNS
                 for address in core.addresses("used", f"%{pattern}")}
        wrong = {
            f"{address:x}": (truth.buffers.get(address),
                             found.get(address))
            for address in {*truth.objects, *truth.buffers}
            if truth.buffers.get(address, (None,))[0] != found.get(address)
        }
        self.assertEqual(wrong, {})
        for address in truth.buffers:
            self.assertFalse(core.used[address].is_object)
        step = max(1, len(truth.buffers) // DESCRIBED)
        for address in list(truth.buffers)[::step]:
            self.check_owner(truth, core, address, names)

    def check_owner(self, truth, core, address, names):
        pattern, owner = truth.buffers[address]
        text = core.run("describe", f"{address:x}")
        self.assertIn(f"This allocation matches pattern {pattern}.", text)
        if owner and names:
            self.assertIn(f"of the {truth.objects[owner]} at 0x{owner:x}",
                          text)

    def check_fibers(self, truth, core):
        fibers = core.fibers()
        self.assertEqual({address: fibers.get(address)
                          for address in truth.fibers}, truth.fibers)
        self.assertIn("main", {name for _, name in fibers.values()})

    def check_stacks(self, truth, core):
        """What only the stack of a waiting fiber refers to is held."""
        anchored = core.addresses("anchored")
        self.assertLessEqual(truth.stacked, anchored)
        by_stacks = core.addresses("stackanchored")
        self.assertLessEqual(truth.stacked, by_stacks)

    def check_explanation(self, truth, core):
        """Whose variable it is that holds an object."""
        for address in list(truth.stacked)[:2]:
            self.assertRegex(
                core.run("explain", f"{address:x}"),
                r"variable mouse of wait_deep\(\), frame \d+ of fiber "
                r"0x[0-9a-f]+ 'waiter-\d'")

    def check_backtraces(self, truth, core):
        text = core.run("backtrace", "--fibers")
        for depth in range(len(truth.stacked)):
            part = text.split(f"'waiter-{depth}'")[1].split("\n\n")[0]
            self.assertEqual(len(re.findall(r" in wait_deep\(\)", part)),
                             10 * depth + 1)
            self.assertIn("Channel(Mouse)#receive", part)

    def check_bases(self, truth, core):
        animals = {"Dog", "Puppy", "Cat"}
        self.assertEqual(core.addresses("used", "Animal"),
                         {address for address, name in truth.objects.items()
                          if name in animals})

    def check_held(self, truth, core, names=True):
        """Memory without a class is called after the member that holds it."""
        wrong = {}
        for address, (owner, offset, member) in truth.held.items():
            name = f"held by {owner}@{member}"
            if not names:
                name = f"held by {owner}+0x{offset:x}{'[]' * ('[' in member)}"
            if owner.startswith("Array("):
                name = f"held by {owner}[]"
            if core.used[address].name != name:
                wrong[f"{address:x}"] = (name, core.used[address].name)
        self.assertEqual(wrong, {})
        self.assertEqual({owner for owner, _, _ in truth.held.values()},
                         {"Scribble", "Array(Slice(UInt8))", "IO::Memory",
                          "String::Builder"})

    def check_member(self, truth, core):
        """A member is a kind as a class is."""
        room = {address for address, (owner, _, member) in truth.held.items()
                if (owner, member) == ("Scribble", "room")}
        self.assertEqual(core.addresses("used", "Scribble@room"), room)
        address = f"{min(room):x}"
        self.assertRegex(core.run("describe", address),
                         rf"It is held by the Scribble at 0x[0-9a-f]+, as are "
                         rf"{len(room)} of the {len(room)} that members like this")
        name = "held by Scribble@room"
        self.assertIn(f"\n... {name}\n", core.run("explain", address))
        self.assertIn(f"\nAllocations {name} have {len(room)} ", core.run("summarize", "used"))
        self.assertIn(name, core.run("export", "folded"))
        self.assertEqual([["held by", "holder", str(len(room))]], [
            list(row.values())[1:] for row in core.rows(
                "sql", "select sureness, known_by, count(*) from allocation "
                f"where kind = '{name}' group by 1, 2")])
        self.assertEqual(
            [row["objects"] for row in core.rows("objects")
             if name in (row["class"] or "")], [])

    def check_shown(self, truth, core, names=True):
        """The members of objects, by name or else by word."""
        shown = {}
        for kind in ("Dog", "Puppy"):
            for row in harness.rows("member", core.path, "show", "used", kind, timeout=TIMEOUT):
                start = int(row["address"], 16) - int(row["offset"], 16)
                shown[start, int(row["offset"], 16)] = row
        for address, offset, name, value in truth.fields:
            row = shown[address, offset if names else offset & ~7]
            self.assertEqual(row["member"], name if names else f"+{row['offset']}")
            if name == "name":
                self.assertRegex(row["value"], rf'^0x[0-9a-f]+ "{value}"$')
            elif names:
                self.assertEqual(float(row["value"]), float(value))
            elif name == "age":
                self.assertEqual(int(row["value"], 16), int(value))
        self.assertFalse({name for _, _, name, _ in truth.fields} -
                         {"age", "name", "weight"})
        # Each object has the members of its own class.
        dogs = {row["member"] for (address, _), row in shown.items()
                if truth.objects[address] == "Dog"}
        if names:
            self.assertEqual(dogs, {"name", "age", "friends"})

    def check_makers(self, truth, core, lines=True):
        """Of the functions that it names, one made each object: none is missing."""
        told = {}
        for row in core.run("memprof", "allocations").splitlines()[1:]:
            count, size, name, *detail = row.split("\t")
            if detail and detail[0].startswith("in one of: "):
                told[name] = detail[0].removeprefix("in one of: ").split(", ")
        functions = self.functions_by_line()
        for name, made in truth.made.items():
            self.assertLessEqual(len(told[name]), 3)
            if lines:
                places = [re.sub(r" at .*:", ":", maker) for maker in told[name]]
                self.assertLessEqual({f"{functions[line]}():{line}" for line in made},
                                     set(places))
            self.assertLessEqual({functions[line] for line in made},
                                 {maker.split("(")[0] for maker in told[name]})
        self.assertEqual([maker.split("(")[0] for maker in told["Bell"]], ["make_rings"])

    def functions_by_line(self):
        """The function around each line of the program."""
        functions, name = {}, None
        with open(PROGRAM, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                found = re.match(r"def (\w+)", line)
                name = found.group(1) if found else name
                functions[number] = name
        return functions

    def check_growth(self, core):
        """What grew since is named after the member whose buffers they are."""
        _, larger = self.take_core("debug", "9000")
        first = harness.tables("-q", larger.path, "diff", core.path)["growth"][0]
        name = "held by Scribble@said"
        self.assertEqual(first["kind"], name)
        self.assertGreaterEqual(int(first["growth"]), 200 * 7000)
        gate = harness.ask(larger.path, "gate", "--compare", core.path, "--max-growth",
                           "1M", expected=[1]).stdout
        self.assertIn(name, gate)
        self.assertIn("Check failed (--max-growth 1M)", gate)

    def check_all(self, truth, core):
        self.check_named(truth, core)
        self.check_counts(truth, core)
        self.check_buffers(truth, core)
        self.check_fibers(truth, core)
        self.check_stacks(truth, core)

    def test_all_is_named_in_a_debug_build(self):
        truth, core = self.build("debug")
        self.check_all(truth, core)
        self.check_bases(truth, core)
        self.check_backtraces(truth, core)
        self.check_explanation(truth, core)
        self.check_held(truth, core)
        self.check_member(truth, core)
        self.check_shown(truth, core)
        self.check_makers(truth, core)
        self.check_growth(core)

    @unittest.skipIf(SANITIZED, "others are enough")
    @harness.among_all
    def test_all_is_named_without_debug_information(self):
        truth, core = self.build_stripped("no-debug", "debug", "--strip-debug")
        self.check_all(truth, core)
        self.check_held(truth, core, names=False)
        self.check_shown(truth, core, names=False)
        self.check_makers(truth, core, lines=False)

    def test_all_is_named_in_a_static_program(self):
        self.check_all(*self.build("static"))

    def test_fibers_where_the_main_stack_has_no_limit(self):
        self.check_fibers(*self.build("static", layouts.Layout(unlimited=True)))

    def check_optimised(self, name, truth, core):
        self.check_nothing_wrong(truth, core)
        self.check_fibers(truth, core)
        self.check_stacks(truth, core)
        self.check_buffers(truth, core, names=False)
        self.tell_share(name, truth, core)

    def tell_share(self, name, truth, core):
        known = [core.used[address] for address in truth.objects
                 if address in core.used]
        own = sum(found.is_object and not found.name.startswith("type#")
                  for found in known)
        placed = sum("@" in found.name for found in known)
        numbered = sum(found.is_object for found in known) - own - placed
        print(f"{name}: of {len(known)} objects, {own} have the name of their "
              f"class, {placed} its place, {numbered} its number")

    @unittest.skipIf(SANITIZED, "others are enough")
    @harness.among_all
    def test_nothing_is_wrong_in_an_optimised_build(self):
        truth, core = self.build("release")
        self.check_optimised("release", truth, core)
        # All that have a constructor of their own are known by its place.
        unplaced = {truth.objects[address] for address, found
                    in core.used.items()
                    if address in truth.objects
                    and found.name.startswith("type#")
                    and "@" not in found.name}
        self.assertLessEqual(unplaced, {"Empty", "Everything"})

    @unittest.skipIf(SANITIZED, "others are enough")
    @harness.among_all
    def test_nothing_is_wrong_without_any_names(self):
        self.check_optimised("bare", *self.build_stripped("bare", "release",
                                                          "--strip-debug"))

    @unittest.skipIf(SANITIZED, "others are enough")
    def test_nothing_is_wrong_in_a_stripped_build(self):
        if harness.ALL_VARIANTS:
            self.check_optimised("stripped", *self.build_stripped("stripped", "release"))
        self.check_optimised("lone", *self.build_stripped("lone", "static"))


if __name__ == "__main__":
    unittest.main()
