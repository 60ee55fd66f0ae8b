/*
 * A heap for those who look at allocations one by one: those that retain most, and what they refer
 * to among each other. All others are joined by kind below the one of these, or the root, that
 * dominates them.
 *
 *	the heap ─ cache (app) ─ struct table ┬─ struct row
 *	                                      └─ 8,000 others: struct row
 *
 * Objects are in the order of the dominator tree. Each has an edge from what dominates it. So who
 * computes dominators from all edges finds the same that heapcore does, and the same bytes
 * retained: where all references to an object come from those that were left out, the edge stands
 * in for them. References of leaked objects to anchored ones are none, as for heapcore.
 *
 * Bytes of what the measure does not count are 0: so the sum is that of the measure. It costs 12
 * bytes an allocation while it is made.
 */
#pragma once

#include "analyzer/export/export.h"

enum object_kind { OBJECT_HEAP, OBJECT_ROOT, OBJECT_ALLOCATION, OBJECT_OTHERS };

struct object {
	enum object_kind kind;
	uint32_t parent; /* its immediate dominator; the heap: itself */
	uint32_t name;	 /* in the owners' */
	allocation_id id;
	uint64_t count, bytes; /* of it alone, or of all others that it stands for */
	uint64_t retained;
};

struct object_edge {
	uint32_t from, to;
	bool is_reference; /* not only that one dominates the other */
};

struct sample {
	const struct export *export;	 /* borrowed */
	ARRAY(struct object) objects;	 /* 0 is the heap; then the roots */
	ARRAY(struct object_edge) edges; /* in order of the object that they are from */
};

/*
 * With at most so many allocations one by one; ret is all zeros. For pictures, which are of few,
 * all others of an object are one, whatever their kinds, and roots that hold no object are joined.
 */
struct error *sample_make(const struct export *export, uint64_t most, bool is_picture,
			  struct sample *ret);
void sample_deinit(struct sample *sample);
DEFINE_DEINIT(sample_deinit, struct sample)

static inline const char *object_text(const struct sample *sample, const struct object *object)
{
	return owner_text(&sample->export->owners->names, object->name);
}
