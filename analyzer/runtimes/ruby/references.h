/*
 * References of MRI's objects, as its collector marks them (gc_mark_children() in gc.c), and the
 * memory from malloc() that each has for itself.
 *
 * Arrays, hashes and structs refer to their elements, strings to what they share. All others are
 * searched: each word of the slot, and of the blocks that the slot leads to, may be the address of
 * a slot. A search goes neither through what a variable of a module leads to, which is of all, nor
 * through the data of another object: that stands for the object.
 */
#pragma once

#include "analyzer/runtimes/ruby/space.h"

struct ruby_references {
	struct ruby *ruby;
	struct view view;
	struct bitmap shared;	 /* blocks that are of no object */
	struct address_map data; /* where data of C code begins, to the object's id */
	ARRAY(uint32_t) seen;	 /* by allocation: the search that was there last */
	uint32_t search;
	struct budget steps; /* in a damaged core, many may share their blocks */
	ARRAY(allocation_id) pending;
	/* The result for the object searched last: */
	ARRAY(allocation_id) found; /* objects, each once */
	uint64_t bytes;		    /* of blocks */
	allocation_id object;
	bool has_call_caches; /* as objects: from 3.0 on */
	bool in_block, is_packed, skips_weak;
	struct error *error;
};

/* ret is all zeros. */
struct error *ruby_references_init(struct ruby_references *ret, struct ruby *ruby,
				   const struct bitmap *shared);
void ruby_references_deinit(struct ruby_references *references);
DEFINE_DEINIT(ruby_references_deinit, struct ruby_references)

/* Find those of an object, without its class. */
struct error *ruby_references_find(struct ruby_references *references, allocation_id object);

/* Find the objects that roots refer to, and with follow_blocks what blocks lead to. */
struct error *ruby_references_find_from(struct ruby_references *references,
					const struct bitmap *from, bool follow_blocks);

/* True if all references were found. Otherwise too much was shared. */
static inline bool ruby_references_are_complete(const struct ruby_references *references)
{
	return !budget_is_spent(&references->steps);
}
