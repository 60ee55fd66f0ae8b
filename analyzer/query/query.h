/*
 * A set as a command asks for it: which one, narrowed how, in what order.
 *
 *	incoming 55d0c0ffee10 app::Session minus big --min-size 20
 *	set      argument     kind         next term size
 *
 * A term is a set with its arguments and a kind. Terms are combined from left to right by `and`,
 * `or` and `minus`. What comes of that is narrowed by size, by counts of references and by a
 * sample, and then extended, in this order.
 */
#pragma once

#include "analyzer/query/extension_rules.h"
#include "analyzer/query/kind.h"
#include "analyzer/query/limits.h"
#include "analyzer/query/set.h"

enum set_operator { OPERATOR_OR, OPERATOR_AND, OPERATOR_MINUS };

struct query_term {
	enum set_operator operation; /* with what is left of it */
	const struct set *set;
	struct set_arguments arguments;
	size_t argument_count; /* of those given */
	struct kind kind;
};

/* How a query changes the set `derived`. */
enum set_operation { OPERATION_NONE, OPERATION_ASSIGN, OPERATION_SUBTRACT };

/* All zero: nothing asked for yet. Words are borrowed. */
struct set_query {
	struct query_term *terms;
	size_t term_count;
	const struct set *set; /* of the first term; NULL: none yet */
	uint64_t minimum_size;
	uint64_t maximum_size;
	const char *size_word; /* of --size, in decimal; NULL: none */
	enum sort_key sort;
	uint64_t limit; /* of members, or lines of a summary; 0: none */
	enum set_operation operation;
	unsigned int skipped; /* enum skipped_place, of a search */
	bool has_maximum;
	bool full_names;	 /* not short_name()'s */
	bool allow_missing;	 /* kinds that nothing is of are no mistake */
	bool comment_extensions; /* say how each member was reached */
	bool note_states;	 /* keep in which state that was */
	struct reference_limits limits;
	bool skip_tainted, skip_unfavored; /* such references */
	uint64_t sample;		   /* its base; 0: take all */
	struct extension_rules extensions;
	bool any_order; /* only which are members matters, which is quicker */
};

void set_query_deinit(struct set_query *query);
DEFINE_DEINIT(set_query_deinit, struct set_query)

/* Take the next word: a set, its arguments, a kind, an operator. */
struct error *query_take_word(struct set_query *query, const char *word);
struct error *query_take_size(struct set_query *query, const char *word);
struct error *query_take_minimum(struct set_query *query, const char *word);
struct error *query_take_maximum(struct set_query *query, const char *word);
struct error *query_take_sort(struct set_query *query, const char *word);
struct error *query_take_limit(struct set_query *query, const char *word);
struct error *query_take_operation(struct set_query *query, const char *word);
struct error *query_take_sample(struct set_query *query, const char *word);

/* The word behind a --skip, added to skipped: a mask of enum skipped_place. */
struct error *skipped_parse(const char *word, unsigned int *skipped);

/* True if the word is an operator between two sets; and the number-th operator, or NULL. */
bool query_is_operator(const char *word);
const char *query_operator_name(size_t number);

/* Complain about what is missing, once all words were taken. */
struct error *query_check(struct set_query *query);

static inline bool query_takes_size(const struct set_query *query, uint64_t size)
{
	return size >= query->minimum_size && (!query->has_maximum || size <= query->maximum_size);
}

/*
 * The allocations asked for, in ret, which is initialised. Builds what the sets need. The limit is
 * left to those who show them.
 */
struct error *query_select(struct analysis *analysis, const struct set_query *query,
			   struct members *ret);

/* The ranges asked for, in their order, the limit not applied. */
struct error *query_collect(struct analysis *analysis, const struct set_query *query,
			    struct ranges *ret);

struct set_total allocations_total(const struct allocation_index *index,
				   const struct bitmap *members);
struct set_total ranges_total(const struct ranges *ranges);
