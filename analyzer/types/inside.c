#include "analyzer/types/typing_parts.h"

#include "analyzer/base/bytes.h"

/*
 * A stack or arena of bytes holds values of several types, which code reaches by adding a number
 * to a "char *":
 *
 *	struct stack { char *end; };      struct value *top = (struct value *)(stack->end + at);
 *
 * Which types these are is known by evidence in the code (casts.h); where values of them stand, by
 * what they look like. Those that refer to something just as large as they say come first, what
 * has but members of unions takes what is left.
 */

enum {
	MOST_WORDS = 1 << 16, /* of a block */
	MOST_TESTS = 1 << 28, /* words of values, in all blocks */
	MOST_CANDIDATES = 16,
	LEAST_WORDS = 2,
};

struct search {
	struct typing *typing;
	const struct entered *entered;
	struct memory_range range;
	uint64_t words;	      /* in the range */
	ARRAY(uint8_t) taken; /* by word */
	uint64_t tests;
};

/* True if the slot's target may begin there: an allocation without a type may begin with it. */
static bool may_lead_to(const struct typing *typing, const struct slot *slot, uint64_t word)
{
	allocation_id id = find_used(typing, word);

	return id == NO_ALLOCATION ||
	       (word == allocation_start(typing->input.index, id) &&
		(known_fit(typing, id) == FIT_NONE || known_type(typing, id) == slot->target ||
		 type_begins_with(typing, known_type(typing, id), slot->target)));
}

/* Set *ret if each pointer in a union may lead to what one of the union's members there does. */
static struct error *do_choices_agree(struct typing *typing, uint64_t address, type_number number,
				      bool *ret)
{
	const struct slot *slots;
	size_t count;

	*ret = true;
	TRY(slots_of(&typing->slots, number, &slots, &count));
	for (size_t i = 0, next; *ret && i < count; i = next) {
		uint64_t word;

		if (!read_word(typing, address + slots[i].offset, &word))
			word = 0;
		*ret = !slots[i].is_choice;
		for (next = i; next < count && slots[next].offset == slots[i].offset; next++)
			*ret |= may_lead_to(typing, &slots[next], word);
	}
	return NULL;
}

static bool is_free(const struct search *search, uint64_t word, uint64_t size)
{
	for (uint64_t i = 0; i * search->typing->word < size; i++)
		if (search->taken.items[word + i])
			return false;
	return true;
}

/* Among types whose value may be at the word, find the one with most right pointers. */
static struct error *find_at(struct search *search, uint64_t word, const struct cast *casts,
			     size_t count, bool are_exact, type_number *ret)
{
	struct typing *typing = search->typing;
	uint64_t address = search->range.start + word * typing->word;
	uint32_t most = 0;

	*ret = NO_TYPE;
	for (size_t i = 0; i < count; i++) {
		uint64_t size = typing_type(typing, casts[i].type)->size;
		struct conformity conformity;
		bool is_agreed;

		if (size < LEAST_WORDS * typing->word || size > search->range.end - address ||
		    !is_free(search, word, size))
			continue;
		search->tests += size / typing->word;
		TRY(typing_conforms(typing, address, casts[i].type, &conformity));
		if (conformity.is_violated || conformity.doubtful || conformity.confirmed <= most ||
		    (are_exact && !conformity.exact))
			continue;
		TRY(do_choices_agree(typing, address, casts[i].type, &is_agreed));
		if (!is_agreed)
			continue;
		most = conformity.confirmed;
		*ret = casts[i].type;
	}
	return NULL;
}

static struct error *search_block(struct search *search, const struct cast *casts, size_t count,
				  bool are_exact)
{
	struct typing *typing = search->typing;

	for (uint64_t word = 0; word < search->words && search->tests < MOST_TESTS; word++) {
		struct headed found = { .address = search->range.start + word * typing->word,
					.in = search->entered->id,
					.step = search->entered->step };
		type_number type;

		TRY(find_at(search, word, casts, count, are_exact, &type));
		if (type == NO_TYPE)
			continue;
		found.type = type;
		found.context = typing_enter_context(
			typing, search->entered->context, hash_add(INSIDE_OF(0), type),
			typing->paths.items[search->entered->context].place);
		TRY(typing_add_region(typing, &found, type));
		for (uint64_t i = 0; i * typing->word < typing_type(typing, type)->size; i++)
			search->taken.items[word + i] = true;
	}
	return NULL;
}

struct error *typing_search_inside(struct typing *typing, const struct casts *casts)
{
	struct search search = { .typing = typing };
	struct error *error;

	search.taken.memory.account = typing->input.account;
	error = array_resize(&search.taken, MOST_WORDS);
	for (size_t i = 0; !error && i < typing->entered.count; i++) {
		const struct entered *entered = &typing->entered.items[i];
		uint32_t place = typing->paths.items[entered->context].place;
		const struct cast *found;
		uint64_t words;
		size_t count;

		if (known_fit(typing, entered->id) != FIT_NONE || place >= INSIDE_OF(0))
			continue;
		count = casts_of(casts, INSIDE_OF(place), &found);
		search.entered = entered;
		search.range = range_of(typing, entered->id);
		words = (search.range.end - search.range.start + typing->word - 1) / typing->word;
		if (count == 0 || count > MOST_CANDIDATES || words > MOST_WORDS)
			continue;
		memset(search.taken.items, 0, words);
		search.words = words;
		error = search_block(&search, found, count, true);
		if (!error)
			error = search_block(&search, found, count, false);
	}
	typing->entered.count = 0;
	array_release(&search.taken);
	return error;
}
