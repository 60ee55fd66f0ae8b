#include "analyzer/kinds/summary.h"

#include "analyzer/kinds/retained.h"
#include "analyzer/kinds/signatures.h"

#include <string.h>

struct counting {
	const struct kind_summary_input *input;
	const struct patterns *patterns;
	const struct typing *typing; /* or NULL */
	struct tally_table kinds;
	ARRAY(struct kind_samples) samples; /* by number of the kind */
	ARRAY(uint32_t) numbers;	    /* of kinds, by id; only if needed */
	bool finds_holders, finds_owners;
	struct bitmap unnamed;	   /* members whose holders or owners are to be found */
	struct bitmap texts;	   /* the same, where a runtime's objects may hold them */
	struct nameless *nameless; /* these, once they are; or NULL */
	struct object_census owners;
};

/* The value of a key BY_OWNER: the number of the group of owners, and the size. */
enum { OWNER_SHIFT = 40, MOST_OWNERS = 1 << (KIND_TAG_SHIFT - OWNER_SHIFT) };
static const uint64_t OWNED_SIZE_MASK = (UINT64_C(1) << OWNER_SHIFT) - 1;

static void counting_deinit(struct counting *counting)
{
	table_release(&counting->kinds);
	arrays_release(&counting->samples, &counting->numbers);
	bitmap_deinit(&counting->unnamed);
	bitmap_deinit(&counting->texts);
	object_census_deinit(&counting->owners);
	if (counting->nameless)
		nameless_destroy(counting->nameless);
}
DEFINE_DEINIT(counting_deinit, struct counting)

void kind_summary_deinit(struct kind_summary *summary)
{
	arrays_release(&summary->lines, &summary->groups);
	object_census_deinit(&summary->owners);
	if (summary->nameless)
		nameless_destroy(summary->nameless);
}

const struct object_group *kind_summary_owner(const struct kind_summary *summary, kind_key key)
{
	return &summary->owners.groups.items[kind_value(key) >> OWNER_SHIFT];
}

/* Keep one wherever the number of those so far is a power of two. */
static struct error *note_sample(struct counting *counting, uint32_t number, allocation_id id)
{
	uint64_t count = counting->kinds.items[number].count;
	struct kind_samples *samples;

	if (number == counting->samples.count)
		TRY(array_append(&counting->samples, (struct kind_samples){ .count = 0 }));
	samples = &counting->samples.items[number];
	if ((count & (count - 1)) == 0)
		samples->ids[samples->count++ % KIND_SAMPLES] = id;
	return NULL;
}

static struct error *count_member(struct counting *counting, kind_key key, allocation_id id,
				  uint64_t size)
{
	struct tally tally = { .key = key, .count = 1, .bytes = size };
	uint32_t number;

	TRY(tally_add_numbered(&counting->kinds, tally, &number));
	if (counting->input->retained)
		counting->numbers.items[id] = number;
	return note_sample(counting, number, id);
}

static struct error *add_member(struct counting *counting, allocation_id id)
{
	const struct analysis *analysis = counting->input->analysis;
	uint64_t size = allocation_size(analysis_index(analysis), id);
	kind_key key = kind_typed(analysis, counting->patterns, counting->typing, id);

	if (counting->input->patterns_alone && kind_has_pattern(key))
		key = kind_of_pattern(kind_pattern(key));
	if (key == KIND_UNKNOWN && counting->unnamed.count) {
		bitmap_set(&counting->unnamed, id);
		return NULL;
	}
	if (counting->texts.count && kind_tag(key) == BY_PATTERN &&
	    pattern_is_text(kind_pattern(key))) {
		bitmap_set(&counting->texts, id);
		return NULL;
	}
	return count_member(counting, kind_with_size(key, size), id, size);
}

