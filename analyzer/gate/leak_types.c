#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/gate/label.h"
#include "analyzer/gate/leak_kinds.h"
#include "analyzer/kinds/allocated_by.h"
#include "analyzer/kinds/type_reason.h"

#include <inttypes.h>
#include <string.h>

/*
 * Types of leaked allocations are inferred from others; those of likely held ones come from
 * pointers.
 */
static const char *type_name(const struct analysis *analysis, allocation_id id)
{
	struct typed typed;

	return analysis_type_of(analysis, id, &typed)
		       ? typing_name(analysis_typing(analysis), typed)
		       : NULL;
}

/* A class or a pattern says more, and of what does not count nobody reads the type. */
static bool wants_type(const struct leak_kind *kind)
{
	return leak_counts(kind) && strcmp(kind->name, UNRECOGNIZED) == 0;
}

/* Name the function that allocates this many bytes. */
static struct error *add_maker(struct analysis *analysis, allocation_id id, struct leak_kind *kind)
{
	if (kind->allocated_by || allocation_start(analysis_index(analysis), id) != kind->address)
		return NULL;
	return allocated_by_find(analysis, id, &kind->allocated_by);
}

static struct error *add_type(struct analysis *analysis, allocation_id id, struct leak_kind *kind)
{
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t size = allocation_size(index, id);
	_cleanup_(type_reason_deinit) struct type_reason reason = { NULL };
	const char *type;

	/* A member of a cycle may have another size than the one that names the cycle. */
	if (size < kind->smallest_size || size > kind->size)
		return NULL;
	type = type_name(analysis, id);
	if (!type)
		return add_maker(analysis, id, kind);
	if (!kind->type) {
		kind->type = type;
		kind->address = allocation_start(index, id);
		if (type_reason_find(analysis, id, &reason))
			kind->type_reason = take(reason.path);
		free(kind->allocated_by);
		TRY(allocated_by_find(analysis, id, &kind->allocated_by));
	}
	kind->typed_roots += strcmp(kind->type, type) == 0;
	return NULL;
}

static struct error *add_side_types(struct analysis *analysis, struct leak_kinds *kinds,
				    const struct leak_side *side)
{
	size_t count = side->leaks ? side->leaks->count : 0;

	for (size_t i = 0; i < count; i++) {
		struct leak_kind *kind = &kinds->list[side->kinds.items[i]];

		if (wants_type(kind))
			TRY(add_type(analysis, side->leaks->roots[i].id, kind));
	}
	return NULL;
}

/* Name the functions that allocated objects of classes. */
static struct error *add_makers(struct analysis *analysis, struct leak_kinds *kinds)
{
	list_for_each(kind, kinds->list, kinds->count) {
		allocation_id id = allocation_find(analysis_index(analysis), kind->address);

		if (leak_counts(kind) && kind->full_name && id != NO_ALLOCATION)
			TRY(allocated_by_find(analysis, id, &kind->allocated_by));
	}
	return NULL;
}

struct error *leak_kinds_find_types(struct analysis *analysis, struct leak_kinds *kinds)
{
	size_t i = 0;

	TRY(add_makers(analysis, kinds));
	while (i < kinds->count && !wants_type(&kinds->list[i]))
		i++;
	if (i == kinds->count)
		return NULL;
	TRY(kinds->likely.leaks && kinds->likely.leaks->count > 0
		    ? analysis_need_types(analysis)
		    : analysis_need(analysis, STAGE_LEAKED_TYPES));
	TRY(add_side_types(analysis, kinds, &kinds->certain));
	return add_side_types(analysis, kinds, &kinds->likely);
}

char *leak_kind_label(const struct leak_kind *kind)
{
	if (!kind->type)
		return strdup(kind->name);
	if (kind->typed_roots == kind->roots)
		return format_text("%s (%s)", kind->name, kind->type);
	return format_text("%s (%" PRIu64 " of them %s)", kind->name, kind->typed_roots,
			   kind->type);
}
