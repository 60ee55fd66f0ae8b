#include "analyzer/query/set.h"

#include "analyzer/base/text.h"

#include <inttypes.h>
#include <string.h>

static struct error *select_all(struct analysis *analysis,
				const struct set_arguments *arguments,
				struct bitmap *ret)
{
	size_t words = bitmap_word_count(ret);

	for (size_t i = 0; i < words; i++)
		ret->words[i] = UINT64_MAX;
	if (ret->count % 64)
		ret->words[words - 1] >>= 64 - ret->count % 64;
	return NULL;
}

static struct error *select_used(struct analysis *analysis,
				 const struct set_arguments *arguments,
				 struct bitmap *ret)
{
	bitmap_copy(ret, allocation_used(analysis_index(analysis)));
	return NULL;
}

static struct error *select_free(struct analysis *analysis,
				 const struct set_arguments *arguments,
				 struct bitmap *ret)
{
	select_all(analysis, arguments, ret);
	bitmap_minus(ret, allocation_used(analysis_index(analysis)));
	return NULL;
}

static struct error *select_threadcached(struct analysis *analysis,
					 const struct set_arguments *arguments,
					 struct bitmap *ret)
{
	bitmap_copy(ret, allocation_cached(analysis_index(analysis)));
	return NULL;
}

static struct error *select_anchored(struct analysis *analysis,
				     const struct set_arguments *arguments,
				     struct bitmap *ret)
{
	bitmap_copy(ret, analysis_anchored(analysis));
	return NULL;
}

static struct error *select_leaked(struct analysis *analysis,
				   const struct set_arguments *arguments,
				   struct bitmap *ret)
{
	bitmap_copy(ret, analysis_leaked(analysis));
	return NULL;
}

/*
 * What refers to a leaked allocation is leaked itself, or free; so it is
 * enough to look at what the leaked ones refer to.
 */
struct error *set_select_unreferenced(struct analysis *analysis,
				      const struct set_arguments *arguments,
				      struct bitmap *ret)
{
	const struct bitmap *leaked = analysis_leaked(analysis);
	const struct graph *graph = analysis_graph(analysis);

	bitmap_copy(ret, leaked);
	bitmap_for_each(id, leaked) {
		struct edges edges = graph_outgoing(graph, (allocation_id)id);

		for (size_t i = 0; i < edges.count; i++)
			bitmap_clear(ret, edges.targets[i]);
	}
	return NULL;
}

struct error *set_select_leakroots(struct analysis *analysis,
				   const struct set_arguments *arguments,
				   struct bitmap *ret)
{
	const struct leaks *leaks = analysis_leaks(analysis);

	for (size_t i = 0; i < leak_root_count(leaks); i++)
		bitmap_set(ret, leak_root(leaks, i)->id);
	return NULL;
}

static void add_targets(struct analysis *analysis, enum root_kind kind,
			struct bitmap *ret)
{
	bitmap_or(ret, root_targets(analysis_roots(analysis), kind));
}

static struct error *select_anchorpoints(struct analysis *analysis,
					 const struct set_arguments *arguments,
					 struct bitmap *ret)
{
	for (enum root_kind kind = 0; kind < ROOT_KINDS; kind++)
		add_targets(analysis, kind, ret);
	return NULL;
}

static struct error *select_staticanchorpoints(
	struct analysis *analysis, const struct set_arguments *arguments,
	struct bitmap *ret)
{
	add_targets(analysis, ROOT_STATIC, ret);
	return NULL;
}

static struct error *select_stackanchorpoints(
	struct analysis *analysis, const struct set_arguments *arguments,
	struct bitmap *ret)
{
	add_targets(analysis, ROOT_STACK, ret);
	return NULL;
}

static struct error *select_registeranchorpoints(
	struct analysis *analysis, const struct set_arguments *arguments,
	struct bitmap *ret)
{
	add_targets(analysis, ROOT_REGISTER, ret);
	return NULL;
}

static struct error *add_anchored_by(struct analysis *analysis,
				     enum root_kind kind, struct bitmap *ret)
{
	const struct bitmap *anchored;
	struct error *error = analysis_anchored_by(analysis, kind, &anchored);

	if (!error)
		bitmap_or(ret, anchored);
	return error;
}

static struct error *select_staticanchored(
	struct analysis *analysis, const struct set_arguments *arguments,
	struct bitmap *ret)
{
	return add_anchored_by(analysis, ROOT_STATIC, ret);
}

static struct error *select_stackanchored(struct analysis *analysis,
					  const struct set_arguments *arguments,
					  struct bitmap *ret)
{
	return add_anchored_by(analysis, ROOT_STACK, ret);
}

static struct error *select_registeranchored(
	struct analysis *analysis, const struct set_arguments *arguments,
	struct bitmap *ret)
{
	return add_anchored_by(analysis, ROOT_REGISTER, ret);
}

static struct error *take_static_away(struct analysis *analysis,
				      struct bitmap *ret)
{
	const struct bitmap *anchored;
	struct error *error =
		analysis_anchored_by(analysis, ROOT_STATIC, &anchored);

