/*
 * Values of PHP: which allocations are such, and of what class.
 */
#pragma once

#include "analyzer/runtimes/object_links.h"

#define PHP_SLOTS                                                                                 \
	php, release, find_objects, visit_structure, class_name, visit_bases, may_refer, is_link, \
		find_unused, resolve, is_collecting, liveness, visit_members
DECLARE_SLOTS(runtime, PHP_SLOTS);
#define PHP_CALL_SLOTS php, visit_frames, find_exception, visit_code
DECLARE_SLOTS(runtime_calls, PHP_CALL_SLOTS);
#define PHP_LINK_SLOTS php, find_globals, find_locals, walk_links, target_of, tell_step, referent
DECLARE_SLOTS(runtime_links, PHP_LINK_SLOTS);
extern const struct object_step php_steps[];

/* Visit the place of the exception that is known, and the code that handles it. */
struct php;
struct error *php_errors_visit_structure(struct php *php, const struct structure_visitor *visitor);

/* Keep the string as a name. */
struct keeper;
void php_keep_string(struct keeper *keeper, uint64_t address);

/* The slot read_value. */
bool php_read_value_of(struct object_space *space, struct view *view,
		       const struct object_link *link, struct object_value *ret);
