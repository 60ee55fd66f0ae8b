/*
 * A few lines about something in memory: the output of `describe`, and the beginning of `explain`.
 */
#pragma once

#include "analyzer/account/likely_held.h"
#include "analyzer/analysis/liveness.h"
#include "analyzer/classify/reference_judge.h"
#include "analyzer/query/place.h"
#include "cli/views/selection.h"

struct chains;

struct describer {
	struct analysis *analysis;
	const struct selection *selection;
	struct report *report;
	struct bitmap unreferenced; /* no words: nobody asked yet */
	/* For `explain`; NULL: not built yet. */
	struct chains *chains;
	struct taint_memory *taints;
	struct annotating annotating;
	struct error *error; /* that ended a visit; owned */
};

/* Builds what is needed to tell what is leaked, garbage or at risk. */
struct error *describer_init(struct describer *describer, struct analysis *analysis,
			     const struct selection *selection, struct report *report);
void describer_deinit(struct describer *describer);
DEFINE_DEINIT(describer_deinit, struct describer)

/* The state by liveness_of(), which also says whether a leaked allocation is unreferenced. */
enum live_state describer_state(struct describer *describer, allocation_id id);

/* "Leaked allocation at 55d0c0ffee10 of size 28" and so on. */
void describe_allocation(struct describer *describer, allocation_id id);

/* "Address 55d0c0ffee18 is at offset 8 of" and so on. */
void describe_address(struct describer *describer, uint64_t address, const struct place *place);

/* Search for what leaked allocations stand in disguise for: of an address, for those alone. */
struct error *describer_need_disguised(struct describer *describer, const allocation_id *ids,
				       size_t count);

/*
 * If the leaked allocation is likely held, say so and return true. An error becomes the
 * describer's.
 */
bool describe_likely(struct describer *describer, allocation_id id);

/*
 * Describe the query's set: each allocation by visit, whose data is the describer, each range as
 * its first address; then the total.
 */
struct error *describe_set(struct describer *describer,
			   bool (*visit)(void *data, allocation_id id));

/*
 * Write why an allocation is what it is, what holds it or what it hangs on, and an empty line.
 * Needs the leak roots and the incoming references.
 */
struct error *explain_allocation(struct describer *describer, allocation_id id);
