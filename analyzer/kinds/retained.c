#include "analyzer/kinds/retained.h"

struct error *retained_by_group(const struct dominators *tree, const uint32_t *groups,
				const uint32_t *merged, size_t group_count, uint64_t *ret_bytes)
{
	enum { AHEAD = 16 }; /* prefetch distance */
	size_t count = dominators_count(tree);
	_cleanup_(free) uint32_t *counted = /* up to that position */
		calloc(group_count + 1, sizeof(*counted));

	TRY_MEMORY(counted);
	for (size_t i = 0; i < count; i++) {
		uint32_t group = groups[dominators_at(tree, i)];
		size_t end;

		if (i + AHEAD < count)
			__builtin_prefetch(&groups[dominators_at(tree, i + AHEAD)]);
		if (group == NO_GROUP)
			continue;
		if (merged)
			group = merged[group];
		if (i < counted[group])
			continue;
		end = dominators_end(tree, i);
		ret_bytes[group] += dominators_bytes(tree, i, end);
		counted[group] = (uint32_t)end;
	}
	return NULL;
}
