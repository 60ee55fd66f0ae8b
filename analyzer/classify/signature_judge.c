#include "analyzer/classify/signature_judge.h"

#include "analyzer/base/address_map.h"
#include "analyzer/classify/literal.h"
#include "analyzer/image/view.h"

#include <string.h>

enum {
	WORD = sizeof(uint64_t),
	/* What refers to something does so early. */
	SEARCHED = 64 * WORD,
	SEARCHED_UNNAMED = 4 * WORD,
	CODE_ALIGNMENT = 16,
	NUMBER_ALIGNMENT = 4,
	/* A constant that objects of so many sizes begin with is no type. */
	MANY_SIZES = 5,
	/* No object of one class is as large as those of so many others. */
	MANY_CLASSES = 4,
};

/* Some first words of blocks of one size. */
struct beginnings {
	uint64_t words[MANY_CLASSES];
};

enum verdict { REFUSED, ACCEPTED, UNSURE };

struct signature_judge {
	struct signature_judge_input input;
	struct address_map verdicts;
	/* By number: a bit for each size, in steps of 16 bytes, modulo 64. */
	bool counted;
	struct address_map map;
	struct memory sizes; /* uint64_t */
	/* Of large blocks, by size. */
	struct address_map blocks;
	struct memory beginnings; /* struct beginnings */
};

struct error *signature_judge_create(const struct signature_judge_input *input,
				     struct signature_judge **ret)
{
	struct signature_judge *judge = calloc(1, sizeof(*judge));

	if (!judge)
		return &error_no_memory;
	judge->input = *input;
	judge->verdicts.memory.account = input->account;
	judge->map.memory.account = input->account;
	judge->blocks.memory.account = input->account;
	judge->beginnings.account = input->account;
	judge->sizes.account = input->account;
	*ret = judge;
	return NULL;
}

void signature_judge_destroy(struct signature_judge *judge)
{
	table_release(&judge->verdicts);
	table_release(&judge->map);
	memory_release(&judge->sizes);
	table_release(&judge->blocks);
	memory_release(&judge->beginnings);
	free(judge);
}

/* Whether one of the words from start on is an address in a module. */
static bool refers(const struct signature_judge *judge, uint64_t start, uint64_t size)
{
	for (uint64_t offset = 0; offset + WORD <= size; offset += WORD) {
		uint64_t word;

		if (!image_read_u64(judge->input.image, start + offset, &word))
			return false;
		if (program_find_module(judge->input.program, word))
			return true;
	}
	return false;
}

/* A link of a free list of which one or two bytes were written over still leads near the arena. */
static bool may_be_link(const struct signature_judge *judge, uint64_t word)
{
	enum { OVERWRITTEN_BITS = 16 };
	uint64_t links = judge->input.links;

	return literal_overwrote(word) || (links && (word ^ links) >> OVERWRITTEN_BITS == 0);
}

static enum verdict judge_named(const struct signature_judge *judge, uint64_t word,
				const struct region *region, const struct symbol *symbol)
{
	uint64_t left = symbol->start + symbol->size - word;

	if (region->rights & RIGHT_EXECUTE)
		return symbol->start == word ? ACCEPTED : REFUSED;
	if (symbol->start != word && (word % NUMBER_ALIGNMENT != 0 || may_be_link(judge, word)))
		return REFUSED;
	if (symbol->size == 0)
		return ACCEPTED;
	return refers(judge, word, left < SEARCHED ? left : SEARCHED) ? ACCEPTED : UNSURE;
}

/* Without symbols, a table is known by what it refers to. */
static bool judge_unnamed(const struct signature_judge *judge, uint64_t word,
			  const struct region *region)
{
	struct debug *debug = judge->input.debug;
	uint64_t available;

	if (may_be_link(judge, word) || !program_find_module(judge->input.program, word))
		return false;
	if (debug_has_all_symbols(debug, word))
		return false;
	if (region->rights & RIGHT_EXECUTE)
		return word % CODE_ALIGNMENT == 0;
	if (!image_bytes(judge->input.image, word, &available))
		return true;
	return word % WORD == 0 && refers(judge, word, SEARCHED_UNNAMED);
}

