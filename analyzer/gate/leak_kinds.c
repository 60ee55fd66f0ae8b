#include "analyzer/gate/leak_kinds.h"

#include "analyzer/base/list.h"
#include "analyzer/gate/label.h"
#include "analyzer/gate/likely.h"
#include "analyzer/gate/shape.h"

void leak_kinds_deinit(struct leak_kinds *kinds)
{
	for (size_t i = 0; i < kinds->count; i++)
		free(kinds->list[i].name);
	free(kinds->list);
}

/* The leaks of one verdict. */
struct collector {
	struct shape_context shape;
	bool likely;
	struct leak_kinds *kinds;
};

static struct leak_kind *find_kind(const struct collector *collector,
				   uint64_t fingerprint)
{
	const struct leak_kinds *kinds = collector->kinds;

	for (size_t i = 0; i < kinds->count; i++)
		if (kinds->list[i].fingerprint == fingerprint &&
		    kinds->list[i].likely == collector->likely)
			return &kinds->list[i];
	return NULL;
}

static struct error *add_kind(struct collector *collector, allocation_id root,
			      uint64_t fingerprint, struct leak_kind **ret)
{
	const struct shape_context *shape = &collector->shape;
	struct leak_kinds *kinds = collector->kinds;
	char *name =
		label_name(label_of(shape->analysis, shape->patterns, root));

	if (!name || !LIST_GROW(kinds->list, kinds->count)) {
		free(name);
		return &error_no_memory;
	}
	*ret = &kinds->list[kinds->count++];
	**ret = (struct leak_kind){
		.fingerprint = fingerprint,
		.name = name,
		.address =
			allocation_start(analysis_index(shape->analysis), root),
		.likely = collector->likely,
	};
	return NULL;
}

static struct error *add_root(struct collector *collector,
			      const struct leak_root *root)
{
	const struct allocation_index *index =
		analysis_index(collector->shape.analysis);
	uint64_t fingerprint = shape_fingerprint(&collector->shape, root->id);
	struct leak_kind *kind = find_kind(collector, fingerprint);
	uint64_t size = allocation_size(index, root->id);
	struct error *error = NULL;

	if (!kind)
		error = add_kind(collector, root->id, fingerprint, &kind);
	if (error)
		return error;
	kind->roots++;
	kind->allocations += root->owned_count;
	kind->bytes += root->owned_bytes;
	if (size > kind->size)
		kind->size = size;
	return NULL;
}

static struct error *add_leaks(struct collector *collector,
			       const struct leaks *leaks)
{
	struct leak_kinds *kinds = collector->kinds;
	struct error *error = NULL;

	for (size_t i = 0; !error && i < leak_root_count(leaks); i++)
		error = add_root(collector, leak_root(leaks, i));
	kinds->shared_allocations += leaks_shared_count(leaks);
	kinds->shared_bytes += leaks_shared_bytes(leaks);
	return error;
}

static struct error *add_certain(struct analysis *analysis,
				 struct leak_kinds *ret)
{
	struct collector collector = { .kinds = ret };
	struct error *error = analysis_need(analysis, STAGE_LEAKS);

	if (!error)
		error = analysis_need(analysis, STAGE_CLASSES);
	if (!error)
		error = analysis_need(analysis, STAGE_LEAKED_PATTERNS);
	if (error)
		return error;
	collector.shape =
		(struct shape_context){ analysis,
					analysis_leaked_patterns(analysis),
					analysis_leaked(analysis) };
	return add_leaks(&collector, analysis_leaks(analysis));
}

static struct error *add_likely(struct analysis *analysis,
				struct leak_kinds *ret)
{
	struct collector collector = { .likely = true, .kinds = ret };
	_cleanup_(leaks_destroy) struct leaks *leaks = NULL;
	_cleanup_(bitmap_deinit) struct bitmap likely = { 0 };
	struct error *error = likely_leaked(analysis, &likely);

	if (!error)
		error = leaks_create(analysis_graph(analysis),
				     analysis_index(analysis), &likely,
				     analysis_account(analysis),
				     analysis_progress(analysis), &leaks);
	if (error)
		return error;
	collector.shape =
		(struct shape_context){ analysis, analysis_patterns(analysis),
					&likely };
	return add_leaks(&collector, leaks);
}

static int compare(const void *a, const void *b)
{
	const struct leak_kind *left = a, *right = b;

	if (left->likely != right->likely)
		return left->likely - right->likely;
	if (left->bytes != right->bytes)
		return left->bytes < right->bytes ? 1 : -1;
	return (left->fingerprint > right->fingerprint) -
	       (left->fingerprint < right->fingerprint);
}

struct error *leak_kinds_find(struct analysis *analysis, bool likely,
			      struct leak_kinds *ret)
{
	struct error *error = add_certain(analysis, ret);

	if (!error && likely)
		error = add_likely(analysis, ret);
	if (!error && ret->count > 1)
		qsort(ret->list, ret->count, sizeof(*ret->list), compare);
	return error;
}
