#include "analyzer/gate/holder.h"

#include "analyzer/gate/label.h"

#include <inttypes.h>

static struct error *describe(struct analysis *analysis, allocation_id holder, const char *part,
			      struct leak_kind *kind)
{
	struct label label = label_of(analysis, analysis_patterns(analysis), holder);
	uint64_t address = allocation_start(analysis_index(analysis), holder);

	kind->holder = label_name(label);
	kind->holder_module = label.module;
	if (!kind->holder)
		return &error_no_memory;
	if (asprintf(&kind->held, "the %s at 0x%" PRIx64, part, address) < 0) {
		kind->held = NULL;
		return &error_no_memory;
	}
	return NULL;
}

/* Of those that refer to id, one whose words there are stale. */
static struct error *look_around(struct analysis *analysis, allocation_id id,
				 struct leak_kind *kind)
{
	/* Stale words are rarely many; that others are is no reason to wait. */
	enum { MOST_LOOKED_AT = 256 };
	const struct patterns *patterns = analysis_patterns(analysis);
	struct edges edges = graph_outgoing(analysis_incoming(analysis), id);
	struct error *error = NULL;

	for (size_t i = 0; !error && i < edges.count && i < MOST_LOOKED_AT; i++) {
		allocation_id holder = edges.targets[i];
		const char *part;

		if (!bitmap_get(analysis_anchored(analysis), holder) ||
		    patterns_of(patterns, holder) == NO_PATTERN)
			continue;
		part = patterns_find_taint(patterns, holder, id);
		if (part)
			return describe(analysis, holder, part, kind);
	}
	return error;
}

struct error *holder_find(struct analysis *analysis, const struct shape *shape,
			  struct leak_kind *kind)
{
	struct error *error = analysis_need(analysis, STAGE_INCOMING);

	for (size_t i = 0; !error && !kind->holder && i < shape->count; i++)
		if (shape->in_ring[i])
			error = look_around(analysis, shape->ids[i], kind);
	return error;
}
