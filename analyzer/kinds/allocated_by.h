/*
 * The function that allocated an allocation whose type is known, or the few that may have.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

/*
 * As "conn_open (conn.c:41)", or "one of conn_open, conn_copy", to be freed; NULL: they are not
 * known, or more than three. Of what nothing is known but its size, those that ask for as much:
 * "conn_open (conn.c:41), by its size", or "conn_open (conn.c:41) or others, by its size". Its
 * type is that of its class, what the user stated, or what STAGE_TYPES and STAGE_LEAKED_TYPES
 * found, if they are built. Builds what it needs.
 */
struct error *allocated_by_find(struct analysis *analysis, allocation_id id, char **ret);

/*
 * Like allocated_by_find(), for some allocations of a kind, at least one. The answer for one holds
 * for all that are named: each function may have allocated one of them.
 */
struct error *allocated_by_find_all(struct analysis *analysis, const allocation_id *ids,
				    size_t count, char **ret);

/*
 * Like allocated_by_find_all(), for quick answers: skips the search by size if there is much code
 * to read.
 */
struct error *allocated_by_find_soon(struct analysis *analysis, const allocation_id *ids,
				     size_t count, char **ret);

/*
 * A call as "conn_new (conn.c:5)", of a script whose function is not known "app.py:7"; to be freed;
 * NULL if memory is short.
 */
char *call_text(const struct frame *frame);
