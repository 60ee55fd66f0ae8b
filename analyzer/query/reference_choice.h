/*
 * The words of allocations, and which references count in a query: all, or none that are tainted,
 * or only favored ones (see analyzer/classify/reference_judge.h).
 *
 * If all count, these are the edges of the analysis. Else the first question about references scans
 * the memory again, and makes a graph of those that count.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/classify/reference_judge.h"

/* The aligned words of an allocation, one by one. Words that the dump lacks are left out. */
struct word_scan {
	const struct image *image;
	uint64_t start, at, end;
	const uint8_t *bytes; /* at at; NULL: to be found */
	uint64_t known;	      /* bytes there in a row */
	uint64_t word_size;
};

struct word_scan word_scan_of(const struct analysis *analysis, allocation_id id);

/* The next word and its offset in the allocation; false at the end. */
bool word_scan_next(struct word_scan *scan, uint64_t *ret_offset, uint64_t *ret_word);

/* The word at that offset of the allocation, if it is wholly in it. */
bool word_of_allocation(const struct analysis *analysis, allocation_id id, uint64_t offset,
			uint64_t *ret);

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

/* The references that count, outgoing and incoming. */
struct error *reference_choice_outgoing(struct reference_choice *choice, const struct graph **ret);
struct error *reference_choice_incoming(struct reference_choice *choice, const struct graph **ret);

/*
 * True if the word at that offset of source, which refers to target, counts. Outgoing or incoming
 * references must have been asked for before.
 */
bool reference_choice_takes(struct reference_choice *choice, allocation_id source, uint64_t offset,
			    allocation_id target);
