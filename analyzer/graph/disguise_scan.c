#include "analyzer/graph/disguise_scan.h"

#include "analyzer/base/sort.h"
#include "analyzer/heap/word_filter.h"

#include <stdlib.h>
#include <string.h>

enum {
	WORD = 8,
	PIECE = 1 << 16, /* of what is found within, the surest counts */
};

struct decoding {
	const char *name;
	bool is_end; /* the address is that of the last byte, not the first */
	/* True if the words around place confirm the address. */
	bool (*check)(struct disguise_scanner *scanner, uint64_t place, uint64_t address);
};

static const struct decoding decodings[DISGUISES];

static bool check_nothing(struct disguise_scanner *scanner, uint64_t place, uint64_t address)
{
	return true;
}

/* With zeros behind it, it is a whole pointer, packed. */
static bool check_shifted(struct disguise_scanner *scanner, uint64_t place, uint64_t address)
{
	uint16_t behind;

	return !view_read(&scanner->view, place + WORD, &behind, sizeof(behind)) || behind != 0;
}

/* A pointer to what is in use there means that. */
static bool check_nowhere(struct disguise_scanner *scanner, uint64_t place, uint64_t address)
{
	uint64_t word;

	return view_word(&scanner->view, place, &word) &&
	       allocation_find(scanner->input->index, word) == NO_ALLOCATION;
}

/* At the end of a page, another mapping may begin, such as a library. */
static bool check_end(struct disguise_scanner *scanner, uint64_t place, uint64_t address)
{
	enum { SMALLEST_PAGE = 4096 };

	return (address + 1) % SMALLEST_PAGE != 0 && check_nowhere(scanner, place, address);
}

/* Decode as an array that begins with index 1, of elements of up to 8 bytes. */
static uint64_t decode_before(uint64_t word)
{
	enum { ALIGNMENT = 16 };
	uint64_t before = ALIGNMENT - word % ALIGNMENT;

	return before <= WORD && (before & (before - 1)) == 0 ? word + before : 0;
}

static const struct decoding decodings[DISGUISES] = {
	[DISGUISE_TAGGED] = { "a tagged pointer", false, check_nothing },
	[DISGUISE_SHIFTED] = { "a pointer above a tag of 16 bits", false, check_shifted },
	[DISGUISE_PACKED] = { "a pointer packed at an odd address", false, check_nothing },
	[DISGUISE_PAST_END] = { "a pointer one past its end", true, check_end },
	[DISGUISE_BEFORE] = { "a pointer just before its start", false, check_nowhere },
	[DISGUISE_BOXED] = { "a boxed pointer (light userdata)", false, check_nothing },
	[DISGUISE_OFFSET] = { "a pointer relative to its own address" },
};

const char *disguise_name(const struct runtimes *runtimes, uint32_t disguise)
{
	const struct integer_encoding *integer;

	if (disguise < DISGUISES)
		return decodings[disguise].name;
	integer = runtimes_integer(runtimes, disguise - DISGUISES);
	return integer ? integer->name : NULL;
}

void disguise_scanner_init(struct disguise_scanner *scanner, const struct disguises_input *input,
			   const struct address_filter *filter, const struct bitmap *wanted,
			   const struct wanted_ends *ends, const struct wanted_uppers *uppers)
{
	enum { LEAST = 1 << 16 };

	*scanner = (struct disguise_scanner){
		.input = input,
		.filter = filter,
		.wanted = wanted,
		.ends = ends,
		.uppers = uppers,
		.view = { input->image },
		.list.memory.account = input->account,
		.limit = LEAST,
	};
	offset_pointers_init(&scanner->offsets, input->account);
}

void disguise_scanner_deinit(struct disguise_scanner *scanner)
{
	array_release(&scanner->list);
	offset_pointers_deinit(&scanner->offsets);
	error_destroy(scanner->error);
}

DEFINE_COMPARE(compare_order, struct found_disguise, ASCENDING(range), ASCENDING(piece),
	       ASCENDING(disguised.disguise), ASCENDING(disguised.place))

