#include "truth.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* No masked address is one of user space. */
static const uint64_t MASK = 0xa5c3695af00f3c99;
static const size_t MAX_ENTRIES = (size_t)4 << 20;
/* Far from where mmap() puts things, which programs want to be neighbours. */
static void *const TABLE_HINT = (void *)(uintptr_t)0x10000000000;
enum { MAX_DAMAGED = 16, FILLER = 0x5a };

enum state { LOST, KEPT, FREED, DESTROYED };
static const char *const STATE_NAMES[] = { "lost",    "kept", "freed", "destroyed",
					   "garbage", "held", "risk",  "dead" };
enum { STATES = sizeof(STATE_NAMES) / sizeof(STATE_NAMES[0]) };

/* Rank is the order in which the program spoke. */
struct entry {
	uint64_t masked_address;
	uint64_t size;
	uint32_t rank;
	uint32_t state;
};

static struct entry *table;
static atomic_uint entry_count;
static uint64_t masked_damaged[MAX_DAMAGED];
static unsigned int damaged_count;
static atomic_int resting_count;
static int output;
static bool exits;

static char text[4096];
static size_t text_size;

void truth_open(void)
{
	const char *path = getenv("HEAPCORE_TRUTH");

	exits = getenv("HEAPCORE_TRUTH_EXIT") != NULL;
	output = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : STDOUT_FILENO;
	if (output < 0)
		truth_fail("open the truth file");
	table = mmap(TABLE_HINT, MAX_ENTRIES * sizeof(*table), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (table == MAP_FAILED)
		truth_fail("map the table");
	/* If only ancestors may trace, gcore is not allowed to. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

void truth_warm_up(void)
{
	free(truth_block(1));
}

void *truth_block(size_t size)
{
	/* Valgrind's blocks have no more room than was asked for. */
	void *block = malloc(exits && size < sizeof(block) ? sizeof(block) : size);

	if (!block)
		truth_fail("malloc");
	truth_fill(block, 0);
	return block;
}

void *truth_aligned_block(size_t alignment, size_t size)
{
	void *block;

	if (posix_memalign(&block, alignment, size))
		truth_fail("posix_memalign");
	truth_fill(block, 0);
	return block;
}

void *truth_zeroed_block(size_t size)
{
	void *block = calloc(1, size);

	if (!block)
		truth_fail("calloc");
	return block;
}

void truth_fill(void *block, size_t offset)
{
	memset((char *)block + offset, FILLER, malloc_usable_size(block) - offset);
}

static void add(uintptr_t address, size_t size, enum state state)
{
	unsigned int rank = atomic_fetch_add(&entry_count, 1);

	if (rank >= MAX_ENTRIES)
		truth_fail("remember so many blocks");
#ifdef __aarch64__
	/* MTE's tags: others are given to the same memory later. */
	address &= UINTPTR_MAX >> 8;
#endif
	table[rank] = (struct entry){ address ^ MASK, size, rank, state };
}

void truth_lost(const void *block)
{
	add((uintptr_t)block, malloc_usable_size((void *)block), LOST);
}

void truth_kept(const void *block)
{
	add((uintptr_t)block, malloc_usable_size((void *)block), KEPT);
}

void truth_freed(uintptr_t address, size_t size)
{
	add(address, size, FREED);
}

void truth_destroyed(uintptr_t address, size_t size)
{
	add(address, size, DESTROYED);
}

void truth_damaged(uintptr_t address)
{
	if (damaged_count == MAX_DAMAGED)
		truth_fail("remember so much damage");
	masked_damaged[damaged_count++] = address ^ MASK;
}

void truth_tell(const char *word, const void *block, size_t size)
{
	for (int i = 0; i < STATES; i++)
		if (strcmp(STATE_NAMES[i], word) == 0) {
			add((uintptr_t)block, size, (enum state)i);
			return;
		}
	truth_fail("say what is no word of truth");
}

void truth_free(void *block)
{
	add((uintptr_t)block, malloc_usable_size(block), FREED);
	free(block);
}

void **truth_last_word(void *block)
{
	size_t size = malloc_usable_size(block);

	return (void **)block + size / sizeof(void *) - 1;
}

uint32_t truth_random(uint32_t *state, uint32_t bound)
{
	*state = *state * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)*state * bound >> 32);
}

static void flush(void)
{
	size_t done = 0;

	while (done < text_size) {
		ssize_t size = write(output, text + done, text_size - done);

		if (size < 0)
			truth_fail("write the truth file");
		done += (size_t)size;
	}
	text_size = 0;
}

