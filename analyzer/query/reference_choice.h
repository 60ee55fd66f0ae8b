/*
 * Which references count in a query: all, or none that are tainted, or only favored ones (see
 * analyzer/classify/reference_judge.h).
 *
 * All are those of the analysis. Else the memory is looked at once more when references are first
 * asked for, and a graph is made of those that count.
 */
#ifndef ANALYZER_QUERY_REFERENCE_CHOICE_H
#define ANALYZER_QUERY_REFERENCE_CHOICE_H

#include "analyzer/analysis/analysis.h"
#include "analyzer/classify/reference_judge.h"

struct reference_choice {
	struct analysis *analysis;
	bool skip_tainted, skip_unfavored;
	struct reference_judge *judge;	   /* NULL: all count, or not yet */
	struct graph *outgoing, *incoming; /* of those that count */
	allocation_id source;		   /* that the judge is set on */
};

/* Nothing is built yet. */
void reference_choice_init(struct reference_choice *choice, struct analysis *analysis,
			   bool skip_tainted, bool skip_unfavored);
void reference_choice_deinit(struct reference_choice *choice);
DEFINE_DEINIT(reference_choice_deinit, struct reference_choice)

/* Who refers to whom by references that count, and by whom. */
struct error *reference_choice_outgoing(struct reference_choice *choice, const struct graph **ret);
struct error *reference_choice_incoming(struct reference_choice *choice, const struct graph **ret);

/*
 * Whether the word at that offset of source, which leads to target, counts. Outgoing or incoming
 * references were asked for before.
 */
bool reference_choice_takes(struct reference_choice *choice, allocation_id source, uint64_t offset,
			    allocation_id target);

#endif
