/*
 * The only pointer to a block is in each of several places and encodings. Without a valid one, the
 * block is lost.
 *
 *	pointers CASE leak|clean
 */
#include "testdata/programs/gate/cases.h"
#include "testdata/programs/settle.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

static volatile uintptr_t kept, other;

static uintptr_t make(size_t size)
{
	char *block = malloc(size);

	memset(block, 1, size);
	return (uintptr_t)block;
}

/* In the way of each case if leak, as it is if not. */
static void keep(bool leak, uintptr_t written, uintptr_t block)
{
	kept = leak ? written : block;
}

static void tagged_high(bool leak)
{
	uintptr_t block = make(72);

	keep(leak, block | (uintptr_t)0xbeef << 48, block);
}

static void shifted(bool leak)
{
	uintptr_t block = make(72);

	keep(leak, block << 1, block);
}

static void masked(bool leak)
{
	uintptr_t block = make(72);

	keep(leak, block ^ 0x5a5a5a5a5a5a5a5a, block);
}

static void negated(bool leak)
{
	uintptr_t block = make(72);

	keep(leak, ~block, block);
}

/* The size is what malloc() has, and it is the last block. */
static void past_the_end(bool leak)
{
	uintptr_t block = make(72);

	keep(leak, block + 80, block);
}

static void before_the_start(bool leak)
{
	uintptr_t block = make(72);

	keep(leak, block - 1, block);
}

static void halves(bool leak)
{
	uintptr_t block = make(72);

	keep(leak, block >> 32 << 8, block);
	other = leak ? (block & 0xffffffff) << 8 : 0;
}

/* Only a word at a multiple of eight is a pointer. */
static void packed(bool leak)
{
	static struct {
		char flag;
		void *block;
	} __attribute__((packed)) record[2];
	uintptr_t block = make(72);

	memcpy(&record[0].block, &block, sizeof(block));
	kept = leak ? 0 : block;
}

/* Possibly lost, valgrind says. */
static void tagged_low(bool leak)
{
	uintptr_t block = make(72);

	keep(leak, block | 1, block);
}

static void interior(bool leak)
{
	uintptr_t block = make(72);

	keep(leak, block + 24, block);
}

static void *map(int flags)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
}

/* Gone with the mapping. */
static void mapping(bool leak)
{
	uintptr_t *page = map(MAP_PRIVATE);

	page[7] = make(72);
	kept = (uintptr_t)page;
	if (leak)
		munmap(page, 4096);
}

static void shared_mapping(bool leak)
{
	uintptr_t *page = map(MAP_SHARED);

	page[100] = make(72);
	if (leak)
		page[100] = 0;
}

static void read_only(bool leak)
{
	uintptr_t *page = map(MAP_PRIVATE);

	page[100] = make(72);
	if (leak)
		page[100] = 0;
	mprotect(page, 4096, PROT_READ);
}

/* In what was freed, a pointer leads nowhere. */
static void in_freed(bool leak)
{
	uintptr_t *holder = malloc(104);

	holder[5] = make(72);
	kept = (uintptr_t)holder;
	if (leak)
		free(holder);
}

/* The whole of it can be reached again by longjmp(). */
static jmp_buf saved;

__attribute__((noinline)) static void save(uintptr_t block)
{
	register uintptr_t held __asm__("rbx") = block;

	__asm__ volatile("" : "+r"(held));
	if (setjmp(saved))
		kept = held;
}

static void jump_buffer(bool leak)
{
	save(make(72));
	if (leak)
		memset(saved, 0, sizeof(saved));
}

/* A coroutine that waits has what its stack has. */
static ucontext_t outside, inside;
static char *coroutine_stack;

static void coroutine(void)
{
	char *volatile block = malloc(72);

	swapcontext(&inside, &outside);
	free(block);
}

static void start_coroutine(void)
{
	const size_t size = 65536 - 24;

	coroutine_stack = calloc(1, size);
	getcontext(&inside);
	inside.uc_stack.ss_sp = coroutine_stack;
	inside.uc_stack.ss_size = size;
	inside.uc_link = &outside;
	makecontext(&inside, coroutine, 0);
	swapcontext(&outside, &inside);
}

static void context(bool leak)
{
	start_coroutine();
	if (!leak)
		return;
	memset(&inside, 0, sizeof(inside));
	memset(&outside, 0, sizeof(outside));
	free(coroutine_stack);
	coroutine_stack = NULL;
}

/* A thread that waits in a system call has no use for vector registers. */
static int ready[2], never[2];

static void *wait_with_vector(void *leak)
{
	uintptr_t block = make(72);
	char byte = 0;

	if (!leak)
		kept = block;
	block = ~block;
	forget();
	write(ready[1], &byte, 1);
	__asm__ volatile("not %0\n\tmovq %0, %%xmm7\n\txor %0, %0" : "+r"(block) : : "xmm7");
	read(never[0], &byte, 1);
	return NULL;
}

static void vector(bool leak)
{
	pthread_t thread;
	char byte;

	if (pipe(ready) != 0 || pipe(never) != 0)
		abort();
	pthread_create(&thread, NULL, wait_with_vector, leak ? &thread : NULL);
	read(ready[0], &byte, 1);
	settle();
}

const struct leak_case cases[] = {
	{ "tagged-high", tagged_high },
	{ "shifted", shifted },
	{ "masked", masked },
	{ "negated", negated },
	{ "past-the-end", past_the_end },
	{ "before-the-start", before_the_start },
	{ "halves", halves },
	{ "packed", packed },
	{ "tagged-low", tagged_low },
	{ "interior", interior },
	{ "mapping", mapping },
	{ "shared-mapping", shared_mapping },
	{ "read-only", read_only },
	{ "in-freed", in_freed },
	{ "jump-buffer", jump_buffer },
	{ "context", context },
	{ "vector", vector },
	{ NULL, NULL },
};
