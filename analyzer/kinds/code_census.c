#include "analyzer/kinds/code_census.h"

#include "analyzer/base/bytes.h"

#include <ctype.h>
#include <string.h>

enum { NO_CODE = UINT32_MAX };

struct counting {
	struct code_census *census;
	const struct bitmap *members;
	const struct runtimes *runtimes;
	ARRAY(uint32_t) numbers; /* by allocation: of the label's group, or NO_CODE */
};

void code_census_deinit(struct code_census *census)
{
	tables_release(&census->labels, &census->owners);
	name_pool_deinit(&census->names);
}

static void counting_deinit(struct counting *counting)
{
	array_release(&counting->numbers);
}
DEFINE_DEINIT(counting_deinit, struct counting)

/* The label with N for each number, but for those in "block (2 levels)"; the pool keeps it. */
static const char *fold(struct name_pool *names, const char *label)
{
	char *text = strdup(label), *end = text, before = '\0';

	for (; text && *label; before = *label++)
		if (!isdigit((unsigned char)*label) || before == '(')
			*end++ = *label;
		else if (!isdigit((unsigned char)before))
			*end++ = 'N';
	if (!text)
		return NULL;
	*end = '\0';
	return name_pool_keep(names, text);
}

/* Equal texts of one pool are the same. */
static uint64_t hash_texts(const char *owner, const char *path, const char *label)
{
	return hash_add(hash_add((uintptr_t)owner, (uintptr_t)path), (uintptr_t)label);
}

static struct error *add_code(void *data, const struct object_code *code)
{
	struct counting *counting = data;
	struct code_census *census = counting->census;
	const char *folded = code->label ? fold(&census->names, code->label) : NULL;
	struct code_group *group;

	if (code->label && !folded)
		return &error_no_memory;
	if (!bitmap_get(counting->members, code->id))
		return NULL;
	group = table_obtain(&census->labels, hash_texts(code->owner, code->path, folded), one,
			     one->owner == code->owner && one->path == code->path &&
				     one->label == folded,
			     (struct code_group){ code->owner, code->path, folded, .labels = 1 });
	TRY_MEMORY(group);
	if (runtimes_space_of(counting->runtimes, code->id)) {
		counting->numbers.items[code->id] = (uint32_t)(group - census->labels.items);
	} else {
		group->count++;
		group->bytes += code->bytes;
	}
	return NULL;
}

static kind_key key_of(const void *data, allocation_id id)
{
	const struct counting *counting = data;

	return kind_make(BY_MORE, counting->numbers.items[id]);
}

/* All objects take part: what is nearer to another one is that one's. */
static struct error *count(struct counting *counting, struct analysis *analysis)
{
	_cleanup_(object_census_deinit) struct object_census objects = { 0 };
	const struct object_census_input input = {
		.analysis = analysis,
		.members = allocation_used(analysis_index(analysis)),
		.key_of = key_of,
		.data = counting,
	};

	TRY(object_census_take(&input, &objects));
	array_for_each(object, &objects.groups) {
		struct code_group *group;

		if (kind_value(object->key) == NO_CODE)
			continue;
		group = &counting->census->labels.items[kind_value(object->key)];
		group->count += object->count;
		group->bytes += object->bytes + object->block_bytes;
	}
	return NULL;
}

static struct error *add_owners(struct code_census *census)
{
	array_for_each(label, &census->labels) {
		struct code_group *owner = table_obtain(
			&census->owners, hash_texts(label->owner, label->path, NULL), one,
			one->owner == label->owner && one->path == label->path,
			(struct code_group){ label->owner, label->path, label->label });

		TRY_MEMORY(owner);
		owner->count += label->count;
		owner->bytes += label->bytes;
		if (owner->labels++)
			owner->label = NULL;
	}
	return NULL;
}

static int compare_texts(const char *text, const char *other)
{
	return strcmp(text ? text : "", other ? other : "");
}

static int compare(const void *a, const void *b, void *data)
{
	const struct code_group *left = a, *right = b;
	const bool *by_count = data;
	uint64_t mine = *by_count ? left->count : left->bytes;
	uint64_t others = *by_count ? right->count : right->bytes;
	int difference = (mine < others) - (mine > others);

	if (!difference)
		difference = compare_texts(left->owner, right->owner);
	if (!difference)
		difference = compare_texts(left->path, right->path);
	return difference ? difference : compare_texts(left->label, right->label);
}

struct error *code_census_take(struct analysis *analysis, const struct bitmap *members,
			       bool by_count, struct code_census *ret)
{
	struct memory_account *account = analysis_account(analysis);
	_cleanup_(code_census_deinit) struct code_census census = {
		.labels.memory.account = account,
		.owners.memory.account = account,
	};
	_cleanup_(counting_deinit) struct counting counting = {
		.census = &census,
		.members = members,
		.runtimes = analysis_runtimes(analysis),
		.numbers.memory.account = account,
	};

	TRY(array_resize(&counting.numbers, members->count));
	memset(counting.numbers.items, 0xff, members->count * sizeof(uint32_t));
	TRY(runtimes_visit_code(analysis_runtimes(analysis), add_code, &counting));
	TRY(count(&counting, analysis));
	TRY(add_owners(&census));
	if (census.labels.count) {
		qsort_r(census.labels.items, census.labels.count, sizeof(*census.labels.items),
			compare, &by_count);
		qsort_r(census.owners.items, census.owners.count, sizeof(*census.owners.items),
			compare, &by_count);
	}
	*ret = take_struct(census);
	return NULL;
}
