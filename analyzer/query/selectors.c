/*
 * The selectors of the table of sets.
 */

#include "analyzer/account/likely_held.h"
#include "analyzer/account/waste.h"
#include "analyzer/query/reference_choice.h"
#include "analyzer/query/set.h"

#include <inttypes.h>
#include <string.h>

struct error *select_all(struct analysis *analysis, const struct set_arguments *arguments,
			 struct members *ret)
{
	bitmap_fill(&ret->set);
	return NULL;
}

/*
 * All that refers to a leaked allocation is leaked itself, or free; so the edges of leaked
 * allocations tell.
 */
void unreferenced_find(const struct analysis *analysis, struct bitmap *ret)
{
	const struct bitmap *leaked = analysis_leaked(analysis);
	const struct graph *graph = analysis_graph(analysis);

	bitmap_copy(ret, leaked);
	bitmap_for_each(id, leaked) {
		struct edges edges = graph_outgoing(graph, (allocation_id)id);

		for (size_t i = 0; i < edges.count; i++)
			bitmap_clear(ret, edges.targets[i]);
	}
}

struct error *select_unreferenced(struct analysis *analysis, const struct set_arguments *arguments,
				  struct members *ret)
{
	unreferenced_find(analysis, &ret->set);
	return NULL;
}

struct error *select_leakroots(struct analysis *analysis, const struct set_arguments *arguments,
			       struct members *ret)
{
	const struct leaks *leaks = analysis_leaks(analysis);

	for (size_t i = 0; i < leaks->count; i++)
		bitmap_set(&ret->set, leaks->roots[i].id);
	return NULL;
}

struct error *select_likelyheld(struct analysis *analysis, const struct set_arguments *arguments,
				struct members *ret)
{
	bitmap_copy(&ret->set, likely_held(analysis));
	return NULL;
}

/* Used allocations that a collector frees; CHOICE_UNCOLLECTABLE: its others. */
struct error *select_managed(struct analysis *analysis, const struct set_arguments *arguments,
			     struct members *ret)
{
	const struct allocation_index *index = analysis_index(analysis);
	const struct bitmap *collectable = allocation_having(index, TRAIT_COLLECTABLE);
	bool uncollectable = arguments->set->choice == CHOICE_UNCOLLECTABLE;
	const struct bitmap *members =
		uncollectable ? allocation_having(index, TRAIT_MANAGED) : collectable;

	if (!members)
		return NULL;
	bitmap_copy(&ret->set, members);
	bitmap_and(&ret->set, allocation_used(index));
	if (uncollectable && collectable)
		bitmap_minus(&ret->set, collectable);
	return NULL;
}

static struct error *add_code(void *data, const struct object_code *code)
{
	bitmap_set(data, code->id);
	return NULL;
}

/* STAGE_OBJECTS is built. */
struct error *select_code(struct analysis *analysis, const struct set_arguments *arguments,
			  struct members *ret)
{
	return runtimes_visit_code(analysis_runtimes(analysis), add_code, &ret->set);
}

struct error *select_atrisk(struct analysis *analysis, const struct set_arguments *arguments,
			    struct members *ret)
{
	const struct bitmap *members = analysis_at_risk(analysis);

	if (members)
		bitmap_copy(&ret->set, members);
	if (bitmap_weight(&ret->set) > 0)
		analysis_doubt_risk(analysis);
	return NULL;
}

/*
 * Select everything reachable from the chosen kinds of roots; for ROOTS_DIRECTLY and ROOTS_ONLY,
 * see there.
 */
struct error *select_at_roots(struct analysis *analysis, const struct set_arguments *arguments,
			      struct members *ret)
{
	const uint32_t choice = arguments->set->choice;
	bool directly = choice & ROOTS_DIRECTLY, only = choice & ROOTS_ONLY;
	const struct bitmap *members;

