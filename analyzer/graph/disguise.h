/*
 * A word that stands for the address of an allocation without being it; see disguises.h.
 */
#pragma once

#include "analyzer/heap/index.h"
#include "analyzer/runtimes/runtimes.h"

enum disguise {
	/* How programs disguise pointers; none is certain enough for an anchor. */
	DISGUISE_TAGGED,
	DISGUISE_SHIFTED,
	DISGUISE_PACKED,
	DISGUISE_PAST_END,
	DISGUISE_BEFORE,
	DISGUISE_BOXED,
	DISGUISE_OFFSET,
	DISGUISES, /* and above, in order: the integers of the runtimes there are */
};

enum {
	DISGUISED_POINTERS = (1 << DISGUISES) - 1,
};

/* "a tagged pointer", or the name of integers; NULL: there is no such disguise. */
const char *disguise_name(const struct runtimes *runtimes, uint32_t disguise);

/* This layout is also that of side files. */
struct disguised {
	uint64_t place;
	allocation_id target;
	uint32_t disguise;
};

struct graph;
struct roots;

/* The memory to search, the targets, and the sources. */
struct disguises_input {
	const struct image *image;
	const struct allocation_index *index;
	const struct roots *roots;
	const struct graph *graph;
	const struct bitmap *in_use;	 /* allocations */
	const struct bitmap *wanted;	 /* none of these */
	const struct bitmap *targets;	 /* possible targets; NULL: all */
	unsigned int disguises;		 /* a bit for each of pointers */
	const struct runtimes *integers; /* whose to look for; NULL: none */
	struct memory_account *account;
	struct progress *progress;
};
