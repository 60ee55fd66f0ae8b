/*
 * Slices of GLib, of all sizes: of three threads, of which one ends, some are lost, some kept, and
 * some freed again, within their thread and by another. Those that fill slabs, too, are of a size
 * that leaves room for colors.
 *
 * With "after-free" in its arguments, one that is freed is written to; with "twice", one is freed
 * again. Both are said to be damaged.
 *
 * It loads GLib while it runs, and ends with 77 where there is none, or none with slices.
 */
#include "truth.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 6000, LARGEST = 1000, FULL = 400, FULL_SIZE = 112, NO_GLIB = 77 };

static void *(*slice_alloc)(size_t size);
static void (*slice_free)(size_t size, void *block);

struct slice {
	void *block;
	size_t size;
};

/* Slices that threads keep, and those that the next one frees. */
static struct slice *volatile kept[THREADS];
static struct slice handed[THREADS][ROUNDS];
static void *volatile full[FULL];

static size_t chunk_size(size_t size)
{
	return (size + 15) / 16 * 16;
}

static struct slice make(size_t size)
{
	struct slice slice = { slice_alloc(size), size };

	memset(slice.block, 0x5a, size);
	return slice;
}

static void drop(struct slice slice)
{
	truth_freed((uintptr_t)slice.block, chunk_size(slice.size));
	slice_free(slice.size, slice.block);
}

static OUT_OF_LINE void work(int number)
{
	struct slice *mine = truth_block(ROUNDS * sizeof(*mine));
	uint32_t state = (uint32_t)number + 1;

	memset(mine, 0, ROUNDS * sizeof(*mine));
	kept[number] = mine;
	truth_kept(mine);
	for (int i = 0; i < ROUNDS; i++) {
		struct slice slice = make(8 * (1 + (size_t)truth_random(&state, LARGEST / 8)));
		uint32_t fate = truth_random(&state, 8);

		if (fate == 0) {
			truth_tell("lost", slice.block, chunk_size(slice.size));
		} else if (fate <= 3) {
			drop(slice);
		} else if (fate == 4) {
			handed[number][i] = slice;
		} else {
			truth_tell("kept", slice.block, chunk_size(slice.size));
			mine[i] = slice;
		}
	}
	/* Slices that another thread allocated. */
	for (int i = 0; i < ROUNDS && number > 0; i++)
		if (handed[number - 1][i].block)
			drop(handed[number - 1][i]);
	if (number > 0)
		memset(handed[number - 1], 0, sizeof(handed[number - 1]));
}

static void *run(void *data)
{
	int number = (int)(intptr_t)data;

	work(number);
	if (number == 1)
		return NULL;
	truth_rest();
}

/* Slabs without free slices, which others refer to. */
static OUT_OF_LINE void fill(void)
{
	for (int i = 0; i < FULL; i++) {
		full[i] = make(FULL_SIZE).block;
		truth_tell("kept", full[i], FULL_SIZE);
	}
	for (int i = 0; i < ROUNDS; i++)
		if (handed[THREADS - 1][i].block)
			truth_tell("kept", handed[THREADS - 1][i].block,
				   chunk_size(handed[THREADS - 1][i].size));
}

static OUT_OF_LINE void damage(const char *how)
{
	struct slice first = make(64), second = make(64), third = make(64);

	drop(first);
	drop(second);
	drop(third);
	truth_damaged((uintptr_t)second.block);
	if (strcmp(how, "after-free") == 0)
		memset(second.block, 'W', 16);
	else
		slice_free(64, second.block);
}

static OUT_OF_LINE void load(void)
{
	void *glib = dlopen("libglib-2.0.so.0", RTLD_NOW);
	const unsigned int *minor = glib ? dlsym(glib, "glib_minor_version") : NULL;

	if (!minor || *minor >= 76)
		exit(NO_GLIB);
	*(void **)&slice_alloc = dlsym(glib, "g_slice_alloc");
	*(void **)&slice_free = dlsym(glib, "g_slice_free1");
}

/* A thread that has no slices, between others that have. */
static void *sleep_on(void *data)
{
	for (;;)
		pause();
	return data;
}

int main(int count, char **arguments)
{
	pthread_t threads[THREADS], idle;

	load();
	truth_open();
	for (intptr_t i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, run, (void *)i) != 0)
			truth_fail("start a thread");
		if (i == 1)
			pthread_join(threads[i], NULL);
		else
			truth_await(i == 0 ? 1 : 2);
		if (i == 0 && pthread_create(&idle, NULL, sleep_on, NULL) != 0)
			truth_fail("start a thread");
	}
	fill();
	if (count > 1)
		damage(arguments[1]);
	truth_ready();
}
