/*
 * `summarize stringusers`: how std::string is used, by what the strings are in and where in it.
 */
#ifndef CLI_VIEWS_STRING_SUMMARY_H
#define CLI_VIEWS_STRING_SUMMARY_H

#include "analyzer/query/query.h"
#include "analyzer/report/report.h"

struct error *summarize_string_users(struct analysis *analysis, const struct set_query *query,
				     struct report *report);

#endif
