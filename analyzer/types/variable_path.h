/*
 * Evaluates "server.db[0].dict" as a debugger would: a variable, and the path from there by
 * members, elements and pointers, in the memory of the dump.
 *
 *	PATH := NAME | (PATH) | PATH.MEMBER | PATH->MEMBER | PATH[NUMBER] | *PATH | &PATH
 *
 * `.` and `->` are the same: either follows a pointer. An index is a number that is within the
 * array; what a pointer leads to has no end. `&` only says that the place itself is meant, not what
 * its pointer leads to.
 */
#pragma once

#include "analyzer/types/variable_names.h"

struct variable_place {
	const struct module *module; /* of the variable; NULL: there is none of that name */
	uint64_t address;
	const char *type;   /* of what is there, as "struct conn *", as long as debug; or NULL */
	bool is_pointer;    /* and not asked for by `&` */
	bool is_present;    /* its target is in the dump */
	uint64_t points_to; /* 0: nothing */
};

/* The error says which part of the path leads nowhere, and why. */
struct error *variable_path_find(const struct variable_context *context, const char *path,
				 struct variable_place *ret);

/*
 * The name of the variable without its scope, of length *ret_length, that a word begins with if it
 * is a path; NULL: it is none. *ret_is_plain: there is nothing but a name and
 * its scope.
 */
const char *variable_path_name(const char *word, size_t *ret_length, bool *ret_is_plain);

/*
 * Call visit for each member that may follow the path, those of bases and of structures without a
 * name, too, until it returns false. Nothing is visited if the path leads to no structure.
 */
struct error *variable_path_visit_members(const struct variable_context *context, const char *path,
					  bool (*visit)(void *data, const char *name), void *data);
