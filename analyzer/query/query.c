#include "analyzer/query/query.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"

#include <string.h>

void set_query_deinit(struct set_query *query)
{
	free(query->terms);
}

static struct error *add_term(struct set_query *query,
			      enum set_operator operator)
{
	if (!LIST_GROW(query->terms, query->term_count))
		return &error_no_memory;
	query->terms[query->term_count++] =
		(struct query_term){ .operator= operator};
	return NULL;
}

/* A name that is not known now may be one that `let` gave. */
static void take_set(struct set_query *query, struct query_term *term,
		     const char *word)
{
	term->set = set_find(word);
	if (!term->set)
		term->set = &set_named;
	term->arguments.name = word;
	if (!query->set)
		query->set = term->set;
}

static struct error *take_kind(struct query_term *term, const char *word)
{
	if (term->set->ranges)
		return error_create(ERROR_USAGE,
				    "'%s' takes no signature: it is no set of "
				    "allocations",
				    term->set->name);
	return kind_parse(word, &term->kind);
}

static const struct operator_name {
	const char *name;
	enum set_operator operator;
} operator_names[] = {
	{ "and", OPERATOR_AND },
	{ "or", OPERATOR_OR },
	{ "minus", OPERATOR_MINUS },
};

enum { OPERATORS = sizeof(operator_names) / sizeof(*operator_names) };

static const struct operator_name *find_operator(const char *word)
{
	for (size_t i = 0; i < OPERATORS; i++)
		if (strcmp(word, operator_names[i].name) == 0)
			return &operator_names[i];
	return NULL;
}

static struct error *one_word_too_many(const char *word)
{
	_cleanup_(free) char *escaped = escape_text(word);

	if (!escaped)
		return &error_no_memory;
	return error_create(ERROR_USAGE,
			    "'%s' is one word too many: a set takes one "
			    "signature",
			    escaped);
}

struct error *query_take_word(struct set_query *query, const char *word)
{
	const struct operator_name *operator= find_operator(word);
	struct error *error = NULL;
	struct query_term *term;

	if (query->term_count == 0)
		error = add_term(query, OPERATOR_OR);
	if (error)
		return error;
	term = &query->terms[query->term_count - 1];
	if (!term->set) {
		take_set(query, term, word);
		return NULL;
	}
	if (term->argument_count < set_argument_count(term->set))
		return parse_address(
			word, &term->arguments.values[term->argument_count++]);
	if (operator&& !term->set->ranges)
		return add_term(query, operator->operator);
	if (term->kind.choice == KIND_ANY)
		return take_kind(term, word);
	return one_word_too_many(word);
}

struct error *query_take_minimum(struct set_query *query, const char *word)
{
	uint64_t size = 0;
	struct error *error = parse_size(word, &size);

	if (!error && size > query->minimum_size)
		query->minimum_size = size;
	return error;
}

struct error *query_take_maximum(struct set_query *query, const char *word)
{
	uint64_t size = 0;
	struct error *error = parse_size(word, &size);

	if (!error && (!query->has_maximum || size < query->maximum_size)) {
		query->has_maximum = true;
		query->maximum_size = size;
	}
	return error;
}

struct error *query_take_size(struct set_query *query, const char *word)
{
	struct error *error = query_take_minimum(query, word);

	return error ? error : query_take_maximum(query, word);
}

static const struct sort_name {
	const char *name;
	enum sort_key key;
} sort_names[] = {
	{ "count", SORT_COUNT },
	{ "bytes", SORT_BYTES },
	{ "address", SORT_ADDRESS },
	{ "retained", SORT_RETAINED },
};

enum { SORT_NAMES = sizeof(sort_names) / sizeof(*sort_names) };

static const char *sort_name(const void *data, size_t number)
{
	return number < SORT_NAMES ? sort_names[number].name : NULL;
}