static void print(const char *string)
{
	size_t size = strlen(string);

	if (size > sizeof(text) - text_size)
		flush();
	memcpy(text + text_size, string, size);
	text_size += size;
}

static void print_number(uint64_t number, unsigned int base)
{
	char digits[24];
	size_t start = sizeof(digits) - 1;

	digits[start] = '\0';
	do {
		digits[--start] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	print(" ");
	print(digits + start);
}

void truth_number(const char *word, uint64_t number)
{
	print(word);
	print_number(number, 10);
	print("\n");
	flush();
}

_Noreturn void truth_fail(const char *what)
{
	static const char sorry[] = "cannot ";

	if (write(STDERR_FILENO, sorry, sizeof(sorry) - 1) < 0 ||
	    write(STDERR_FILENO, what, strlen(what)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
		_exit(2);
	_exit(1);
}

static bool comes_before(const struct entry *left, const struct entry *right)
{
	uint64_t left_address = left->masked_address ^ MASK;
	uint64_t right_address = right->masked_address ^ MASK;

	if (left_address != right_address)
		return left_address < right_address;
	return left->rank < right->rank;
}

static void sift_down(size_t parent, size_t count)
{
	for (;;) {
		size_t child = 2 * parent + 1;

		if (child >= count)
			return;
		if (child + 1 < count && comes_before(&table[child], &table[child + 1]))
			child++;
		if (!comes_before(&table[parent], &table[child]))
			return;

		struct entry entry = table[parent];

		table[parent] = table[child];
		table[child] = entry;
		parent = child;
	}
}

/* Heap sort, as qsort() may allocate. */
static void sort(size_t count)
{
	for (size_t i = count / 2; i-- > 0;)
		sift_down(i, count);
	for (size_t i = count; i-- > 1;) {
		struct entry entry = table[0];

		table[0] = table[i];
		table[i] = entry;
		sift_down(0, i);
	}
}

void truth_write(void)
{
	size_t count = entry_count;
	uint64_t used_end = 0;

	sort(count);
	for (size_t i = 0; i < count; i++) {
		uint64_t address = table[i].masked_address ^ MASK;

		if (i + 1 < count && table[i + 1].masked_address == table[i].masked_address)
			continue;
		if (table[i].state != FREED)
			used_end = address + table[i].size;
		else if (address < used_end)
			continue;
		print(STATE_NAMES[table[i].state]);
		print_number(address, 16);
		print_number(table[i].size, 10);
		print("\n");
	}
	for (size_t i = 0; i < damaged_count; i++) {
		print("damaged");
		print_number(masked_damaged[i] ^ MASK, 16);
		print("\n");
	}
	flush();
	munmap(table, MAX_ENTRIES * sizeof(*table));
}

#ifdef __x86_64__
/*
 * Put x87, SSE, AVX and AVX-512 registers into their first state, by loading a state that says of
 * each of them that it is in its first.
 */
static OUT_OF_LINE void clear_vector_registers(void)
{
	static const struct {
		uint8_t legacy[24];
		uint32_t mxcsr;
		uint8_t rest[1024 - 28];
	} state __attribute__((aligned(64))) = { .mxcsr = 0x1f80 };
	static const uint32_t x87_to_avx512 = 0xe7;
	unsigned int eax, ebx, ecx, edx;

	if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_OSXSAVE)) {
		__asm__ volatile("xrstor64 %0"
				 :
				 : "m"(state), "a"(x87_to_avx512), "d"(0)
				 : "memory");
		return;
	}
	__asm__ volatile(
		"fninit\n\tpxor %xmm0, %xmm0\n\tpxor %xmm1, %xmm1\n\tpxor %xmm2, %xmm2\n\tpxor %xmm3, %xmm3\n\tpxor %xmm4, %xmm4\n\tpxor %xmm5, %xmm5\n\tpxor %xmm6, %xmm6\n\tpxor %xmm7, %xmm7\n\tpxor %xmm8, %xmm8\n\tpxor %xmm9, %xmm9\n\tpxor %xmm10, %xmm10\n\tpxor %xmm11, %xmm11\n\tpxor %xmm12, %xmm12\n\tpxor %xmm13, %xmm13\n\tpxor %xmm14, %xmm14\n\tpxor %xmm15, %xmm15");
}

static inline void clear_general_registers(void)
{
	__asm__ volatile(
		"xor %%eax, %%eax\n\txor %%ecx, %%ecx\n\txor %%edx, %%edx\n\txor %%esi, %%esi\n\txor %%edi, %%edi\n\txor %%r8d, %%r8d\n\txor %%r9d, %%r9d\n\txor %%r10d, %%r10d\n\txor %%r11d, %%r11d"
		:
		:
		: "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc");
}
#elif defined(__i386__)
static OUT_OF_LINE void clear_vector_registers(void)
{
	__asm__ volatile(
		"fninit\n\t.irp n, 0, 1, 2, 3, 4, 5, 6, 7\n\tpxor %xmm\\n, %xmm\\n\n\t.endr");
}

static inline void clear_general_registers(void)
{
	__asm__ volatile("xor %%eax, %%eax\n\txor %%ecx, %%ecx\n\txor %%edx, %%edx"
			 :
			 :
			 : "eax", "ecx", "edx", "cc");
}
#elif defined(__aarch64__)
static void clear_vector_registers(void)
{
	__asm__ volatile(
		".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\tmovi v\\n\\().2d, #0\n\t.endr");
}

static inline void clear_general_registers(void)
{
	__asm__ volatile(
		".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18\n\tmov x\\n, #0\n\t.endr"
		:
		:
		: "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
		  "x13", "x14", "x15", "x16", "x17", "x18");
}
#elif defined(__riscv)
static void clear_vector_registers(void)
{
	__asm__ volatile(
		".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\tfmv.d.x f\\n, zero\n\t.endr");
}

static inline void clear_general_registers(void)
{
	__asm__ volatile(
		".irp n, t0, t1, t2, t3, t4, t5, t6, a0, a1, a2, a3, a4, a5, a6, a7\n\tli \\n, 0\n\t.endr"
		:
		:
		: "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a0", "a1", "a2", "a3", "a4", "a5",
		  "a6", "a7");
}
#elif defined(__powerpc64__)
static void clear_vector_registers(void)
{
	__asm__ volatile(
		".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63\n\txxlxor \\n, \\n, \\n\n\t.endr");
}

static inline void clear_general_registers(void)
{
	__asm__ volatile(".irp n, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12\n\tli \\n, 0\n\t.endr"
			 :
			 :
			 : "r0", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12");
}
#endif

OUT_OF_LINE void truth_scrub(void)
{
	volatile uint64_t stack[8192];

	for (size_t i = 0; i < sizeof(stack) / sizeof(stack[0]); i++)
		stack[i] = 0;
	if (!exits)
		clear_vector_registers();
	clear_general_registers();
}

/* Without libc: its wrapper would leave traces in the stack. */
#ifdef __x86_64__
static inline long system_call(long number, long first, const void *second, long third)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(first), "S"(second), "d"(third)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__i386__)
static inline long system_call(long number, long first, const void *second, long third)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(first), "c"(second), "d"(third), "S"(0)
			 : "memory");
	return result;
}
#elif defined(__aarch64__)
static inline long system_call(long number, long first, const void *second, long third)
{
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = first, x2 __asm__("x2") = third,
			 x3 __asm__("x3") = 0;
	register const void *x1 __asm__("x1") = second;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}