/* The kind without regard to its holder. */
static kind_key plain_key(const struct counting *counting, allocation_id id, uint64_t size)
{
	uint32_t owner = NO_GROUP;

	if (counting->texts.count && bitmap_get(&counting->texts, id))
		return kind_with_size(kind_of_pattern(patterns_of(counting->patterns, id)), size);
	if (counting->owners.groups.count)
		owner = object_census_owner(&counting->owners, id);
	return owner < MOST_OWNERS && size <= OWNED_SIZE_MASK
		       ? kind_make(BY_OWNER, (uint64_t)owner << OWNER_SHIFT | size)
		       : kind_with_size(KIND_UNKNOWN, size);
}

static struct error *find_owners(struct counting *counting)
{
	struct analysis *analysis = counting->input->analysis;
	const struct object_census_input input = {
		.analysis = analysis,
		.members = allocation_used(analysis_index(analysis)),
		.keeps_owners = true,
	};

	return counting->finds_owners && bitmap_weight(&counting->unnamed) > 0
		       ? object_census_take(&input, &counting->owners)
		       : NULL;
}

/* With too many allocations, skip holders, which would take longer than everything else. */
static struct error *find_holders(struct counting *counting)
{
	enum { MOST_HELD = 1 << 22 };
	struct bitmap *unnamed = &counting->unnamed;
	size_t count = bitmap_weight(unnamed);
	size_t text_count = bitmap_weight(&counting->texts);

	if (!counting->finds_holders || count + text_count == 0 || count > MOST_HELD)
		return NULL;
	if (text_count > 0 && text_count <= MOST_HELD - count)
		bitmap_or(unnamed, &counting->texts);
	return nameless_create(counting->input->analysis, counting->patterns, counting->typing,
			       unnamed, &counting->nameless);
}

/* Count the members that add_member() deferred. */
static struct error *add_unnamed(struct counting *counting)
{
	struct analysis *analysis = counting->input->analysis;
	size_t hint = 0;

	TRY(find_owners(counting));
	TRY(find_holders(counting));
	if (counting->texts.count)
		bitmap_or(&counting->unnamed, &counting->texts);
	bitmap_for_each(id, &counting->unnamed) {
		struct memory_range range =
			allocation_range_near(analysis_index(analysis), (allocation_id)id, &hint);
		uint64_t size = range.end - range.start;
		kind_key plain = plain_key(counting, (allocation_id)id, size), key = plain;

		if (counting->nameless)
			TRY(nameless_key(counting->nameless, (allocation_id)id, plain, &key));
		TRY(count_member(counting, key, (allocation_id)id, size));
	}
	return NULL;
}

static struct error *add_members(struct counting *counting)
{
	const struct analysis *analysis = counting->input->analysis;
	const struct bitmap *members = counting->input->members;
	struct progress *progress = analysis_progress(counting->input->analysis);
	uint64_t passed = 0;

	progress_begin(progress, "summarizing", members->count);
	if (counting->input->retained)
		TRY(array_resize(&counting->numbers, members->count));
	for (size_t i = 0; i < counting->numbers.count; i++)
		counting->numbers.items[i] = NO_GROUP;
	bitmap_for_each(id, members) {
		uint64_t before = passed;

		TRY(add_member(counting, (allocation_id)id));
		TRY(progress_check_at(progress, id, &passed));
		allocations_release(analysis_image(analysis), analysis_index(analysis), before,
				    passed);
	}
	return NULL;
}

/* Patterns of a part of the members, or of all; none of free ones. */
static struct error *find_patterns(struct counting *counting)
{
	struct analysis *analysis = counting->input->analysis;
	const struct bitmap *members = counting->input->members;
	bool leaked;

