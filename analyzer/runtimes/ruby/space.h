/* The objects of an MRI process. */
#pragma once

#include "analyzer/base/address_map.h"
#include "analyzer/base/budget.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/runtimes/ruby/frames.h"
#include "analyzer/runtimes/ruby/slots.h"
#include "analyzer/runtimes/ruby/symbols.h"

struct ruby {
	struct object_space space;
	struct ruby_slots slots;
	/* Once ruby_find_globals() was called: */
	struct ruby_symbols symbols;
	uint64_t shapes; /* the address of all shapes; 0: there are none, or they are not known */
	uint64_t shape_count;
	struct address_map apart; /* objects: the allocation of their generic variables */
	uint64_t table_type;	  /* of the tables of Hashes that do not compare by identity */
	struct ruby_calls calls;
};

/* The slots of struct runtime, in paths.c. */
struct error *ruby_find_globals(struct object_space *space, struct bitmap *ret);
struct error *ruby_find_locals(struct object_space *space, struct bitmap *ret);
struct error *ruby_visit_links(struct object_space *space, allocation_id id, struct budget *steps,
			       object_link_visitor *visit, void *data);
bool ruby_skips(struct object_space *space, struct view *view, const struct object_link *link);
bool ruby_tell_step(struct object_path *path, const struct object_link *link);
