/*
 * The names of Crystal's symbols.
 *
 *	*Cat@Animal::new<String, Int32>:Cat
 *	 type @ whose method :: name < arguments > : what it returns
 *
 * A + behind a type means that it may also be a derived one; it is no part of the name, and left
 * out here.
 */
#pragma once

#include <stdbool.h>

/* A method's symbol in its parts; all are owned, and never NULL. */
struct symbol_name {
	char *type;
	char *owner; /* the same as type if it is of the type itself */
	char *method;
	char *result;	 /* "" if it is not told */
	bool of_object;	 /* #: called with an object, else of the class itself */
	bool is_virtual; /* the type may also be a derived one */
};

/* False if the text is no such name, or memory is short. */
bool symbol_name_parse(const char *text, struct symbol_name *ret);
void symbol_name_deinit(struct symbol_name *name);