	if (!bitmap_meets(members, allocation_used(analysis_index(analysis))))
		return NULL;
	leaked = analysis_cost(analysis, STAGE_REACHABILITY).built &&
		 bitmap_within(members, analysis_unreachable(analysis));
	TRY(analysis_need(analysis, leaked ? STAGE_LEAKED_PATTERNS : STAGE_PATTERNS));
	counting->patterns =
		leaked ? analysis_leaked_patterns(analysis) : analysis_patterns(analysis);
	TRY(kind_need_types(analysis, members));
	counting->typing = analysis_typing(analysis);
	counting->finds_holders = !leaked && !counting->input->retained;
	counting->finds_owners = !leaked && runtime_count(analysis_runtimes(analysis)) > 0;
	if (!counting->finds_holders && !counting->finds_owners)
		return NULL;
	if (counting->finds_holders && runtimes_have_objects(analysis_runtimes(analysis)))
		TRY(bitmap_init(&counting->texts, members->count, analysis_account(analysis)));
	return bitmap_init(&counting->unnamed, members->count, analysis_account(analysis));
}

/* Compute the bytes that each kind's members retain, into owned. */
static struct error *add_retained(struct counting *counting)
{
	struct tally_table *kinds = &counting->kinds;
	_cleanup_(free) uint64_t *bytes = calloc(kinds->count + 1, sizeof(*bytes));

	TRY_MEMORY(bytes);
	TRY(retained_by_group(analysis_dominators(counting->input->analysis),
			      counting->numbers.items, NULL, kinds->count, bytes));
	for (size_t i = 0; i < kinds->count; i++)
		kinds->items[i].owned = bytes[i];
	return NULL;
}

const char *kind_name_in_form(const struct analysis *analysis, kind_key key, bool full)
{
	uint64_t signature = full ? kind_signature(key) : 0;

	return signature ? classes_full_name(analysis_classes(analysis), signature)
			 : kind_name(analysis, key).text;
}

/* The tally of all that would be one kind but for their holders. */
static struct error *add_plain(const struct counting *counting, struct tally_table *ret)
{
	for (size_t i = 0; i < counting->kinds.count; i++) {
		struct tally tally = counting->kinds.items[i];

		if (kind_tag(tally.key) != BY_HOLDER)
			continue;
		tally.key = nameless_plain(counting->nameless, tally.key);
		TRY(tally_add(ret, tally));
	}
	return NULL;
}

/* Count what few of a size have in common, as one variable each, by size alone. */
static struct error *fold_few(struct counting *counting)
{
	enum { LEAST_SHARE = 20, LEAST = 2 };
	struct memory_account *account = analysis_account(counting->input->analysis);
	_cleanup_(table_release) struct tally_table all_plain = { .memory.account = account };
	_cleanup_(counting_deinit) struct counting folded = { 0 };

	arrays_use(account, &folded.kinds, &folded.samples);
	TRY(add_plain(counting, &all_plain));
	for (size_t i = 0; i < counting->kinds.count; i++) {
		struct tally tally = counting->kinds.items[i];
		const struct kind_samples *samples = &counting->samples.items[tally.number];
		kind_key plain = nameless_plain(counting->nameless, tally.key);
		const struct tally *all = plain != tally.key ? tally_find(&all_plain, plain) : NULL;
		uint32_t number;

		if (all && all->count > 1 &&
		    (tally.count < LEAST || tally.count < all->count / LEAST_SHARE))
			tally.key = plain;
		TRY(tally_add_numbered(&folded.kinds, tally, &number));
		if (number == folded.samples.count)
			TRY(array_append(&folded.samples, *samples));
	}
	/* Nothing is found by key any more. */
	array_swap(&counting->kinds, &folded.kinds);
	array_swap(&counting->samples, &folded.samples);
	return NULL;
}

static kind_key key_without_holder(const struct counting *counting, kind_key key)
{
	return counting->nameless ? nameless_plain(counting->nameless, key) : key;
}

/* The size of what has nothing else in common, else 0. */
static uint64_t plain_size(kind_key plain)
{
	return kind_tag(plain) == BY_SIZE    ? kind_value(plain)
	       : kind_tag(plain) == BY_OWNER ? kind_value(plain) & OWNED_SIZE_MASK
					     : 0;
}

