/*
 * The modules that the dynamic loader has loaded, from the list that it keeps for debuggers.
 *
 * The list says less than the dump's note of mapped files: no sizes, and for the program no name.
 * But it is in writable memory, which every dump has, and its entries lead to what the loader knows
 * of each module.
 */
#pragma once

#include "analyzer/image/image.h"

/* Empty where there is no loader, or its list is not found. */
struct error *loaded_list_init(struct loaded_list *list, const struct image *image);
void loaded_list_deinit(struct loaded_list *list);

/*
 * Add each mapping of a file on the list, as the program headers in memory have it; or,
 * where these are absent, all of a module as one. Of a program without a loader, the auxiliary
 * vector tells.
 */
struct error *image_add_loaded(struct image *image);
