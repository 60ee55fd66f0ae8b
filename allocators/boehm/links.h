/*
 * Links of free objects, in a dump that does not fit into memory.
 *
 * Objects that the program freed one by one are linked in any order: to follow a list reads a page
 * of the dump for each. So all links are noted first, in order, and the lists are followed among
 * these, in memory.
 */
#ifndef ALLOCATORS_BOEHM_LINKS_H
#define ALLOCATORS_BOEHM_LINKS_H

#include "allocators/boehm/boehm.h"

/*
 * Note what the first words of all small objects name, 4 bytes for each object, if the dump does
 * not fit into memory. The caller releases *ret. It is empty if there is no need, and boehm_link()
 * reads the dump then.
 */
struct error *boehm_note_links(const struct collector *collector,
			       const struct heap_context *context, struct memory *ret);

/* What the first word of the object names; false if it is not in the dump. */
bool boehm_link(const struct memory *links, struct view *view, uint64_t object, uint64_t number,
		uint64_t *ret);

#endif
