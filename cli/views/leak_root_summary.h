/*
 * `summarize leakroots`: where to look first.
 *
 *	leak roots  allocations lost  bytes lost  what the roots are
 *	        50               150       4,800  signature 55bd4cec3ca0 (Order)
 *	         2                18         576  size 0x28
 *
 * For each kind of leak root, how many there are, and what was lost with them.
 */
#ifndef CLI_VIEWS_LEAK_ROOT_SUMMARY_H
#define CLI_VIEWS_LEAK_ROOT_SUMMARY_H

#include "analyzer/query/query.h"
#include "analyzer/report/report.h"

struct error *summarize_leak_roots(struct analysis *analysis, const struct set_query *query,
				   struct report *report);

#endif
