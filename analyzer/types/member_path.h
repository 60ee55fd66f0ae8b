/*
 * The path into a value of a type, as ".entries[3].key".
 */
#pragma once

#include "analyzer/program/debug/type_table.h"

#include <stdio.h>

/*
 * Print the path from the start of a value to the offset, as far as members and elements cover it,
 * and "+0x18" for the rest of it. Returns the type of what the path leads to.
 */
type_number member_path_print(const struct type_table *table, type_number type, uint64_t offset,
			      FILE *out);
