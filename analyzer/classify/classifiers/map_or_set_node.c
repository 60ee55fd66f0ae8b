#include "analyzer/classify/classifier.h"

/*
 * A red-black tree, whose topmost node's parent is the container. libstdc++, <bits/stl_tree.h>; the
 * header is part of the container:
 *
 *	header	| colour | root | leftmost | rightmost | size |
 *	node	| colour | parent | left | right | element ...
 *
 * libc++, <__tree>; a node's parent is the address of what its left link is:
 *
 *	container | leftmost | root | size |
 *	node	  | left | right | parent | is black | element ...
 */
struct layout {
	uint64_t parent, left, right, colour; /* words from a node's start */
	int header;			      /* words from the header to the pointer to the root */
};

static const struct layout libstdcxx = { 1, 2, 3, 0, 1 };
static const struct layout libcxx = { 2, 0, 1, 3, 0 };

struct tree {
	const struct layout *layout;
	uint64_t header, root, size;
};

static uint64_t link_of(struct reader *reader, uint64_t node, uint64_t number)
{
	uint64_t word;

	return reader_word(reader, node + reader->word * number, &word) ? word : 0;
}

/* The child, if it is a node whose parent node is. */
static uint64_t child_of(struct reader *reader, const struct tree *tree, uint64_t node,
			 uint64_t number)
{
	uint64_t child = link_of(reader, node, number);
	struct memory_range range;

	if (child == 0 || reader_start(reader, child, &range) == NO_ALLOCATION ||
	    range_size(range) <= 3 * (uint64_t)reader->word ||
	    link_of(reader, child, tree->layout->parent) != node)
		return 0;
	return child;
}

static void claim(struct reader *reader, const struct tree *tree, uint64_t node)
{
	struct memory_range range;
	allocation_id id = reader_start(reader, node, &range);

	if (id != NO_ALLOCATION)
		reader_claim(reader, id, tree->header);
}

/*
 * Go around the whole tree, down by links that agree in both directions, and up the same way: no
 * node is found from two sides.
 */
static void claim_all(struct reader *reader, const struct tree *tree)
{
	const struct layout *layout = tree->layout;
	uint64_t node = tree->root, from = tree->header;

	while (node != tree->header && reader_step(reader)) {
		uint64_t parent = link_of(reader, node, layout->parent);
		uint64_t left = child_of(reader, tree, node, layout->left);
		uint64_t right = child_of(reader, tree, node, layout->right);
		uint64_t next = parent;

		if (from == parent) {
			claim(reader, tree, node);
			next = left ? left : right ? right : parent;
		} else if (from == left && right && left != right) {
			next = right;
		}
		from = node;
		node = next;
	}
}

/* True if the root is black and points back to the container, whose ends are the tree's. */
static bool is_tree(struct reader *reader, const struct tree *tree, uint64_t leftmost,
		    uint64_t rightmost)
{
	const struct layout *layout = tree->layout;
	struct memory_range range;

	return link_of(reader, tree->root, layout->parent) == tree->header &&
	       (link_of(reader, tree->root, layout->colour) & 0xff) == 1 &&
	       reader_start(reader, leftmost, &range) != NO_ALLOCATION &&
	       link_of(reader, leftmost, layout->left) == 0 &&
	       reader_start(reader, rightmost, &range) != NO_ALLOCATION &&
	       (tree->layout == &libcxx || link_of(reader, rightmost, layout->right) == 0) &&
	       (tree->size > 1 || (leftmost == tree->root && rightmost == tree->root));
}

static bool has_size(const struct reader *reader, uint64_t size)
{
	return size > 0 && size <= allocation_count(reader->index);
}

/* The container whose pointer to the root the reference may be, with the ends of its tree. */
static bool read_tree(const struct reader *reader, const struct reference *reference,
		      struct tree *ret, uint64_t *ret_leftmost, uint64_t *ret_rightmost)
{
	uint64_t words[5]; /* from the word before the reference on */

	if (!reference_words(reference, -1, 3, words))
		return false;
	if ((reader->cxx & LIBCXX) && has_size(reader, words[2]) &&
	    heap_bounds_hold(&reader->bounds, words[0])) {
		*ret = (struct tree){ &libcxx, reference->address, words[1], words[2] };
		*ret_leftmost = words[0];
		*ret_rightmost = words[1];
		return true;
	}
	if (!(reader->cxx & LIBSTDCXX) || !reference_words(reference, -1, 5, words) ||
	    !has_size(reader, words[4]) || (words[0] & 0xff) != 0 ||
	    !heap_bounds_hold(&reader->bounds, words[2]) ||
	    !heap_bounds_hold(&reader->bounds, words[3]))
		return false;
	*ret = (struct tree){ &libstdcxx, reference->address - reader->word, words[1], words[4] };
	*ret_leftmost = words[2];
	*ret_rightmost = words[3];
	return true;
}

static bool may_be_tree(const struct reader *reader, const struct reference *reference)
{
	uint64_t leftmost, rightmost;
	struct tree tree;

	return read_tree(reader, reference, &tree, &leftmost, &rightmost);
}

DEFINE_SUSPECT(suspect, may_be_tree)

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t leftmost, rightmost;
	struct tree tree;

	if (range_size(reference->range) > 3 * (uint64_t)reader->word &&
	    read_tree(reader, reference, &tree, &leftmost, &rightmost) &&
	    is_tree(reader, &tree, leftmost, rightmost))
		claim_all(reader, &tree);
}

/* The owner is the header: libstdc++'s has the tree's root behind it. */
static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	uint64_t words[5];
	uint64_t header = facts->owner;

	facts->unit = "elements";
	if (reader_words(reader, header, 5, words) &&
	    link_of(reader, words[1], libstdcxx.parent) == header)
		facts->length = words[4];
	else
		facts->length = link_of(reader, header, 1);
	/* The comparison of keys stands in front, in a word of its own. */
	facts->owner -= reader->word;
}

/* True if the reference is the parent's link down to the node. */
static bool is_link_down(struct reader *reader, const struct layout *layout, uint64_t node,
			 uint64_t owner, uint64_t address)
{
	uint64_t parent = link_of(reader, node, layout->parent);

	if (parent == owner)
		return address == owner + reader->word * (uint64_t)layout->header;
	return address == parent + reader->word * layout->left ||
	       address == parent + reader->word * layout->right;
}

static bool favors(struct reader *reader, struct memory_range range, uint64_t owner,
		   uint64_t address)
{
	return ((reader->cxx & LIBSTDCXX) &&
		is_link_down(reader, &libstdcxx, range.start, owner, address)) ||
	       ((reader->cxx & LIBCXX) &&
		is_link_down(reader, &libcxx, range.start, owner, address));
}

CLASSIFIER(map_or_set_node, "MapOrSetNode", "an element of a std::map, std::set or the like",
	   "a node of the std::map or std::set", .strength = STRENGTH_LINKED, .narrow = true,
	   .for_cxx = true, .walks = true, .match = match, .suspect = suspect, .tell = tell,
	   .favors = favors, .numbers = { .owner = 1 << 5, .own_halves = 1 << 0 });
