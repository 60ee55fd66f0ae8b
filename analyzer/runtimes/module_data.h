/*
 * Searching the variables of a process: an interpreter's lead to all that it has.
 */
#pragma once

#include "analyzer/image/view.h"
#include "analyzer/program/program.h"

/* True if the word at place is the wanted one. */
typedef bool (*module_word_test)(struct view *view, uint64_t place, uint64_t word, void *data);

/* The place of the first such word in the modules' writable data, or 0. */
uint64_t module_data_search(const struct image *image, const struct program *program,
			    module_word_test test, void *data);

/* Search the data of one module. */
uint64_t module_data_search_in(const struct image *image, const struct module *module,
			       module_word_test test, void *data);

/*
 * The module's writable data piece by piece: in the region with that number, 0 at first, or a later
 * one. The kernel may have merged the last with memory of others, which is left out. false: no
 * more.
 */
bool module_data_next(const struct image *image, const struct module *module, size_t *number,
		      struct memory_range *ret);
