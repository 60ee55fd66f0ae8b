#include "analyzer/diff/census.h"

#include "analyzer/diff/owners.h"

#include <inttypes.h>
#include <string.h>

static const char *const names[ASPECTS] = {
	[ASPECT_KIND] = "kind",		  [ASPECT_CLASS] = "class",
	[ASPECT_SIGNATURE] = "signature", [ASPECT_PATTERN] = "pattern",
	[ASPECT_SIZE] = "size",		  [ASPECT_FINGERPRINT] = "fingerprint",
	[ASPECT_OWNER] = "owner",
};

const char *aspect_name(enum aspect aspect)
{
	return names[aspect];
}

enum aspect aspect_find(const char *name)
{
	enum aspect aspect = 0;

	while (aspect < ASPECTS && strcmp(names[aspect], name) != 0)
		aspect++;
	return aspect;
}

void census_deinit(struct census *census)
{
	tally_table_deinit(&census->keys);
	memory_release(&census->numbers);
	leak_kinds_deinit(&census->leaks);
	for (size_t i = 0; i < census->holder_count; i++)
		free(census->holders[i]);
	free(census->holders);
}

/* The number of the key, plus 1, goes to ret. */
static struct error *count_one(struct census *census, kind_key key, uint64_t bytes, uint32_t *ret)
{
	struct tally tally = { .key = key, .count = 1, .bytes = bytes };
	struct error *error = tally_add_numbered(&census->keys, tally, ret);

	if (!error)
		++*ret;
	return error;
}

struct error *census_add(struct census *census, allocation_id id, kind_key key, uint64_t bytes)
{
	return count_one(census, key, bytes, (uint32_t *)census->numbers.bytes + id);
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

static kind_key find_key(const struct census *census, allocation_id id, uint64_t size)
{
	const struct analysis *analysis = census->analysis;
	kind_key key = KIND_UNKNOWN;
	pattern_number pattern;
	uint64_t signature;

	switch (census->aspect) {
	case ASPECT_KIND:
		key = kind_of(analysis, analysis_patterns(analysis), id);
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
	const uint32_t *numbers = census->numbers.bytes;
	struct progress *progress = analysis_progress(census->analysis);
	struct error *error = NULL;
	uint64_t told = 0;
	size_t hint = 0;

	progress_begin(progress, "counting what there is", used->count);
	bitmap_for_each(position, used) {
		allocation_id id = (allocation_id)position;
		struct memory_range range = allocation_range_near(index, id, &hint);
		uint64_t size = range.end - range.start;
		uint32_t number = 0;

		if (numbers)
			number = numbers[id];
		else
			error = count_one(census, find_key(census, id, size), size, &number);
		if (!error && visit)
			error = visit(data, id, range, number);
		if (error)
			return error;
		if (!progress_pass(progress, id, &told))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return NULL;
}

static struct error *count_leaks(struct census *census)
{
	struct error *error = leak_kinds_find(census->analysis, false, &census->leaks);
	const struct leak_side *side = &census->leaks.certain;
	const uint32_t *kinds = side->kinds.bytes;

	for (size_t i = 0; !error && i < leak_root_count(side->leaks); i++) {
		const struct leak_root *root = leak_root(side->leaks, i);

		error = census_add(census, root->id, kind_make(BY_LEAK, kinds[i]),
				   root->owned_bytes);
	}
	return error;
}

struct error *census_need(struct analysis *analysis, enum aspect aspect)
{
	struct error *error = analysis_need(analysis, STAGE_CLASSES);

	if (!error)
		error = analysis_need(analysis, STAGE_SIGNATURES);
	if (!error && (aspect == ASPECT_KIND || aspect == ASPECT_PATTERN))
		error = analysis_need(analysis, STAGE_PATTERNS);
	if (!error && aspect == ASPECT_OWNER)
		error = analysis_need(analysis, STAGE_RETAINED);
	return error;
}

/* What is not counted allocation by allocation. */
static struct error *count_held(struct census *census)
{
	size_t count = allocation_count(analysis_index(census->analysis));
	struct error *error = memory_resize(&census->numbers, count * sizeof(uint32_t));

	if (error)
		return error;
	return census->aspect == ASPECT_OWNER ? owners_count(census) : count_leaks(census);
}

struct error *census_take(struct analysis *analysis, enum aspect aspect, census_visitor visit,
			  void *data, struct census *ret)
{
	bool is_held = aspect == ASPECT_OWNER || aspect == ASPECT_FINGERPRINT;
	struct error *error;

	*ret = (struct census){
		.analysis = analysis,
		.aspect = aspect,
		.numbers.account = analysis_account(analysis),
	};
	tally_table_init(&ret->keys, analysis_account(analysis));
	error = is_held ? count_held(ret) : NULL;
	if (!error && (visit || !is_held))
		error = visit_all(ret, visit, data);
	return error;
}

static const char *name_other(enum aspect aspect, enum census_other other)
{
	static const char *const without[ASPECTS] = {
		[ASPECT_CLASS] = "no class",
		[ASPECT_SIGNATURE] = "no signature",
		[ASPECT_PATTERN] = "no pattern",
		[ASPECT_OWNER] = "nobody",
	};
	static const char *const others[] = {
		[OTHER_SEVERAL] = "several, none of them alone",
		[OTHER_STACK] = "a stack",
		[OTHER_REGISTER] = "a register",
		[OTHER_KERNEL] = "the kernel",
	};

	return other == OTHER_NONE ? without[aspect] : others[other];
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
		name.text = "something without a name";
	return name;
}
