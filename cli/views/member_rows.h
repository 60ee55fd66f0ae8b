/*
 * The members of a value with a type, as "next = 0x55d0c0ffee10 (struct order)": a row for each.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

/* Return what tells the members of an allocation. Needs STAGE_CLASSES, and STAGE_TYPES for types.
 */
enum members_by { MEMBERS_UNKNOWN, MEMBERS_BY_NAME, MEMBERS_BY_TYPE, MEMBERS_BY_PLACE };
enum members_by members_by(const struct analysis *analysis, allocation_id id);

/* Write them. */
struct error *member_rows(struct report *report, const struct analysis *analysis, allocation_id id,
			  enum members_by by);
