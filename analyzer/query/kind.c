#include "analyzer/query/kind.h"

#include "analyzer/base/table.h"
#include "analyzer/base/text.h"
#include "analyzer/classify/type_names.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static const char *pattern_name_of(const void *data, size_t number)
{
	return pattern_name_at(number);
}

struct error *kind_parse(const char *word, struct kind *ret)
{
	struct kind kind = { .word = word };

	if (word[0] == '\0') {
		kind.choice = KIND_ANY;
	} else if (strcmp(word, "-") == 0) {
		kind.choice = KIND_NONE;
	} else if (strcmp(word, "?") == 0) {
		kind.choice = KIND_NEITHER;
	} else if (word[0] == '%') {
		kind.choice = KIND_PATTERN;
		kind.pattern = pattern_find(word + 1);
		if (kind.pattern == NO_PATTERN)
			return error_unknown("pattern", word + 1,
					     nearest_word(word + 1, pattern_name_of, NULL));
	} else if (is_address(word)) {
		kind.choice = KIND_SIGNATURE;
		TRY(parse_address(word, &kind.signature));
	} else {
		kind.choice = KIND_NAMED;
	}
	*ret = kind;
	return NULL;
}

/* The key of what a container has allocated, else KIND_UNKNOWN. */
static kind_key container_key_of(const struct analysis *analysis, allocation_id id)
{
	kind_key key =
		kind_typed(analysis, analysis_patterns(analysis), analysis_typing(analysis), id);

	return kind_tag(key) == BY_TYPE && kind_has_pattern(key) ? key : KIND_UNKNOWN;
}

static bool has_identity(const struct analysis *analysis, allocation_id id, const char *name)
{
	struct identity identity;

	return analysis_identity(analysis, id, &identity) && strcmp(identity.name, name) == 0;
}

/* True if a used allocation has that signature. */
static bool is_borne(const struct analysis *analysis, uint64_t signature)
{
	const struct bitmap *used = allocation_used(analysis_index(analysis));

	bitmap_for_each(id, used)
		if (analysis_signature(analysis, (allocation_id)id) == signature)
			return true;
	return false;
}

/* True if a used allocation has an identity word of that name. */
static bool is_identity(const struct analysis *analysis, const char *name)
{
	const struct bitmap *used = allocation_used(analysis_index(analysis));

	bitmap_for_each(id, used)
		if (has_identity(analysis, (allocation_id)id, name))
			return true;
	return false;
}

static bool has_type(const struct kind_test *test, allocation_id id, const char *name)
{
	struct typed typed;
	kind_key key;

	if (!analysis_type_of(test->analysis, id, &typed))
		return false;
	if (typed_has_name(analysis_typing(test->analysis), typed, name))
		return true;
	if (test->containers.count == 0)
		return false;
	key = container_key_of(test->analysis, id);
	list_for_each(container, test->containers.items, test->containers.count)
		if (*container == key)
			return true;
	return false;
}

/* Find the keys of the nodes and bodies that are called so: "std::list<Rule> node". */
static struct error *find_containers(struct kind_test *test, const char *name)
{
	struct analysis *analysis = test->analysis;
	HASH_TABLE(kind_key) seen = { .memory.account = analysis_account(analysis) };
	struct error *error = NULL;

	if (!strchr(name, '<'))
		return NULL;
	TRY(analysis_need(analysis, STAGE_PATTERNS));
	bitmap_for_each(id, allocation_used(analysis_index(analysis))) {
		kind_key key = container_key_of(analysis, (allocation_id)id);
		const char *text;

		if (key == KIND_UNKNOWN || table_find(&seen, key, item, *item == key))
			continue;
		error = table_append(&seen, key, key);
		text = kind_name(analysis, key).text;
		if (!error && text && strcmp(text, name) == 0)
			error = array_append(&test->containers, key);
		if (error)
			break;
	}
	table_release(&seen);
	return error;
}

