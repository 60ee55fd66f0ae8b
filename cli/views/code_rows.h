/*
 * The code that a program compiled, as rows: by class and path, then by label.
 */
#pragma once

#include "analyzer/query/query.h"
#include "analyzer/report/report.h"

struct error *code_rows(struct analysis *analysis, const struct set_query *query,
			struct report *report);
