#include "analyzer/classify/reference_judge.h"

#include "analyzer/base/list.h"
#include "analyzer/classify/classifier.h"

void reference_judge_init(struct reference_judge *judge, const struct patterns *patterns)
{
	judge->patterns = patterns;
	patterns_init_reader(patterns, &judge->reader);
}

void reference_judge_set_source(struct reference_judge *judge, allocation_id source)
{
	const struct allocation_index *index = judge->reader.index;
	uint64_t start = allocation_start(index, source);

	judge->source_id = source;
	judge->space = runtimes_space_of(judge->reader.runtimes, source);
	if (judge->space && !judge->space->runtime->may_refer)
		judge->space = NULL;
	judge->source = (struct memory_range){ start, start + allocation_size(index, source) };
	judge->has_facts = patterns_tell(judge->patterns, &judge->reader, source, &judge->facts);
}

/*
 * A short string keeps its text in itself, behind the pointer to it and its length: 16 bytes, of
 * which the last 8 are unused if the length is less.
 */
static bool is_behind_short_text(struct reader *reader, struct memory_range range, uint64_t address)
{
	uint64_t words[2]; /* the pointer to the text, and its length */

	const uint64_t before = 2 * (uint64_t)reader->word;

	return address - range.start >= before + 8 &&
	       reader_words(reader, address - 8 - before, 2, words) && words[0] == address - 8 &&
	       words[1] < 8;
}

const char *reference_judge_taint(struct reference_judge *judge, uint64_t offset)
{
	const struct pattern_facts *facts = &judge->facts;

	if (judge->has_facts && facts->dead &&
	    (offset < facts->live_start || offset >= facts->live_end))
		return facts->dead;
	if (judge->space &&
	    !judge->space->runtime->may_refer(judge->space, judge->source_id, offset))
		return "part of the object that holds no references";
	if (is_behind_short_text(&judge->reader, judge->source, judge->source.start + offset))
		return "unused buffer of a short string";
	return NULL;
}

bool reference_judge_favors(struct reference_judge *judge, uint64_t offset, allocation_id target)
{
	pattern_number number = patterns_of(judge->patterns, target);
	uint64_t owner = patterns_owner(judge->patterns, target);
	const struct allocation_index *index = judge->reader.index;
	uint64_t start;

	if (number == NO_PATTERN || !classifiers[number - 1]->favors || !owner)
		return true;
	start = allocation_start(index, target);
	judge->reader.number = number;
	return classifiers[number - 1]->favors(
		&judge->reader,
		(struct memory_range){ start, start + allocation_size(index, target) }, owner,
		judge->source.start + offset);
}

bool favors_first_word(struct reader *reader, struct memory_range range, uint64_t owner,
		       uint64_t address)
{
	return address == owner;
}

bool patterns_is_tainted(const struct patterns *patterns, allocation_id source, uint64_t offset,
			 const char **ret_part)
{
	struct reference_judge judge;
	const char *part;

	reference_judge_init(&judge, patterns);
	reference_judge_set_source(&judge, source);
	part = reference_judge_taint(&judge, offset);
	if (part && ret_part)
		*ret_part = part;
	return part != NULL;
}

/*
 * In what part of the source all its references to target are tainted; NULL if there is an
 * untainted one.
 */
static const char *reference_judge_find_taint(struct reference_judge *judge, allocation_id target)
{
	const struct allocation_index *index = judge->reader.index;
	uint64_t start = allocation_start(index, target);
	uint64_t size = allocation_size(index, target), word;
	const char *found = NULL;

	for (uint64_t at = judge->source.start; judge->source.end - at >= 8; at += 8) {
		if (!reader_word(&judge->reader, at, &word) || word - start >= size)
			continue;
		found = reference_judge_taint(judge, at - judge->source.start);
		if (!found)
			break;
	}
	return found;
}

const char *patterns_find_taint(const struct patterns *patterns, allocation_id source,
				allocation_id target)
{
	struct reference_judge judge;

	reference_judge_init(&judge, patterns);
	reference_judge_set_source(&judge, source);
	return reference_judge_find_taint(&judge, target);
}

/* The offset of the next word, from there on, that may be a reference. */
static bool next_word(struct reference_judge *judge, uint64_t *offset, uint64_t *ret)
{
	struct reader *reader = &judge->reader;
	uint64_t size = range_size(judge->source);

	for (; size - *offset >= sizeof(*ret); *offset += sizeof(*ret))
		if (reader_word(reader, judge->source.start + *offset, ret) &&
		    heap_bounds_hold(&reader->bounds, *ret))
			return true;
	return false;
}

