"""
What scripts/static packs, in the folder RELEASED, is installed and run: the rpm by rpm in an empty root,
the apk as its format says, the image by skopeo, umoci and crun. What is for another machine is run by
qemu's emulator, which is copied beside it.
"""

import glob
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest
import zlib

RELEASED = os.environ["RELEASED"]
CORES = os.path.join(os.environ["SOURCE_DIR"], "testdata/cores")
# The machine as images name it, and a core that it made.
MACHINES = {"x86_64": ("amd64", "bookworm-small.core.xz"),
            "aarch64": ("arm64", "bookworm-small-aarch64_kernel.core.xz")}
TIMEOUT = 120
ENTER = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'


def run(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=TIMEOUT, **options)
    if done.returncode:
        raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


def released(ending):
    """The file for each machine, and its path."""
    for machine in MACHINES:
        (path,) = glob.glob(f"{RELEASED}/heapcore-*{machine}{ending}")
        yield machine, path


def said(program, path, *options):
    """What the README says to do with such a file, with more options after the program."""
    with open(os.path.join(os.environ["SOURCE_DIR"], "README.md"), encoding="utf-8") as file:
        (line,) = (words.split() for words in re.findall(rf"(?m)^    ({program} [^#\n]*)", file.read()))
    name = re.search(r"heapcore-[\w.-]+", " ".join(line))[0]
    ending = name.partition("x86_64")[2] or ".oci.tar"
    assert path.endswith(ending), (line, path)
    return [program, *options, *(word.replace(name, path) for word in line[1:])]


def streams(data):
    """The unpacked contents of what gzip packed, one after the other, and the packed bytes."""
    while data:
        unpacker = zlib.decompressobj(wbits=31)
        yield unpacker.decompress(data), data[:len(data) - len(unpacker.unused_data)]
        data = unpacker.unused_data


class PackagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="heapcore-packages-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def root(self, name):
        path = os.path.join(self.folder, name)
        for part in ("proc", "tmp"):
            os.makedirs(os.path.join(path, part))
        return path

    def copy(self, root, machine):
        """Bring a core, and the emulator; returns the words that precede heapcore's."""
        shutil.copy(os.path.join(CORES, MACHINES[machine][1]), os.path.join(root, "tmp/core.xz"))
        if machine == platform.machine():
            return ()
        shutil.copy(f"/usr/bin/qemu-{machine}-static", os.path.join(root, "tmp/emulator"))
        return ("/tmp/emulator",)

    def assert_answers(self, root, machine):
        """heapcore does, where nothing is but what the package brought."""
        words = self.copy(root, machine)
        screen = run("unshare", "-mpf", "--kill-child", "sh", "-c", ENTER, root, *words,
                     "/usr/bin/heapcore", "/tmp/core.xz", env={}, stdin=subprocess.DEVNULL)
        self.assertIn("what is in it", screen)
        self.assertIn("bytes leaked", screen)
        with gzip.open(os.path.join(root, "usr/share/man/man1/heapcore.1.gz"), "rt") as manual:
            self.assertIn(".TH ", manual.read())

    def test_rpm_is_installed_in_an_empty_root(self):
        for machine, path in released(".rpm"):
            root = self.root(machine)
            run(*said("rpm", path, "--root", root, "--ignorearch"))
            self.assertIn(f".{machine}\n", run("rpm", "--root", root, "-qa"))
            self.assertEqual(run("rpm", "--root", root, "--verify", "heapcore"), "")
            self.assert_answers(root, machine)

    def test_apk_is_as_the_tools_of_alpine_read_it(self):
        for machine, path in released(".apk"):
            with open(path, "rb") as file:
                (control, _), (data, packed) = streams(file.read())
            # So that apk reads both as one archive.
            self.assertNotEqual(control[-1024:], bytes(1024))
            with tarfile.open(fileobj=io.BytesIO(control + bytes(1024))) as archive:
                text = archive.extractfile(".PKGINFO").read().decode()
            about = dict(line.split(" = ", 1) for line in text.splitlines())
            self.assertEqual(about["arch"], machine)
            self.assertEqual(about["datahash"], hashlib.sha256(packed).hexdigest())
            root = self.root(f"apk-{machine}")
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                for member in archive:
                    if member.isfile():
                        self.assertEqual(member.pax_headers["APK-TOOLS.checksum.SHA1"],
                                         hashlib.sha1(archive.extractfile(member).read()).hexdigest())
                archive.extractall(root)
            self.assert_answers(root, machine)
            if shutil.which("apk"):
                root = self.root(f"installed-{machine}")
                run(*said("apk", path, "--root", root, "--arch", machine, "--initdb", "--no-network"))
                self.assert_answers(root, machine)

    def unpack_image(self, machine):
        (image,) = glob.glob(f"{RELEASED}/*.oci.tar")
        layout, bundle = (os.path.join(self.folder, f"{name}-{machine}") for name in ("layout", "bundle"))
        *words, _ = said("skopeo", image, "--override-arch", MACHINES[machine][0], "--insecure-policy")
        run(*words, f"oci:{layout}:heapcore")
        run("umoci", "unpack", "--image", f"{layout}:heapcore", bundle)
        return bundle

    def test_image_has_the_static_file_of_each_machine_and_nothing_else(self):
        for machine, path in released(""):
            root = os.path.join(self.unpack_image(machine), "rootfs")
            self.assertEqual(sorted(os.listdir(root)), ["heapcore", "tmp"])
            with open(path, "rb") as file, open(os.path.join(root, "heapcore"), "rb") as copy:
                self.assertEqual(file.read(), copy.read())

    def test_image_runs_heapcore(self):
        bundle = self.unpack_image(platform.machine())
        self.copy(os.path.join(bundle, "rootfs"), platform.machine())
        path = os.path.join(bundle, "config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        self.assertEqual(config["process"]["args"], ["/heapcore"])
        config["process"].update(args=["heapcore", "-q", "/tmp/core.xz", "count", "leaked"], terminal=False)
        config["linux"].pop("resources", None)
        config["mounts"] = [mount for mount in config["mounts"] if mount["type"] != "cgroup"]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        # crun refuses version 1 beside version 2 of control groups.
        alone = "umount -R /sys/fs/cgroup; mount -t cgroup2 group /sys/fs/cgroup && exec \"$@\""
        self.assertRegex(run("unshare", "-m", "sh", "-c", alone, "sh", "crun", "--cgroup-manager=disabled", "--root",
                             os.path.join(self.folder, "state"), "run", "--bundle", bundle, f"heapcore-{os.getpid()}"),
                         r"^\d[\d,]* allocations use [\d,]+ bytes")


if __name__ == "__main__":
    unittest.main()
