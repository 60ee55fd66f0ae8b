/*
 * Why an allocation is of its type: the path of pointers from a variable that led to it, as
 * "shop.customers[3].orders->next", and how sure that is.
 *
 * The words for how sure it is, from the surest on:
 *
 *	certain     a variable points to it, and it is just as large as malloc makes such a value
 *	typed       pointers with types lead to it, and it fits
 *	looks like  it only has a value of the type in it, most often at its start; or code, a tag
 *	            and what it holds say so, and no declaration; or it leaked, and others of its
 *	            size that are still held are of the type
 *	held by     its type is not known, but what leads to it
 */
#pragma once

#include "analyzer/analysis/analysis.h"

struct type_reason {
	const char *type; /* NULL: not known; lives as long as the analysis */
	const char *sure; /* one of the words above, or "stated by the user"; static */
	uint32_t values;  /* of the type that are known to stand in it, if several are; else 0 */
	char *path;	  /* as "shop.customers[3].orders, 2 steps from shop"; owned; or NULL */
};

/*
 * The type of an allocation and why it is that. False: nothing is known, also where memory is
 * short. Needs STAGE_TYPES; of what leaked, STAGE_LEAKED_TYPES.
 */
bool type_reason_find(const struct analysis *analysis, allocation_id id, struct type_reason *ret);

static inline void type_reason_deinit(struct type_reason *reason)
{
	free(reason->path);
}
DEFINE_DEINIT(type_reason_deinit, struct type_reason)

/*
 * The field of one allocation that first refers to another, as "orders" or "[3].name"; to be freed.
 * NULL: it is not known, or memory is short.
 */
char *type_field(const struct analysis *analysis, allocation_id from, allocation_id to);