	if (!error)
		bitmap_minus(ret, anchored);
	return error;
}

static struct error *select_threadonlyanchored(
	struct analysis *analysis, const struct set_arguments *arguments,
	struct bitmap *ret)
{
	bitmap_copy(ret, analysis_anchored(analysis));
	return take_static_away(analysis, ret);
}

static struct error *select_threadonlyanchorpoints(
	struct analysis *analysis, const struct set_arguments *arguments,
	struct bitmap *ret)
{
	add_targets(analysis, ROOT_STACK, ret);
	add_targets(analysis, ROOT_REGISTER, ret);
	return take_static_away(analysis, ret);
}

struct error *set_find_allocation(const struct analysis *analysis,
				  uint64_t address, allocation_id *ret)
{
	allocation_id id = allocation_find(analysis_index(analysis), address);

	if (id == NO_ALLOCATION)
		return error_create(ERROR_USAGE,
				    "0x%" PRIx64 " is not in any allocation",
				    address);
	*ret = id;
	return NULL;
}

static struct error *select_allocation(struct analysis *analysis,
				       const struct set_arguments *arguments,
				       struct bitmap *ret)
{
	allocation_id id = NO_ALLOCATION;
	struct error *error =
		set_find_allocation(analysis, arguments->values[0], &id);

	if (!error)
		bitmap_set(ret, id);
	return error;
}

static struct error *add_edges(struct analysis *analysis,
			       const struct graph *graph, uint64_t address,
			       struct bitmap *ret)
{
	allocation_id id = NO_ALLOCATION;
	struct error *error = set_find_allocation(analysis, address, &id);

	if (error)
		return error;
	struct edges edges = graph_outgoing(graph, id);

	for (size_t i = 0; i < edges.count; i++)
		bitmap_set(ret, edges.targets[i]);
	return NULL;
}

static struct error *select_outgoing(struct analysis *analysis,
				     const struct set_arguments *arguments,
				     struct bitmap *ret)
{
	struct error *error = add_edges(analysis, analysis_graph(analysis),
					arguments->values[0], ret);

	if (!error)
		bitmap_and(ret, allocation_used(analysis_index(analysis)));
	return error;
}

static struct error *select_freeoutgoing(struct analysis *analysis,
					 const struct set_arguments *arguments,
					 struct bitmap *ret)
{
	struct error *error = add_edges(analysis, analysis_graph(analysis),
					arguments->values[0], ret);

	if (!error)
		bitmap_minus(ret, allocation_used(analysis_index(analysis)));
	return error;
}

static struct error *select_incoming(struct analysis *analysis,
				     const struct set_arguments *arguments,
				     struct bitmap *ret)
{
	return add_edges(analysis, analysis_incoming(analysis),
			 arguments->values[0], ret);
}

/* Whether an aligned word of the allocation has that value. */
static bool holds_word(const struct analysis *analysis, allocation_id id,
		       uint64_t wanted)
{
	const struct image *image = analysis_image(analysis);
	uint64_t address = allocation_start(analysis_index(analysis), id);
	uint64_t end = address + allocation_size(analysis_index(analysis), id);
	uint64_t word;

	for (; end - address >= sizeof(word); address += sizeof(word))
		if (image_read_u64(image, address, &word) && word == wanted)
			return true;
	return false;
}

static struct error *select_exactincoming(struct analysis *analysis,
					  const struct set_arguments *arguments,
					  struct bitmap *ret)
{
	allocation_id id = NO_ALLOCATION;
	struct error *error =
		set_find_allocation(analysis, arguments->values[0], &id);

	if (!error)
		error = select_incoming(analysis, arguments, ret);
	if (error)
		return error;
	bitmap_for_each(referrer, ret)
		if (!holds_word(analysis, (allocation_id)referrer,
				allocation_start(analysis_index(analysis), id)))
			bitmap_clear(ret, referrer);
	return NULL;
}

static struct error *select_derived(struct analysis *analysis,
				    const struct set_arguments *arguments,
				    struct bitmap *ret)
{
	const struct bitmap *members =
		named_sets_find(analysis_named_sets(analysis), DERIVED_SET);

	if (members)
		bitmap_copy(ret, members);
	return NULL;
}

static struct error *select_named(struct analysis *analysis,
				  const struct set_arguments *arguments,
				  struct bitmap *ret)
{
	const struct bitmap *members =
		named_sets_find(analysis_named_sets(analysis), arguments->name);

	if (!members)
		return set_unknown(analysis, arguments->name);
	bitmap_copy(ret, members);
	return NULL;
}

const struct set set_named = {
	.name = "a set of your own",
	.summary = "what 'let' gave that name to",
	.needs = STAGE_HEAP,
	.select = select_named,
};

