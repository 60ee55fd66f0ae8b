/*
 * Two heaps, malloc's and that of the Boehm collector, whose blocks refer to each other in every
 * way that makes a difference to what becomes of them. A hundred objects are referred to by blocks
 * of malloc() alone, directly or over other such objects: the next collection would free them, so
 * after the first there is none any more.
 */

#define GC_THREADS
#include "truth.h"

#include <gc.h>
#include <gc/gc_mark.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

enum {
	AT_RISK = 100,
	CHAINS = 10, /* of three of them */
	BLOCKS = 50,
	PAIRS = 500,
	SIZE = 48,
	DEAD_SIZE = 112, /* of which there are none but those made to die */
	DEAD = 1000,
};

static void *volatile *volatile table; /* a block of malloc() */
static void *volatile *volatile array; /* an object */
static void *volatile *volatile uncollectable;
static void *volatile *volatile survivors;
static void *volatile of_static;
static void *volatile pairs;
static uintptr_t masked[DEAD];

static void tell(const char *word, const void *object)
{
	truth_tell(word, object, GC_size(object));
}

static void *object_create(const char *word, size_t size)
{
	void *object = GC_MALLOC(size);

	if (!object)
		truth_fail("GC_MALLOC");
	tell(word, object);
	return object;
}

static void *pointerless_create(const char *word)
{
	char *object = GC_MALLOC_ATOMIC(SIZE);

	if (!object)
		truth_fail("GC_MALLOC_ATOMIC");
	for (size_t i = 0; i < GC_size(object); i++)
		object[i] = 0x5a;
	tell(word, object);
	return object;
}

static void *uncollectable_create(const char *word)
{
	void *object = GC_MALLOC_UNCOLLECTABLE(SIZE);

	if (!object)
		truth_fail("GC_MALLOC_UNCOLLECTABLE");
	tell(word, object);
	return object;
}

static void *block_create(const char *word)
{
	void *block = truth_block(SIZE);

	truth_tell(word, block, malloc_usable_size(block));
	return block;
}

/* Three of four die, so that no page of theirs is freed as a whole. */
static OUT_OF_LINE void populate_dying(void)
{
	survivors = object_create("kept", DEAD / 4 * sizeof(void *));
	for (size_t i = 0; i < DEAD; i++) {
		void *object = GC_MALLOC(DEAD_SIZE);

		if (!object)
			truth_fail("GC_MALLOC");
		masked[i] = ~(uintptr_t)object;
		if (i % 4 == 0)
			survivors[i / 4] = object;
	}
}

/* A word somewhere may have kept one, which is garbage by now. */
static OUT_OF_LINE void tell_dead(void)
{
	for (size_t i = 0; i < DEAD; i++) {
		void *object = (void *)~masked[i];

		if (i % 4 == 0)
			tell("kept", object);
		else if (!GC_is_marked(object))
			truth_tell("dead", object, DEAD_SIZE);
		else
			tell("garbage", object);
	}
}

static OUT_OF_LINE void populate_at_risk(void)
{
	const size_t direct = AT_RISK - 2 * CHAINS;

	table = truth_block(direct * sizeof(void *));
	truth_kept((void *)table);
	for (size_t i = 0; i < direct; i++) {
		char *object = i % 2 ? pointerless_create("risk") : object_create("risk", SIZE);

		/* Every other by its middle. */
		table[i] = object + (i % 4 < 2 ? 0 : 16);
	}
	for (size_t i = 0; i < CHAINS; i++) {
		void **second = object_create("risk", SIZE);

		second[1] = pointerless_create("risk");
		*(void **)(table[2 * i] - (i % 2 ? 16 : 0)) = second;
	}
}

/* Blocks refer to these objects, but the collector finds them by itself, too. */
static OUT_OF_LINE void populate_kept(void)
{
	void **block = block_create("kept");

	array = object_create("kept", (BLOCKS + 3) * sizeof(void *));
	for (size_t i = 0; i < BLOCKS; i++)
		array[i] = block_create("kept");
	array[BLOCKS] = object_create("kept", SIZE);
	block[0] = array[BLOCKS];
	array[BLOCKS + 1] = block;
	array[BLOCKS + 2] = pointerless_create("kept");
	uncollectable = uncollectable_create("kept");
	uncollectable[0] = object_create("kept", SIZE);
	uncollectable[1] = block_create("kept");
	of_static = pointerless_create("kept");
}

/*
 * Small objects side by side, of which each word refers to one: in a block of malloc(), they could
 * be links of its own.
 */
static OUT_OF_LINE void populate_pairs(void)
{
	for (size_t i = 0; i < PAIRS; i++) {
		void **pair = object_create("kept", 2 * sizeof(void *) - 1);

		pair[0] = pair[1] = pairs;
		pairs = pair;
	}
}

static OUT_OF_LINE void populate_garbage(void)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		void **garbage = object_create("garbage", SIZE);
		void **held = block_create("held");
		void **held_object = uncollectable_create("held");

		garbage[0] = held;
		held[0] = block_create("held");
		held[1] = held_object;
		held_object[0] = object_create("held", SIZE);
		garbage[1] = object_create("garbage", SIZE);
		garbage[2] = pointerless_create("garbage");
	}
}

static OUT_OF_LINE void populate_lost(void)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		void **block = block_create("lost");
		void **object = uncollectable_create("lost");
		void **kept_by_it = object_create("lost", SIZE);

		block[0] = block_create("lost");
		/* Nothing to the collector, which does not look there. */
		block[1] = object_create("garbage", SIZE);
		object[0] = kept_by_it;
		kept_by_it[0] = block_create("lost");
		kept_by_it[1] = pointerless_create("lost");
	}
}

/* The collector scans a thread's stack, and the memory behind it. */
static OUT_OF_LINE void *run(void *unused)
{
	static __thread void *volatile of_thread;
	void *volatile on_stack = object_create("kept", SIZE);

	of_thread = object_create("kept", SIZE);
	if (unused || !of_thread || !on_stack)
		truth_fail("be called so");
	truth_rest();
}

int main(void)
{
	pthread_t thread;

	truth_open();
	truth_warm_up();
	GC_INIT();
	GC_disable();
	populate_dying();
	truth_scrub();
	GC_enable();
	GC_gcollect();
	GC_disable();
	tell_dead();
	populate_at_risk();
	populate_kept();
	populate_pairs();
	populate_garbage();
	populate_lost();
	if (pthread_create(&thread, NULL, run, NULL))
		truth_fail("make a thread");
	truth_await(1);
	truth_ready();
}
