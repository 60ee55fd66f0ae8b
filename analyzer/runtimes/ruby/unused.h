/*
 * Words of MRI that hold nothing.
 *
 * unused.c: the room that strings, arrays, hashes, structs, files, patterns, iseqs and stacks do
 * not use, or not any more. weak.c: tables that know objects without keeping them, and what the
 * collector has for itself.
 */
#pragma once

#include "analyzer/runtimes/ruby/links.h"

struct ruby_unused {
	const struct ruby *ruby;   /* before its objects are known */
	struct ruby_slots slots;   /* of its own */
	struct view view, targets; /* targets: of other objects than the one at hand */
	struct unused *unused;
	struct bitmap own_tables; /* blocks that begin with the table of a Hash */
	struct budget steps;	  /* through entries of tables */
};

/* Read a table whose entries have a block of their own; false: there is none at address. */
bool ruby_read_table(struct ruby_unused *search, uint64_t address, struct ruby_table *ret);

/* Find weak references, once own_tables is complete. */
struct error *ruby_find_weak(struct ruby_unused *search);

/* The place of the transient heap's list of old objects, which its size follows; 0: none. */
uint64_t ruby_find_list_of_old(struct ruby_unused *search);

/* True if an object's slot begins there. */
static inline bool ruby_is_slot(const struct ruby_unused *search, uint64_t address)
{
	const struct allocation_index *index = search->slots.index;
	allocation_id id = address ? allocation_find(index, address) : NO_ALLOCATION;

	return id != NO_ALLOCATION && bitmap_get(&search->slots.slots, id) &&
	       allocation_start(index, id) == address;
}

/* The used block of C code that begins there, or NO_ALLOCATION. */
static inline allocation_id ruby_find_block(const struct ruby_unused *search, uint64_t address)
{
	allocation_id id = allocation_used_at(search->slots.index, address);

	return id != NO_ALLOCATION && !bitmap_get(&search->slots.slots, id) ? id : NO_ALLOCATION;
}
