/*
 * A module as the dump has it in memory: its program headers, and as much of its file as is there.
 *
 * Where the file itself is not at hand, what names and call frames need of it may be in the dump:
 * dynamic symbols and unwinding tables. They are put where they stand in the file, with a table of
 * sections, so that all that reads files reads this one. The rest of it is zeros.
 */
#pragma once

#include "analyzer/image/image.h"

#include <elf.h>

enum { MOST_PROGRAM_HEADERS = 256 };

struct module_headers {
	Elf64_Ehdr header;
	Elf64_Phdr segments[MOST_PROGRAM_HEADERS];
	size_t count;
	bool is_loaded; /* it has a segment to load, and so a bias: */
	uint64_t bias;	/* address less virtual address in the file */
};

/* The headers of the module whose first byte is at base; false if they are not all there. */
bool module_headers_read(const struct image *image, uint64_t base, struct module_headers *ret);

/* The first region that ends above address and begins below the end of a module; or NULL. */
const struct region *module_region_next(const struct image *image, uint64_t address, uint64_t end);

/* The address behind the last of its segments to load; 0: it has none. */
uint64_t module_headers_end(const struct module_headers *headers);

/* The first program header of that type (PT_...), or NULL. */
const Elf64_Phdr *module_headers_find(const struct module_headers *headers, uint32_t type);

/*
 * The file of the module from base, where its ELF header is, to end. It is mapped, with *ret_size
 * bytes; NULL: the dump does not have enough of it.
 */
struct error *mapped_file_create(const struct image *image, uint64_t base, uint64_t end,
				 uint8_t **ret, size_t *ret_size);