static const struct set sets[] = {
	{ "allocations", "all allocations, used and free", NULL, STAGE_HEAP,
	  select_all, NULL },
	{ "used", "allocations in use", NULL, STAGE_HEAP, select_used, NULL },
	{ "free", "free allocations, those in threads' caches included", NULL,
	  STAGE_HEAP, select_free, NULL },
	{ "threadcached", "free allocations in the caches of threads", NULL,
	  STAGE_HEAP, select_threadcached, NULL },
	{ "anchored", "used allocations that a root leads to", NULL,
	  STAGE_REACHABILITY, select_anchored, NULL },
	{ "leaked", "used allocations that no root leads to", NULL,
	  STAGE_REACHABILITY, select_leaked, NULL },
	{ "unreferenced",
	  "leaked allocations that no other used allocation refers to", NULL,
	  STAGE_REACHABILITY, set_select_unreferenced, NULL },
	{ "leakroots",
	  "the leaked allocations, or rings of them, that all others hang on",
	  NULL, STAGE_LEAKS, set_select_leakroots, NULL },
	{ "anchorpoints", "allocations that a root refers to directly", NULL,
	  STAGE_ROOTS, select_anchorpoints, NULL },
	{ "staticanchorpoints",
	  "allocations that static memory refers to directly", NULL,
	  STAGE_ROOTS, select_staticanchorpoints, NULL },
	{ "stackanchorpoints", "allocations that a stack refers to directly",
	  NULL, STAGE_ROOTS, select_stackanchorpoints, NULL },
	{ "registeranchorpoints",
	  "allocations that a register refers to directly", NULL, STAGE_ROOTS,
	  select_registeranchorpoints, NULL },
	{ "threadonlyanchorpoints",
	  "allocations that a stack or register refers to directly, and to "
	  "which no static memory leads",
	  NULL, STAGE_REACHABILITY, select_threadonlyanchorpoints, NULL },
	{ "staticanchored", "allocations that static memory leads to", NULL,
	  STAGE_REACHABILITY, select_staticanchored, NULL },
	{ "stackanchored", "allocations that a stack leads to", NULL,
	  STAGE_REACHABILITY, select_stackanchored, NULL },
	{ "registeranchored", "allocations that a register leads to", NULL,
	  STAGE_REACHABILITY, select_registeranchored, NULL },
	{ "threadonlyanchored",
	  "allocations that only stacks and registers lead to", NULL,
	  STAGE_REACHABILITY, select_threadonlyanchored, NULL },
	{ "allocation", "the allocation that the address is in", "ADDRESS",
	  STAGE_HEAP, select_allocation, NULL },
	{ "incoming", "used allocations that refer to the one at the address",
	  "ADDRESS", STAGE_INCOMING, select_incoming, NULL },
	{ "exactincoming",
	  "used allocations that refer to the start of the one at the address",
	  "ADDRESS", STAGE_INCOMING, select_exactincoming, NULL },
	{ "outgoing", "used allocations that the one at the address refers to",
	  "ADDRESS", STAGE_GRAPH, select_outgoing, NULL },
	{ "freeoutgoing",
	  "free allocations that the one at the address refers to", "ADDRESS",
	  STAGE_GRAPH, select_freeoutgoing, NULL },
	{ DERIVED_SET, "what was put there by --set-operation", NULL,
	  STAGE_HEAP, select_derived, NULL },
	{ "stacks", "the stacks of threads", NULL, STAGE_PROGRAM, NULL,
	  &range_kind_stacks },
	{ "threads", "threads, each as its stack", NULL, STAGE_DEBUG, NULL,
	  &range_kind_threads },
	{ "modules", "the program and its libraries", NULL, STAGE_PROGRAM, NULL,
	  &range_kind_modules },
	{ "arenas", "the arenas of the allocators", NULL, STAGE_HEAP, NULL,
	  &range_kind_arenas },
	{ "writable", "memory that can be written", NULL, STAGE_PROGRAM, NULL,
	  &range_kind_writable },
	{ "readonly", "memory that can be read, but not written or executed",
	  NULL, STAGE_PROGRAM, NULL, &range_kind_readonly },
	{ "signatures", "what first words of used allocations point to", NULL,
	  STAGE_CLASSES, NULL, &range_kind_signatures },
};

const struct set *set_at(size_t number)
{
	return number < sizeof(sets) / sizeof(*sets) ? &sets[number] : NULL;
}

size_t set_argument_count(const struct set *set)
{
	const char *word = set->arguments;
	size_t count = 0;

	for (; word; word = strchr(word + 1, ' '))
		count++;
	return count;
}

/* Those of the table, then those that the user named. */
static const char *set_name(const void *data, size_t number)
{
	const struct analysis *analysis = data;
	const size_t count = sizeof(sets) / sizeof(*sets);

	if (number < count)
		return sets[number].name;
	return analysis ? named_sets_name(analysis_named_sets(analysis),
					  number - count)
			: NULL;
}

const struct set *set_find(const char *name)
{
	const struct set *set;

	for (size_t i = 0; (set = set_at(i)) != NULL; i++)
		if (strcmp(set->name, name) == 0)
			return set;
	return NULL;
}

struct error *set_unknown(const struct analysis *analysis, const char *name)
{
	return error_unknown("set", name,
			     nearest_word(name, set_name, analysis));
}
