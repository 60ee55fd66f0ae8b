/*
 * Lists whose nodes have one link for both ways: the XOR of the addresses of the node before and
 * the node behind.
 *
 *	first           second            third             last
 *	| 0 ^ second |  | first ^ third | | second ^ last | | third ^ 0 |
 *
 * The first link is an address as it is, so of a list that is held by its first node the second is
 * known. From there on, a link is followed if it leads to where a block of about that size begins.
 * Numbers that are small do so by chance; therefore a list counts only if it begins and ends as it
 * must, by links that are exactly the address of the node behind, and of the one before, and has
 * two others in between: of one, the nodes before and behind may be any two that refer to it, as
 * children do to a parent.
 */
#ifndef ANALYZER_GRAPH_XOR_LINKS_H
#define ANALYZER_GRAPH_XOR_LINKS_H

#include "analyzer/base/array.h"
#include "analyzer/graph/disguise.h"
#include "analyzer/heap/address_filter.h"
#include "analyzer/image/view.h"

enum {
	XOR_MOST_SIZE = 1 << 12, /* of a node */
	XOR_SIZE_STEP = 16,	 /* malloc may give as much more than to others */
	XOR_UPPER = 32,		 /* bits of an address; 16 are left */
};

/* What nodes look like that are in use and before a wanted one. */
struct xor_nodes {
	bool sizes[XOR_MOST_SIZE / XOR_SIZE_STEP + 1];
	uint64_t no_bits;		 /* that links do not have */
	uint64_t uppers[(1 << 16) / 64]; /* of links: the upper bits */
};

void xor_nodes_init(struct xor_nodes *nodes, const struct disguises_input *input);

/* Whether a word of an allocation may be such a link; most have none. */
bool xor_nodes_may_be(const struct xor_nodes *nodes, const uint8_t *bytes, uint64_t size);

/*
 * For a few wanted allocations: what may be the node before one of them in such a list. Each is a
 * word of a wanted one that may be its link.
 */
struct xor_suspect {
	uint64_t start, size, link;
	size_t offset;
};

struct xor_suspects {
	const struct disguises_input *input;
	struct xor_nodes links; /* what these look like */
	ARRAY(struct xor_suspect) list;
	/* By size of the node before, in steps: at which offsets a suspect has its link. */
	uint16_t offsets[XOR_MOST_SIZE / XOR_SIZE_STEP + 2];
};

struct error *xor_suspects_init(struct xor_suspects *suspects, const struct disguises_input *input);
void xor_suspects_deinit(struct xor_suspects *suspects);
DEFINE_DEINIT(xor_suspects_deinit, struct xor_suspects)

/*
 * Whether a used allocation may be before a suspect: so are all that are, and hardly any others.
 * *view is for reading further nodes.
 */
bool xor_suspects_may_follow(const struct xor_suspects *suspects, struct view *view,
			     struct memory_range node);

/*
 * Call found with each link that leads to a wanted one, and where it stands. Of those in use, nodes
 * has all that may be such nodes, and is left with fewer; filter has the starts of all wanted ones.
 */
struct error *xor_links_find(const struct disguises_input *input, struct bitmap *nodes,
			     const struct address_filter *filter,
			     struct error *(*found)(void *data, uint64_t place,
						    allocation_id target),
			     void *data);

#endif
