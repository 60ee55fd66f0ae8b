#include "analyzer/gate/likely_leaks.h"

#include "analyzer/base/array.h"
#include "analyzer/classify/reference_judge.h"

/* The allocations that are reached, and those of them whose edges are still to be followed. */
struct marking {
	struct analysis *analysis;
	struct reference_judge judge;
	struct bitmap *reached;
	ARRAY(allocation_id) stack;
};

static struct error *reach(void *data, allocation_id id)
{
	struct marking *marking = data;
	struct error *error;

	if (bitmap_get(marking->reached, id))
		return NULL;
	error = array_append(&marking->stack, id);
	if (error)
		return error;
	bitmap_set(marking->reached, id);
	return NULL;
}

/* Follow the edges whose words are in use. */
static struct error *follow(struct marking *marking, allocation_id id)
{
	struct reference_judge *judge = &marking->judge;
	struct edges edges = graph_outgoing(analysis_graph(marking->analysis), id);
	struct error *error = NULL;
	size_t i = 0;

	while (i < edges.count && bitmap_get(marking->reached, edges.targets[i]))
		i++;
	if (i == edges.count)
		return NULL;
	if (patterns_of(judge->patterns, id) != NO_PATTERN) {
		reference_judge_set_source(judge, id);
		if (reference_judge_finds_taint(judge))
			return reference_judge_visit_sound(judge, reach, marking);
	}
	for (; i < edges.count && !error; i++)
		error = reach(marking, edges.targets[i]);
	return error;
}

static struct error *mark(struct marking *marking)
{
	const struct roots *roots = analysis_roots(marking->analysis);
	struct progress *progress = analysis_progress(marking->analysis);
	struct error *error = NULL;

	for (enum root_kind kind = 0; kind < ROOT_KINDS; kind++)
		bitmap_for_each(id, root_targets(roots, kind))
			if (!error)
				error = reach(marking, (allocation_id)id);
	while (!error && marking->stack.count > 0) {
		const allocation_id *stack = marking->stack.items;

		if (atomic_load_explicit(&progress->interrupted, memory_order_relaxed))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		error = follow(marking, stack[--marking->stack.count]);
	}
	return error;
}

struct error *likely_leaks_find(struct analysis *analysis, struct bitmap *ret)
{
	struct memory_account *account = analysis_account(analysis);
	size_t count;
	_cleanup_(bitmap_deinit) struct bitmap sound = { 0 };
	struct marking marking = {
		.analysis = analysis,
		.reached = &sound,
		.stack.memory.account = account,
	};
	struct error *error = analysis_need(analysis, STAGE_REACHABILITY);

	if (!error)
		error = analysis_need(analysis, STAGE_OWNERS);
	if (error)
		return error;
	count = allocation_count(analysis_index(analysis));
	reference_judge_init(&marking.judge, analysis_patterns(analysis));
	error = bitmap_init(&sound, count, account);
	if (!error)
		error = mark(&marking);
	array_release(&marking.stack);
	if (!error)
		error = bitmap_init(ret, count, account);
	if (error)
		return error;
	bitmap_copy(ret, analysis_anchored(analysis));
	bitmap_minus(ret, &sound);
	return NULL;
}
