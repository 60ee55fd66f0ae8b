/*
 * Memory without a type number, by the member that holds it: "TCPSocket@in_buffer".
 *
 * Where nine in ten of the allocations to which a member of a class refers are no objects, these
 * are parts, named after it; so are those to which elements of a container's buffer refer,
 * "Array(Slice(UInt8))@buffer[]", and what parts refer to in turn, "Scribble@pages[]". Of several
 * that hold an allocation, what refers to its start comes first, then the member with more parts.
 *
 * The numbers of parts follow those of types.
 */
#ifndef ANALYZER_RUNTIMES_CRYSTAL_PARTS_H
#define ANALYZER_RUNTIMES_CRYSTAL_PARTS_H

#include "analyzer/runtimes/crystal/crystal.h"

struct crystal_parts;

/* The objects are known, and borrowed. */
struct error *crystal_parts_create(struct crystal *crystal, const struct runtime_context *context,
				   const struct bitmap *objects, struct crystal_types *types,
				   struct crystal_parts **ret);
void crystal_parts_destroy(struct crystal_parts *parts);

bool crystal_parts_find(const struct crystal_parts *parts, allocation_id id,
			struct object_part *ret);

bool crystal_parts_have(const struct crystal_parts *parts, uint64_t number);

/*
 * "held by TCPSocket@in_buffer", or "held by TCPSocket+0x60" where debug information does not name
 * the member; NULL only if memory is short. Lives as long as the parts.
 */
#define HELD_BY "held by "
const char *crystal_part_name(struct crystal_parts *parts, uint64_t number);

#endif
