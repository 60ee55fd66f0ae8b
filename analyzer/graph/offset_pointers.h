/*
 * Pointers that are kept as the distance from their own address to what they point at, such as
 * boost::interprocess::offset_ptr.
 *
 *	place                    place + word
 *	| ... | word | ... |     | what it points at ...
 *	<- a block of size ->
 *
 * Any small number is a distance to something near. So no such word counts by itself: a field does,
 * which is an offset in blocks of one size. There are two proofs:
 *
 *	In nearly all blocks of the size, it leads to where a used block begins, and distances
 *differ and some are negative. Sizes, counts and capacities of blocks that stand in a row lead to
 *	such places as well, but are positive.
 *
 *	It makes a list of blocks of that size that ends, of which hardly any is held otherwise.
 *
 * Fields are noted in one pass over memory in use, by words that lead to a wanted block. Then lists
 * are followed, or a sample of the blocks of that size is looked at.
 */
#pragma once

#include "analyzer/base/table.h"
#include "analyzer/graph/disguise.h"

enum { OFFSET_MOST_SIZE = 1 << 12 }; /* of a block with such fields */

struct offset_field {
	uint32_t size, offset;
	allocation_id first[4]; /* that it leads to: the lowest */
	bool is_list;		/* it is proven by lists, not by all blocks of the size */
};

struct offset_fields {
	HASH_TABLE(struct offset_field);
};

/* A word of a root that leads to a wanted block. */
struct offset_root {
	uint64_t place;
	allocation_id target;
};

struct offset_pointers {
	struct offset_fields fields;
	ARRAY(struct offset_root) roots;
	uint64_t root_misses; /* words that lead among these, but to no start */
	size_t proven;	      /* fields */
};

void offset_pointers_init(struct offset_pointers *pointers, struct memory_account *account);
void offset_pointers_deinit(struct offset_pointers *pointers);

struct error *offset_pointers_note(struct offset_pointers *pointers, uint64_t size, uint64_t offset,
				   allocation_id target);
struct error *offset_pointers_note_root(struct offset_pointers *pointers, struct offset_root root);

/* Add what another found. */
struct error *offset_pointers_join(struct offset_pointers *pointers,
				   const struct offset_pointers *other);

/* Find which fields hold such pointers, and forget all others. */
struct error *offset_pointers_prove(struct offset_pointers *pointers,
				    const struct disguises_input *input);

/*
 * Call found with each word of the allocation in a proven field, and what it leads to; unless the
 * allocation is part of a list, it must lead into one.
 */
typedef struct error *(*offset_pointer_found)(void *data, uint64_t place, allocation_id target);

struct error *offset_pointers_visit(const struct offset_pointers *pointers,
				    const struct disguises_input *input, allocation_id id,
				    bool is_part, offset_pointer_found found, void *data);

/*
 * Like offset_pointers_visit(), for words of roots that point to the first block of a list or tree,
 * if so few words point into the wanted allocations, which take span bytes, that chance hardly
 * explains them.
 */
struct error *offset_pointers_visit_roots(const struct offset_pointers *pointers,
					  const struct disguises_input *input, uint64_t span,
					  offset_pointer_found found, void *data);
