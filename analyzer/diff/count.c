#include "analyzer/diff/count.h"

#include "analyzer/diff/owners.h"

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
			error = census_count(census, find_key(census, id, size), size, &number);
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
	const uint32_t *kinds = side->kinds.items;

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
		.keys.memory.account = analysis_account(analysis),
		.numbers.account = analysis_account(analysis),
	};
	error = is_held ? count_held(ret) : NULL;
	if (!error && (visit || !is_held))
		error = visit_all(ret, visit, data);
	return error;
}