	/* Remove below what other roots reach. */
	if (only && !directly)
		bitmap_copy(&ret->set, analysis_anchored(analysis));
	for (enum root_kind kind = 0; kind < ROOT_KINDS; kind++) {
		if (!(choice & UINT32_C(1) << kind) || (only && !directly))
			continue;
		members = root_targets(analysis_roots(analysis), kind);
		if (!directly)
			TRY(analysis_anchored_by(analysis, kind, &members));
		bitmap_or(&ret->set, members);
	}
	for (enum root_kind kind = 0; only && kind < ROOT_KINDS; kind++) {
		if (choice & UINT32_C(1) << kind)
			continue;
		TRY(analysis_anchored_by(analysis, kind, &members));
		bitmap_minus(&ret->set, members);
	}
	return NULL;
}

struct error *set_find_allocation(const struct analysis *analysis, uint64_t address,
				  allocation_id *ret)
{
	allocation_id id = allocation_find(analysis_index(analysis), address);

	if (id == NO_ALLOCATION)
		return error_create(ERROR_USAGE, "0x%" PRIx64 " is not in any allocation", address);
	*ret = id;
	return NULL;
}

struct error *select_allocation(struct analysis *analysis, const struct set_arguments *arguments,
				struct members *ret)
{
	allocation_id id = NO_ALLOCATION;

	TRY(set_find_allocation(analysis, arguments->values[0], &id));
	bitmap_set(&ret->set, id);
	return NULL;
}

static struct error *add_edges(struct analysis *analysis, const struct graph *graph,
			       uint64_t address, struct bitmap *ret)
{
	allocation_id id = NO_ALLOCATION;

	TRY(set_find_allocation(analysis, address, &id));
	struct edges edges = graph_outgoing(graph, id);

	for (size_t i = 0; i < edges.count; i++)
		bitmap_set(ret, edges.targets[i]);
	return NULL;
}

/* Select the used targets of the allocation at the address; CHOICE_FREE: the free ones. */
struct error *select_outgoing(struct analysis *analysis, const struct set_arguments *arguments,
			      struct members *ret)
{
	const struct bitmap *used = allocation_used(analysis_index(analysis));
	const struct graph *graph;

	TRY(reference_choice_outgoing(arguments->references, &graph));
	TRY(add_edges(analysis, graph, arguments->values[0], &ret->set));
	if (arguments->set->choice == CHOICE_FREE)
		bitmap_minus(&ret->set, used);
	else
		bitmap_and(&ret->set, used);
	return NULL;
}

/* True if an aligned word of the allocation that counts is the address of target's start. */
static bool refers_to_start(struct reference_choice *choice, allocation_id id, allocation_id target)
{
	const struct allocation_index *index = analysis_index(choice->analysis);
	uint64_t wanted = allocation_start(index, target);
	struct word_scan scan = word_scan_of(choice->analysis, id);
	uint64_t offset, word;

	while (word_scan_next(&scan, &offset, &word))
		if (word == wanted && reference_choice_takes(choice, id, offset, target))
			return true;
	return false;
}

/* Select the referrers of the allocation at the address; CHOICE_EXACT: those to its start. */
struct error *select_incoming(struct analysis *analysis, const struct set_arguments *arguments,
			      struct members *ret)
{
	allocation_id id = allocation_find(analysis_index(analysis), arguments->values[0]);
	const struct graph *graph;

	TRY(reference_choice_incoming(arguments->references, &graph));
	TRY(add_edges(analysis, graph, arguments->values[0], &ret->set));
	if (arguments->set->choice != CHOICE_EXACT)
		return NULL;
	bitmap_for_each(referrer, &ret->set)
		if (!refers_to_start(arguments->references, (allocation_id)referrer, id))
			bitmap_clear(&ret->set, referrer);
	return NULL;
}

/* Allocations that hold the same as one in front of them; CHOICE_ZEROS: only zeros. */
struct error *select_waste(struct analysis *analysis, const struct set_arguments *arguments,
			   struct members *ret)
{
	_cleanup_(waste_deinit) struct waste waste = { 0 };

	TRY(waste_find(analysis, allocation_used(analysis_index(analysis)), WASTE_SETS, 0, &waste));
	bitmap_copy(&ret->set, arguments->set->choice == CHOICE_ZEROS ? &waste.zeros
								      : &waste.duplicates.copies);
	return NULL;
}

struct error *select_lostcount(struct analysis *analysis, const struct set_arguments *arguments,
			       struct members *ret)
{
	array_for_each(lost, &analysis_lost_counts(analysis)->lost)
		bitmap_set(&ret->set, lost->id);
	return NULL;
}

