/*
 * Candidates of an extension's rule for one allocation: targets or referrers that match the rule's
 * words and offsets.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/query/extension_rules.h"
#include "analyzer/query/reference_choice.h"

/* The source of candidates. */
struct candidate_source {
	struct analysis *analysis;
	struct reference_choice *choice;
	const struct graph *outgoing, *incoming; /* NULL: no rule needs it */
	const struct bitmap *leaked;		 /* NULL: the same */
	struct heap_bounds bounds;
	const struct bitmap *unwanted; /* never candidates; borrowed */
	uint64_t work;		       /* words and edges looked at so far */
};

struct id_stack {
	ARRAY(allocation_id);
};

/* Build what the rules need. */
struct error *candidate_source_init(struct candidate_source *source,
				    struct reference_choice *choice,
				    const struct extension_rules *rules);

/*
 * Append the ids of those that the arrow and the offsets lead to from that allocation, whatever
 * their kind, each once, the last address first.
 */
struct error *candidates_find(struct candidate_source *source, const struct extension_rule *rule,
			      allocation_id from, struct id_stack *ids);
