/*
 * Files of modules of which the dump has no build-id, as it lacks their first page, where that is:
 * some that write cores, as qemu, leave out all that cannot be written. What the dump does have of
 * a module is compared to the file instead.
 */
#pragma once

#include "analyzer/image/mapped_file.h"

/*
 * The program headers of the module at base, from its file: false if that is not at hand, or is not
 * the module's.
 *
 * The file is taken for the module's if its dynamic section is, which has the places and sizes of
 * its tables: symbols, names, hashes, relocations. A static program must begin where the kernel
 * started it, and have the words of its data that no program writes to.
 */
bool matched_headers_read(const struct image *image, const struct loaded *loaded, uint64_t base,
			  struct module_headers *ret);
