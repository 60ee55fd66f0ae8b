/*
 * Leak roots as rows, where to look first: of each kind, how many there are, what was lost with
 * them, and who allocated them.
 */
#ifndef CLI_VIEWS_ROOT_ROWS_H
#define CLI_VIEWS_ROOT_ROWS_H

#include "analyzer/query/query.h"
#include "analyzer/report/report.h"

/*
 * Of the query's members. Reads all code of the program where a kind has a class or a type. In
 * brief text, most of many sizes are one row, unless sizes are asked for.
 */
struct error *root_rows(struct analysis *analysis, const struct set_query *query, bool sizes,
			struct report *report);

#endif
