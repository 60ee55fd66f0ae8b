#include "analyzer/classify/text_words.h"

/* True if a word of text is an address, too. */
static bool is_address_too(struct reader *reader, uint64_t word)
{
	static const uint64_t LEAST = 1 << 16;

	return word >= LEAST && image_may_address(reader->image, word) &&
	       image_find(reader->image, word);
}

/*
 * Text overwrote the first of the links, but the allocator puts two of a kind there: ask of the
 * second one as if it were both.
 */
unsigned int text_find_stale(struct reader *reader, const struct subject *subject)
{
	uint64_t words[STALE_WORDS] = { 0 }, start = subject->range.start;
	const unsigned int word = reader->word;
	unsigned int stale;

	for (unsigned int i = 0; i < STALE_WORDS && (i + 1) * word <= subject->size; i++)
		words[i] = load_word(subject->bytes + i * word, word);
	stale = allocation_stale_links(reader->index, start, words);
	words[0] = words[1];
	return stale | (allocation_stale_links(reader->index, start, words) & ~1u);
}

bool text_has_address(struct reader *reader, const struct subject *subject, uint64_t start,
		      uint64_t size, unsigned int stale)
{
	const unsigned int word = reader->word;

	for (uint64_t i = start; i + word <= size; i += word)
		if (!(i / word < STALE_WORDS && stale >> i / word & 1) &&
		    is_address_too(reader, load_word(subject->bytes + i, word)))
			return true;
	return false;
}
