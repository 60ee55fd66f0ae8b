/*
 * Types as debug information has them: the way into a variable to the member that covers an offset,
 * as ".entries[3].key". debug_visit_members() is in types.c, too.
 */
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text that ends early where it becomes too long. */
struct type_path {
	char text[512];
	size_t used;
};

/* The type of a variable or member. */
bool entry_type(Dwarf_Die *entry, Dwarf_Die *ret);

/* Add the way from the start of a value of the type to the offset. */
void type_path_add(struct type_path *path, Dwarf_Die *type, uint64_t offset);
