/*
 * The entries of a dict's table, of CPython 3.6 to 3.14: Include/internal/pycore_dict.h.
 */
#pragma once

#include "analyzer/image/view.h"

/* Each has a key and, unless values stand apart, its value; before the key, perhaps its hash. */
struct python_entries {
	uint64_t first_key, step, count;
};

bool python_find_entries(struct view *view, uint64_t table, struct python_entries *ret);

/*
 * The keys that the attributes of a type's objects share stand behind what all types have: where,
 * depends on the version. They are of the last kind.
 */
bool python_find_shared_keys(struct view *view, uint64_t type, uint64_t *ret_table,
			     struct python_entries *ret);
