/*
 * The objects of languages' runtimes by class, with the blocks that they are made of besides.
 *
 * An object is what a runtime gives a class. Its blocks are those that a pattern says are its own,
 * as the items of a list, and what it leads to over anything but objects: what several objects lead
 * to is counted once, with the nearest of all objects, of those as near with the one at the lowest
 * address. So an object has the same blocks whatever set is asked for.
 */
#pragma once

#include "analyzer/base/ranks.h"
#include "analyzer/base/table.h"
#include "analyzer/kinds/kind_key.h"

/* The key that a used allocation counts under; KIND_UNKNOWN: it is no object. STAGE_CLASSES. */
kind_key object_class_key(const struct analysis *analysis, allocation_id id);

/* The objects of a class. */
struct object_group {
	kind_key key;
	const char *name; /* borrowed from the analysis; NULL: none */
	uint64_t count, bytes;
	uint64_t blocks, block_bytes;
	uint64_t retained; /* only if asked for */
};

enum object_order { OBJECTS_BY_BYTES, OBJECTS_BY_COUNT, OBJECTS_BY_RETAINED };

struct object_census {
	struct {
		HASH_TABLE(struct object_group);
	} groups;
	struct object_group total; /* without a key; nothing retained */
	/* Only with keeps_owners: */
	struct ranks blocks;	/* used allocations that are no objects */
	ARRAY(uint32_t) owners; /* by number of the block: of the group, or NO_GROUP */
};

struct object_census_input {
	struct analysis *analysis;
	const struct bitmap *members; /* of what is asked for: only these objects */
	enum object_order order;      /* bytes: with those of blocks */
	bool retained;
	bool keeps_owners; /* instead of the order */
	/* Optional: what to count a member by, an object of a class, instead of that. */
	kind_key (*key_of)(const void *data, allocation_id id);
	const void *data; /* of key_of() */
};

/* The number of the group that the block counts with, or NO_GROUP. */
uint32_t object_census_owner(const struct object_census *census, allocation_id id);

/* Build what is needed to know which members are objects, and count; ret is all zeros. */
struct error *object_census_take(const struct object_census_input *input,
				 struct object_census *ret);
void object_census_deinit(struct object_census *census);
DEFINE_DEINIT(object_census_deinit, struct object_census)
