#include "analyzer/query/limits.h"

#include "analyzer/base/array.h"
#include "analyzer/base/list.h"
#include "analyzer/base/text.h"

#include <string.h>

void reference_limits_deinit(struct reference_limits *limits)
{
	for (size_t i = 0; i < limits->count; i++)
		free(limits->list[i].kind_word);
	free(limits->list);
	*limits = (struct reference_limits){ 0 };
}

static struct error *parse(struct reference_limit *limit, const char *word)
{
	const char *equals = strrchr(word, '=');

	limit->kind_word = strndup(word, equals ? (size_t)(equals - word) : 0);
	TRY_MEMORY(limit->kind_word);
	if (equals == word)
		return error_create(ERROR_USAGE, "a signature is missing in front of '='");
	TRY(kind_parse(limit->kind_word, &limit->kind));
	return parse_count(equals ? equals + 1 : word, &limit->count);
}

struct error *reference_limits_take(struct reference_limits *limits, enum counted counted,
				    bool is_maximum, const char *word)
{
	struct reference_limit limit = { .counted = counted, .is_maximum = is_maximum };
	struct error *error = parse(&limit, word);

	if (!error)
		error = LIST_APPEND(limits->list, limits->count, limit);
	if (error)
		free(limit.kind_word);
	return error;
}

/* One limit at work. */
struct counting {
	const struct reference_limit *limit;
	const struct graph *graph;
	const struct bitmap *used;
	struct kind_test test;
	ARRAY(uint32_t) seen; /* by allocation: by whom it was counted */
	uint32_t chunk;	      /* who counts now; 0: nobody yet */
};

static void counting_deinit(struct counting *counting)
{
	kind_test_deinit(&counting->test);
	array_release(&counting->seen);
}
DEFINE_DEINIT(counting_deinit, struct counting)

/* Set *ret if the allocation counts, having one reference more or less. */
static struct error *judge(struct counting *counting, allocation_id id, bool *ret)
{
	bool free_ones = counting->limit->counted == COUNTED_FREE_OUTGOING;

	*ret = bitmap_get(counting->used, id) != free_ones;
	return *ret ? kind_test_judge(&counting->test, id, ret) : NULL;
}

/* No further than the limit tells anything. */
static bool is_settled(const struct reference_limit *limit, uint64_t count)
{
	return limit->is_maximum ? count > limit->count : count >= limit->count;
}

/* A repeated one in a row of few is found by looking at those before it. */
static bool is_repeated(struct counting *counting, struct edges edges, size_t number)
{
	enum { FEW = 16 };
	allocation_id id = edges.targets[number];
	uint32_t *seen = counting->seen.items;

	if (edges.count > FEW) {
		bool before = seen[id] == counting->chunk;

		seen[id] = counting->chunk;
		return before;
	}
	for (size_t i = 0; i < number; i++)
		if (edges.targets[i] == id)
			return true;
	return false;
}

static struct error *is_within(struct counting *counting, allocation_id id, bool *ret)
{
	const struct reference_limit *limit = counting->limit;
	struct edges edges = graph_outgoing(counting->graph, id);
	uint64_t count = 0;
	bool counts;

	counting->chunk++;
	for (size_t i = 0; i < edges.count && !is_settled(limit, count); i++) {
		if (is_repeated(counting, edges, i))
			continue;
		TRY(judge(counting, edges.targets[i], &counts));
		count += counts;
	}
	*ret = is_settled(limit, count) != limit->is_maximum;
	return NULL;
}

static struct error *narrow(struct counting *counting, struct progress *progress,
			    struct bitmap *members)
{
	uint64_t reported = 0;
	bool taken;

	progress_begin(progress, "counting references", members->count);
	bitmap_for_each(id, members) {
		TRY(is_within(counting, (allocation_id)id, &taken));
		if (!taken)
			bitmap_clear(members, id);
		TRY(progress_check_at(progress, id, &reported));
	}
	return NULL;
}

/*
 * If nothing was found to be of the kind, that may be a mistake, or the kind another one than it
 * was taken for: then count again.
 */
static struct error *apply(const struct reference_limit *limit, struct reference_choice *choice,
			   bool allow_missing, struct bitmap *members)
{
	struct analysis *analysis = choice->analysis;
	struct progress *progress = analysis_progress(analysis);
	bool again;
	_cleanup_(bitmap_deinit) struct bitmap all = { 0 };
	_cleanup_(counting_deinit) struct counting counting = {
		.limit = limit,
		.used = allocation_used(analysis_index(analysis)),
		.seen.memory.account = analysis_account(analysis),
	};

	TRY(limit->counted == COUNTED_INCOMING
		    ? reference_choice_incoming(choice, &counting.graph)
		    : reference_choice_outgoing(choice, &counting.graph));
	TRY(kind_test_prepare(&counting.test, analysis, &limit->kind));
	TRY(array_resize(&counting.seen, members->count));
	TRY(bitmap_init(&all, members->count, analysis_account(analysis)));
	bitmap_copy(&all, members);
	TRY(narrow(&counting, progress, members));
	TRY(kind_test_settle(&counting.test, allow_missing, &again));
	if (!again)
		return NULL;
	bitmap_copy(members, &all);
	return narrow(&counting, progress, members);
}

struct error *reference_limits_narrow(const struct reference_limits *limits,
				      struct reference_choice *choice, bool allow_missing,
				      struct bitmap *members)
{
	for (size_t i = 0; i < limits->count; i++)
		TRY(apply(&limits->list[i], choice, allow_missing, members));
	return NULL;
}
