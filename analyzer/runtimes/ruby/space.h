/* The objects of an MRI process. */
#pragma once

#include "analyzer/base/address_map.h"
#include "analyzer/base/budget.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/runtimes/ruby/frames.h"
#include "analyzer/runtimes/ruby/slots.h"
#include "analyzer/runtimes/ruby/symbols.h"

/* A name of an object that needs no other object. */
struct ruby_name {
	allocation_id id;
	const char *text; /* "Object", "$users" */
};

struct ruby {
	struct object_space space;
	struct ruby_slots slots;
	struct name_pool names;
	/* Once ruby_find_globals() was called: */
	struct ruby_symbols symbols;
	ARRAY(struct ruby_name) named;
	struct budget steps; /* of visits of references */
	uint64_t shapes; /* the address of all shapes; 0: there are none, or they are not known */
	uint64_t shape_count;
	struct address_map apart; /* objects: the allocation of their generic variables */
	uint64_t table_type;	  /* of the tables of Hashes that do not compare by identity */
	struct ruby_calls calls;
};

/* The slots of struct runtime, in paths.c. */
struct error *ruby_find_globals(struct object_space *space, struct bitmap *ret);
struct error *ruby_find_locals(struct object_space *space, struct bitmap *ret);
struct error *ruby_visit_references(struct object_space *space, allocation_id id,
				    object_visitor *visit, void *data);
void ruby_tell_path(struct object_space *space, const allocation_id *ids, size_t count,
		    bool with_content, char *ret, size_t size);
