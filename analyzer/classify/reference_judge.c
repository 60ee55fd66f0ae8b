#include "analyzer/classify/reference_judge.h"

#include "analyzer/classify/classifier.h"

void reference_judge_init(struct reference_judge *judge,
			  const struct patterns *patterns)
{
	judge->patterns = patterns;
	patterns_init_reader(patterns, &judge->reader);
}

void reference_judge_set_source(struct reference_judge *judge,
				allocation_id source)
{
	const struct allocation_index *index = judge->reader.index;
	uint64_t start = allocation_start(index, source);

	judge->source =
		(struct memory_range){ start,
				       start + allocation_size(index, source) };
	judge->has_facts =
		patterns_tell(judge->patterns, source, &judge->facts);
}

/* A short string keeps its text in itself, 16 bytes that it points at. */
static bool is_behind_short_text(struct reader *reader,
				 struct memory_range range, uint64_t address)
{
	uint64_t words[2]; /* the pointer to the text, and its length */

	return address - range.start >= 24 &&
	       reader_words(reader, address - 24, 2, words) &&
	       words[0] == address - 8 && words[1] < 8;
}

const char *reference_judge_taint(struct reference_judge *judge,
				  uint64_t offset)
{
	const struct pattern_facts *facts = &judge->facts;

	if (judge->has_facts && facts->dead &&
	    (offset < facts->live_start || offset >= facts->live_end))
		return facts->dead;
	if (is_behind_short_text(&judge->reader, judge->source,
				 judge->source.start + offset))
		return "unused buffer of a short string";
	return NULL;
}

bool reference_judge_favors(struct reference_judge *judge, uint64_t offset,
			    allocation_id target)
{
	pattern_number number = patterns_of(judge->patterns, target);
	uint64_t owner = patterns_owner(judge->patterns, target);
	const struct allocation_index *index = judge->reader.index;
	uint64_t start;

	if (number == NO_PATTERN || !classifiers[number - 1]->favors || !owner)
		return true;
	start = allocation_start(index, target);
	return classifiers[number - 1]->favors(
		&judge->reader,
		(struct memory_range){ start,
				       start + allocation_size(index, target) },
		owner, judge->source.start + offset);
}

bool favors_first_word(struct reader *reader, struct memory_range range,
		       uint64_t owner, uint64_t address)
{
	return address == owner;
}

bool patterns_is_tainted(const struct patterns *patterns, allocation_id source,
			 uint64_t offset, const char **ret_part)
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

const char *patterns_find_taint(const struct patterns *patterns,
				allocation_id source, allocation_id target)
{
	struct reference_judge judge;
	const struct allocation_index *index;
	const char *found = NULL;
	uint64_t word, start, size;

	reference_judge_init(&judge, patterns);
	reference_judge_set_source(&judge, source);
	index = judge.reader.index;
	start = allocation_start(index, target);
	size = allocation_size(index, target);
	for (uint64_t at = judge.source.start; judge.source.end - at >= 8;
	     at += 8) {
		if (!reader_word(&judge.reader, at, &word) ||
		    word - start >= size)
			continue;
		found = reference_judge_taint(&judge, at - judge.source.start);
		if (!found)
			break;
	}
	return found;
}

/* Addresses that words of a source have, and where these stand in it. */
struct sound_search {
	struct reference_judge judge;
	uint64_t addresses[MOST_ADDRESSES], offsets[MOST_ADDRESSES];
	size_t count;
	struct error *(*visit)(void *data, allocation_id target);
	void *data;
};

static struct error *look_up(struct sound_search *search)
{
	struct reader *reader = &search->judge.reader;
	allocation_id targets[MOST_ADDRESSES];
	struct error *error = NULL;

	allocation_find_many(reader->index, search->addresses, search->count,
			     &reader->hint, targets);
	for (size_t i = 0; i < search->count && !error; i++)
		if (targets[i] != NO_ALLOCATION &&
		    bitmap_get(reader->used, targets[i]) &&
		    !reference_judge_taint(&search->judge, search->offsets[i]))
			error = search->visit(search->data, targets[i]);
	search->count = 0;
	return error;
}

struct error *patterns_visit_sound(
	const struct patterns *patterns, allocation_id source,
	struct error *(*visit)(void *data, allocation_id target), void *data)
{
	struct sound_search search = { .visit = visit, .data = data };
	struct reader *reader = &search.judge.reader;
	struct error *error = NULL;
	uint64_t start, size, word;

	reference_judge_init(&search.judge, patterns);
	reference_judge_set_source(&search.judge, source);
	start = search.judge.source.start;
	size = range_size(search.judge.source);
	for (uint64_t offset = 0; size - offset >= sizeof(word) && !error;
	     offset += sizeof(word)) {
		if (!reader_word(reader, start + offset, &word) ||
		    !heap_bounds_hold(&reader->bounds, word))
			continue;
		search.addresses[search.count] = word;
		search.offsets[search.count++] = offset;
		if (search.count == MOST_ADDRESSES)
			error = look_up(&search);
	}
	return error ? error : look_up(&search);
}