bool reference_judge_finds_taint(struct reference_judge *judge)
{
	uint64_t offset = 0, word;

	for (; next_word(judge, &offset, &word); offset += sizeof(word))
		if (reference_judge_taint(judge, offset))
			return true;
	return false;
}

/* Addresses that words of the source have, and where these stand in it. */
struct words {
	uint64_t addresses[MOST_ADDRESSES], offsets[MOST_ADDRESSES];
	size_t count;
};

static bool collect(struct reference_judge *judge, uint64_t *offset, struct words *ret)
{
	ret->count = 0;
	while (ret->count < MOST_ADDRESSES &&
	       next_word(judge, offset, &ret->addresses[ret->count])) {
		ret->offsets[ret->count++] = *offset;
		*offset += sizeof(uint64_t);
	}
	return ret->count > 0;
}

struct error *reference_judge_visit_untainted(struct reference_judge *judge,
					      struct error *(*visit)(void *data,
								     allocation_id target),
					      void *data)
{
	struct reader *reader = &judge->reader;
	allocation_id targets[MOST_ADDRESSES];
	uint64_t offset = 0;
	struct words words;

	while (collect(judge, &offset, &words)) {
		allocation_find_many(reader->index, words.addresses, words.count, &reader->hint,
				     targets);
		for (size_t i = 0; i < words.count; i++)
			if (targets[i] != NO_ALLOCATION && bitmap_get(reader->used, targets[i]) &&
			    !reference_judge_taint(judge, words.offsets[i]))
				TRY(visit(data, targets[i]));
	}
	return NULL;
}

enum {
	KEPT_SOURCES = 4,
	LARGE = 4096, /* bytes; smaller ones are quickly read again */
};

struct kept_source {
	allocation_id id;
	struct bitmap targets; /* of its untainted references */
};

struct taint_memory {
	struct reference_judge judge;
	struct kept_source kept[KEPT_SOURCES];
	size_t oldest;
};

struct error *taint_memory_create(const struct patterns *patterns, struct memory_account *account,
				  struct taint_memory **ret)
{
	_cleanup_(taint_memory_destroy) struct taint_memory *memory = calloc(1, sizeof(*memory));

	TRY_MEMORY(memory);
	reference_judge_init(&memory->judge, patterns);
	list_for_each(kept, memory->kept, KEPT_SOURCES) {
		TRY(bitmap_init(&kept->targets, allocation_count(memory->judge.reader.index),
				account));
		kept->id = NO_ALLOCATION;
	}
	*ret = take(memory);
	return NULL;
}

void taint_memory_destroy(struct taint_memory *memory)
{
	for (size_t i = 0; i < KEPT_SOURCES; i++)
		bitmap_deinit(&memory->kept[i].targets);
	free(memory);
}

static struct error *add_target(void *data, allocation_id target)
{
	bitmap_set(data, target);
	return NULL;
}

static struct error *remove_target(void *data, allocation_id target)
{
	bitmap_clear(data, target);
	return NULL;
}

/* The targets of the source, kept in place of those of the oldest. No visit ends with an error. */
static const struct bitmap *untainted_targets(struct taint_memory *memory, allocation_id source)
{
	struct reference_judge *judge = &memory->judge;
	struct kept_source *kept;

	for (size_t i = 0; i < KEPT_SOURCES; i++)
		if (memory->kept[i].id == source)
			return &memory->kept[i].targets;
	kept = &memory->kept[memory->oldest++ % KEPT_SOURCES];
	if (kept->id != NO_ALLOCATION) {
		reference_judge_set_source(judge, kept->id);
		reference_judge_visit_untainted(judge, remove_target, &kept->targets);
	}
	reference_judge_set_source(judge, source);
	reference_judge_visit_untainted(judge, add_target, &kept->targets);
	kept->id = source;
	return &kept->targets;
}

const char *taint_memory_find(struct taint_memory *memory, allocation_id source,
			      allocation_id target)
{
	struct reference_judge *judge = &memory->judge;

	if (allocation_size(judge->reader.index, source) >= LARGE &&
	    bitmap_get(untainted_targets(memory, source), target))
		return NULL;
	reference_judge_set_source(judge, source);
	return reference_judge_find_taint(judge, target);
}
