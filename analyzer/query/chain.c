#include "analyzer/query/chain.h"

#include "analyzer/query/word_scan.h"

#include <inttypes.h>

/* Where a step of a chain led. */
struct step {
	allocation_id next; /* NO_ALLOCATION: nowhere */
	bool branches;	    /* as several are next */
};

typedef struct step (*step_function)(struct analysis *analysis,
				     const struct set_arguments *arguments, allocation_id from);

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

static struct error *walk(struct analysis *analysis, const struct set_arguments *arguments,
			  step_function next, struct members *ret)
{
	enum { BETWEEN_STEPS = 1 << 16 };
	struct progress *progress = analysis_progress(analysis);
	struct step step = { .next = NO_ALLOCATION };
	struct error *error = set_find_allocation(analysis, arguments->values[0], &step.next);
	allocation_id last;

	if (!error && !bitmap_get(allocation_used(analysis_index(analysis)), step.next))
		error = error_create(ERROR_USAGE,
				     "0x%" PRIx64 " is in a free allocation: no chain begins there",
				     arguments->values[0]);
	if (error)
		return error;
	progress_begin(progress, "following the chain", ret->set.count);
	do {
		if (bitmap_get(&ret->set, step.next))
			return end_with(ret, COMMENT_CYCLE, step.next);
		error = members_append(ret, step.next);
		if (error)
			return error;
		if (ret->order.count % BETWEEN_STEPS == 0 &&
		    !progress_step(progress, BETWEEN_STEPS))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		last = step.next;
		step = next(analysis, arguments, last);
	} while (step.next != NO_ALLOCATION);
	return step.branches ? end_with(ret, COMMENT_BRANCHES, last) : NULL;
}

struct error *chain_walk(struct analysis *analysis, const struct set_arguments *arguments,
			 struct members *ret)
{
	return walk(analysis, arguments, step_on, ret);
}

struct error *reverse_chain_walk(struct analysis *analysis, const struct set_arguments *arguments,
				 struct members *ret)
{
	return walk(analysis, arguments, step_back, ret);
}
