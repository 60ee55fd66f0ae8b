/*
 * What the dynamic loader has loaded, by the list that it keeps for debuggers.
 *
 * The list says less than the dump's note of mapped files: no sizes, and for the program no name.
 * But it is in writable memory, which every dump has, and its entries lead to what the loader knows
 * of each module.
 */
#ifndef ANALYZER_IMAGE_LINK_MAP_H
#define ANALYZER_IMAGE_LINK_MAP_H

#include "analyzer/image/image.h"

/* A module that is loaded (untrusted). */
struct loaded {
	uint64_t map;	  /* the address of its struct link_map */
	uint64_t bias;	  /* address less the file's virtual address */
	uint64_t dynamic; /* the address of its dynamic section */
	const char *path; /* as the loader was told */
};

/* The program is the first. */
struct loaded_list {
	struct loaded *list;
	size_t count;
};

/* Empty where there is no loader, or its list is not found. */
struct error *loaded_list_init(struct loaded_list *list, const struct image *image);
void loaded_list_deinit(struct loaded_list *list);

struct image_builder;

/*
 * Add each mapping of a file on the list, as the program headers in memory have it; or,
 * where these are absent, all of a module as one. Of a program without a loader, the auxiliary
 * vector tells.
 */
struct error *loaded_list_add_mappings(const struct loaded_list *list, const struct image *image,
				       struct image_builder *builder);

#endif
