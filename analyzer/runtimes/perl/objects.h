/*
 * Classes of Perl's values: their packages, or else what they are.
 */
#pragma once

#include "analyzer/runtimes/runtime.h"

/* The slots of struct runtime. */
void perl_release(struct object_space *space);
struct error *perl_find_objects(struct object_space *space, struct debug *debug);
const char *perl_class_name(struct object_space *space, uint64_t number,
			    enum class_name_kind *ret_kind);
bool perl_visit_bases(struct object_space *space, uint64_t number,
		      bool (*visit)(void *data, const char *name), void *data);
