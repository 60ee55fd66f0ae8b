/*
 * Live allocations counted by type and by the place in the source that made them, as far as that
 * was recorded, a debugging allocator noted it (debug_header.h), or code tells it; those of which
 * neither is known, by size.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

struct maker_count {
	uint64_t count, bytes;
	char *type; /* owned */
	/* calls, "app.c:12", "in one of: ...", or "32 bytes each"; owned; NULL: nothing is known */
	char *detail;
};

struct maker_list {
	struct maker_count *list; /* more bytes first, then more of them */
	size_t count;
};

/* Recorded calls that made an allocation, by a number below 2^32. */
struct maker_calls {
	uint64_t (*find)(void *data, uint64_t address); /* 0: there are none */
	char *(*name)(void *data, uint64_t calls);	/* to be freed; NULL: no memory */
	void *data;
};

/*
 * List allocation sites with at least that many bytes, calls being NULL where nothing was recorded.
 * ret is all zeros. Builds what is needed.
 */
struct error *made_list_find(struct analysis *analysis, const struct maker_calls *calls,
			     uint64_t least, struct maker_list *ret);
void made_list_deinit(struct maker_list *lines);
DEFINE_DEINIT(made_list_deinit, struct maker_list)