DEFINE_COMPARE(compare_targets, struct found_disguise, ASCENDING(disguised.target),
	       AS_BY(compare_order))

void disguise_scanner_sort(struct disguise_scanner *scanner)
{
	SORT(scanner->list.items, scanner->list.count, compare_order);
}

/* Keep the first place of each target, so that no list is longer than the targets. */
static void drop_repeated(struct disguise_scanner *scanner)
{
	struct found_disguise *list = scanner->list.items;
	size_t left = 0;

	SORT(list, scanner->list.count, compare_targets);
	for (size_t i = 0; i < scanner->list.count; i++)
		if (left == 0 || list[i].disguised.target != list[left - 1].disguised.target)
			list[left++] = list[i];
	scanner->list.count = left;
	scanner->limit = MAX(scanner->limit, 2 * left);
}

static struct error *keep(struct disguise_scanner *scanner, const struct found_disguise *found)
{
	if (scanner->list.count == scanner->limit)
		drop_repeated(scanner);
	return array_append(&scanner->list, *found);
}

struct error *disguise_scanner_join(struct disguise_scanner *scanner,
				    const struct disguise_scanner *other)
{
	for (size_t i = 0; i < other->list.count; i++)
		TRY(keep(scanner, disguise_found(other, i)));
	return offset_pointers_join(&scanner->offsets, &other->offsets);
}

/* The range that has the whole word at place; false: none is looked at. */
static bool find_range(const struct disguise_scanner *scanner, uint64_t place,
		       struct found_disguise *found)
{
	const struct allocation_index *index = scanner->input->index;
	allocation_id id;
	uint64_t start;

	found->range = scanner->root_number;
	if (scanner->root) {
		found->piece = (place - scanner->root->start) / PIECE;
		return true;
	}
	id = allocation_find(index, place);
	if (id == NO_ALLOCATION)
		return false;
	start = allocation_start(index, id);
	found->range += id;
	found->piece = (place - start) / PIECE;
	return allocation_size(index, id) - (place - start) >= WORD &&
	       (!scanner->only || bitmap_get(scanner->only, id));
}

static bool check(struct disguise_scanner *scanner, uint32_t disguise, uint64_t place,
		  uint64_t address)
{
	const struct disguises_input *input = scanner->input;

	if (disguise < DISGUISES)
		return decodings[disguise].check(scanner, place, address);
	return runtimes_integer(input->integers, disguise - DISGUISES)
		->check(input->image, place, address);
}

/* The word at place may be the address in disguise. */
static __attribute__((noinline)) void consider(struct disguise_scanner *scanner, uint32_t disguise,
					       uint64_t place, uint64_t address)
{
	const struct allocation_index *index = scanner->input->index;
	allocation_id id = allocation_find(index, address);
	struct found_disguise found = { .disguised = { place, id, disguise } };
	uint64_t edge;

	if (id == NO_ALLOCATION || !bitmap_get(scanner->wanted, id) ||
	    (scanner->input->targets && !bitmap_get(scanner->input->targets, id)) ||
	    !find_range(scanner, place, &found))
		return;
	edge = allocation_start(index, id);
	if (disguise < DISGUISES && decodings[disguise].is_end)
		edge += allocation_size(index, id) - 1;
	if (edge == address && check(scanner, disguise, place, address) && !scanner->error)
		scanner->error = keep(scanner, &found);
}

/* The word at place, which leads among the wanted, may be the distance to the start of one. */
static __attribute__((noinline)) void consider_offset(struct disguise_scanner *scanner,
						      uint64_t place, uint64_t address)
{
	const struct allocation_index *index = scanner->input->index;
	bool may_have = address_filter_may_have(scanner->filter, address);
	allocation_id id = may_have ? allocation_find(index, address) : NO_ALLOCATION, holder;
	struct found_disguise found;

	if (id != NO_ALLOCATION &&
	    (allocation_start(index, id) != address || !bitmap_get(scanner->wanted, id)))
		id = NO_ALLOCATION;
	if (scanner->error || (id == NO_ALLOCATION && !scanner->root))
		return;
	if (scanner->root) {
		scanner->error = offset_pointers_note_root(&scanner->offsets,
							   (struct offset_root){ place, id });
	} else if (find_range(scanner, place, &found)) {
		holder = (allocation_id)(found.range - scanner->root_number);
		scanner->error =
			offset_pointers_note(&scanner->offsets, allocation_size(index, holder),
					     place - allocation_start(index, holder), id);
	}
}

