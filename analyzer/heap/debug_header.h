/*
 * What GC_debug_malloc() of the Boehm collector puts before an object: who made it. Programs
 * compiled with -DGC_DEBUG allocate all their objects so.
 *
 *	| file | line | size | mark | object ...
 *
 * The mark is a constant combined with the object's own address (struct oh in bdwgc's
 * include/private/dbg_mlc.h, the same from 7.2 on).
 */
#ifndef ANALYZER_HEAP_DEBUG_HEADER_H
#define ANALYZER_HEAP_DEBUG_HEADER_H

#include "analyzer/image/image.h"

enum { DEBUG_HEADER_SIZE = 32 };

struct debug_header {
	uint64_t file; /* the address of its name */
	uint32_t line;
	uint64_t size; /* of the object, as asked for */
};

/* The header of the allocation at address; false if it has none. */
bool debug_header_read(const struct image *image, uint64_t address, struct debug_header *ret);

/* "app.c:12", to be freed; NULL if the name is not there. */
char *debug_header_text(const struct image *image, const struct debug_header *header);

#endif
