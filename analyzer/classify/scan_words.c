#include "analyzer/classify/classifier.h"
#include "analyzer/classify/scan_parts.h"

/* Whether the holder is an allocation that begins by a link to its like. */
static bool is_inner_link(const struct reference *reference)
{
	uint64_t target = range_size(reference->range);
	uint64_t source = range_size(reference->holder);

	return reference->source != NO_ALLOCATION &&
	       reference->address == reference->holder.start && target + 16 - source <= 32;
}

static void note_reference(struct scan *scan, const struct reference *reference, bool counted)
{
	struct overview *overview = &scan->overview;
	allocation_id target = reference->target;

	if (!is_inner_link(reference))
		bitmap_set_atomic(&overview->held, target);
	if (!counted)
		return;
	if (bitmap_set_was_atomic(&overview->referred, target))
		bitmap_set_atomic(&overview->referred_twice, target);
}

static void show_reference(struct scan *scan, struct scanner *scanner,
			   const struct reference *reference, uint64_t offset, size_t place)
{
	const struct matchers *matchers = &scan->matchers;
	uint64_t suspects = scanner->suspects[place] & matchers->at[offset / 8];

	if (offset == 0 && scan->overview.held.words)
		note_reference(scan, reference, scanner->counted[place]);
	for (; suspects; suspects &= suspects - 1) {
		uint8_t number = matchers->numbers[__builtin_ctzll(suspects)];

		scanner->reader.number = number;
		classifiers[number - 1]->match(&scanner->reader, reference);
	}
}

void scan_look_up(struct scan *scan, struct scanner *scanner)
{
	allocation_id targets[MOST_ADDRESSES];

	allocation_find_many(scan->input->index, scanner->words, scanner->count,
			     &scanner->reader.hint, targets);
	for (size_t i = 0; i < scanner->count; i++) {
		struct reference *reference = &scanner->references[i];
		uint64_t offset;

		if (targets[i] == NO_ALLOCATION || targets[i] == reference->source ||
		    !bitmap_get(scan->used, targets[i]))
			continue;
		reference->target = targets[i];
		reference->range = allocation_range_near(scan->input->index, targets[i],
							 &scanner->reader.hint);
		offset = scanner->words[i] - reference->range.start;
		if (offset <= MOST_OFFSET)
			show_reference(scan, scanner, reference, offset, i);
	}
	scanner->count = 0;
}

/*
 * The words from address on that may be references, by bit; *ret_count is how many words that is,
 * most at most. bytes is at address, in the region of the sources read last.
 */
static uint64_t filter_words(const struct scan *scan, struct scanner *scanner, uint64_t address,
			     const uint8_t *bytes, uint64_t most, size_t *ret_count)
{
	const struct view *view = &scanner->sources;
	struct row *row = &scanner->row;
	uint64_t start = address & ~(uint64_t)(FILTER_BYTES - 1);
	size_t first = (address - start) / 8;
	size_t count = most < FILTER_WORDS - first ? most : FILTER_WORDS - first;

	*ret_count = count;
	if (!row->known || start != row->start) {
		if (address % 8 != 0 || start - view->start >= view->size ||
		    view->size - (start - view->start) < FILTER_BYTES)
			return word_filter_mask(&scan->filter, bytes, count);
		row->mask =
			word_filter_mask(&scan->filter, bytes - (address - start), FILTER_WORDS);
		row->start = start;
		row->known = true;
	}
	return row->mask >> first & ~UINT64_C(0) >> (FILTER_WORDS - count);
}

/* Put which words each matcher suspects into suspected; those of any? */
static uint64_t find_suspects(const struct scan *scan, struct scanner *scanner,
			      const struct reference *first, uint64_t mask)
{
	const struct matchers *matchers = &scan->matchers;
	uint64_t all = 0;

	for (size_t i = 0; i < matchers->count; i++) {
		uint64_t bits = mask;

		if (matchers->suspects[i])
			bits = matchers->suspects[i](&scanner->reader, first, mask);
		scanner->suspected[i] = bits;
		all |= bits;
	}
	return all;
}

static uint64_t suspects_of(const struct scan *scan, const struct scanner *scanner,
			    unsigned int bit)
{
	uint64_t who = 0;

	for (size_t i = 0; i < scan->matchers.count; i++)
		who |= (scanner->suspected[i] >> bit & 1) << i;
	return who;
}

/* Collect those of the words that mask names, from the first reference on. */
static void collect_words(struct scan *scan, struct scanner *scanner, const struct reference *first,
			  uint64_t mask, bool counted)
{
	uint64_t all = find_suspects(scan, scanner, first, mask);

	/* The overview has all references. */
	if (scan->overview.held.words)
		all = mask;
	for (; all; all &= all - 1) {
		unsigned int bit = (unsigned int)__builtin_ctzll(all);
		struct reference *reference = &scanner->references[scanner->count];
		uint64_t word;

		memcpy(&word, first->bytes + 8 * (size_t)bit, sizeof(word));
		if (word % 8 != 0)
			continue;
		*reference = *first;
		reference->address += 8 * (uint64_t)bit;
		reference->bytes += 8 * (size_t)bit;
		scanner->words[scanner->count] = word;
		scanner->suspects[scanner->count] = suspects_of(scan, scanner, bit);
		scanner->counted[scanner->count] = counted;
		if (++scanner->count == MOST_ADDRESSES)
			scan_look_up(scan, scanner);
	}
}

void scan_words(struct scan *scan, struct scanner *scanner, struct memory_range holder,
		uint64_t start, const uint8_t *bytes, uint64_t size, allocation_id source,
		bool counted)
{
	size_t count;

	for (uint64_t i = 0; i + 8 <= size; i += 8 * count) {
		uint64_t mask =
			filter_words(scan, scanner, start + i, bytes + i, (size - i) / 8, &count);

		if (mask)
			collect_words(scan, scanner,
				      &(struct reference){
					      .address = start + i,
					      .bytes = bytes + i,
					      .holder = holder,
					      .source = source,
				      },
				      mask, counted);
	}
}