/* Set *ret if a used allocation has a type of that name. */
static struct error *is_type(struct kind_test *test, const char *name, bool *ret)
{
	struct analysis *analysis = test->analysis;

	*ret = false;
	TRY(analysis_need_types(analysis));
	TRY(find_containers(test, name));
	bitmap_for_each(id, allocation_used(analysis_index(analysis))) {
		*ret = has_type(test, (allocation_id)id, name);
		if (*ret)
			break;
	}
	return NULL;
}

/* Take the only class whose name ends so, or complain as unknown says. */
static struct error *complete_name(struct kind_test *test, struct error *unknown)
{
	struct error *error =
		class_filter_complete(&test->filter, test->analysis, &test->completed);

	if (!error && !test->completed)
		return unknown;
	bitmap_deinit(&test->known);
	error_destroy(unknown);
	return error;
}

/*
 * Check a name against all used allocations only if no allocation matched it: an unknown name is
 * mistyped, and 0 members would hide that.
 */
static struct error *check_name(struct kind_test *test)
{
	struct error *error = class_filter_check(&test->filter, test->analysis), *other;
	bool is_known = false;
	char *name;

	if (!error || error_code(error) != ERROR_USAGE)
		return error;
	/* The filter has the short form of a name, types have it as the debug information does. */
	name = strdup(test->kind.word);
	if (!name) {
		error_destroy(error);
		return &error_no_memory;
	}
	other = is_type(test, name, &is_known);
	if (!other && !is_known && !is_identity(test->analysis, name)) {
		free(name);
		return complete_name(test, error);
	}
	*(is_known ? &test->type : &test->identity) = name;
	bitmap_deinit(&test->known);
	error_destroy(error);
	return other;
}

static struct error *check(struct kind_test *test, bool allow_missing)
{
	struct error *error = NULL;

	if (test->kind.choice == KIND_NAMED)
		error = check_name(test);
	else if (test->kind.choice == KIND_SIGNATURE &&
		 !is_borne(test->analysis, test->kind.signature))
		error = error_create(ERROR_USAGE, "no allocation has the signature %" PRIx64,
				     test->kind.signature);
	if (error && allow_missing && error_code(error) == ERROR_USAGE) {
		error_destroy(error);
		error = NULL;
	}
	return error;
}

struct error *kind_test_settle(struct kind_test *test, bool allow_missing, bool *ret_again)
{
	*ret_again = false;
	if (test->found)
		return NULL;
	test->found = true;
	TRY(check(test, allow_missing));
	*ret_again = test->identity || test->type || test->completed;
	return NULL;
}

struct error *kind_test_prepare(struct kind_test *test, struct analysis *analysis,
				const struct kind *kind)
{
	*test = (struct kind_test){
		.analysis = analysis,
		.kind = *kind,
		.containers.memory.account = analysis_account(analysis),
	};
	if (kind->choice != KIND_ANY)
		TRY(analysis_need(analysis, STAGE_CLASSES));
	if (kind->choice == KIND_PATTERN || kind->choice == KIND_NEITHER)
		TRY(analysis_need(analysis, STAGE_PATTERNS));
	/* "Bed" and "c0de" may be classes, too. */
	if (kind->choice == KIND_SIGNATURE && isalpha((unsigned char)kind->word[0]) &&
	    !is_borne(analysis, kind->signature))
		test->kind.choice = KIND_NAMED;
	if (test->kind.choice == KIND_NAMED)
		TRY(class_filter_init(&test->filter, analysis, kind->word));
	return NULL;
}

struct error *kind_test_init(struct kind_test *test, struct analysis *analysis,
			     const struct kind *kind, bool allow_missing)
{
	struct error *error = kind_test_prepare(test, analysis, kind);

	if (!error)
		error = check(test, allow_missing);
	if (error)
		kind_test_deinit(test);
	return error;
}

