#include "analyzer/query/query.h"

#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "analyzer/query/extension.h"

#include <string.h>

void set_query_deinit(struct set_query *query)
{
	free(query->terms);
	reference_limits_deinit(&query->limits);
	extension_rules_deinit(&query->extensions);
}

static struct error *add_term(struct set_query *query, enum set_operator operation)
{
	return LIST_APPEND(query->terms, query->term_count,
			   (struct query_term){ .operation = operation });
}

/* A name that is not known now may be one that `let` gave. */
static void take_set(struct set_query *query, struct query_term *term, const char *word)
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
	if (!*word)
		return error_create(ERROR_USAGE,
				    "a signature is an empty word; leave it out to take all");
	if (term->set->ranges && query_is_operator(word))
		return error_create(
			ERROR_USAGE,
			"'%s' is not a set of allocations and cannot be combined with one",
			term->set->name);
	if (term->set->ranges)
		return error_create(ERROR_USAGE,
				    "'%s' takes no signature: it is not a set of allocations",
				    term->set->name);
	return kind_parse(word, &term->kind);
}

/* A word for each of several values; the table ends with a NULL. */
struct choice {
	const char *name;
	unsigned int value;
};

static const char *choice_name(const void *data, size_t number)
{
	return ((const struct choice *)data)[number].name;
}

/* Find the word in any case; what and hint are for messages. */
static struct error *choose(const char *word, const struct choice *choices, const char *what,
			    const char *hint, unsigned int *ret)
{
	const char *nearest;

	for (const struct choice *choice = choices; choice->name; choice++) {
		if (strcasecmp(choice->name, word) == 0) {
			*ret = choice->value;
			return NULL;
		}
	}
	nearest = nearest_word(word, choice_name, choices);
	return nearest ? error_unknown(what, word, nearest) : error_not(word, hint);
}

static const struct choice operators[] = {
	{ "and", OPERATOR_AND },
	{ "or", OPERATOR_OR },
	{ "minus", OPERATOR_MINUS },
	{ NULL },
};

static const struct choice *find_operator(const char *word)
{
	for (const struct choice *choice = operators; choice->name; choice++)
		if (strcmp(word, choice->name) == 0)
			return choice;
	return NULL;
}

bool query_is_operator(const char *word)
{
	return find_operator(word) != NULL;
}

const char *query_operator_name(size_t number)
{
	return number < COUNT_OF(operators) ? operators[number].name : NULL;
}

/* If an operator is mistyped, it or the word behind it is unexpected. */
static struct error *one_word_too_many(const struct query_term *term, const char *word)
{
	_cleanup_(free) char *escaped = escape_text(word);

	TRY_MEMORY(escaped);
	for (size_t i = 0; i < 2; i++) {
		const char *typed = i ? term->kind.word : word;
		const char *nearest = nearest_word(typed, choice_name, operators);

		if (nearest)
			return error_unknown("word between sets", typed, nearest);
	}
	return error_create(ERROR_USAGE, "unexpected word '%s': a set takes one signature",
			    escaped);
}

static struct error *take_argument(struct query_term *term, const char *word)
{
	size_t number = term->argument_count++;

	if (!is_address(word) && set_argument_is_offset(term->set, number))
		return error_not(word, "an offset in hexadecimal");
	return parse_address(word, &term->arguments.values[number]);
}

struct error *query_take_word(struct set_query *query, const char *word)
{
	const struct choice *operation = find_operator(word);
	struct query_term *term;

	if (query->term_count == 0)
		TRY(add_term(query, OPERATOR_OR));
	term = &query->terms[query->term_count - 1];
	if (!term->set && operation)
		return error_create(ERROR_USAGE, "a set is missing in front of '%s'", word);
	if (!term->set) {
		take_set(query, term, word);
		return NULL;
	}
	if (term->argument_count < set_argument_count(term->set))
		return take_argument(term, word);
	if (operation && !term->set->ranges)
		return add_term(query, (enum set_operator)operation->value);
	if (term->kind.choice == KIND_ANY)
		return take_kind(term, word);
	return one_word_too_many(term, word);
}

struct error *query_take_minimum(struct set_query *query, const char *word)
{
	uint64_t size = 0;

	TRY(parse_size(word, &size));
	if (size > query->minimum_size)
		query->minimum_size = size;
	return NULL;
}

