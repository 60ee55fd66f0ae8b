/*
 * What the dynamic loader keeps in the heap.
 */
#ifndef ANALYZER_CLASSIFY_LOADER_H
#define ANALYZER_CLASSIFY_LOADER_H

#include "analyzer/classify/reader.h"

/* A link map has been larger than that since glibc 2.3. */
enum { LINK_MAP_LEAST_SIZE = 0x300 };

/*
 * Whether an allocation is a struct link_map, of which size bytes are at hand. glibc,
 * include/link.h:
 *
 *	| address | name | dynamic section | next | previous | real | ...
 *
 * where real is the link map itself.
 */
bool is_link_map(const struct reader *reader, struct memory_range range, const uint8_t *bytes,
		 uint64_t size);

#endif
