/*
 * Classes of Perl's values: their packages, or else what they are.
 */
#pragma once

#include "analyzer/runtimes/runtime.h"

/* The slots of struct runtime. */
struct error *perl_open(const struct runtime_context *context, struct object_space **ret);
void perl_close(struct object_space *space);
struct error *perl_find_objects(struct object_space *space, struct debug *debug);
uint64_t perl_class_of(const struct object_space *space, allocation_id id);
bool perl_has_class(const struct object_space *space, uint64_t number);
size_t perl_class_count(const struct object_space *space);
const char *perl_class_name(struct object_space *space, uint64_t number,
			    enum class_name_kind *ret_kind);
bool perl_visit_bases(struct object_space *space, uint64_t number,
		      bool (*visit)(void *data, const char *name), void *data);
