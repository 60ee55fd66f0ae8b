/*
 * A heap that the program damaged, in the way that its argument names, just before it waits:
 *
 *	size	a block's overrun leaves nonsense in the next one's size
 *	zero	the same with zeros
 *	run	4 KiB of nonsense over the next blocks
 *	arena	as size, in the arena of a thread
 *	mapped	as size, in a block with a mapping of its own
 *	top	as size, in what is left at the end of the heap
 *	tcache	nonsense for a link in the thread's cache
 *	fastbin	the same in a fast bin
 *	unsorted, large	nonsense for both links of a block in these bins
 *
 * What only the destroyed link led to is said to be destroyed, too.
 */

#include "truth.h"

#include <gnu/libc-version.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 400, ROW = 200, RUN = 4096, WORD = sizeof(void *), SKIPPED = 77 };

/* A repeated text, as the overrun of a string leaves it. */
#define NONSENSE (UINTPTR_MAX / 0xff * 0x41)

struct kind {
	const char *name;
	/* Before and after the main thread's other blocks. */
	void (*prepare)(void);
	void (*finish)(void);
};

/* The second row is for the thread of start_thread(). */
static void *volatile held[2][BLOCKS];
static void *volatile held_in_row[ROW];

/* The word to overwrite: words of the heap, but no block's start. */
static uintptr_t *target;
static size_t target_count;
static uintptr_t replacement = NONSENSE;

static OUT_OF_LINE void populate(size_t row)
{
	void *freed[BLOCKS] = { NULL };

	for (size_t i = 0; i < BLOCKS; i++) {
		void *block = truth_block(i * 37 % 1500);

		switch (i % 3) {
		case 0:
			truth_lost(block);
			break;
		case 1:
			truth_kept(block);
			held[row][i] = block;
			break;
		default:
			freed[i] = block;
		}
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (freed[i])
			truth_free(freed[i]);
}

/* The size field of the chunk behind the block. */
static uintptr_t *end_of(void *block)
{
	return (uintptr_t *)((char *)block + malloc_usable_size(block));
}

static void destroy(void *block)
{
	truth_destroyed((uintptr_t)block, malloc_usable_size(block));
}

/*
 * Overrun a block amid a row of neighbours by size bytes. They are of a size that nothing free has,
 * and so come from the end of the heap, one by one.
 */
static void overrun(size_t size)
{
	void *row[ROW];

	for (size_t i = 0; i < ROW; i++) {
		row[i] = truth_block(1704);
		if (i > 0 && (char *)row[i] != (char *)end_of(row[i - 1]) + WORD)
			truth_fail("allocate neighbours");
		if (i % 4 == 1) {
			truth_lost(row[i]);
		} else {
			truth_kept(row[i]);
			held_in_row[i] = row[i];
		}
	}

	size_t culprit = ROW / 2;

	truth_damaged((uintptr_t)row[culprit]);
	target = end_of(row[culprit]);
	target_count = size / sizeof(*target);
	for (size_t i = culprit + 1; i < ROW; i++)
		if ((uintptr_t *)row[i] <= target + target_count)
			destroy(row[i]);
}

static OUT_OF_LINE void finish_size(void)
{
	overrun(sizeof(*target));
}

static OUT_OF_LINE void finish_zero(void)
{
	overrun(sizeof(*target));
	replacement = 0;
}

static OUT_OF_LINE void finish_run(void)
{
	overrun(RUN);
}

static OUT_OF_LINE void populate_thread(void)
{
	truth_warm_up();
	populate(1);
	overrun(sizeof(*target));
}

static void *run_thread(void *argument)
{
	populate_thread();
	truth_rest();
	return argument;
}

/* Before anything is freed, as libc allocates for the thread. */
static OUT_OF_LINE void start_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_thread, NULL))
		truth_fail("create a thread");
	truth_await(1);
}

static OUT_OF_LINE void finish_mapped(void)
{
	void *first = truth_block(200000);
	void *second = truth_block(300000);
	void *third = truth_block(400000);

	held_in_row[0] = first;
	truth_kept(first);
	truth_damaged((uintptr_t)second);
	destroy(second);
	held_in_row[2] = third;
	truth_kept(third);
	target = (uintptr_t *)second - 1;
	target_count = 1;
}

static OUT_OF_LINE void finish_top(void)
{
	void *first = truth_block(1704);
	void *second = truth_block(1704);

	if ((char *)second != (char *)end_of(first) + WORD)
		truth_fail("allocate neighbours");
	truth_lost(first);
	truth_kept(second);
	truth_damaged((uintptr_t)second);
	held_in_row[0] = second;
	target = end_of(second);
	target_count = 1;
}

/* Stands behind a freed one, so that it is not merged with the next. */
static void add_spacer(void *block)
{
	void *spacer = truth_block(1704);

	if ((char *)spacer != (char *)end_of(block) + WORD)
		truth_fail("allocate neighbours");
	truth_lost(spacer);
}

/*
 * Free blocks of one size and break the links of one. From the first_lost on, only this one's led
 * to those freed before it.
 */
static void free_and_break(size_t size, size_t count, size_t broken, size_t first_lost,
			   size_t link_count)
{
	void *blocks[100];

	for (size_t i = 0; i < count; i++) {
		blocks[i] = truth_block(size);
		if (size > 1704)
			add_spacer(blocks[i]);
	}
	for (size_t i = 0; i < count; i++) {
		if (i >= first_lost && i < broken)
			destroy(blocks[i]);
		else
			truth_freed((uintptr_t)blocks[i], malloc_usable_size(blocks[i]));
		free(blocks[i]);
	}
	truth_damaged((uintptr_t)blocks[broken]);
	target = blocks[broken];
	target_count = link_count;
}

static OUT_OF_LINE void finish_tcache(void)
{
	free_and_break(1020, 7, 3, 0, 1);
}

static OUT_OF_LINE void finish_fastbin(void)
{
	/* Since this version, malloc does without. */
	if (strverscmp(gnu_get_libc_version(), "2.43") >= 0)
		exit(SKIPPED);
	/* The first seven go to the cache, if there is one. */
	free_and_break(12 * sizeof(void *), 60, 30,
		       strverscmp(gnu_get_libc_version(), "2.26") >= 0 ? 7 : 0, 1);
}

static OUT_OF_LINE void finish_unsorted(void)
{
	free_and_break(2000, 9, 4, 9, 2);
}

static OUT_OF_LINE void finish_large(void)
{
	free_and_break(3000, 9, 4, 9, 2);
	/* None of them fits: they leave the unsorted. */
	truth_lost(truth_block(100000));
}

static void nothing(void)
{
}

static const struct kind kinds[] = {
	{ "size", nothing, finish_size },	  { "zero", nothing, finish_zero },
	{ "run", nothing, finish_run },		  { "arena", start_thread, nothing },
	{ "mapped", nothing, finish_mapped },	  { "top", nothing, finish_top },
	{ "tcache", nothing, finish_tcache },	  { "fastbin", nothing, finish_fastbin },
	{ "unsorted", nothing, finish_unsorted }, { "large", nothing, finish_large },
};

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (name && strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	truth_fail("do without the kind of damage as argument");
}

static OUT_OF_LINE void damage(void)
{
	for (size_t i = 0; i < target_count; i++)
		target[i] = replacement;
}

int main(int argument_count, char **arguments)
{
	const struct kind *kind = find_kind(argument_count > 1 ? arguments[1] : NULL);

	truth_open();
	truth_warm_up();
	kind->prepare();
	populate(0);
	kind->finish();
	truth_write();
	damage();
	truth_scrub();
	truth_announce();
}