struct error *query_take_maximum(struct set_query *query, const char *word)
{
	uint64_t size = 0;

	TRY(parse_size(word, &size));
	if (!query->has_maximum || size < query->maximum_size) {
		query->has_maximum = true;
		query->maximum_size = size;
	}
	return NULL;
}

struct error *query_take_size(struct set_query *query, const char *word)
{
	query->size_word = word[strspn(word, "0123456789")] ? NULL : word;
	TRY(query_take_minimum(query, word));
	return query_take_maximum(query, word);
}

struct error *query_take_sort(struct set_query *query, const char *word)
{
	static const struct choice orders[] = {
		{ "count", SORT_COUNT },
		{ "bytes", SORT_BYTES },
		{ "size", SORT_BYTES }, /* as the column is called */
		{ "address", SORT_ADDRESS },
		{ "retained", SORT_RETAINED },
		{ NULL },
	};
	unsigned int key = query->sort;
	struct error *error = choose(word, orders, "order",
				     "a sort key: use count, bytes, address or retained", &key);

	query->sort = (enum sort_key)key;
	return error;
}

struct error *query_take_limit(struct set_query *query, const char *word)
{
	TRY(parse_count(word, &query->limit));
	if (query->limit == 0)
		return error_create(ERROR_USAGE, "a limit of 0 leaves nothing to show");
	return NULL;
}

struct error *query_take_operation(struct set_query *query, const char *word)
{
	if (strcasecmp(word, "assign") == 0)
		query->operation = OPERATION_ASSIGN;
	else if (strcasecmp(word, "subtract") == 0)
		query->operation = OPERATION_SUBTRACT;
	else
		return error_not(word, "a set operation: assign or subtract");
	return NULL;
}

struct error *skipped_parse(const char *word, unsigned int *skipped)
{
	static const struct choice places[] = {
		{ "used", SKIP_USED },
		{ "free", SKIP_FREE },
		{ "allocations", SKIP_USED | SKIP_FREE },
		{ "stacks", SKIP_STACKS },
		{ NULL },
	};
	unsigned int chosen = 0;
	struct error *error = choose(word, places, "place to skip",
				     "a place to skip: used, free, allocations or stacks", &chosen);

	*skipped |= chosen;
	return error;
}

struct error *query_take_sample(struct set_query *query, const char *word)
{
	TRY(parse_count(word, &query->sample));
	if (query->sample == 0)
		return error_create(ERROR_USAGE, "the base of a sample is 1 or more");
	return NULL;
}

static struct error *check_term(const struct query_term *term, bool is_first)
{
	size_t missing;

	if (!term->set)
		return error_create(ERROR_USAGE,
				    is_first ? "a set is missing, such as 'used' or 'leaked'"
					     : "a set is missing at the end");
	missing = set_argument_count(term->set) - term->argument_count;
	if (missing > 0)
		return error_create(ERROR_USAGE, "%s missing in '%s %s'",
				    missing == 1 ? "a word is" : "words are", term->set->name,
				    term->set->arguments);
	if (!is_first && term->set->ranges)
		return error_create(
			ERROR_USAGE,
			"'%s' is not a set of allocations and cannot be combined with one",
			term->set->name);
	return NULL;
}

/* Says why a query about ranges needs allocations; NULL: it does not. */
static const char *not_of_ranges(const struct set_query *query)
{
	if (query->limits.count)
		return "has no references to count";
	if (query->sample)
		return "has no members to sample";
	if (query->extensions.count || query->comment_extensions)
		return "cannot be extended";
	return query->skip_tainted || query->skip_unfavored ? "has no references to skip" : NULL;
}

struct error *query_check(struct set_query *query)
{
	static const struct query_term none;
	const struct range_kind *ranges = query->set ? query->set->ranges : NULL;
	bool by_retained = query->sort == SORT_RETAINED;