struct error *query_take_sort(struct set_query *query, const char *word)
{
	const char *nearest = nearest_word(word, sort_name, NULL);

	for (size_t i = 0; i < SORT_NAMES; i++) {
		if (strcasecmp(word, sort_names[i].name) == 0) {
			query->sort = sort_names[i].key;
			return NULL;
		}
	}
	if (nearest)
		return error_unknown("order", word, nearest);
	return error_not(word, "an order: count, bytes, address or retained");
}

struct error *query_take_limit(struct set_query *query, const char *word)
{
	struct error *error = parse_count(word, &query->limit);

	if (!error && query->limit == 0)
		return error_create(ERROR_USAGE,
				    "a limit of 0 leaves nothing to show");
	return error;
}

struct error *query_take_operation(struct set_query *query, const char *word)
{
	if (strcmp(word, "assign") == 0)
		query->operation = OPERATION_ASSIGN;
	else if (strcmp(word, "subtract") == 0)
		query->operation = OPERATION_SUBTRACT;
	else
		return error_not(word, "a set operation: assign or subtract");
	return NULL;
}

static struct error *check_term(const struct query_term *term, bool is_first)
{
	if (!term->set)
		return error_create(ERROR_USAGE,
				    is_first ? "a set is missing, as 'used' or "
					       "'leaked'"
					     : "a set is missing at the end");
	if (term->argument_count < set_argument_count(term->set))
		return error_create(ERROR_USAGE, "'%s' needs more words: %s %s",
				    term->set->name, term->set->name,
				    term->set->arguments);
	if (!is_first && term->set->ranges)
		return error_create(ERROR_USAGE,
				    "'%s' is no set of allocations: it cannot "
				    "be combined with one",
				    term->set->name);
	return NULL;
}

struct error *query_check(const struct set_query *query)
{
	static const struct query_term none;
	struct error *error = NULL;

	if (query->term_count == 0)
		return check_term(&none, true);
	for (size_t i = 0; !error && i < query->term_count; i++)
		error = check_term(&query->terms[i], i == 0);
	return error;
}

/* Before anything is built: mistyped words are told of at once. */
static struct error *check_names(const struct analysis *analysis,
				 const struct set_query *query)
{
	for (size_t i = 0; i < query->term_count; i++) {
		const char *name = query->terms[i].arguments.name;

		if (query->terms[i].set == &set_named &&
		    !named_sets_find(analysis_named_sets(analysis), name))
			return set_unknown(analysis, name);
	}
	return NULL;
}

static void narrow_by_size(const struct analysis *analysis,
			   const struct set_query *query,
			   struct bitmap *members)
{
	const struct allocation_index *index = analysis_index(analysis);

	if (query->minimum_size == 0 && !query->has_maximum)
		return;
	bitmap_for_each(id, members)
		if (!query_takes_size(
			    query, allocation_size(index, (allocation_id)id)))
			bitmap_clear(members, id);
}

/* Add the term's members to ret, which has none yet. */
static struct error *select_term(struct analysis *analysis,
				 const struct set_query *query,
				 const struct query_term *term,
				 struct members *ret)
{
	struct error *error;

	if (term->set->walk)
		error = term->set->walk(analysis, &term->arguments, ret);
	else
		error = term->set->select(analysis, &term->arguments,
					  &ret->set);
	if (error)
		return error;
	return kind_narrow(analysis, &term->kind, query->allow_missing,
			   &ret->set);
}

static struct error *combine(struct analysis *analysis,
			     const struct set_query *query,
			     const struct query_term *term,
			     struct members *members)
{
	_cleanup_(members_deinit) struct members others = { 0 };
	struct error *error = members_init(&others, members->set.count,
					   analysis_account(analysis));

