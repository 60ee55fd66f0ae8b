#include "analyzer/diff/census.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/gate/callers.h"
#include "analyzer/gate/leak_stacks.h"
#include "analyzer/kinds/allocated_by.h"
#include "analyzer/owners/owner_roots.h"

#include <inttypes.h>
#include <string.h>

/* Kinds of keys beside those of allocations. */
enum census_tag {
	BY_OTHER = BY_MORE, /* the aspect says nothing: enum census_other */
	BY_LEAK,	    /* the number of a leak kind */
	BY_HOLDER,	    /* the number of a variable */
};

enum census_other {
	OTHER_NONE,
	OTHER_SEVERAL, /* held by several, none of them alone */
	OTHER_STACK,
	OTHER_REGISTER,
	OTHER_KERNEL,
	OTHER_GARBAGE, /* waits for its collector */
	OTHERS,
};

void census_deinit(struct census *census)
{
	table_release(&census->keys);
	array_release(&census->numbers);
	leak_kinds_deinit(&census->leaks);
	for (size_t i = 0; i < census->holder_count; i++)
		free(census->holders[i]);
	free(census->holders);
}

kind_key census_class(const struct analysis *analysis, allocation_id id)
{
	struct classes *classes = analysis_classes(analysis);
	kind_key key = kind_of(analysis, NULL, id);
	uint64_t signature = kind_signature(key);

	return signature && classes_kind(classes, signature) == SIGNATURE_UNKNOWN
		       ? KIND_UNKNOWN
		       : kind_without_word(key);
}

static const char *const nothing[ASPECTS] = {
	[ASPECT_CLASS] = "no class",
	[ASPECT_SIGNATURE] = "no signature",
	[ASPECT_PATTERN] = "no pattern",
	[ASPECT_OWNER] = "unreachable",
	[ASPECT_CALLER] = "no recorded caller",
};

static const char *const others[OTHERS] = {
	[OTHER_SEVERAL] = "shared by several holders",
	[OTHER_STACK] = "a stack",
	[OTHER_REGISTER] = "a register",
	[OTHER_KERNEL] = "the kernel",
	[OTHER_GARBAGE] = "unreachable: garbage",
};

static const char *name_other(enum aspect aspect, enum census_other other)
{
	return other == OTHER_NONE ? nothing[aspect] : others[other];
}

enum census_holder census_holder_of(const char *owner)
{
	if (strcmp(owner, nothing[ASPECT_OWNER]) == 0)
		return HELD_BY_NOBODY;
	for (enum census_other i = OTHER_SEVERAL; i < OTHERS; i++)
		if (strcmp(owner, others[i]) == 0)
			return i == OTHER_GARBAGE ? HELD_AS_GARBAGE : HELD_BY_MANY;
	return HELD_BY_NAME;
}

static void name_leak(const struct leak_kind *kind, struct census_name *name)
{
	snprintf(name->prefix, sizeof(name->prefix), "%016" PRIx64 " ", kind->fingerprint);
	name->text = kind->name;
}

struct census_name census_name(const struct census *census, kind_key key)
{
	struct kind_name kind = kind_name(census->analysis, key);
	struct census_name name = { .text = kind.text, .size = kind.size };
	uint64_t value = kind_value(key);

	switch (kind_tag(key)) {
	case BY_SIGNATURE:
		if (!name.text)
			name.text = "signature outside of modules";
		break;
	case BY_PATTERN:
		strcpy(name.prefix, "%");
		break;
	case BY_SIZE:
		name.text = census->aspect == ASPECT_SIZE ? "allocations" : "unrecognized";
		break;
	case BY_OTHER:
		name.text = name_other(census->aspect, (enum census_other)value);
		break;
	case BY_LEAK:
		name_leak(&census->leaks.list[value], &name);
		break;
	case BY_HOLDER:
		name.text = census->holders[value];
	}
	if (!name.text)
		name.text = "no name";
	return name;
}

/* Count one under the key, whose number, plus 1, goes to ret. */
static struct error *count_key(struct census *census, kind_key key, uint64_t bytes, uint32_t *ret)
{
	struct tally tally = { .key = key, .count = 1, .bytes = bytes };

	TRY(tally_add_numbered(&census->keys, tally, ret));
	++*ret;
	return NULL;
}

/* The size of texts and arrays of numbers says more than their pattern. */
static kind_key find_kind(const struct analysis *analysis, allocation_id id)
{
	const struct patterns *patterns = analysis_patterns(analysis);
	kind_key key = kind_typed(analysis, patterns, analysis_typing(analysis), id);

	return kind_is_of_numbers(analysis, key) ? kind_of(analysis, patterns, id) : key;
}

