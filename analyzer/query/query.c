#include "analyzer/query/query.h"

#include "analyzer/base/text.h"
#include "analyzer/classify/short_name.h"
#include "analyzer/query/signatures.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static const char *pattern_name_of(const void *data, size_t number)
{
	return pattern_name_at(number);
}

/* The word behind %. */
static struct error *take_pattern(struct set_query *query, const char *name)
{
	query->signature_choice = SIGNATURE_PATTERN;
	query->pattern = pattern_find(name);
	if (query->pattern != NO_PATTERN)
		return NULL;
	return error_unknown("pattern", name,
			     nearest_word(name, pattern_name_of, NULL));
}

static struct error *take_signature(struct set_query *query, const char *word)
{
	if (!query->set->select)
		return error_create(ERROR_USAGE,
				    "'%s' takes no signature: it is no set of "
				    "allocations",
				    query->set->name);
	query->signature_word = word;
	if (strcmp(word, "-") == 0) {
		query->signature_choice = SIGNATURE_NONE;
		return NULL;
	}
	if (strcmp(word, "?") == 0) {
		query->signature_choice = SIGNATURE_NEITHER;
		return NULL;
	}
	if (word[0] == '%')
		return take_pattern(query, word + 1);
	if (is_address(word)) {
		query->signature_choice = SIGNATURE_GIVEN;
		return parse_address(word, &query->signature);
	}
	query->signature_choice = SIGNATURE_NAMED;
	return NULL;
}

struct error *query_take_word(struct set_query *query, const char *word)
{
	_cleanup_(free) char *escaped = NULL;

	if (!query->set)
		return set_find(word, &query->set);
	if (query->set->takes_address && !query->has_address) {
		query->has_address = true;
		return parse_address(word, &query->address);
	}
	if (query->signature_choice == SIGNATURE_ANY)
		return take_signature(query, word);
	escaped = escape_text(word);
	if (!escaped)
		return &error_no_memory;
	return error_create(ERROR_USAGE,
			    "'%s' is one word too many: a set takes one "
			    "signature",
			    escaped);
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
	return error_not(word, "an order: count, bytes or address");
}

struct error *query_take_limit(struct set_query *query, const char *word)
{
	struct error *error = parse_count(word, &query->limit);

	if (!error && query->limit == 0)
		return error_create(ERROR_USAGE,
				    "a limit of 0 leaves nothing to show");
	return error;
}

struct error *query_check(const struct set_query *query)
{
	if (!query->set)
		return error_create(ERROR_USAGE, "a set is missing, as 'used' "
						 "or 'leaked'");
	if (query->set->takes_address && !query->has_address)
		return error_create(ERROR_USAGE,
				    "'%s' takes the address of an allocation",
				    query->set->name);
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

static bool needs_patterns(const struct set_query *query)
{
	return query->signature_choice == SIGNATURE_PATTERN ||
	       query->signature_choice == SIGNATURE_NEITHER;
}

static void narrow_by_pattern(const struct analysis *analysis,
			      const struct set_query *query,
			      struct bitmap *members)
{
	const struct patterns *patterns = analysis_patterns(analysis);
	bool named = query->signature_choice == SIGNATURE_PATTERN;

	bitmap_for_each(number, members) {
		allocation_id id = (allocation_id)number;
		pattern_number pattern = patterns_of(patterns, id);
		bool taken = named ? pattern == query->pattern
				   : pattern == NO_PATTERN &&
					     !analysis_signature(analysis, id);

		if (!taken)
			bitmap_clear(members, id);
	}
}

/* Whether a used allocation has that signature. */
static bool is_borne(const struct analysis *analysis, uint64_t signature)
{
	const struct bitmap *used = allocation_used(analysis_index(analysis));

	bitmap_for_each(id, used)
		if (analysis_signature(analysis, (allocation_id)id) ==
		    signature)
			return true;
	return false;
}

/* A signature that nothing has is mistyped; 0 members would hide that. */
static struct error *narrow_to_signature(const struct analysis *analysis,
					 uint64_t signature,
					 struct bitmap *members)
{
	bool any = false;