void kind_test_deinit(struct kind_test *test)
{
	if (test->kind.choice == KIND_NAMED)
		class_filter_deinit(&test->filter);
	free(test->identity);
	free(test->type);
	array_release(&test->containers);
	bitmap_deinit(&test->known);
	*test = (struct kind_test){ 0 };
}

static struct error *judge(struct kind_test *test, allocation_id id, bool *ret_taken)
{
	const struct analysis *analysis = test->analysis;
	const struct kind *kind = &test->kind;

	switch (kind->choice) {
	case KIND_ANY:
		*ret_taken = true;
		return NULL;
	case KIND_NONE:
		*ret_taken = analysis_signature(analysis, id) == 0;
		return NULL;
	case KIND_SIGNATURE:
		*ret_taken = analysis_signature(analysis, id) == kind->signature;
		return NULL;
	case KIND_PATTERN:
		*ret_taken = patterns_of(analysis_patterns(analysis), id) == kind->pattern;
		return NULL;
	case KIND_NEITHER:
		*ret_taken = patterns_of(analysis_patterns(analysis), id) == NO_PATTERN &&
			     analysis_signature(analysis, id) == 0;
		return NULL;
	case KIND_NAMED:
		if (test->type) {
			*ret_taken = has_type(test, id, test->type);
			return NULL;
		}
		if (test->identity) {
			*ret_taken = has_identity(analysis, id, test->identity);
			return NULL;
		}
		return class_filter_judge(&test->filter, analysis_signature(analysis, id),
					  ret_taken);
	}
	return NULL;
}

/* Judge all allocations, in their order. */
static struct error *find_all(struct kind_test *test)
{
	struct progress *progress = analysis_progress(test->analysis);
	size_t count = allocation_count(analysis_index(test->analysis));
	_cleanup_(bitmap_deinit) struct bitmap known = { 0 };
	bool taken = false;

	TRY(bitmap_init(&known, count, analysis_account(test->analysis)));
	for (size_t id = 0; id < count; id++) {
		TRY(judge(test, (allocation_id)id, &taken));
		if (taken)
			bitmap_set(&known, id);
		TRY(progress_glance(progress));
	}
	test->known = take(known);
	return NULL;
}

struct error *kind_test_judge(struct kind_test *test, allocation_id id, bool *ret_taken)
{
	enum { MOST_SINGLE_SHARE = 16, LEAST = 4096 };
	bool quick = test->kind.choice == KIND_ANY || test->kind.choice == KIND_PATTERN;

	if (!quick && !test->known.words &&
	    ++test->judged >=
		    LEAST + allocation_count(analysis_index(test->analysis)) / MOST_SINGLE_SHARE)
		TRY(find_all(test));
	if (test->known.words)
		*ret_taken = bitmap_get(&test->known, id);
	else
		TRY(judge(test, id, ret_taken));
	test->found |= *ret_taken;
	return NULL;
}

static struct error *narrow(struct kind_test *test, struct bitmap *members)
{
	bool taken = false;

	bitmap_for_each(id, members) {
		TRY(judge(test, (allocation_id)id, &taken));
		test->found |= taken;
		if (!taken)
			bitmap_clear(members, id);
	}
	return NULL;
}

struct error *kind_narrow(struct analysis *analysis, const struct kind *kind, bool allow_missing,
			  struct bitmap *members)
{
	_cleanup_(kind_test_deinit) struct kind_test test = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap all = { 0 };
	bool again;

	if (kind->choice == KIND_ANY)
		return NULL;
	TRY(kind_test_prepare(&test, analysis, kind));
	if (kind->choice != KIND_PATTERN)
		TRY(signatures_need(analysis, members));
	if (test.kind.choice == KIND_NAMED) {
		TRY(bitmap_init(&all, members->count, analysis_account(analysis)));
		bitmap_copy(&all, members);
	}
	TRY(narrow(&test, members));
	TRY(kind_test_settle(&test, allow_missing, &again));
	if (!again)
		return NULL;
	bitmap_copy(members, &all);
	return narrow(&test, members);
}
