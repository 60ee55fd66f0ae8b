#include "analyzer/classify/patterns.h"

#include "analyzer/base/array.h"
#include "analyzer/classify/classifier.h"
#include "analyzer/classify/cxx.h"
#include "analyzer/classify/scan.h"

#include <assert.h>

/* An entry when few allocations are known. */
struct known {
	allocation_id id;
	pattern_number number;
	uint64_t owner;
};

struct patterns {
	struct scan_input input;
	/*
	 * Indexed by allocation, or by the number among those that are not certainly objects, if
	 * any are.
	 */
	ARRAY(pattern_number) numbers; /* items are NULL until they are known */
	ARRAY(uint64_t) owners;	       /* the same */
	struct ranks places;	 /* the allocations with a number and an owner, in the order of both
				    arrays */
	ARRAY(struct known) few; /* by id; unused once those of all are known */
};

struct error *patterns_create(const struct scan_input *input, struct patterns **ret)
{
	struct patterns *patterns = calloc(1, sizeof(*patterns));

	TRY_MEMORY(patterns);
	patterns->input = *input;
	patterns->input.cxx = cxx_find(input->image, input->program);
	arrays_use(input->account, &patterns->numbers, &patterns->owners, &patterns->few);
	*ret = patterns;
	return NULL;
}

static struct error *scan(struct patterns *patterns, enum scan_aim aim)
{
	const struct scan_task task = {
		.aim = aim,
		.patterns = patterns->numbers.items,
		.owners = patterns->owners.items,
		.places = patterns->places.members.words ? &patterns->places : NULL,
	};

	return scan_memory(&patterns->input, &task);
}

/* Number what may have a pattern, if others certainly have none. */
static struct error *find_places(struct patterns *patterns)
{
	const struct bitmap *used = allocation_used(patterns->input.index);
	_cleanup_(bitmap_deinit) struct bitmap members = { 0 };

	if (patterns->places.members.words || !runtimes_have_certain(patterns->input.runtimes))
		return NULL;
	TRY(bitmap_init(&members, used->count, patterns->input.account));
	bitmap_for_each(id, used) {
		if (!runtimes_are_certain(patterns->input.runtimes, (allocation_id)id))
			bitmap_set(&members, id);
	}
	return ranks_init(&patterns->places, &members, patterns->input.account);
}

/* How many items the arrays have. */
static size_t place_count(const struct patterns *patterns)
{
	return patterns->places.members.words ? patterns->places.count
					      : allocation_count(patterns->input.index);
}

/* Find the position of the allocation's item; false if it has none. */
static bool find_place(const struct patterns *patterns, allocation_id id, size_t *ret)
{
	*ret = id;
	if (!patterns->places.members.words)
		return true;
	if (!bitmap_get(&patterns->places.members, id))
		return false;
	*ret = ranks_of(&patterns->places, id);
	return true;
}

struct error *patterns_find(struct patterns *patterns)
{
	struct error *error;

	if (patterns->numbers.items)
		return NULL;
	error = find_places(patterns);
	if (!error)
		error = array_resize(&patterns->numbers, place_count(patterns) + 1);
	if (!error)
		error = scan(patterns, SCAN_PATTERNS);
	if (error)
		array_release(&patterns->numbers);
	return error;
}

struct error *patterns_find_owners(struct patterns *patterns)
{
	bool known = patterns->numbers.items;
	struct error *error;

	if (patterns->owners.items)
		return NULL;
	error = find_places(patterns);
	if (!error)
		error = array_resize(&patterns->owners, place_count(patterns) + 1);
	if (!error && !known)
		error = array_resize(&patterns->numbers, place_count(patterns) + 1);
	if (!error)
		error = scan(patterns, known ? SCAN_OWNERS : SCAN_BOTH);
	if (!error && !known)
		error = scan(patterns, SCAN_LATE_OWNERS);
	if (!error)
		return NULL;
	array_release(&patterns->owners);
	if (!known)
		array_release(&patterns->numbers);
	return error;
}

