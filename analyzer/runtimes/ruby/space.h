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
	uint64_t shape_count, shape_count_place;
	struct address_map apart; /* objects: the allocation of their generic variables */
	uint64_t table_type;	  /* of the tables of Hashes that do not compare by identity */
	struct ruby_calls calls;
};

#define RUBY_SLOTS                                                                          \
	ruby, release, find_objects, visit_structure, find_unused, class_name, visit_bases, \
		liveness, known_leak
DECLARE_SLOTS(runtime, RUBY_SLOTS);
#define RUBY_FIBER_SLOTS ruby, find_fibers, fiber_registers, visit_fiber_frames
DECLARE_SLOTS(runtime_fibers, RUBY_FIBER_SLOTS);
#define RUBY_CALL_SLOTS ruby, visit_frames, find_exception, visit_code
DECLARE_SLOTS(runtime_calls, RUBY_CALL_SLOTS);
#define RUBY_LINK_SLOTS ruby, find_globals, find_locals, walk_links, skips, tell_step, read_value
DECLARE_SLOTS(runtime_links, RUBY_LINK_SLOTS);
