/*
 * A module's file as far as the dump has it in memory.
 *
 * Where the file itself is not at hand, what names and call frames need of it may be in the dump:
 * dynamic symbols and unwinding tables. They are put where they stand in the file, with a table of
 * sections, so that all that reads files reads this one. The rest of it is zeros.
 */
#ifndef ANALYZER_IMAGE_MAPPED_FILE_H
#define ANALYZER_IMAGE_MAPPED_FILE_H

#include "analyzer/image/image.h"

/*
 * The file of the module from base, where its ELF header is, to end. It is mapped, with *ret_size
 * bytes; NULL: the dump does not have enough of it.
 */
struct error *mapped_file_create(const struct image *image, uint64_t base, uint64_t end,
				 uint8_t **ret, size_t *ret_size);

#endif
