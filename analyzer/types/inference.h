/*
 * Infers, group by group, the types of targets that only a "void *", a member of a union or a
 * header leads to.
 *
 * Allocations that the same members of the same variable lead to, beside the same tag, are most
 * likely of one type. What it may be is known by evidence in the code (casts.h), by the members of
 * the union, or by the header that it begins with. Of these candidates a type is accepted if it
 * alone looks right in nearly all of them.
 *
 *	infer.c      groups of allocations, and what is assigned to them
 *	candidates.c what those of a group may be
 *	choice.c     which candidate they look like
 *	arrays.c     arrays of "void *", by what is in others
 *	within.c     the same for what stands within blocks
 *	embedded.c   what lists lead to whose links are members of it
 *	silent.c     those whose pointers are all null, by the others of their group
 *	shapes.c     structures to which nothing with a type leads, by their words alone
 */
#pragma once

#include "analyzer/types/typing_parts.h"

enum {
	SAMPLE = 100, /* of a group */
	ENOUGH = 10,  /* of it, to say anything */
	MOST_TESTS = 1 << 26,
	MOST_CANDIDATES = 1 << 10, /* of a group */
};

struct untyped {
	uint32_t group; /* its number */
	uint32_t size;	/* in words */
	allocation_id id;
};

/* All of one group, or those of one size. */
struct group {
	const struct untyped *items;
	size_t count;
	bool is_headed; /* of these the header is known */
};

/* A structure, by its size. */
struct sized {
	uint64_t size;
	type_number type;
};

/* Structures with a link at some place, of one window of sizes: see embedded.c. */
struct with_member {
	size_t first, count; /* of these */
	size_t looked_at;
};

/* A type that begins as another one does, which is its header. */
struct heir {
	type_number header, type;
};

/* How many of a sample a candidate fits. */
struct score {
	size_t right, confirmed, exact;
	size_t told;	 /* confirmed by more than "void *" and unions, which may lead anywhere */
	size_t known;	 /* pointers to what is known to be of the type that they say */
	size_t pointers; /* that lead to what is just as large as they say */
	size_t doubts;	 /* to what is larger */
	size_t parts;	 /* right only as a value that is cut short */
};

struct inference {
	struct typing *typing;
	struct casts casts;
	ARRAY(struct untyped) untyped;
	ARRAY(struct untyped) embedded; /* of which a member is known, or the first one */
	ARRAY(type_number) candidates;	/* of the group */
	size_t choice_count;		/* of these, the first are members of the union */
	size_t cast_count;		/* and the first are these, or what code takes it for */
	bool has_pointers;		/* a member of the union leads to an array of pointers */
	bool is_named;			/* the only one, by the tag */
	ARRAY(type_number) rivals;	/* structures of nothing but pointers that it may lead to */
	bool by_next_tag;		/* the second number beside a slot tells what it is */
	struct score chosen;		/* of the last one that was */
	ARRAY(struct score) scores;	/* of the candidates */
	ARRAY(struct heir) heirs;
	ARRAY(struct sized) structures; /* all, by size; once embedded ones are looked for */
	ARRAY(struct sized) sized;	/* of all these: */
	ARRAY(struct with_member) with_member;
	struct address_map windows; /* by a hash of link, size and place: their numbers */
	struct address_map headers; /* by type: where its heirs begin, which are looked for once */
	struct address_map groups;  /* by a hash of what all of one share: their numbers */
	struct votes votes;
	uint64_t tests; /* of an allocation and a candidate */
};

/* So many of a group are compared with candidates. */
static inline size_t sample_size(size_t count)
{
	return count < SAMPLE ? count : SAMPLE;
}

/* ---- infer.c */

/* The static structure that a pointer beside the slot leads to, such as a table of operations; or
 * 0.
 */
uint64_t inference_kind_beside(const struct typing *typing, const struct slot *slot,
			       uint64_t address);

/* Assign what was chosen, or, if that is NO_TYPE, what each by itself can only be. */
struct error *inference_assign_group(struct inference *inference, const struct group *group,
				     type_number type);

/* ---- candidates.c */

/* The slot that led to the allocation, of a value of the type; NULL: its type is not known. */
const struct slot *inference_slot_to(struct typing *typing, allocation_id id, uint64_t *ret_address,
				     type_number *ret_type);

/* Types that begin with the header are the heirs from ret on, as far as they name it. */
struct error *inference_find_heirs(struct inference *inference, type_number header, size_t *ret);

struct error *inference_add_candidate(struct inference *inference, type_number type,
				      bool is_choice);
struct error *inference_add_heirs(struct inference *inference, type_number header);

/*
 * Gather the possible targets of the slot at that place, and types that begin with such a
 * candidate.
 */
struct error *inference_gather_for_slot(struct inference *inference, const struct slot *slot,
					type_number type, uint64_t address, uint32_t place);

/* Gather the candidates of a group from one of its allocations. */
struct error *inference_gather_candidates(struct inference *inference, allocation_id id);

/* ---- choice.c */

/*
 * Test whether the allocation may have the type: it fits as one value, or with a tail, and
 * conforms.
 */
struct error *inference_test(const struct inference *inference, allocation_id id, type_number type,
			     struct score *score, enum type_fit *ret_fit);

/* True if the candidate of that number is accepted by its score, and better than all rivals. */
bool inference_is_chosen(const struct inference *inference, size_t number, size_t count,
			 bool is_headed);

/* The candidate of the group, or NO_TYPE. */
struct error *inference_choose(struct inference *inference, const struct group *group,
			       type_number *ret);

/*
 * The candidate that is just as large as the allocation, refers to a structure that is just as
 * large as it says, and is better than all others.
 */
struct error *inference_choose_for_one(struct inference *inference, allocation_id id,
				       type_number *ret);

/* ---- within.c */

/* Infer the targets, within blocks, of "void *" and members of unions. */
struct error *infer_inner(struct inference *inference);

/* Infer values within blocks that have a header. */
struct error *infer_regions(struct inference *inference);

/* ---- embedded.c */

/* Add a block in which a value of its known type stands to those that are looked at. */
struct error *inference_add_embedded(struct inference *inference, allocation_id id);

/* Infer the types of these. */
struct error *infer_embedded(struct inference *inference);

/* Find all structures, by size, once. */
struct error *inference_find_structures(struct inference *inference);

/* ---- shapes.c */

/* Infer what no pointer with a type leads to. */
struct error *infer_shapes(struct inference *inference);

/* ---- silent.c */

/* Give what says nothing the type of the others that the same members lead to. */
struct error *infer_silent(struct typing *typing);

/* ---- arrays.c */

/* Infer the elements of arrays of "void *", after everything else. */
struct error *infer_arrays(struct typing *typing);