/*
 * LuaJIT's light userdata, lj_obj.h: a tag of 17 bits, the number of a segment in 8, and the lowest
 * 39 bits of the address. The segments' table has the rest of it, which is that of a wanted one.
 */
enum { TAG_SHIFT = 47 };

static const uint64_t BOXED = UINT64_C(0x1fffc) << TAG_SHIFT;

static inline void try_boxed(struct disguise_scanner *scanner, uint64_t place, uint64_t word)
{
	uint64_t low = word & ((UINT64_C(1) << BOXED_BITS) - 1);

	if (word >> TAG_SHIFT != BOXED >> TAG_SHIFT)
		return;
	for (size_t i = 0; i < scanner->uppers->count; i++) {
		uint64_t address = scanner->uppers->list[i] << BOXED_BITS | low;

		if (address_filter_may_have(scanner->filter, address))
			consider(scanner, DISGUISE_BOXED, place, address);
	}
}

static inline void try_word(struct disguise_scanner *scanner, uint64_t place, uint64_t word)
{
	const struct address_filter *filter = scanner->filter;
	uint64_t address = place + word;

	if (word % WORD == 0 && address - filter->first <= filter->last - filter->first &&
	    scanner->input->disguises & 1U << DISGUISE_OFFSET &&
	    (scanner->root || address_filter_may_have(filter, address)))
		consider_offset(scanner, place, address);
	try_boxed(scanner, place, word);
}

/*
 * Words that may lead to a wanted one from somewhere in the bytes, or be boxed: no zeros. Distances
 * to what is below are the highest values there are, and boxed pointers come next.
 */
static struct word_filter filter_for_words(const struct address_filter *filter, uint64_t place,
					   size_t size)
{
	uint64_t above = filter->last > place ? filter->last - place : 0, below = -BOXED;

	if (place + size > filter->first && place + size - filter->first > below)
		below = place + size - filter->first;
	return word_filter_for((struct heap_bounds){ { 1, -below }, { above, below }, 0 }, WORD);
}

/* Aligned words whose value is no address, but may lead to a wanted one. */
static void scan_words(struct disguise_scanner *scanner, const uint8_t *bytes, size_t size,
		       uint64_t place)
{
	const struct word_filter filter = filter_for_words(scanner->filter, place, size);

	for (size_t at = 0; at + WORD <= size; at += FILTER_BYTES) {
		size_t left = (size - at) / WORD;
		uint64_t mask = word_filter_mask(&filter, bytes + at, MIN(left, FILTER_WORDS));

		for (; mask; mask &= mask - 1) {
			size_t i = at + WORD * (size_t)__builtin_ctzll(mask);
			uint64_t word;

			memcpy(&word, bytes + i, sizeof(word));
			try_word(scanner, place + i, word);
		}
	}
}

static inline void try(struct disguise_scanner *scanner, enum disguise disguise, uint64_t place,
		       uint64_t address)
{
	if (address_filter_may_have(scanner->filter, address) &&
	    scanner->input->disguises & 1U << disguise)
		consider(scanner, disguise, place, address);
}

/* Decoding is called for some words at a time: there is one for every word there is. */
static void scan_integers(struct disguise_scanner *scanner, const uint8_t *bytes, size_t size,
			  uint64_t place, size_t number)
{
	enum { AT_ONCE = 64 };
	const struct integer_encoding *integer = runtimes_integer(scanner->input->integers, number);
	uint64_t words[AT_ONCE], addresses[AT_ONCE];

	for (size_t at = 0, count; integer && at + WORD <= size; at += count * WORD) {
		count = (size - at) / WORD;
		count = MIN(count, AT_ONCE);
		memcpy(words, bytes + at, count * WORD);
		for (size_t way = 0; integer->decode[way]; way++) {
			integer->decode[way](words, count, addresses);
			for (size_t i = 0; i < count; i++)
				if (address_filter_may_have(scanner->filter, addresses[i]))
					consider(scanner, (uint32_t)(DISGUISES + number),
						 place + at + i * WORD, addresses[i]);
		}
	}
}

