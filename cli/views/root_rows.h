/*
 * Leak roots as rows, where to look first: of each kind, how many there are, what was lost with
 * them, and who allocated them.
 */
#pragma once

#include "analyzer/query/query.h"
#include "analyzer/report/report.h"

/*
 * Write the leak roots among the query's members. Reads all code of the program if a kind has a
 * class or a type. Brief text merges most of many sizes into one row, unless sizes are asked for.
 */
struct error *root_rows(struct analysis *analysis, const struct set_query *query, bool sizes,
			struct report *report);