	bitmap_for_each(id, members) {
		if (analysis_signature(analysis, (allocation_id)id) ==
		    signature)
			any = true;
		else
			bitmap_clear(members, id);
	}
	if (any || signature == 0 || is_borne(analysis, signature))
		return NULL;
	return error_create(ERROR_USAGE,
			    "no allocation has the signature %" PRIx64,
			    signature);
}

static struct error *narrow_to_class(struct analysis *analysis,
				     const char *name, struct bitmap *members)
{
	_cleanup_(class_filter_deinit) struct class_filter filter = { 0 };
	struct error *error = class_filter_init(&filter, analysis, name);
	bool any = false, taken = false;

	if (error)
		return error;
	bitmap_for_each(id, members) {
		uint64_t signature =
			analysis_signature(analysis, (allocation_id)id);

		error = class_filter_judge(&filter, signature, &taken);
		if (error)
			return error;
		any |= taken;
		if (!taken)
			bitmap_clear(members, id);
	}
	return any ? NULL : class_filter_check(&filter, analysis);
}

static bool has_identity(const struct analysis *analysis, allocation_id id,
			 const char *name)
{
	struct identity identity;

	return analysis_identity(analysis, id, &identity) &&
	       strcmp(identity.name, name) == 0;
}

/* The same for identity words; returns whether any allocation has that one. */
static bool narrow_to_identity(const struct analysis *analysis,
			       const char *name, struct bitmap *members)
{
	const struct bitmap *used = allocation_used(analysis_index(analysis));
	bool any = false;

	bitmap_for_each(id, members) {
		if (has_identity(analysis, (allocation_id)id, name))
			any = true;
		else
			bitmap_clear(members, id);
	}
	for (size_t id = bitmap_next(used, 0); !any && id < used->count;
	     id = bitmap_next(used, id + 1))
		any = has_identity(analysis, (allocation_id)id, name);
	return any;
}

/* A name is one of a signature, or else of an identity word. */
static struct error *narrow_to_name(struct analysis *analysis, const char *word,
				    struct bitmap *members)
{
	_cleanup_(bitmap_deinit) struct bitmap all = { 0 };
	_cleanup_(free) char *name = short_name(word);
	struct error *error =
		bitmap_init(&all, members->count, analysis_account(analysis));

	if (!name && !error)
		error = &error_no_memory;
	if (error)
		return error;
	bitmap_copy(&all, members);
	error = narrow_to_class(analysis, word, members);
	if (!error || error_code(error) != ERROR_USAGE)
		return error;
	bitmap_copy(members, &all);
	if (!narrow_to_identity(analysis, name, members))
		return error;
	error_destroy(error);
	return NULL;
}

/* "Bed" and "c0de" may be classes, too. */
static bool is_named(const struct analysis *analysis,
		     const struct set_query *query)
{
	return query->signature_choice == SIGNATURE_NAMED ||
	       (isalpha((unsigned char)query->signature_word[0]) &&
		!is_borne(analysis, query->signature));
}

static struct error *narrow_by_signature(struct analysis *analysis,
					 const struct set_query *query,
					 struct bitmap *members)
{
	struct error *error;

	if (query->signature_choice == SIGNATURE_ANY)
		return NULL;
	error = analysis_need(analysis, STAGE_CLASSES);
	if (error)
		return error;
	if (needs_patterns(query)) {
		narrow_by_pattern(analysis, query, members);
		return NULL;
	}
	if (query->signature_choice == SIGNATURE_NONE)
		return narrow_to_signature(analysis, 0, members);
	if (is_named(analysis, query))
		return narrow_to_name(analysis, query->signature_word, members);
	return narrow_to_signature(analysis, query->signature, members);
}

struct error *query_select(struct analysis *analysis,
			   const struct set_query *query, struct bitmap *ret)
{
	struct bitmap members;
	struct error *error = analysis_need(analysis, query->set->needs);

	if (!error && needs_patterns(query))
		error = analysis_need(analysis, STAGE_PATTERNS);
	if (error)
		return error;
	error = bitmap_init(&members,
			    allocation_count(analysis_index(analysis)),
			    analysis_account(analysis));
	if (error)
		return error;
	error = query->set->select(analysis, query->address, &members);
	if (!error) {
		narrow_by_size(analysis, query, &members);
		error = narrow_by_signature(analysis, query, &members);
	}
	if (error) {
		bitmap_deinit(&members);
		return error;
	}
	*ret = members;
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
	struct error *error = analysis_need(analysis, query->set->needs);
	size_t count = 0;

	if (!error)
		error = query->set->ranges->collect(analysis, &ranges);
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
