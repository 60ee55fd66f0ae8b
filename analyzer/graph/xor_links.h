/*
 * Lists whose nodes have one link for both ways: the XOR of the addresses of
 * the node before and the node behind.
 *
 *	first           second            third             last
 *	| 0 ^ second |  | first ^ third | | second ^ last | | third ^ 0 |
 *
 * The first link is an address as it is, so of a list that is held by its
 * first node the second is known. From there on, a link is followed if it leads
 * to where a block of about that size begins. Numbers that are small do so by
 * chance; therefore a list counts only if it ends as it must: by a link that is
 * exactly the address of the node before.
 */
#ifndef ANALYZER_GRAPH_XOR_LINKS_H
#define ANALYZER_GRAPH_XOR_LINKS_H

#include "analyzer/graph/disguises.h"

/* Call found with each link that leads to a wanted one, and where it stands. */
struct error *xor_links_find(const struct disguises_input *input,
			     struct error *(*found)(void *data, uint64_t place,
						    allocation_id target),
			     void *data);

#endif
