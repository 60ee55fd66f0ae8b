/*
 * A set as a command asks for it: which one, narrowed how, in what order.
 *
 *	incoming 55d0c0ffee10 app::Session --min-size 20 --sort-by bytes
 *	set      address      signature    size          order
 *
 * It is applied from left to right: the set, then sizes, then the signature.
 * What later comes to narrow or extend a set comes behind these.
 */
#ifndef ANALYZER_QUERY_QUERY_H
#define ANALYZER_QUERY_QUERY_H

#include "analyzer/query/set.h"

enum signature_choice {
	SIGNATURE_ANY,
	SIGNATURE_NONE,
	SIGNATURE_GIVEN,
	SIGNATURE_NAMED,   /* of a class, or of one derived from it */
	SIGNATURE_PATTERN, /* of that pattern, whatever its signature */
	SIGNATURE_NEITHER, /* without a signature and a pattern */
};

enum sort_key { SORT_DEFAULT, SORT_ADDRESS, SORT_COUNT, SORT_BYTES };

/* All zero: nothing asked for yet. */
struct set_query {
	const struct set *set;
	uint64_t address;
	enum signature_choice signature_choice;
	uint64_t signature;
	const char *signature_word; /* as it was typed; borrowed */
	uint64_t minimum_size;
	uint64_t maximum_size;
	enum sort_key sort;
	uint64_t limit; /* of members, or lines of a summary; 0: none */
	bool has_address, has_maximum;
	pattern_number pattern;
	bool full_names; /* not short_name()'s */
};

/* Take the next word: the set, its address, the signature. */
struct error *query_take_word(struct set_query *query, const char *word);
struct error *query_take_size(struct set_query *query, const char *word);
struct error *query_take_minimum(struct set_query *query, const char *word);
struct error *query_take_maximum(struct set_query *query, const char *word);
struct error *query_take_sort(struct set_query *query, const char *word);
struct error *query_take_limit(struct set_query *query, const char *word);

/* Complain about what is missing, once all words were taken. */
struct error *query_check(const struct set_query *query);

static inline bool query_takes_size(const struct set_query *query,
				    uint64_t size)
{
	return size >= query->minimum_size &&
	       (!query->has_maximum || size <= query->maximum_size);
}

/*
 * The allocations asked for, in ret, which is initialised. Builds what the set
 * needs. The limit is left to those who show them.
 */
struct error *query_select(struct analysis *analysis,
			   const struct set_query *query, struct bitmap *ret);

/* The ranges asked for, in their order, the limit not applied. */
struct error *query_collect(struct analysis *analysis,
			    const struct set_query *query, struct ranges *ret);

struct set_total {
	uint64_t count, bytes;
};

struct set_total allocations_total(const struct allocation_index *index,
				   const struct bitmap *members);
struct set_total ranges_total(const struct ranges *ranges);

#endif
