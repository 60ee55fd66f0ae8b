/*
 * A few allocations of known sizes, each held in one place that has a name:
 *
 *	static		0x108 cache.entries[3].key, 0x118 cache.range.last,
 *			0x128 grid[1][2].entries[1].key, 0x138 single
 *	thread-local	0x148 thread_single, 0x158 thread_cache
 *	of a call	0x168 local[1], 0x178 session.key, both of a thread,
 *			0x188 inlined_local of a function that is inlined
 *
 * and, where a library is given as an argument (names_library.c), 0x198 and 0x1a8 in its static and
 * its thread-local variables.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {
	long id;
	void *volatile key;
};

struct cache {
	long size;
	struct entry entries[8];
	struct {
		void *volatile first, *volatile last;
	} range;
};

struct cache cache;
struct cache grid[2][3];
void *volatile single;
__thread void *volatile thread_single;
__thread struct cache thread_cache;

static pthread_barrier_t ready;

/* A zeroed block of that size, to its last byte. */
static __attribute__((noinline)) void *block(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory || malloc_usable_size(memory) != size)
		abort();
	return memory;
}

__attribute__((noinline)) void *wait_here(void *volatile *held)
{
	pause();
	return held[0];
}

static void *work(void *data)
{
	void *volatile local[3] = { NULL };
	struct entry session = { 1, block(0x178) };

	local[1] = block(0x168);
	thread_cache.entries[2].key = block(0x158);
	pthread_barrier_wait(&ready);
	wait_here(&session.key);
	return local[1];
}

static inline __attribute__((always_inline)) void *serve(int depth)
{
	void *volatile inlined_local = block(0x188);

	return wait_here(&inlined_local);
}

static __attribute__((noinline)) void *descend(int depth)
{
	if (depth > 0)
		return (char *)descend(depth - 1) + 1;
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		abort();
	return serve(depth);
}

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*hold)(void *, void *) = NULL;

	if (library)
		*(void **)&hold = dlsym(library, "library_hold");
	if (!hold)
		abort();
	hold(block(0x198), block(0x1a8));
}

int main(int count, char **arguments)
{
	pthread_t thread;

	pthread_barrier_init(&ready, NULL, 2);
	if (pthread_create(&thread, NULL, work, NULL) != 0)
		return 1;
	pthread_barrier_wait(&ready);
	cache.entries[3].key = block(0x108);
	cache.range.last = block(0x118);
	grid[1][2].entries[1].key = block(0x128);
	single = block(0x138);
	thread_single = block(0x148);
	if (count > 1)
		load(arguments[1]);
	return descend(2) != NULL;
}