	if (!query->term_count)
		TRY(check_term(&none, true));
	for (size_t i = 0; i < query->term_count; i++)
		TRY(check_term(&query->terms[i], i == 0));
	if (query->operation != OPERATION_NONE && ranges)
		return error_create(ERROR_USAGE,
				    "'%s' is not a set of allocations: it cannot become 'derived'",
				    query->set->name);
	if (by_retained && ranges)
		return error_create(
			ERROR_USAGE,
			"'%s' cannot be sorted by retained size: only allocations have one",
			query->set->name);
	if (by_retained && (query->skip_tainted || query->skip_unfavored))
		return error_create(
			ERROR_USAGE,
			"retained size is computed from all references: --sort-by retained cannot be combined with --skip-tainted-references or --skip-unfavored-references");
	if (query->skipped && !(ranges && ranges->skips))
		return error_create(
			ERROR_USAGE,
			"'%s' does not take --skip, which is for sets that search memory, such as 'pointers'",
			query->terms[0].arguments.name);
	TRY(extension_rules_check(&query->extensions));
	if (ranges && not_of_ranges(query))
		return error_create(ERROR_USAGE, "'%s' %s: it is not a set of allocations",
				    query->set->name, not_of_ranges(query));
	return NULL;
}

static struct error *narrow_by_size(const struct analysis *analysis, const struct set_query *query,
				    struct members *members)
{
	const struct allocation_index *index = analysis_index(analysis);
	struct member_comment comment = { .kind = COMMENT_HEXADECIMAL,
					  .from = NO_ALLOCATION,
					  .to = NO_ALLOCATION,
					  .state = query->size_word };
	uint64_t other = 0; /* the value if the word was meant as hexadecimal before */
	bool any = false;

	if (query->minimum_size == 0 && !query->has_maximum)
		return NULL;
	if (query->size_word)
		error_destroy(parse_address(query->size_word, &other));
	bitmap_for_each(id, &members->set) {
		uint64_t size = allocation_size(index, (allocation_id)id);

		if (query_takes_size(query, size)) {
			any = true;
			continue;
		}
		bitmap_clear(&members->set, id);
		if (size == other && comment.to == NO_ALLOCATION)
			comment.to = (allocation_id)id;
	}
	return any || comment.to == NO_ALLOCATION ? NULL : members_comment(members, comment);
}

/* A word that is no class may be a set without an operator in front of it. */
static struct error *narrow_by_kind(struct analysis *analysis, const struct set_query *query,
				    const struct query_term *term, struct bitmap *members)
{
	const struct named_sets *named = analysis_named_sets(analysis);
	const struct kind *kind = &term->kind;
	struct error *error = kind_narrow(analysis, kind, query->allow_missing, members);

	if (!error || error_code(error) != ERROR_USAGE || kind->choice != KIND_NAMED ||
	    (!set_find(kind->word) && !named_sets_find(named, kind->word)))
		return error;
	error_destroy(error);
	return error_create(
		ERROR_USAGE,
		"'%s' is a set, not a class: put 'and', 'or' or 'minus' between two sets",
		kind->word);
}

/* Only STATE_FREE has no set: it is everything unused. */
static void select_state(const struct analysis *analysis, enum live_state state, struct bitmap *ret)
{
	const struct bitmap *members = liveness_set(analysis, state);

	if (members) {
		bitmap_copy(ret, members);
	} else if (state == STATE_FREE) {
		bitmap_fill(ret);
		bitmap_minus(ret, allocation_used(analysis_index(analysis)));
	}
}

/* Add the term's members to ret, which has none yet. */
static struct error *select_term(struct analysis *analysis, const struct set_query *query,
				 const struct query_term *term, struct reference_choice *choice,
				 struct members *ret)
{
	struct set_arguments arguments = term->arguments;

	arguments.set = term->set;
	arguments.references = choice;
	if (term->set->select)
		TRY(term->set->select(analysis, &arguments, ret));
	else
		select_state(analysis, term->set->state, &ret->set);
	/* Narrow by size first, which is quick; the result is the same for each term as for all. */
	TRY(narrow_by_size(analysis, query, ret));
	return narrow_by_kind(analysis, query, term, &ret->set);
}

static struct error *combine(struct analysis *analysis, const struct set_query *query,
			     const struct query_term *term, struct reference_choice *choice,
			     struct members *members)
{
	_cleanup_(members_deinit) struct members others = { 0 };

