/*
 * Reads the references of allocations: each word that leads to one, but for links that an allocator
 * left and links of runtimes, which are none.
 */
#pragma once

#include "analyzer/graph/reference_words.h"

struct runtimes;

struct references {
	const struct image *image;
	const struct allocation_index *index;
	const struct runtimes *runtimes; /* that have links; or NULL */
	const struct bitmap *wanted; /* with links: other targets are none; NULL: all are wanted */
	/*
	 * Gets references, in the order in which they were read, up to MOST_ADDRESSES at once. The
	 * target NO_ALLOCATION is none.
	 */
	struct error *(*pass)(void *data, const allocation_id *sources,
			      const allocation_id *targets, size_t count);
	void *data;
	struct reference_words words; /* to be looked up together */
	struct view view;
	size_t source_hint;
	allocation_id judged; /* whose stale links are known; or none's */
	unsigned int stale_links;
};

/* Read the references of the sources; the caller sets pass, and other options. All is borrowed. */
void references_init(struct references *references, const struct image *image,
		     const struct allocation_index *index, const struct runtimes *runtimes,
		     const struct bitmap *sources);

/*
 * Read from source *id on, below end, as much as goes at once; *id is what is next, and *bytes goes
 * up by what that was.
 */
struct error *references_read_some(struct references *references, allocation_id end,
				   allocation_id *id, uint64_t *bytes);

/* Read that range of an allocation. */
struct error *references_read_part(struct references *references, struct memory_range range,
				   allocation_id source);

/* Pass on what was read and not looked up yet; more may be read then. */
struct error *references_end(struct references *references);