/* Names are limited (classes.h): those that come first get theirs. */
static struct error *make_lines(struct counting *counting, struct kind_summary *summary)
{
	const struct kind_summary_input *input = counting->input;
	struct tally_table *kinds = &counting->kinds;

	TRY(array_resize(&summary->lines, kinds->count));
	array_sort(kinds, input->order);
	for (size_t i = 0; i < kinds->count; i++) {
		kind_key plain = key_without_holder(counting, kinds->items[i].key);

		summary->lines.items[i] = (struct kind_line){
			.tally = kinds->items[i],
			.plain = plain,
			.name = kind_name_in_form(input->analysis, plain, input->full_names),
			.size = plain_size(plain),
			.samples = counting->samples.items[kinds->items[i].number],
		};
	}
	return NULL;
}

/* Compare names; those without one come last. */
static int compare_names(const char *name, const char *other)
{
	return name && other ? strcmp(name, other) : !name - !other;
}

/* Equal ones by size. */
static int compare_sizes(const struct kind_summary_input *input, const struct kind_line *line,
			 const struct kind_line *other)
{
	struct tally tally = line->tally, other_tally = other->tally;

	tally.key = line->size;
	other_tally.key = other->size;
	return input->order(&tally, &other_tally);
}

static int compare_owners(kind_key key, kind_key other)
{
	uint64_t owner = kind_value(key) >> OWNER_SHIFT;
	uint64_t other_owner = kind_value(other) >> OWNER_SHIFT;

	return owner < other_owner ? -1 : owner > other_owner;
}

/* Lines of a group are adjacent, in order; identities by address. */
static int compare_lines(const void *a, const void *b, void *data)
{
	const struct kind_summary_input *input = data;
	const struct kind_line *left = a, *right = b;
	kind_key key = left->plain, other = right->plain;
	int difference = 0;

	if (kind_tag(key) != kind_tag(other))
		return kind_tag(key) < kind_tag(other) ? -1 : 1;
	if (kind_tag(key) == BY_IDENTITY)
		return tally_compare_keys(&left->tally, &right->tally);
	if (kind_tag(key) == BY_SIGNATURE || kind_tag(key) == BY_TYPE)
		difference = compare_names(left->name, right->name);
	else if (kind_tag(key) == BY_OWNER)
		difference = compare_owners(key, other);
	else if (kind_pattern(key) != kind_pattern(other))
		difference = kind_pattern(key) < kind_pattern(other) ? -1 : 1;
	if (!difference && left->size != right->size)
		return compare_sizes(input, left, right);
	return difference ? difference : input->order(&left->tally, &right->tally);
}

static bool are_of_one_group(const struct kind_line *line, const struct kind_line *other)
{
	kind_key key = line->plain;

	if (kind_tag(key) != kind_tag(other->plain))
		return false;
	if (kind_tag(key) == BY_SIGNATURE || kind_tag(key) == BY_TYPE)
		return line->name && other->name && strcmp(line->name, other->name) == 0;
	if (kind_tag(key) == BY_OWNER)
		return compare_owners(key, other->plain) == 0;
	return kind_tag(key) != BY_IDENTITY && kind_pattern(key) == kind_pattern(other->plain);
}

/* The line's position by address: patterns behind everything with an address, and sizes last. */
static uint64_t place_of(const struct analysis *analysis, kind_key key)
{
	struct kind_name name = kind_name(analysis, key);

	switch (name.by) {
	case BY_SIGNATURE:
		return name.signature;
	case BY_IDENTITY:
		return name.identity;
	case BY_PATTERN:
		return UINT64_MAX - (uint64_t)(UINT8_MAX - name.pattern);
	default:
		return UINT64_MAX;
	}
}