/* An aligned word that may be near a wanted one. */
static inline void try_near(struct disguise_scanner *scanner, uint64_t place, uint64_t word)
{
	const struct wanted_ends *ends = scanner->ends;

	if (word >= ends->first[word % 16] && word <= ends->last[word % 16])
		try(scanner, DISGUISE_PAST_END, place, word - 1);
	try(scanner, DISGUISE_BEFORE, place, decode_before(word));
}

/* Six bytes at place may be an address: they are the lowest of word. */
static inline void try_place(struct disguise_scanner *scanner, uint64_t place, uint64_t word)
{
	uint64_t address = word & ((UINT64_C(1) << 8 * ADDRESS_BYTES) - 1);

	if (place % WORD == WORD - ADDRESS_BYTES)
		try(scanner, DISGUISE_SHIFTED, place - place % WORD, address);
	if (place % WORD == 0 && address != word)
		try(scanner, DISGUISE_TAGGED, place, address);
	else if (place % WORD == 0)
		try_near(scanner, place, word);
	else if (address == word)
		try(scanner, DISGUISE_PACKED, place, word);
}

static inline void try_places(struct disguise_scanner *scanner, const uint8_t *bytes,
			      uint64_t place, uint64_t mask)
{
	for (; mask; mask &= mask - 1) {
		size_t i = (size_t)__builtin_ctzll(mask);
		uint64_t word;

		memcpy(&word, bytes + i, sizeof(word));
		try_place(scanner, place + i, word);
	}
}

/* Bytes behind the last place that are read, too. */
enum { BEHIND = WORD - 1 };

/* The bytes end within so many places: words that go beyond do not count. */
static void scan_end(struct disguise_scanner *scanner, const uint8_t *bytes, size_t size,
		     uint64_t place)
{
	uint8_t padded[FILTERED + BEHIND] = { 0 };
	size_t places = size - WORD + 1, last = size - size % WORD - WORD;
	uint64_t mask, word;

	memcpy(padded, bytes, size);
	address_filter_look(scanner->filter, padded, 1, &mask);
	try_places(scanner, padded, place, mask & ((UINT64_C(1) << places) - 1));
	/* The upper part of the last aligned word extends to its end. */
	memcpy(&word, padded + last, sizeof(word));
	if (last + WORD - ADDRESS_BYTES >= places)
		try(scanner, DISGUISE_SHIFTED, place + last, word >> 16);
}

static void scan_pointers(struct disguise_scanner *scanner, const uint8_t *bytes, size_t size,
			  uint64_t place)
{
	enum { BLOCKS = 64 };
	uint64_t masks[BLOCKS];

	while (size >= FILTERED + BEHIND) {
		size_t blocks = (size - BEHIND) / FILTERED;

		blocks = MIN(blocks, BLOCKS);
		address_filter_look(scanner->filter, bytes, blocks, masks);
		for (size_t i = 0; i < blocks; i++)
			try_places(scanner, bytes + i * FILTERED, place + i * FILTERED, masks[i]);
		bytes += blocks * FILTERED;
		place += blocks * FILTERED;
		size -= blocks * FILTERED;
	}
	if (size >= WORD)
		scan_end(scanner, bytes, size, place);
}

struct error *disguise_scan(struct disguise_scanner *scanner, const uint8_t *bytes, size_t size,
			    uint64_t place)
{
	const struct runtimes *integers = scanner->input->integers;

	if (scanner->input->disguises & DISGUISED_POINTERS)
		scan_pointers(scanner, bytes, size, place);
	if (scanner->input->disguises & 1U << DISGUISE_BOXED)
		scan_words(scanner, bytes, size, place);
	for (size_t i = 0; integers && i < runtime_count(integers); i++)
		scan_integers(scanner, bytes, size, place, i);
	return take(scanner->error);
}
