"""
Where the memory of a program lies that a test starts.

What decides it is no part of a program. The loader maps the cache of its libraries and unmaps it;
into the hole that stays, the kernel puts the first anonymous mappings, and merges those that touch.
So how many packages a machine has decides which memory is whose neighbour. A seed decides all that
a test chooses; it is printed, as is each layout:

    HEAPCORE_LAYOUT=any ctest ...                             chosen anew for every program
    HEAPCORE_LAYOUT=any HEAPCORE_LAYOUT_SEED=4711 ctest ...   the same choices again
    HEAPCORE_LAYOUT=cache=90,legacy,unlimited,huge ctest ...  that one for every program

Without these, layouts_test.py alone chooses; other tests take what this machine gives.
"""

import contextlib
import ctypes
import functools
import itertools
import os
import random
import resource
import subprocess
import tempfile
import threading
import typing

CACHE = "/etc/ld.so.cache"
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x1000, 0x4000, 1 << 18, 2


class Layout(typing.NamedTuple):
    """cache: the size of the loader's cache in KB, 0 for the machine's own."""
    cache: int = 0
    legacy: bool = False     # mappings follow each other upwards
    unlimited: bool = False  # stacks; so mappings do the same
    huge: bool = False       # malloc asks for huge pages

    def __str__(self):
        words = [f"cache={self.cache}"] if self.cache else []
        words += [name for name in self._fields[1:] if getattr(self, name)]
        return ",".join(words) or "usual"


def parse(text):
    words = text.split(",")
    sizes = [int(word.removeprefix("cache=")) for word in words if word.startswith("cache=")]
    return Layout(*sizes[:1] or [0], *(name in words for name in Layout._fields[1:]))


ALL = [Layout(*choice) for choice in
       itertools.product((20, 90, 150, 250), *([(False, True)] * 3))]
# Those in which an answer was wrong once.
FAILED = [
    Layout(8),    # the lowest mapping was what a program kept out of cores
    Layout(70),   # one mapping had the collector's memory and the main thread's variables
    Layout(90),
    Layout(150),
    Layout(165),
]
SEED = os.environ.get("HEAPCORE_LAYOUT_SEED") or str(random.SystemRandom().randrange(10 ** 6))
_counter = itertools.count(1)


def _mount(source, target, flags):
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.mount(source, target, None, ctypes.c_ulong(flags), None) == 0


def _own_mounts():
    """Whether this process now has mounts of its own, for itself and what it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    return (os.geteuid() == 0 and os.path.exists(CACHE) and libc.unshare(CLONE_NEWNS) == 0
            and _mount(b"none", b"/", MS_REC | MS_PRIVATE))


class _Caches(threading.local):
    """
    Puts a cache of some size in the place of the machine's, for all that this thread starts next.
    Mounts of its own are the thread's: another would mount for the whole machine.
    """

    used = False  # by any thread

    def __init__(self):
        # A thread has the mounts of the one that made it.
        self.size = None if _Caches.used else 0

    @functools.cached_property
    def allowed(self):
        allowed = _own_mounts()
        if allowed:
            _Caches.used = True
            ctypes.CDLL(None).umount2(CACHE.encode(), MNT_DETACH)
        else:
            print("layouts: the loader's cache stays as it is: no mounts of our own")
        return allowed

    def choose(self, size):
        if size == self.size or not self.allowed:
            return
        if self.size:
            ctypes.CDLL(None).umount2(CACHE.encode(), MNT_DETACH)
        self.size = 0
        if size == 0:
            return
        with open(CACHE, "rb") as file, tempfile.NamedTemporaryFile() as copy:
            content = file.read()
            # Without a cache that fits, the loader searches its own folders.
            content = content if len(content) <= size << 10 else b""
            copy.write(content.ljust(size << 10, b"\0"))
            copy.flush()
            os.chmod(copy.name, 0o644)
            if _mount(copy.name.encode(), CACHE.encode(), MS_BIND):
                self.size = size


_caches = _Caches()


def _is_allowed(option):
    with contextlib.suppress(OSError):
        return subprocess.run(["setarch", option, "true"], check=False,
                              capture_output=True).returncode == 0
    return False


_options = [option for option in ("-R", "-L") if _is_allowed(option)]
if "-R" not in _options:
    print("layouts: addresses differ from run to run: 'setarch -R' is not allowed")


def still(command, legacy=False):
    """The command, whose memory lies where it lay in the run before."""
    options = [option for option in _options if option == "-R" or legacy]
    return ["setarch", *options, *command] if options else list(command)


def choose(name, only_cache=False):
    """
    A layout for the program that is started next. only_cache: answers are compared word by word,
    whose order and free bytes depend on the rest.
    """
    number, given = next(_counter), os.environ.get("HEAPCORE_LAYOUT", "usual")
    if given == "usual":
        return Layout()
    layout = random.Random(f"{SEED} {number}").choice(ALL) if given == "any" else parse(given)
    if only_cache:
        layout = Layout(layout.cache)
    print(f"layout {number} (HEAPCORE_LAYOUT_SEED={SEED}): {name}: {layout}", flush=True)
    return layout


def apply(layout, command, variables):
    """The command and the environment that make the layout."""
    _caches.choose(layout.cache)
    tunables = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"} if layout.huge else {}
    return still(command, layout.legacy), {**tunables, **variables}


def limit_stack(layout):
    """In the child: as 'ulimit -s unlimited', where that is allowed."""
    if layout.unlimited:
        with contextlib.suppress(ValueError, OSError):
            hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
            resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, hard))