/* Select the set stored by that name; NEW_SET and SURVIVED_SET exist only after a comparison. */
struct error *select_named(struct analysis *analysis, const struct set_arguments *arguments,
			   struct members *ret)
{
	const char *name = arguments->name;
	const struct bitmap *members = named_sets_find(analysis_named_sets(analysis), name);

	if (members)
		bitmap_copy(&ret->set, members);
	else if (strcmp(name, DERIVED_SET) != 0)
		return error_create(
			ERROR_USAGE,
			"the set '%s' exists only after a comparison with an older core of the same process: try 'diff OLD' first",
			name);
	return NULL;
}

/* The result of a step along a chain. */
struct step {
	allocation_id next; /* NO_ALLOCATION: nowhere */
	bool branches;	    /* as several are next */
};

static struct step step_on(struct analysis *analysis, const struct set_arguments *arguments,
			   allocation_id from)
{
	const struct allocation_index *index = analysis_index(analysis);
	struct step step = { .next = NO_ALLOCATION };
	uint64_t word;

	if (word_of_allocation(analysis, from, arguments->values[1], &word))
		step.next = allocation_find(index, word);
	if (step.next != NO_ALLOCATION && !bitmap_get(allocation_used(index), step.next))
		step.next = NO_ALLOCATION;
	return step;
}

static struct step step_back(struct analysis *analysis, const struct set_arguments *arguments,
			     allocation_id from)
{
	struct edges edges = graph_outgoing(analysis_incoming(analysis), from);
	uint64_t wanted = allocation_start(analysis_index(analysis), from) + arguments->values[2];
	struct step step = { .next = NO_ALLOCATION };
	uint64_t word;

	/* References of an allocation to itself are no edges. */
	if (word_of_allocation(analysis, from, arguments->values[1], &word) && word == wanted)
		step.next = from;
	for (size_t i = 0; i < edges.count; i++) {
		if (!word_of_allocation(analysis, edges.targets[i], arguments->values[1], &word) ||
		    word != wanted)
			continue;
		if (step.next != NO_ALLOCATION)
			return (struct step){ NO_ALLOCATION, true };
		step.next = edges.targets[i];
	}
	return step;
}

static struct error *end_with(struct members *members, enum comment_kind kind, allocation_id id)
{
	return members_comment(members, (struct member_comment){
						.kind = kind,
						.from = NO_ALLOCATION,
						.to = id,
					});
}

/*
 * ADDRESS OFFSET: from the allocation at the address to what the word at the offset points into,
 * and so on. CHOICE_BACKWARDS, ADDRESS SOURCE_OFFSET TARGET_OFFSET: to the one whose word at the
 * source offset is the start of this one plus the target offset.
 *
 * A chain ends at what is no used allocation. It also ends, and says so, where it comes back to
 * itself, and backwards where several allocations lead to the same.
 */
struct error *select_chain(struct analysis *analysis, const struct set_arguments *arguments,
			   struct members *ret)
{
	enum { BETWEEN_STEPS = 1 << 16 };
	struct progress *progress = analysis_progress(analysis);
	struct step step = { .next = NO_ALLOCATION };
	allocation_id last;

	TRY(set_find_allocation(analysis, arguments->values[0], &step.next));
	if (!bitmap_get(allocation_used(analysis_index(analysis)), step.next))
		return error_create(ERROR_USAGE,
				    "0x%" PRIx64 " is in a free allocation: no chain begins there",
				    arguments->values[0]);
	progress_begin(progress, "following the chain", ret->set.count);
	do {
		if (bitmap_get(&ret->set, step.next))
			return end_with(ret, COMMENT_CYCLE, step.next);
		TRY(members_append(ret, step.next));
		if (ret->order.count % BETWEEN_STEPS == 0)
			TRY(progress_check(progress, BETWEEN_STEPS));
		last = step.next;
		step = arguments->set->choice == CHOICE_BACKWARDS
			       ? step_back(analysis, arguments, last)
			       : step_on(analysis, arguments, last);
	} while (step.next != NO_ALLOCATION);
	return step.branches ? end_with(ret, COMMENT_BRANCHES, last) : NULL;
}
