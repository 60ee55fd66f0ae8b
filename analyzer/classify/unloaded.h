/*
 * Objects whose class was in a library that was unloaded: several of one size, and only such, begin
 * with one address near the libraries at which nothing is mapped any more. Their destructors, and
 * all else that is virtual, are gone.
 *
 * A block that was mapped for itself and given back begins a page or 16 bytes into one: what refers
 * to its start is no object of a class.
 */
#pragma once

#include "analyzer/base/table.h"
#include "analyzer/heap/index.h"
#include "analyzer/image/view.h"
#include "analyzer/program/program.h"

/* A first word that leads to where nothing is, and the blocks that have it. */
struct lost_word {
	uint64_t word, size;
	size_t count;
	bool differs; /* the blocks are of several sizes */
};

struct unloaded {
	const struct program *program;
	const struct allocation_index *index;
	bool are_counted;
	HASH_TABLE(struct lost_word) words;
};

/* True if a block that begins with the word may be one: quick for most. */
bool unloaded_possible(const struct unloaded *unloaded, const struct image *image, uint64_t word);

/* The vtable that the block at address began with; 0: it is no such object. */
uint64_t unloaded_vtable(struct unloaded *unloaded, struct view *view, uint64_t address);