bool patterns_measure_nothing(const struct patterns *patterns)
{
	bool seen[1 << 8 * sizeof(pattern_number)] = { false };

	if (!patterns->numbers.items)
		return false;
	for (size_t i = 0; i < place_count(patterns); i++)
		seen[patterns->numbers.items[i]] = true;
	for (size_t i = 0; classifiers[i]; i++)
		if (seen[i + 1] && classifiers[i]->measures)
			return false;
	return true;
}

DEFINE_COMPARE(compare_known, struct known, ASCENDING(id))

static const struct known *find_known(const struct patterns *patterns, allocation_id id)
{
	const struct known key = { .id = id };

	return patterns->few.count ? bsearch(&key, patterns->few.items, patterns->few.count,
					     sizeof(key), compare_known)
				   : NULL;
}

bool patterns_can_find_few(const struct patterns *patterns)
{
	return scan_is_local(&patterns->input);
}

bool patterns_know(const struct patterns *patterns, allocation_id id)
{
	return find_known(patterns, id);
}

bool patterns_lead_on(const struct patterns *patterns, struct reader *reader, allocation_id source)
{
	return scan_leads_on(&patterns->input, reader, source);
}

struct error *patterns_find_few(struct patterns *patterns, const allocation_id *ids, size_t count,
				const struct bitmap *sources)
{
	_cleanup_(free) uint64_t *claims = calloc(count + 1, sizeof(*claims));
	const struct few_claims few = { ids, claims, count };
	const struct scan_task task = { .aim = SCAN_BOTH, .sources = sources, .few = &few };
	struct scan_input input = patterns->input;

	/* A walk of a structure of C++ would ask about claims of all. */
	if (!scan_is_local(&input))
		input.cxx = 0;
	TRY(claims ? scan_memory(&input, &task) : &error_no_memory);
	TRY(array_reserve(&patterns->few, count));
	for (size_t i = 0; i < count; i++) {
		struct known *one = &patterns->few.items[patterns->few.count++];

		one->id = ids[i];
		one->number = reader_take_claim(claims[i], &one->owner);
	}
	array_sort(&patterns->few, compare_known);
	return NULL;
}

struct error *patterns_save(const struct patterns *patterns, struct side_writer *writer)
{
	assert(!patterns->places.members.words);
	return side_writer_array(writer, SIDE_LEAKED_PATTERNS, patterns->numbers.items,
				 allocation_count(patterns->input.index));
}

static bool check_numbers(const pattern_number *numbers, size_t count)
{
	pattern_number highest = 0;
	size_t kinds = 0;

	while (classifiers[kinds])
		kinds++;
	for (size_t i = 0; i < count; i++)
		if (numbers[i] > highest)
			highest = numbers[i];
	return highest <= kinds;
}

struct error *patterns_load(struct side_file *file, const struct scan_input *input,
			    struct patterns **ret)
{
	size_t count = allocation_count(input->index);
	const void *numbers;

	TRY(side_file_take(file, SIDE_LEAKED_PATTERNS, count, sizeof(pattern_number), &numbers));
	if (!check_numbers(numbers, count))
		return error_create(ERROR_BAD_DUMP, "it is damaged");
	TRY(patterns_create(input, ret));
	(*ret)->numbers.memory = side_memory(numbers, count);
	return NULL;
}

void patterns_destroy(struct patterns *patterns)
{
	arrays_release(&patterns->numbers, &patterns->owners);
	ranks_deinit(&patterns->places);
	array_release(&patterns->few);
	free(patterns);
}

pattern_number patterns_of(const struct patterns *patterns, allocation_id id)
{
	const struct known *known;
	size_t place;

	if (patterns->numbers.items)
		return find_place(patterns, id, &place) ? patterns->numbers.items[place]
							: NO_PATTERN;
	known = find_known(patterns, id);
	return known ? known->number : NO_PATTERN;
}

const char *pattern_name(pattern_number number)
{
	return classifiers[number - 1]->name;
}

