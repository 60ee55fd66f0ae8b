/*
 * The functions and variables of a module's file by their names, so that each name that is looked
 * for is not a pass over all of them: the tables are read once, when the first name is asked for.
 */
#pragma once

#include "analyzer/base/memory.h"
#include "analyzer/image/image.h"

#include <gelf.h>

struct symbol_names;

/* NULL: there is no memory. The file is borrowed. */
struct symbol_names *symbol_names_create(const struct image_file *file);
void symbol_names_destroy(struct symbol_names *names);

/*
 * Call visit for the functions and variables called so, in the file's order, until it returns
 * false. A table with more than most symbols is left out. Threads may search at once.
 */
void symbol_names_visit(struct symbol_names *names, const char *name, size_t most,
			bool (*visit)(void *data, const GElf_Sym *symbol), void *data);
