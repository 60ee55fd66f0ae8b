#include "analyzer/classify/reader.h"

#include "analyzer/base/sort.h"
#include "analyzer/classify/classifier.h"

void reader_init(struct reader *reader, const struct image *image, const struct program *program,
		 const struct allocation_index *index)
{
	size_t count = program->module_count;

	*reader = (struct reader){
		.image = image,
		.view.image = image,
		.program = program,
		.index = index,
		.used = allocation_used(index),
		.word = image_word_size(image),
		.bounds = allocation_bounds(index),
	};
	if (count == 0)
		return;
	reader->modules.start = program->modules[0].start;
	reader->modules.end = program->modules[count - 1].end;
}

allocation_id reader_start(struct reader *reader, uint64_t address, struct memory_range *ret)
{
	struct memory_range range;
	allocation_id id;

	if (address % (1 << LEAST_SHIFT) != 0 || !heap_bounds_hold(&reader->bounds, address))
		return NO_ALLOCATION;
	allocation_find_many(reader->index, &address, 1, &reader->hint, &id);
	if (id == NO_ALLOCATION || !bitmap_get(reader->used, id))
		return NO_ALLOCATION;
	range = allocation_range_near(reader->index, id, &reader->hint);
	if (range.start != address)
		return NO_ALLOCATION;
	*ret = range;
	return id;
}

bool reader_narrow_words(struct reader *reader, uint64_t address, unsigned int count, uint64_t *ret)
{
	unsigned int i = 0;

	while (i < count && reader_word(reader, address + reader->word * (uint64_t)i, &ret[i]))
		i++;
	return i == count;
}

bool reader_in_module(const struct reader *reader, uint64_t address)
{
	return address - reader->modules.start < range_size(reader->modules) &&
	       program_find_module(reader->program, address);
}

bool reader_draw_steps(struct reader *reader)
{
	enum { AT_ONCE = 1 << 16 };
	uint64_t left = reader->budget ? atomic_load(reader->budget) : 0;
	uint64_t drawn;

	if (reader->progress && atomic_load(&reader->progress->interrupted))
		return false;
	do
		drawn = left < AT_ONCE ? left : AT_ONCE;
	while (drawn > 0 && !atomic_compare_exchange_weak(reader->budget, &left, left - drawn));
	reader->steps = drawn;
	return drawn > 0;
}

/* Find the allocation's position; false if nothing can be known of it. */
static bool find_place(const struct reader *reader, allocation_id id, size_t *ret)
{
	*ret = id;
	if (!reader->places)
		return true;
	if (!bitmap_get(&reader->places->members, id))
		return false;
	*ret = ranks_of(reader->places, id);
	return true;
}

/* Keep the owner with the lowest address. */
static void note_owner(struct reader *reader, size_t number, uint64_t owner)
{
	uint64_t *place = &reader->owners[number], before;

	if (reader->patterns[number] != reader->number)
		return;
	before = __atomic_load_n(place, __ATOMIC_RELAXED);
	while ((before == 0 || owner < before) &&
	       !__atomic_compare_exchange_n(place, &before, owner, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

/*
 * The strongest claim is the highest number: strength, plus 1, above the pattern, which counts
 * down, above the owner, which does so, too.
 */
enum { OWNER_BITS = 54, NUMBER_BITS = 7 };

static const uint64_t OWNER_END = UINT64_C(1) << OWNER_BITS;
static const uint64_t NUMBER_MASK = (1 << NUMBER_BITS) - 1;

static uint64_t make_claim(uint8_t number, uint64_t owner)
{
	uint64_t strength = classifiers[number - 1]->strength + 1;
	/* Nothing is up there, whatever a dump says. */
	uint64_t rest = owner && owner < OWNER_END ? OWNER_END - owner : 0;

	return ((strength << NUMBER_BITS) | (NUMBER_MASK - number)) << OWNER_BITS | rest;
}

static uint8_t claimed_number(uint64_t claim)
{
	return claim ? (uint8_t)(NUMBER_MASK - (claim >> OWNER_BITS & NUMBER_MASK)) : NO_PATTERN;
}

static void note_claim(struct reader *reader, uint64_t *place, uint64_t owner)
{
	uint64_t claim = make_claim(reader->number, owner), before;

	before = __atomic_load_n(place, __ATOMIC_RELAXED);
	while (claim > before && !__atomic_compare_exchange_n(place, &before, claim, true,
							      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void note_claim_to_few(struct reader *reader, allocation_id id, uint64_t owner)
{
	const struct few_claims *few = reader->few;
	const allocation_id *found = bsearch(&id, few->ids, few->count, sizeof(id), compare_u32);

	if (found)
		note_claim(reader, &few->claims[found - few->ids], owner);
}

uint8_t reader_take_claim(uint64_t claim, uint64_t *ret_owner)
{
	uint64_t rest = claim & (OWNER_END - 1);

	*ret_owner = rest ? OWNER_END - rest : 0;
	return claimed_number(claim);
}

void reader_take_claims(uint64_t *claims, size_t count, uint8_t *patterns)
{
	/* Untouched pages of either array stay so. */
	for (size_t i = 0; i < count; i++)
		if (claims[i])
			patterns[i] = reader_take_claim(claims[i], &claims[i]);
}

uint64_t reader_owner(const struct reader *reader, allocation_id id)
{
	size_t place;

	return reader->owners && find_place(reader, id, &place) ? reader->owners[place] : 0;
}

bool reader_has_claim(const struct reader *reader, allocation_id id)
{
	size_t place;

	if (!find_place(reader, id, &place))
		return false;
	if (reader->claims)
		return claimed_number(reader->claims[place]) == reader->number;
	return reader->patterns[place] == reader->number;
}

static bool is_stronger(uint8_t number, uint8_t other)
{
	enum strength strength = classifiers[number - 1]->strength;

	if (other == NO_PATTERN || strength > classifiers[other - 1]->strength)
		return true;
	return strength == classifiers[other - 1]->strength && number < other;
}

void reader_claim(struct reader *reader, allocation_id id, uint64_t owner)
{
	uint8_t *place, before;
	size_t number;

	if (runtimes_are_certain(reader->runtimes, id))
		return;
	if (reader->few) {
		note_claim_to_few(reader, id, owner);
		return;
	}
	if (!find_place(reader, id, &number))
		return;
	if (reader->claims) {
		note_claim(reader, &reader->claims[number], owner);
		return;
	}
	if (reader->owners) {
		note_owner(reader, number, owner);
		return;
	}
	place = &reader->patterns[number];
	before = __atomic_load_n(place, __ATOMIC_RELAXED);
	while (is_stronger(reader->number, before) &&
	       !__atomic_compare_exchange_n(place, &before, reader->number, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}
