/*
 * `summarize` of a set of allocations: by pattern, else by class or signature, else by an identity
 * word; the rest, and each pattern, by size.
 *
 *	Multiple signatures for Hidden have a total of 35 instances ...
 *	   Signature 55bd4cec3b38 has 18 instances taking 0x1b0(432) bytes.
 *	   Signature 55bd4cec3788 has 17 instances taking 0x198(408) bytes.
 *	Unrecognized allocations have 21 instances taking 0x600(1,536) bytes.
 *	   Unrecognized allocations of size 0x28 have 21 instances ...
 *	Signature 55bd4cec3b10 (app::Session) has 5 instances ...
 */
#ifndef CLI_VIEWS_ALLOCATION_SUMMARY_H
#define CLI_VIEWS_ALLOCATION_SUMMARY_H

#include "analyzer/query/query.h"
#include "analyzer/report/report.h"

struct error *summarize_allocations(struct analysis *analysis, const struct set_query *query,
				    struct report *report);

#endif