bool pattern_holds_object(pattern_number number)
{
	return classifiers[number - 1]->holds_object;
}

bool pattern_is_plain(pattern_number number)
{
	return classifiers[number - 1]->is_plain;
}

bool pattern_is_reserve(pattern_number number)
{
	return number != NO_PATTERN && classifiers[number - 1]->is_reserve;
}

bool pattern_holds_stale(pattern_number number)
{
	return number != NO_PATTERN && classifiers[number - 1]->holds_stale;
}

bool pattern_is_whole(pattern_number number)
{
	return number != NO_PATTERN && classifiers[number - 1]->is_whole;
}

bool pattern_is_text(pattern_number number)
{
	return number != NO_PATTERN && classifiers[number - 1]->is_text;
}

struct pattern_numbers pattern_numbers(pattern_number number)
{
	return classifiers[number - 1]->numbers;
}

bool pattern_is_body(pattern_number number)
{
	return number != NO_PATTERN && classifiers[number - 1]->measures &&
	       !classifiers[number - 1]->is_text;
}

const char *pattern_name_at(size_t number)
{
	return classifiers[number] ? classifiers[number]->name : NULL;
}

pattern_number pattern_find(const char *name)
{
	for (size_t i = 0; classifiers[i]; i++)
		if (strcmp(classifiers[i]->name, name) == 0)
			return (pattern_number)(i + 1);
	return NO_PATTERN;
}

void patterns_init_reader(const struct patterns *patterns, struct reader *reader)
{
	const struct scan_input *input = &patterns->input;

	reader_init(reader, input->image, input->program, input->index);
	reader->cxx = input->cxx;
	reader->runtimes = input->runtimes;
	reader->steps = allocation_count(input->index);
}

static struct memory_range range_of(const struct patterns *patterns, allocation_id id)
{
	uint64_t start = allocation_start(patterns->input.index, id);

	return (struct memory_range){ start, start + allocation_size(patterns->input.index, id) };
}

uint64_t patterns_owner(const struct patterns *patterns, allocation_id id)
{
	const struct known *known;
	size_t place;

	if (patterns->owners.items)
		return find_place(patterns, id, &place) ? patterns->owners.items[place] : 0;
	known = find_known(patterns, id);
	return known ? known->owner : 0;
}

bool patterns_tell(const struct patterns *patterns, struct reader *reader, allocation_id id,
		   struct pattern_facts *ret)
{
	pattern_number number = patterns_of(patterns, id);
	const struct classifier *classifier;

	if (number == NO_PATTERN)
		return false;
	classifier = classifiers[number - 1];
	*ret = (struct pattern_facts){
		.role = classifier->role,
		.owner = patterns_owner(patterns, id),
	};
	reader->steps = allocation_count(reader->index);
	reader->number = number;
	if (classifier->tell && ret->owner)
		classifier->tell(reader, range_of(patterns, id), ret);
	return true;
}

static bool makes_sense(const struct pattern_extent *extent, uint64_t size)
{
	uint64_t most = extent->asked ? extent->asked : size;

	return most <= size && extent->spare <= most && extent->live_start <= extent->live_end &&
	       extent->live_end <= most;
}

bool patterns_measure(const struct patterns *patterns, struct reader *reader, allocation_id id,
		      struct pattern_extent *ret)
{
	pattern_number number = patterns_of(patterns, id);
	struct pattern_extent extent;
	struct pattern_facts facts;

	if (number == NO_PATTERN || !classifiers[number - 1]->measures ||
	    !patterns_tell(patterns, reader, id, &facts) || !facts.is_measured)
		return false;
	extent = (struct pattern_extent){
		.asked = facts.asked,
		.spare = facts.scattered,
		.live_start = facts.live_start,
		.live_end = facts.live_end == UINT64_MAX ? facts.asked : facts.live_end,
	};
	if (extent.asked)
		extent.spare += extent.asked - (extent.live_end - extent.live_start);
	if (!makes_sense(&extent, allocation_size(patterns->input.index, id)))
		return false;
	*ret = extent;
	return true;
}