static enum verdict find_verdict(struct signature_judge *judge, uint64_t word)
{
	const struct image *image = judge->input.image;
	const struct region *region = image_find(image, word);
	struct symbol symbol;
	size_t length;

	if (classes_is_class(judge->input.classes, word) ||
	    classes_is_slab(judge->input.classes, word))
		return ACCEPTED;
	if (!region)
		return REFUSED;
	if (!(region->rights & RIGHT_EXECUTE) && !may_be_link(judge, word) &&
	    literal_find(image, word, &length))
		return ACCEPTED;
	if (debug_symbol(judge->input.debug, word, &symbol))
		return judge_named(judge, word, region, &symbol);
	return judge_unnamed(judge, word, region) ? ACCEPTED : REFUSED;
}

/* The entry for the key, all 0 if it is new, of a list of such. */
static struct error *find_entry(struct address_map *map, struct memory *list, size_t size,
				uint64_t key, void **ret)
{
	uint32_t number = address_map_find(map, key);
	struct error *error;

	if (number == NOT_IN_MAP) {
		number = (uint32_t)map->count;
		error = memory_reserve(list, (number + 1) * size);
		if (!error)
			error = address_map_add(map, key, number);
		if (error)
			return error;
		memset((char *)list->bytes + number * size, 0, size);
	}
	*ret = (char *)list->bytes + number * size;
	return NULL;
}

/* Add a size to those of objects that begin with the word. */
static struct error *add_size(struct signature_judge *judge, uint64_t word, uint64_t size)
{
	struct beginnings *beginnings;
	struct error *error;
	uint64_t *sizes;

	error = find_entry(&judge->map, &judge->sizes, sizeof(*sizes), word, (void **)&sizes);
	if (error)
		return error;
	*sizes |= UINT64_C(1) << (size / 16 % 64);
	if (size < LEAST_SLAB)
		return NULL;
	error = find_entry(&judge->blocks, &judge->beginnings, sizeof(*beginnings), size,
			   (void **)&beginnings);
	for (size_t i = 0; !error && i < MANY_CLASSES; i++) {
		if (beginnings->words[i] == word)
			break;
		if (beginnings->words[i])
			continue;
		if (classes_is_class(judge->input.classes, word))
			beginnings->words[i] = word;
		break;
	}
	return error;
}
/*
 * The sizes of the first allocations, by what they begin with: enough to see whether there are
 * many.
 */
static void count_sizes(struct signature_judge *judge)
{
	enum { MOST = 1 << 20 };
	const struct allocation_index *index = judge->input.index;
	struct view view = { judge->input.image };
	size_t hint = 0, looked_at = 0;

	judge->counted = true;
	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);
		struct error *error = NULL;
		uint64_t word;

		if (looked_at++ == MOST)
			break;
		if (view_word(&view, range.start, &word) &&
		    program_find_module(judge->input.program, word))
			error = add_size(judge, word, range.end - range.start);
		if (!error)
			continue;
		error_destroy(error);
		break;
	}
}

static bool has_many_sizes(struct signature_judge *judge, uint64_t word)
{
	uint32_t number;

	if (!judge->counted)
		count_sizes(judge);
	number = address_map_find(&judge->map, word);
	return number != NOT_IN_MAP &&
	       bits_count(((uint64_t *)judge->sizes.bytes)[number]) >= MANY_SIZES;
}

bool signature_judge_is_size_of_many(struct signature_judge *judge, uint64_t size)
{
	uint32_t number;

	if (!judge->counted)
		count_sizes(judge);
	number = address_map_find(&judge->blocks, size);
	return number != NOT_IN_MAP &&
	       ((struct beginnings *)judge->beginnings.bytes)[number].words[MANY_CLASSES - 1] != 0;
}

bool signature_judge_accepts(struct signature_judge *judge, uint64_t word)
{
	uint32_t known = address_map_find(&judge->verdicts, word);
	struct error *error;
	enum verdict verdict;

	if (known != NOT_IN_MAP)
		return known == ACCEPTED;
	verdict = find_verdict(judge, word);
	if (verdict == UNSURE)
		verdict = has_many_sizes(judge, word) ? REFUSED : ACCEPTED;
	error = address_map_add(&judge->verdicts, word, verdict);
	if (error)
		error_destroy(error);
	return verdict == ACCEPTED;
}
