/*
 * Where the functions of a module begin, told by what programs have for exceptions, which stays
 * when symbols are stripped: the table .eh_frame_hdr, or .eh_frame itself.
 */
#ifndef ANALYZER_RUNTIMES_CRYSTAL_FUNCTIONS_H
#define ANALYZER_RUNTIMES_CRYSTAL_FUNCTIONS_H

#include "analyzer/heap/index.h"
#include "analyzer/program/program.h"

struct function_list {
	struct memory memory; /* struct memory_range, by address */
	size_t count;
};

/*
 * The list is empty if the module has neither. A function's end is the start of the next one:
 * padding may be in it.
 */
struct error *function_list_init(struct function_list *list, const struct image *image,
				 const struct module *module, struct memory_account *account);
void function_list_deinit(struct function_list *list);
DEFINE_DEINIT(function_list_deinit, struct function_list)

const struct memory_range *function_at(const struct function_list *list, size_t number);

#endif
