/*
 * The variable that a name stands for.
 *
 * "count" is that of any file, or of a namespace; one that only a function sees is meant if there
 * is no other. "shop.c::count", "libshop.so::count", "serve::count" and "app::count" say which: of
 * a file, a module, a function, a namespace or class. A variable that only symbols know has no
 * type.
 */
#pragma once

#include "analyzer/image/image.h"
#include "analyzer/program/debug/type_table.h"

/* All are borrowed. */
struct variable_context {
	const struct image *image;
	struct debug *debug;
	const struct type_table *types;
};

struct named_variable {
	const struct module *module; /* NULL: there is no such variable */
	uint64_t address;
	uint64_t size;	  /* of what is left of it, at most */
	type_number type; /* NO_TYPE: only symbols know it */
};

/* It is an error if several have the name, or if the main thread has not got it yet. */
struct error *variable_find(const struct variable_context *context, const char *name,
			    struct named_variable *ret);

/* The name without its scope, as "count" of "app::count". */
const char *variable_last_name(const char *name);
