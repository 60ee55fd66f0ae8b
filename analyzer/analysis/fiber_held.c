#include "analyzer/analysis/fiber_held.h"

#include <stdlib.h>

enum { WORD = 8 };

/* A place in the order of the dominator tree that a fiber leads to, and what it dominates. */
struct held {
	size_t begin, end;
	uint32_t fiber;
};

struct held_list {
	ARRAY(struct held);
};

/* True if only what passes leads there: words of stacks, variables of running functions. */
static bool is_passing(struct analysis *analysis, size_t position)
{
	size_t root = dominators_root_of(analysis_dominators(analysis), position);
	enum lasting lasting;

	if (root == NO_ROOT)
		return false;
	lasting = variables_at(analysis_variables(analysis), root)->lasting;
	return lasting == LASTING_LOCAL || lasting >= LASTING_FRAME;
}

static struct error *add(struct analysis *analysis, struct held_list *list, uint64_t address,
			 uint32_t fiber, bool is_own)
{
	const struct dominators *dominators = analysis_dominators(analysis);
	allocation_id id = allocation_find(analysis_index(analysis), address);
	size_t position;

	if (id == NO_ALLOCATION || !dominators_position(dominators, id, &position) ||
	    (!is_own && !is_passing(analysis, position)))
		return NULL;
	return array_append(list,
			    (struct held){ position, dominators_end(dominators, position), fiber });
}

static int compare(const void *one, const void *other)
{
	const struct held *a = one, *b = other;

	return a->begin != b->begin ? (a->begin < b->begin ? -1 : 1)
				    : (a->fiber > b->fiber) - (a->fiber < b->fiber);
}

static struct error *find_all(struct analysis *analysis, struct held_list *list)
{
	const struct fibers *fibers = analysis_fibers(analysis);
	struct view view = { analysis_image(analysis) };
	uint64_t word;

	for (size_t i = 0; i < fibers->count; i++) {
		const struct fiber *fiber = &fibers->items[i];

		TRY(add(analysis, list, fiber->object, (uint32_t)i, true));
		for (uint64_t at = fiber->live; at + WORD <= fiber->end; at += WORD)
			if (view_word(&view, at, &word) && word)
				TRY(add(analysis, list, word, (uint32_t)i, false));
	}
	if (list->count)
		qsort(list->items, list->count, sizeof(struct held), compare);
	return NULL;
}

/* Add up what no other fiber has, nor contains. */
static void add_up(const struct dominators *dominators, const struct held_list *list, uint64_t *ret)
{
	for (size_t i = 0, next; i < list->count; i = next) {
		const struct held *first = &list->items[i];
		bool is_shared = false;

		for (next = i + 1; next < list->count && list->items[next].begin < first->end;
		     next++)
			is_shared = is_shared || (list->items[next].begin == first->begin &&
						  list->items[next].fiber != first->fiber);
		if (!is_shared)
			ret[first->fiber] += dominators_bytes(dominators, first->begin, first->end);
	}
}

struct error *fibers_find_held(struct analysis *analysis, uint64_t **ret)
{
	struct held_list list = { 0 };
	struct error *error;

	arrays_use(analysis_account(analysis), &list);
	*ret = calloc(analysis_fibers(analysis)->count + 1, sizeof(**ret));
	TRY_MEMORY(*ret);
	error = find_all(analysis, &list);
	if (!error)
		add_up(analysis_dominators(analysis), &list, *ret);
	array_release(&list);
	return error;
}