	if (!error)
		error = select_term(analysis, query, term, &others);
	if (error)
		return error;
	/* Of several sets, none tells an order of all. */
	members->is_ordered = false;
	switch (term->operator) {
	case OPERATOR_OR:
		bitmap_or(&members->set, &others.set);
		break;
	case OPERATOR_AND:
		bitmap_and(&members->set, &others.set);
		break;
	case OPERATOR_MINUS:
		bitmap_minus(&members->set, &others.set);
		break;
	}
	return NULL;
}

static struct error *select_terms(struct analysis *analysis,
				  const struct set_query *query,
				  struct members *members)
{
	struct error *error =
		select_term(analysis, query, &query->terms[0], members);

	for (size_t i = 1; !error && i < query->term_count; i++)
		error = combine(analysis, query, &query->terms[i], members);
	if (!error)
		narrow_by_size(analysis, query, &members->set);
	return error;
}

/* What a set operation makes of the set `derived`. */
static struct error *derive(struct analysis *analysis,
			    const struct set_query *query,
			    const struct bitmap *members)
{
	struct named_sets *sets = analysis_named_sets(analysis);
	const struct bitmap *before = named_sets_find(sets, DERIVED_SET);
	struct bitmap after;
	struct error *error;

	if (query->operation == OPERATION_NONE)
		return NULL;
	error = bitmap_init(&after, members->count, analysis_account(analysis));
	if (error)
		return error;
	if (query->operation == OPERATION_ASSIGN) {
		bitmap_copy(&after, members);
	} else if (before) {
		bitmap_copy(&after, before);
		bitmap_minus(&after, members);
	}
	return named_sets_assign(sets, DERIVED_SET, &after);
}

static struct error *need_stages(struct analysis *analysis,
				 const struct set_query *query)
{
	struct error *error = check_names(analysis, query);

	for (size_t i = 0; !error && i < query->term_count; i++)
		error = analysis_need(analysis, query->terms[i].set->needs);
	return error;
}

struct error *query_select(struct analysis *analysis,
			   const struct set_query *query, struct members *ret)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	struct error *error = need_stages(analysis, query);

	if (!error)
		error = members_init(&members,
				     allocation_count(analysis_index(analysis)),
				     analysis_account(analysis));
	if (!error)
		error = select_terms(analysis, query, &members);
	if (!error)
		error = derive(analysis, query, &members.set);
	if (error)
		return error;
	*ret = members;
	members = (struct members){ 0 };
	return NULL;
}

/* Larger ones first, equal ones by address. */
static int compare_sizes(const void *a, const void *b)
{
	const struct range *left = a, *right = b;

	if (left->size != right->size)
		return left->size < right->size ? 1 : -1;
	return (left->start > right->start) - (left->start < right->start);
}

struct error *query_collect(struct analysis *analysis,
			    const struct set_query *query, struct ranges *ret)
{
	struct ranges ranges = { 0 };
	const struct set_arguments *arguments = &query->terms[0].arguments;
	struct error *error = analysis_need(analysis, query->set->needs);
	size_t count = 0;

	if (!error)
		error = query->set->ranges->collect(analysis, arguments,
						    &ranges);
	if (error) {
		ranges_deinit(&ranges);
		return error;
	}
	for (size_t i = 0; i < ranges.count; i++)
		if (query_takes_size(query, ranges.list[i].size))
			ranges.list[count++] = ranges.list[i];
	ranges.count = count;
	if (query->sort == SORT_BYTES && count)
		qsort(ranges.list, count, sizeof(*ranges.list), compare_sizes);
	*ret = ranges;
	return NULL;
}

struct set_total allocations_total(const struct allocation_index *index,
				   const struct bitmap *members)
{
	struct set_total total = { 0 };

	bitmap_for_each(id, members) {
		total.count++;
		total.bytes += allocation_size(index, (allocation_id)id);
	}
	return total;
}

struct set_total ranges_total(const struct ranges *ranges)
{
	struct set_total total = { .count = ranges->count };

	for (size_t i = 0; i < ranges->count; i++)
		total.bytes += ranges->list[i].size;
	return total;
}
