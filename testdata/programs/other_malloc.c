/*
 * A program for another malloc: threads allocate and free blocks of all sizes, also those of each
 * other, lose some, and leave their caches full. One thread ends. It has an arena and a cache of
 * its own, and some blocks of libc's malloc, where malloc is jemalloc. Where it is tcmalloc, what
 * that counts is in the truth, too. Without the word "late" as its argument, blocks are not freed
 * again after the last were allocated.
 */
#include "truth.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 5, BLOCKS = 4000, LOST_EACH = 23, MEGABYTE = 1 << 20, OWN = 20 };
/* A size to which glibc's malloc adds nothing. */
enum { LIBC_SIZE = sizeof(void *) == 8 ? 1000 : 1004 };

__attribute__((weak)) void *__libc_malloc(size_t size);

static void *volatile blocks[THREADS][BLOCKS];
static void *volatile large[4];
static void *volatile of_arena[OWN], *volatile of_cache[OWN], *volatile of_libc[OWN];
static pthread_barrier_t barrier;
static bool late;

/* mallctl() of the malloc in use, or NULL. */
static int (*mallctl)(const char *, void *, size_t *, void *, size_t);
static void *(*mallocx)(size_t, int);
static void (*dallocx)(void *, int);
static int (*get_number)(const char *name, size_t *ret);

/* Before other blocks are freed: what is not there is noted in blocks of libc's own. */
static void find_functions(void)
{
	mallctl = dlsym(RTLD_DEFAULT, "mallctl");
	mallocx = dlsym(RTLD_DEFAULT, "mallocx");
	dallocx = dlsym(RTLD_DEFAULT, "dallocx");
	get_number = dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
}

static size_t random_size(uint32_t *state)
{
	static const uint32_t most[] = { 250,  250,   250,    250,    250,
					 2000, 20000, 200000, 200000, 600000 };
	uint32_t kind = truth_random(state, 100);

	if (kind < 60)
		return 1 + truth_random(state, 250);
	return 1 + truth_random(state, most[kind % 20 / 2]) / (kind < 97 ? 8 : 1);
}

static void *make(uint32_t *state)
{
	size_t size = random_size(state);
	uint32_t how = truth_random(state, 40);

	if (how == 0)
		return truth_aligned_block((size_t)16 << truth_random(state, 10), size);
	if (how == 1)
		return truth_zeroed_block(size);
	return truth_block(size);
}

static void drop(void *volatile *block)
{
	if (*block)
		truth_free(*block);
	*block = NULL;
}

static OUT_OF_LINE void allocate(int thread)
{
	uint32_t state = (uint32_t)thread + 1;

	for (int i = 0; i < BLOCKS; i++) {
		blocks[thread][i] = make(&state);
		if (truth_random(&state, 3) == 0)
			drop(&blocks[thread][truth_random(&state, (uint32_t)i + 1)]);
	}
	pthread_barrier_wait(&barrier);
	for (int i = thread; i < BLOCKS; i += 7)
		drop(&blocks[(thread + 1) % THREADS][i]);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < BLOCKS; i += 2)
		if (!blocks[thread][i])
			blocks[thread][i] = make(&state);
	for (int i = thread; late && i < BLOCKS; i += 3)
		drop(&blocks[thread][i]);
	pthread_barrier_wait(&barrier);
}

/* Lose some, of which some hold others; say what became of the rest. */
static OUT_OF_LINE void decide(int thread)
{
	void **last = NULL;

	for (int i = 0; i < BLOCKS; i++) {
		void *block = blocks[thread][i];

		if (!block)
			continue;
		if (i % LOST_EACH != 0) {
			truth_kept(block);
			continue;
		}
		truth_lost(block);
		if (last && i % 2 == 0)
			*last = block;
		last = block;
		blocks[thread][i] = NULL;
	}
}

static OUT_OF_LINE void make_large(void)
{
	static const size_t sizes[] = { 5, 9, 40, 70 };

	for (int i = 0; i < 4; i++) {
		large[i] = truth_zeroed_block(sizes[i] * MEGABYTE + 12345);
		truth_kept(large[i]);
	}
	drop(&large[1]);
}

/*
 * With jemalloc's own functions, where there are any: blocks of an arena of the program's own, and
 * freed ones in a cache of its own.
 */
static OUT_OF_LINE void use_own_arena_and_cache(void)
{
	unsigned int arena, cache;
	size_t size = sizeof(arena);

	if (!mallctl || !mallocx || !dallocx || mallctl("arenas.create", &arena, &size, NULL, 0) ||
	    mallctl("tcache.create", &cache, &size, NULL, 0))
		return;
	/* MALLOCX_ARENA(), without a cache, and MALLOCX_TCACHE(). */
	for (int i = 0; i < OWN; i++) {
		of_arena[i] = mallocx(100, (int)(arena + 1) << 20 | 1 << 8);
		truth_kept(of_arena[i]);
		of_cache[i] = mallocx(1000, (int)(cache + 2) << 8);
	}
	for (int i = 0; i < OWN; i++) {
		truth_freed((uintptr_t)of_cache[i], 1000);
		dallocx(of_cache[i], (int)(cache + 2) << 8);
		of_cache[i] = NULL;
	}
}

/* Blocks of libc's own malloc, beside jemalloc; others take its place under that name, too. */
static OUT_OF_LINE void use_libc(void)
{
	if (!mallctl)
		return;
	for (int i = 0; i < OWN; i++) {
		void *block = __libc_malloc(LIBC_SIZE);

		memset(block, 0x5a, LIBC_SIZE);
		truth_tell(i % 4 ? "kept" : "lost", block, LIBC_SIZE);
		of_libc[i] = i % 4 ? block : NULL;
	}
}

/* tcmalloc's own statistics. */
static OUT_OF_LINE void tell_statistics(void)
{
	static const char *const names[] = {
		"generic.current_allocated_bytes",    "tcmalloc.thread_cache_free_bytes",
		"tcmalloc.transfer_cache_free_bytes", "tcmalloc.pageheap_free_bytes",
		"tcmalloc.pageheap_unmapped_bytes",
	};
	size_t values[5];

	if (!get_number)
		return;
	for (int i = 0; i < 5; i++)
		if (!get_number(names[i], &values[i]))
			truth_fail("ask tcmalloc");
	for (int i = 0; i < 5; i++)
		truth_number(names[i], values[i]);
}

static void *work(void *number)
{
	int thread = (int)(intptr_t)number;

	allocate(thread);
	if (thread == THREADS - 1)
		return NULL;
	truth_rest();
}

static OUT_OF_LINE void run(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	find_functions();
	for (int i = 1; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i))
			truth_fail("start a thread");
	make_large();
	use_own_arena_and_cache();
	use_libc();
	allocate(0);
	pthread_join(threads[THREADS - 1], NULL);
	truth_await(THREADS - 2);
	for (int i = 0; i < THREADS; i++)
		decide(i);
	tell_statistics();
}

int main(int count, char **arguments)
{
	truth_open();
	late = count > 1 && strcmp(arguments[1], "late") == 0;
	run();
	truth_ready();
}
