/*
 * Objects of CPython: which allocations are such, and of what type.
 */
#pragma once

#include "analyzer/runtimes/runtime.h"

/* The slots of struct runtime; a class is the address of its type. */
void python_release(struct object_space *space);
struct error *python_find_objects(struct object_space *space, struct debug *debug);
const char *python_class_name(struct object_space *space, uint64_t number,
			      enum class_name_kind *ret_kind);
bool python_visit_bases(struct object_space *space, uint64_t number,
			bool (*visit)(void *data, const char *name), void *data);
bool python_may_refer(const struct object_space *space, allocation_id id, uint64_t offset);
bool python_is_link(const struct object_space *space, allocation_id source, allocation_id target,
		    uint64_t word, uint64_t place);
bool python_is_collecting(const struct object_space *space, char *ret_note, size_t size);
bool python_liveness(const struct object_space *space, allocation_id id,
		     struct object_liveness *ret);
const char *python_known_leak(struct object_space *space, allocation_id id);
struct error *python_find_globals(struct object_space *space, struct bitmap *ret);
struct error *python_find_locals(struct object_space *space, struct bitmap *ret);
struct error *python_visit_links(struct object_space *space, allocation_id id, struct budget *steps,
				 object_link_visitor *visit, void *data);
uint64_t python_address_of(const struct object_space *space, allocation_id id);
bool python_tell_step(struct object_path *path, const struct object_link *link);
struct error *python_visit_frames(struct object_space *space, uint32_t thread,
				  const struct frame_visitor *visitor);
