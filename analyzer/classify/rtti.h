/*
 * C++ run-time type information, read from memory alone.
 *
 *	vtable	| offset to top | type_info | function | function | ...
 *	                              |     ^ what an object begins with
 *	                              v
 *	type_info		| vptr | name | bases ...
 *	                           |
 *	                           v the address point of a vtable, too
 *	| offset to top | type_info of the kind of class | ...
 *
 * The Itanium C++ ABI knows three kinds of classes, those without bases, with a single one and with
 * any, described by the classes __class_type_info, __si_class_type_info and __vmi_class_type_info
 * of namespace __cxxabiv1. These have type_infos as well. So they are distinguished from anything
 *else by how these refer to each other, without any symbol:
 *
 *	single's and multiple's type_infos have class's as their base; the
 *	vptr of all three is that for single, for each has a single base
 *
 * and by their names, where these are in the dump or the binaries are at hand. See "Run-Time Type
 * Information" in the Itanium C++ ABI, 2.9.
 */
#pragma once

#include "analyzer/base/budget.h"
#include "analyzer/image/image.h"

/*
 * Any number of vtables and types can share a long name, or bases, in a hostile dump. So what is
 * looked at is taken from the caller's budget, about one for each character of a name; without
 * budget nothing is found.
 */

/* The address of the type_info of the vtable's class; 0: it is no vtable. */
uint64_t rtti_type(const struct image *image, uint64_t vtable, struct budget *budget);

/* True if it is the type_info of a class. */
bool rtti_is_class(const struct image *image, uint64_t type, struct budget *budget);

/* Its mangled name, to be freed; NULL: not in the dump, nor in a binary. */
char *rtti_name(const struct image *image, uint64_t type, struct budget *budget);

/*
 * Call visit for each class that the type is derived from, directly or not, until it returns true.
 * A class may come more than once. Returns whether one returned true.
 */
bool rtti_find_base(const struct image *image, uint64_t type,
		    bool (*visit)(void *data, uint64_t base), void *data, struct budget *budget);
