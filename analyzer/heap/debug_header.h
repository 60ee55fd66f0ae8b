/*
 * The header that a debugging allocator puts before an object in its block: who allocated it. A
 * slot of the contract, allocator.h, says which allocators do.
 *
 *	| header: file, line, size | object ...
 *	block                      object
 */
#pragma once

#include "analyzer/image/image.h"

struct debug_header {
	uint64_t file; /* the address of its name */
	uint32_t line;
	uint64_t object, size; /* address; bytes as asked for */
};

/* The header of the allocation at address; false if it has none. */
bool debug_header_read(const struct image *image, uint64_t address, struct debug_header *ret);

/* "app.c:12", to be freed; NULL if the name is not there. */
char *debug_header_text(const struct image *image, const struct debug_header *header);