static kind_key find_key(const struct census *census, allocation_id id, uint64_t size)
{
	const struct analysis *analysis = census->analysis;
	kind_key key = KIND_UNKNOWN;
	pattern_number pattern;
	uint64_t signature;

	switch (census->aspect) {
	case ASPECT_KIND:
		key = find_kind(analysis, id);
		return key ? key : kind_with_size(key, size);
	case ASPECT_CLASS:
		key = census_class(analysis, id);
		break;
	case ASPECT_SIGNATURE:
		signature = analysis_signature(analysis, id);
		key = signature ? kind_make(BY_SIGNATURE, signature) : KIND_UNKNOWN;
		break;
	case ASPECT_PATTERN:
		pattern = analysis_pattern_shown(analysis, analysis_patterns(analysis), id);
		key = pattern != NO_PATTERN ? kind_of_pattern(pattern) : KIND_UNKNOWN;
		break;
	default:
		return kind_with_size(KIND_UNKNOWN, size);
	}
	return key ? key : kind_make(BY_OTHER, OTHER_NONE);
}

/* Count by key, unless the numbers of keys are known. */
static struct error *visit_all(struct census *census, census_visitor visit, void *data)
{
	const struct allocation_index *index = analysis_index(census->analysis);
	const struct bitmap *used = allocation_used(index);
	const uint32_t *numbers = census->numbers.items;
	struct progress *progress = analysis_progress(census->analysis);
	uint64_t reported = 0;
	size_t hint = 0;

	progress_begin(progress, "counting allocations", used->count);
	bitmap_for_each(position, used) {
		allocation_id id = (allocation_id)position;
		struct memory_range range = allocation_range_near(index, id, &hint);
		uint64_t size = range.end - range.start;
		uint32_t number = 0;

		if (numbers)
			number = numbers[id];
		else
			TRY(count_key(census, find_key(census, id, size), size, &number));
		if (visit)
			TRY(visit(data, id, range, number));
		TRY(progress_check_at(progress, id, &reported));
	}
	return NULL;
}

static struct error *count_leaks(struct census *census)
{
	const struct leak_side *side = &census->leaks.certain;

	TRY(leak_kinds_find(census->analysis, LEAKS_ALL, &census->leaks));
	for (size_t i = 0; i < side->leaks->count; i++) {
		const struct leak_root *root = &side->leaks->roots[i];

		TRY(count_key(census, kind_make(BY_LEAK, side->kinds.items[i]), root->owned_bytes,
			      census->numbers.items + root->id));
	}
	return NULL;
}

/* The holder of the positions up to end in the row. */
struct level {
	size_t end; /* behind the last position below it */
	kind_key key;
};

struct finder {
	struct census *census;
	const struct dominators *tree;
	ARRAY(struct level) levels; /* the innermost last */
	struct tally_table hashes;  /* of the names of variables and callers */
};

static void finder_deinit(struct finder *finder)
{
	array_release(&finder->levels);
	table_release(&finder->hashes);
}
DEFINE_DEINIT(finder_deinit, struct finder)

/* The key of a variable or caller, by its name. */
static struct error *add_holder(struct finder *finder, const char *name, kind_key *ret)
{
	struct census *census = finder->census;
	struct tally one = { .count = 1, .key = hash_text(0, name) };
	_cleanup_(free) char *owned = NULL;
	uint32_t number;

	TRY(tally_add_numbered(&finder->hashes, one, &number));
	*ret = kind_make(BY_HOLDER, number);
	if (number < census->holder_count)
		return NULL;
	owned = strdup(name);
	return owned ? LIST_APPEND(census->holders, census->holder_count, take(owned))
		     : &error_no_memory;
}

static struct error *variable_key(struct finder *finder, const struct variable *variable,
				  kind_key *ret)
{
	switch (variable->kind) {
	case ROOT_STACK:
		*ret = kind_make(BY_OTHER, OTHER_STACK);
		return NULL;
	case ROOT_REGISTER:
		*ret = kind_make(BY_OTHER, OTHER_REGISTER);
		return NULL;
	case ROOT_KERNEL:
		*ret = kind_make(BY_OTHER, OTHER_KERNEL);
		return NULL;
	default:
		return add_holder(finder, variable->name, ret);
	}
}

/* The key of what holds a position that no allocation dominates. */
static struct error *top_key(struct finder *finder, size_t position, kind_key *ret)
{
	const struct analysis *analysis = finder->census->analysis;
	const struct bitmap *anchored = analysis_anchored(analysis);
	size_t root = owner_root_of(analysis, position);
	bool is_held = bitmap_get(anchored, dominators_at(finder->tree, position));

	if (root != NO_ROOT)
		return variable_key(finder, variables_at(analysis_variables(analysis), root), ret);
	*ret = kind_make(BY_OTHER, is_held ? OTHER_SEVERAL : OTHER_NONE);
	return NULL;
}

/* With what only garbage leads to. */
static bool is_garbage(const struct analysis *analysis, allocation_id id)
{
	const struct bitmap *garbage = analysis_garbage(analysis), *held = analysis_held(analysis);

	return (garbage && bitmap_get(garbage, id)) || (held && bitmap_get(held, id));
}

static struct error *count_position(struct finder *finder, size_t position)
{
	const struct analysis *analysis = finder->census->analysis;
	allocation_id id = dominators_at(finder->tree, position);
	size_t end = dominators_end(finder->tree, position);
	kind_key key, own;

