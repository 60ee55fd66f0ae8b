/*
 * The function that allocated an allocation whose type is known, or the few that may have.
 */
#ifndef ANALYZER_KINDS_ALLOCATED_BY_H
#define ANALYZER_KINDS_ALLOCATED_BY_H

#include "analyzer/analysis/analysis.h"

/*
 * As "conn_open (conn.c:41)", or "one of conn_open, conn_copy", to be freed; NULL: they are not
 * known, or more than three. Its type is that of its class, what the user stated, or what
 * STAGE_TYPES and STAGE_LEAKED_TYPES found, if they are built. Builds what it needs, and nothing
 * where no type is known.
 */
struct error *allocated_by_find(struct analysis *analysis, allocation_id id, char **ret);

#endif
