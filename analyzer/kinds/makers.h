/*
 * Live allocations counted by type and by the place in the source that made them, as far as a
 * debugging allocator noted that (debug_header.h), or code tells it; those of which neither is
 * known, by size.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

struct made {
	uint64_t count, bytes;
	char *type; /* owned */
	/* "app.c:12", "in one of: ...", or "32 bytes each"; owned; NULL: nothing is known */
	char *detail;
};

struct made_list {
	struct made *list; /* more bytes first, then more of them */
	size_t count;
};

/* List allocation sites with at least that many bytes. ret is all zeros. Builds what is needed. */
struct error *made_list_find(struct analysis *analysis, uint64_t least, struct made_list *ret);
void made_list_deinit(struct made_list *lines);
DEFINE_DEINIT(made_list_deinit, struct made_list)