#elif defined(__riscv)
static inline long system_call(long number, long first, const void *second, long third)
{
	register long a7 __asm__("a7") = number, a0 __asm__("a0") = first, a2 __asm__("a2") = third,
			 a3 __asm__("a3") = 0;
	register const void *a1 __asm__("a1") = second;

	__asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3) : "memory");
	return a0;
}
#elif defined(__powerpc64__)
static inline long system_call(long number, long first, const void *second, long third)
{
	register long r0 __asm__("r0") = number, r3 __asm__("r3") = first, r5 __asm__("r5") = third,
			 r6 __asm__("r6") = 0;
	register const void *r4 __asm__("r4") = second;

	__asm__ volatile("sc"
			 : "+r"(r0), "+r"(r3), "+r"(r4), "+r"(r5), "+r"(r6)
			 :
			 : "r7", "r8", "r9", "r10", "r11", "r12", "cr0", "ctr", "memory");
	return r3;
}
#endif

static inline _Noreturn void wait_for_ever(void)
{
	for (;;)
		system_call(SYS_ppoll, 0, NULL, 0);
}

OUT_OF_LINE _Noreturn void truth_announce(void)
{
	static const char ready[] = "ready\n";

	system_call(SYS_write, output, ready, sizeof(ready) - 1);
	if (exits)
		system_call(SYS_exit_group, 0, NULL, 0);
	wait_for_ever();
}

OUT_OF_LINE _Noreturn void truth_sleep(void)
{
	atomic_fetch_add(&resting_count, 1);
	wait_for_ever();
}

void truth_await(int thread_count)
{
	while (atomic_load(&resting_count) < thread_count)
		sched_yield();
}