	TRY(members_init(&others, members->set.count, analysis_account(analysis)));
	TRY(select_term(analysis, query, term, choice, &others));
	TRY(members_add_comments(members, &others));
	/* Combining sets loses their order. */
	members->is_ordered = false;
	switch (term->operation) {
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

static struct error *select_members(struct analysis *analysis, const struct set_query *query,
				    struct members *members)
{
	_cleanup_(reference_choice_deinit) struct reference_choice choice;
	const struct extension extension = {
		.rules = &query->extensions,
		.choice = &choice,
		.allow_missing = query->allow_missing,
		.comment = query->comment_extensions,
		.note_states = query->note_states,
		.any_order = query->any_order || query->sort != SORT_DEFAULT,
	};

	reference_choice_init(&choice, analysis, query->skip_tainted, query->skip_unfavored);
	TRY(select_term(analysis, query, &query->terms[0], &choice, members));
	for (size_t i = 1; i < query->term_count; i++)
		TRY(combine(analysis, query, &query->terms[i], &choice, members));
	TRY(reference_limits_narrow(&query->limits, &choice, query->allow_missing, &members->set));
	if (query->sample)
		members_sample(members, query->sample);
	return !query->extensions.count ? NULL : extension_apply(&extension, members);
}

/* Apply a set operation to the set `derived`. */
static struct error *derive(struct analysis *analysis, const struct set_query *query,
			    const struct bitmap *members)
{
	struct named_sets *sets = analysis_named_sets(analysis);
	const struct bitmap *before = named_sets_find(sets, DERIVED_SET);
	struct bitmap after;

	if (query->operation == OPERATION_NONE)
		return NULL;
	TRY(bitmap_init(&after, members->count, analysis_account(analysis)));
	if (query->operation == OPERATION_ASSIGN) {
		bitmap_copy(&after, members);
	} else if (before) {
		bitmap_copy(&after, before);
		bitmap_minus(&after, members);
	}
	return named_sets_assign(sets, DERIVED_SET, &after);
}

/* Check the names of all sets first: mistyped words are reported before anything is built. */
static struct error *need_stages(struct analysis *analysis, const struct set_query *query)
{
	for (size_t i = 0; i < query->term_count; i++) {
		const char *name = query->terms[i].arguments.name;

		if (query->terms[i].set == &set_named &&
		    !named_sets_find(analysis_named_sets(analysis), name))
			return set_unknown(analysis, name);
	}
	for (size_t i = 0; i < query->term_count; i++)
		TRY(analysis_need(analysis, query->terms[i].set->needs));
	return NULL;
}

struct error *query_select(struct analysis *analysis, const struct set_query *query,
			   struct members *ret)
{
	_cleanup_(members_deinit) struct members members = { 0 };

	TRY(need_stages(analysis, query));
	TRY(members_init(&members, allocation_count(analysis_index(analysis)),
			 analysis_account(analysis)));
	TRY(select_members(analysis, query, &members));
	TRY(derive(analysis, query, &members.set));
	*ret = take(members);
	return NULL;
}

/* Larger ones first, equal ones by address. */
DEFINE_COMPARE(compare_sizes, struct range, DESCENDING(size), ASCENDING(start))

DEFINE_COMPARE(compare_starts, struct range, ASCENDING(start))

/* Hits are of one size, and in their order already. */
static void sort_ranges(const struct set_query *query, struct ranges *ranges)
{
	if (!ranges->list || !ranges->count)
		return;
	if (query->sort == SORT_BYTES)
		SORT(ranges->list, ranges->count, compare_sizes);
	else if (query->sort == SORT_ADDRESS)
		SORT(ranges->list, ranges->count, compare_starts);
}

/* Take away the ranges of other sizes. Hits are all of one size. */
static void narrow_ranges(const struct set_query *query, struct ranges *ranges)
{
	size_t count = 0;

	if (!ranges->list) {
		if (!query_takes_size(query, ranges->hits.size))
			ranges_deinit(ranges);
		return;
	}
	for (size_t i = 0; i < ranges->count; i++)
		if (query_takes_size(query, ranges->list[i].size))
			ranges->list[count++] = ranges->list[i];
	ranges->count = count;
}

struct error *query_collect(struct analysis *analysis, const struct set_query *query,
			    struct ranges *ret)
{
	struct set_arguments arguments = query->terms[0].arguments;

	arguments.set = query->set;
	arguments.skipped = query->skipped;
	TRY(analysis_need(analysis, query->set->needs));
	TRY(ranges_collect(analysis, query->set->ranges, &arguments, ret));
	narrow_ranges(query, ret);
	sort_ranges(query, ret);
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
	struct set_total total = { .count = ranges_found(ranges) };

	total.bytes = ranges->hits.count * ranges->hits.size;
	for (size_t i = 0; ranges->list && i < ranges->count; i++)
		total.bytes += ranges->list[i].size;
	return total;
}