	while (finder->levels.count &&
	       finder->levels.items[finder->levels.count - 1].end <= position)
		finder->levels.count--;
	if (is_garbage(analysis, id))
		key = kind_make(BY_OTHER, OTHER_GARBAGE);
	else if (finder->levels.count)
		key = finder->levels.items[finder->levels.count - 1].key;
	else
		TRY(top_key(finder, position, &key));
	TRY(count_key(finder->census, key, allocation_size(analysis_index(analysis), id),
		      finder->census->numbers.items + id));
	if (end == position + 1)
		return NULL;
	own = census_class(analysis, id);
	return array_append(&finder->levels, (struct level){ end, own ? own : key });
}

/* Count all used allocations by owner; STAGE_DOMINATORS is built. */
static struct error *count_owners(struct census *census)
{
	struct memory_account *account = analysis_account(census->analysis);
	struct progress *progress = analysis_progress(census->analysis);
	_cleanup_(finder_deinit) struct finder finder = {
		.census = census,
		.tree = analysis_dominators(census->analysis),
		.levels.memory.account = account,
		.hashes.memory.account = account,
	};
	size_t count = dominators_count(finder.tree);
	struct error *error = NULL;
	uint64_t reported = 0;

	progress_begin(progress, "finding owners", count);
	for (size_t i = 0; !error && i < count; i++) {
		error = count_position(&finder, i);
		if (!error)
			error = progress_check_at(progress, i, &reported);
	}
	return error;
}

/* The key of who allocated, by the noted calls; finder->tree is not needed. */
static struct error *caller_key(struct finder *finder, const struct callers *callers,
				uint64_t stack, kind_key *ret)
{
	struct backtrace calls = { 0 };
	const struct frame *caller;
	char *text = NULL;
	struct error *error;

	TRY(callers_calls(callers, stack, &calls));
	caller = leak_stack_caller(&calls);
	if (caller)
		text = call_text(caller);
	error = caller && !text ? &error_no_memory
				: add_holder(finder, text ? text : "libraries alone", ret);
	free(text);
	free(calls.frames);
	return error;
}

/* Count all used allocations by who allocated them. */
static struct error *count_callers(struct census *census)
{
	const struct allocation_index *index = analysis_index(census->analysis);
	struct memory_account *account = analysis_account(census->analysis);
	_cleanup_(finder_deinit) struct finder finder = {
		.census = census,
		.hashes.memory.account = account,
	};
	_cleanup_(table_release) struct tally_table stacks = { .memory.account = account };
	_cleanup_(array_release) ARRAY(kind_key) keys = { .memory.account = account };
	_cleanup_(callers_deinit) struct callers callers = { 0 };
	size_t hint = 0;

	TRY(callers_find(census->analysis, &callers));
	if (!callers_know_blocks(&callers)) /* that says why */
		return recorded_open(census->analysis, &callers.recorded);
	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);
		uint64_t stack = callers_of(&callers, range.start);
		kind_key key = kind_make(BY_OTHER, OTHER_NONE);
		uint32_t number;

		TRY(tally_add_numbered(&stacks, (struct tally){ .key = stack, .count = 1 },
				       &number));
		if (number == keys.count) {
			if (stack)
				TRY(caller_key(&finder, &callers, stack, &key));
			TRY(array_append(&keys, key));
		}
		TRY(count_key(census, keys.items[number], range.end - range.start,
			      census->numbers.items + id));
	}
	return NULL;
}

struct error *census_need(struct analysis *analysis, enum aspect aspect)
{
	TRY(analysis_need(analysis, STAGE_CLASSES));
	TRY(analysis_need(analysis, STAGE_SIGNATURES));
	if (aspect == ASPECT_KIND || aspect == ASPECT_PATTERN)
		TRY(analysis_need(analysis, STAGE_PATTERNS));
	if (aspect == ASPECT_KIND)
		TRY(analysis_need_types(analysis));
	if (aspect != ASPECT_OWNER)
		return NULL;
	TRY(analysis_need(analysis, STAGE_DOMINATORS));
	return analysis_need(analysis, STAGE_SHARERS);
}

struct error *census_take(struct analysis *analysis, enum aspect aspect, census_visitor visit,
			  void *data, struct census *ret)
{
	bool is_held = aspect >= ASPECT_FINGERPRINT;

	*ret = (struct census){
		.analysis = analysis,
		.aspect = aspect,
		.keys.memory.account = analysis_account(analysis),
		.numbers.memory.account = analysis_account(analysis),
	};
	if (is_held) {
		TRY(array_resize(&ret->numbers, allocation_count(analysis_index(analysis))));
		TRY(aspect == ASPECT_OWNER    ? count_owners(ret)
		    : aspect == ASPECT_CALLER ? count_callers(ret)
					      : count_leaks(ret));
	}
	return visit || !is_held ? visit_all(ret, visit, data) : NULL;
}
