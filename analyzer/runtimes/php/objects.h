/*
 * Values of PHP: which allocations are such, and of what class.
 */
#pragma once

#include "analyzer/runtimes/runtime.h"

/* The slots of struct runtime. */
void php_release(struct object_space *space);
struct error *php_find_objects(struct object_space *space, struct debug *debug);
const char *php_class_name(struct object_space *space, uint64_t number,
			   enum class_name_kind *ret_kind);
bool php_visit_bases(struct object_space *space, uint64_t number,
		     bool (*visit)(void *data, const char *name), void *data);
bool php_may_refer(const struct object_space *space, allocation_id id, uint64_t offset);
struct error *php_find_unused(struct object_space *space, struct unused *ret);
bool php_is_link(const struct object_space *space, allocation_id source, allocation_id target,
		 uint64_t word, uint64_t place);
struct error *php_visit_frames(struct object_space *space, uint32_t thread,
			       const struct frame_visitor *visitor);
struct error *php_find_globals(struct object_space *space, struct bitmap *ret);
struct error *php_find_locals(struct object_space *space, struct bitmap *ret);
struct error *php_visit_links(struct object_space *space, allocation_id id, struct budget *steps,
			      object_link_visitor *visit, void *data);
uint64_t php_address_of(const struct object_space *space, allocation_id id);
bool php_tell_step(struct object_path *path, const struct object_link *link);
struct error *php_visit_code(struct object_space *space, object_code_visitor *visit, void *data);
allocation_id php_resolve(const struct object_space *space, allocation_id source, uint64_t word);
bool php_is_collecting(const struct object_space *space, char *ret_note, size_t size);
bool php_liveness(const struct object_space *space, allocation_id id, struct object_liveness *ret);
struct error *php_visit_members(struct object_space *space, allocation_id id, bool with_content,
				bool (*each)(void *data, const struct runtime_member *member),
				void *data);
