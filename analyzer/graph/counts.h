/*
 * Unreachable objects whose runtime counts references: which of them the program lost.
 *
 * No root leads to such an object, so all references to it are in what is unreachable as well. If
 * these are fewer than its count says, somebody took a reference that is gone: code in C that did
 * not give it back. Else what it is held by must be a cycle, which the runtime's collector frees.
 *
 * A reference is a word that is the address at which the runtime refers to the object.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/progress.h"
#include "analyzer/heap/index.h"
#include "analyzer/image/image.h"

struct runtimes;

struct lost_count {
	allocation_id id;
	uint64_t count; /* of references, by the object itself */
	uint32_t found; /* fewer */
};

struct counts {
	struct bitmap counted;	 /* objects with a count; no words: there are none */
	struct bitmap collected; /* those of them whose cycles a collector frees; likewise */
	struct bitmap left;	 /* not among them: those of a runtime that has ended; likewise */
	ARRAY(struct lost_count) lost; /* objects with lost references, by id */
};

/* All borrowed, for the time of the search. */
struct counts_input {
	const struct image *image;
	const struct allocation_index *index;
	const struct runtimes *runtimes; /* whose objects are known */
	const struct bitmap *unreachable;
	struct memory_account *account;
	struct progress *progress;
};

/* ret is all zeros. */
struct error *counts_find(const struct counts_input *input, struct counts *ret);
void counts_deinit(struct counts *counts);
DEFINE_DEINIT(counts_deinit, struct counts)

/* The lost references to the object, or NULL. */
const struct lost_count *counts_lost(const struct counts *counts, allocation_id id);