/* Lines are sorted. Makes the group that begins with the first, and returns the one behind it. */
static size_t make_group(const struct kind_summary_input *input, const struct kind_summary *summary,
			 size_t first, struct kind_group *ret)
{
	const struct kind_line *lines = summary->lines.items;
	size_t end = first;

	*ret = (struct kind_group){
		.by = (enum known_by)kind_tag(lines[first].plain),
		.name = lines[first].name,
		.total.key = UINT64_MAX,
		.first = first,
	};
	do {
		const struct tally *tally = &lines[end].tally;
		uint64_t place = place_of(input->analysis, lines[end++].plain);

		ret->total.count += tally->count;
		ret->total.bytes += tally->bytes;
		if (place < ret->total.key)
			ret->total.key = place;
	} while (end < summary->lines.count && are_of_one_group(&lines[first], &lines[end]));
	ret->count = end - first;
	return end;
}

static struct error *make_groups(const struct kind_summary_input *input,
				 struct kind_summary *summary)
{
	if (summary->lines.count)
		qsort_r(summary->lines.items, summary->lines.count, sizeof(struct kind_line),
			compare_lines, (void *)input);
	for (size_t i = 0; i < summary->lines.count;) {
		struct kind_group group;

		i = make_group(input, summary, i, &group);
		TRY(array_append(&summary->groups, group));
	}
	return NULL;
}

/* Add the bytes that each group's members retain, which is not the sum of its lines. */
static struct error *add_retained_of_groups(const struct counting *counting,
					    struct kind_summary *summary)
{
	_cleanup_(free) uint32_t *groups = calloc(summary->lines.count + 1, sizeof(*groups));
	_cleanup_(free) uint64_t *bytes = calloc(summary->groups.count + 1, sizeof(*bytes));

	TRY_MEMORY(groups && bytes);
	for (size_t i = 0; i < summary->groups.count; i++)
		for (size_t j = 0; j < summary->groups.items[i].count; j++)
			groups[summary->lines.items[summary->groups.items[i].first + j]
				       .tally.number] = (uint32_t)i;
	TRY(retained_by_group(analysis_dominators(counting->input->analysis),
			      counting->numbers.items, groups, summary->groups.count, bytes));
	for (size_t i = 0; i < summary->groups.count; i++)
		summary->groups.items[i].total.owned = bytes[i];
	return NULL;
}

/* Equal ones by name, those without one last. */
static int compare_groups(const void *a, const void *b, void *data)
{
	const struct kind_summary_input *input = data;
	const struct kind_group *left = a, *right = b;
	struct tally left_total = left->total, right_total = right->total;
	int order;

	if (!input->by_address)
		left_total.key = right_total.key = 0;
	order = input->order(&left_total, &right_total);
	if (!order)
		order = compare_names(left->name, right->name);
	return order ? order : tally_compare_keys(&left->total, &right->total);
}

static struct error *build_needed(struct counting *counting)
{
	struct analysis *analysis = counting->input->analysis;

	TRY(analysis_need(analysis, STAGE_CLASSES));
	TRY(signatures_need(analysis, counting->input->members));
	TRY(find_patterns(counting));
	return counting->input->retained ? analysis_need(analysis, STAGE_DOMINATORS) : NULL;
}

struct error *kind_summary_find(const struct kind_summary_input *input, struct kind_summary *ret)
{
	struct memory_account *account = analysis_account(input->analysis);
	_cleanup_(counting_deinit) struct counting counting = {
		.input = input,
	};

	arrays_use(account, &counting.kinds, &counting.samples, &counting.numbers);
	TRY(build_needed(&counting));
	arrays_use(account, &ret->lines, &ret->groups);
	TRY(add_members(&counting));
	TRY(add_unnamed(&counting));
	if (counting.nameless)
		TRY(fold_few(&counting));
	if (input->retained)
		TRY(add_retained(&counting));
	TRY(make_lines(&counting, ret));
	TRY(make_groups(input, ret));
	if (input->retained)
		TRY(add_retained_of_groups(&counting, ret));
	ret->nameless = take(counting.nameless);
	ret->owners = take_struct(counting.owners);
	if (ret->groups.count)
		qsort_r(ret->groups.items, ret->groups.count, sizeof(struct kind_group),
			compare_groups, (void *)input);
	return NULL;
}
