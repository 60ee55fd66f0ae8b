"""
The bill, where memory of several owners lies in one mapping, or one owner's
memory looks like another's.
"""

import shutil
import unittest

from harness import LiveTest, ask, snap, tables
from layouts import Layout

MEGABYTE = 1 << 20

# The kernel makes one mapping of these and the loader's memory.
NEIGHBOURS = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char *blocks[8];

int main(void)
{
	for (int i = 0; i < 8; i++) {
		blocks[i] = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(blocks[i], 1, 1 << 20);
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
"""

# As Go does without C: the thread pointer leads into an arena.
ARENA = r"""
#include <asm/prctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *arena;

static long call(long number, long first, const void *second, long third)
{
	__asm__ volatile("syscall"
			 : "+a"(number)
			 : "D"(first), "S"(second), "d"(third)
			 : "rcx", "r11", "memory");
	return number;
}

/* From here on, nothing of libc may be used. */
static void wait_without_tls(void)
{
	call(SYS_arch_prctl, ARCH_SET_FS, arena + 0x208, 0);
	call(SYS_write, 1, "ready\n", 6);
	for (;;)
		call(SYS_pause, 0, 0, 0);
}

int main(void)
{
	arena = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(arena, 1, 0x200);
	memset(arena + 4096, 1, (4 << 20) - 4096);
	free(malloc(100));
	wait_without_tls();
}
"""

# As node has it: a part of the program's file mapped far from the rest, and the
# program's own memory behind that.
FAR = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PLACE ((char *)0x600000000000)

static char *data;

int main(void)
{
	int file = open("/proc/self/exe", O_RDONLY);

	if (mmap(PLACE, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
		 file, 4096) != PLACE)
		return 1;
	data = mmap(PLACE + 4096, 8 << 20, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (data != PLACE + 4096)
		return 1;
	memset(data, 1, 8 << 20);
	free(malloc(100));
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
"""

FIBERS = 100
# Objects of several sizes, and fibers that wait; how many pages there are.
RUBY = f"""
$kept = (1..100_000).map {{ |n| ["x" * (n % 300), n.to_s, {{ n => n }}] }}
$fibers = (1..{FIBERS}).map {{ Fiber.new {{ Fiber.yield }}.tap(&:resume) }}
GC.disable
puts GC.stat(:heap_allocated_pages)
puts GC::INTERNAL_CONSTANTS[:HEAP_PAGE_SIZE]
puts RubyVM::DEFAULT_PARAMS[:fiber_machine_stack_size]
puts "ready"
STDOUT.flush
sleep
"""


class BillRest(LiveTest):
    def core_of(self, text, layout=None):
        program = self.compile("program", text=text)
        return snap(self.start([program], layout=layout), self.path("core"))

    def use(self, core, name):
        """The bytes mapped for that use."""
        return sum(row["mapped"] for row in tables(core, "bill")["use"]
                   if row["use"] == name)

    def test_thread_variables_are_not_what_lies_beside_them(self):
        # In the second, the loader lies below the program and knows where its libraries end.
        for layout in None, Layout(legacy=True, huge=True):
            with self.subTest(layout=str(layout)):
                core = self.core_of(NEIGHBOURS, layout)
                self.assertGreater(self.use(core, "TLS and loader"), 0)
                self.assertLess(self.use(core, "TLS and loader"), MEGABYTE)
                self.assertGreaterEqual(self.use(core, "of program"), 8 * MEGABYTE)

    def test_arena_is_no_thread_variables(self):
        core = self.core_of(ARENA)
        # libc's own block is found without the register; it is small.
        self.assertLess(self.use(core, "TLS and loader"), MEGABYTE)
        self.assertGreaterEqual(self.use(core, "of program"), 4 * MEGABYTE)
        self.assertNotIn("thread-local", ask(core, "count", "used").stderr)

    def test_module_ends_where_its_headers_say(self):
        core = self.core_of(FAR)
        self.assertLess(self.use(core, "data"), MEGABYTE)
        self.assertGreaterEqual(self.use(core, "of program"), 8 * MEGABYTE)
        modules = tables(core, "list", "modules")["module"]
        self.assertLess(max(row["size"] for row in modules
                            if row["path"].endswith("/program")), MEGABYTE)

    def test_ruby_s_objects_are_its_pages(self):
        if not shutil.which("ruby"):
            self.skipTest("there is no ruby")
        process = self.start(["ruby", "-e", RUBY])
        pages, size, stack = map(int, process.said)
        core = snap(process, self.path("core"))
        self.assertEqual(self.use(core, "Ruby's objects"), 0)
        transient = sum(row["size"] for row in tables(core, "list", "arenas")["arena"]
                        if row["kind"] == "ruby-transient")
        self.assertEqual(sum(row["mapped"] for row in tables(core, "bill")["use"]
                             if row["memory"] == "ruby"), pages * size + transient)
        fibers = sum(row["mapped"] for row in tables(core, "bill")["use"]
                     if row["use"].startswith("fibers: "))
        self.assertGreater(fibers, FIBERS * stack * 9 // 10)


if __name__ == "__main__":
    unittest.main()
