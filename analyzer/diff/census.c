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
static struct error *count_one(struct census *census, uint64_t key, uint64_t bytes, uint32_t *ret)
{
	struct tally tally = { .key = key, .count = 1, .bytes = bytes };
	struct error *error = tally_add_numbered(&census->keys, tally, ret);

	if (!error)
		++*ret;
	return error;
}

struct error *census_add(struct census *census, allocation_id id, uint64_t key, uint64_t bytes)
{
	return count_one(census, key, bytes, (uint32_t *)census->numbers.bytes + id);
}

/* Nothing of a user's memory is as far up, but a core may say so. */
static bool fits_key(uint64_t value)
{
	return value >> TAG_SHIFT == 0;
}

static uint64_t signature_key(const struct analysis *analysis, allocation_id id)
{
	uint64_t signature = analysis_signature(analysis, id);

	return signature && fits_key(signature) ? census_key(TAG_SIGNATURE, signature) : 0;
}

static uint64_t identity_key(const struct analysis *analysis, allocation_id id)
{
	struct identity identity;

	return analysis_identity(analysis, id, &identity) && fits_key(identity.address)
		       ? census_key(TAG_IDENTITY, identity.address)
		       : 0;
}

uint64_t census_type_key(const struct analysis *analysis, allocation_id id)
{
	struct classes *classes = analysis_classes(analysis);
	uint64_t signature = analysis_signature(analysis, id);

	if (!signature)
		return identity_key(analysis, id);
	return fits_key(signature) && classes_kind(classes, signature) != SIGNATURE_UNKNOWN
		       ? census_key(TAG_SIGNATURE, signature)
		       : 0;
}

static uint64_t pattern_key(const struct analysis *analysis, allocation_id id)
{
	pattern_number pattern = analysis_pattern_shown(analysis, analysis_patterns(analysis), id);

	return pattern == NO_PATTERN ? 0 : census_key(TAG_PATTERN, pattern);
}

static uint64_t find_key(const struct census *census, allocation_id id, uint64_t size)
{
	const struct analysis *analysis = census->analysis;
	uint64_t key = 0;

	switch (census->aspect) {
	case ASPECT_KIND:
		key = pattern_key(analysis, id);
		if (!key)
			key = signature_key(analysis, id);
		if (!key)
			key = identity_key(analysis, id);
		return key ? key : census_key(TAG_SIZE, size);
	case ASPECT_CLASS:
		key = census_type_key(analysis, id);
		break;
	case ASPECT_SIGNATURE:
		key = signature_key(analysis, id);
		break;
	case ASPECT_PATTERN:
		key = pattern_key(analysis, id);
		break;
	default:
		return census_key(TAG_SIZE, size);
	}
	return key ? key : census_key(TAG_OTHER, OTHER_NONE);
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

		error = census_add(census, root->id, census_key(TAG_LEAK, kinds[i]),
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

static const char *name_signature(const struct census *census, uint64_t signature)
{
	const char *name = classes_name(analysis_classes(census->analysis), signature);

	return name ? name : "signature outside of modules";
}

static void name_leak(const struct leak_kind *kind, struct census_name *name)
{
	snprintf(name->prefix, sizeof(name->prefix), "%016" PRIx64 " ", kind->fingerprint);
	name->text = kind->name;
}

struct census_name census_name(const struct census *census, uint64_t key)
{
	uint64_t value = key & ((UINT64_C(1) << TAG_SHIFT) - 1);
	struct census_name name = { .text = NULL };

	switch ((enum census_tag)(key >> TAG_SHIFT)) {
	case TAG_SIGNATURE:
		name.text = name_signature(census, value);
		break;
	case TAG_IDENTITY:
		name.text = identity_name(analysis_identities(census->analysis), value);
		break;
	case TAG_PATTERN:
		strcpy(name.prefix, "%");
		name.text = pattern_name((pattern_number)value);
		break;
	case TAG_SIZE:
		name.text = census->aspect == ASPECT_SIZE ? "allocations" : "unrecognized";
		name.size = value;
		break;
	case TAG_OTHER:
		name.text = name_other(census->aspect, (enum census_other)value);
		break;
	case TAG_LEAK:
		name_leak(&census->leaks.list[value], &name);
		break;
	case TAG_HOLDER:
		name.text = census->holders[value];
	}
	if (!name.text)
		name.text = "something without a name";
	return name;
}
