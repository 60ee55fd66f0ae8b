#include "analyzer/classify/classifier.h"

/*
 * libstdc++, libsupc++/eh_alloc.cc: memory kept for exceptions that are thrown when there is no
 * other. The library's variable is
 *
 *	mutex | first free entry | pool | size |
 *
 * and an entry begins by its own size.
 */
enum { LEAST_SIZE = 0x1000 };

static bool may_be_pool(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[3];

	return reference->source == NO_ALLOCATION && reference_words(reference, -1, 3, words) &&
	       heap_bounds_hold(&reader->bounds, words[0]) && words[2] >= LEAST_SIZE;
}

DEFINE_SUSPECT(suspect, may_be_pool)

static void match(struct reader *reader, const struct reference *reference)
{
	struct memory_range range = reference->range;
	uint64_t words[3]; /* first entry, pool, size */
	uint64_t entry;

	if (reference_words(reference, -1, 3, words) &&
	    words[0] - range.start < range_size(range) && reader_fits(reader, range, words[2]) &&
	    reader_word(reader, words[0], &entry) && entry <= range.start + words[2] - words[0] &&
	    reader_in_module(reader, reference->address))
		reader_claim(reader, reference->target, reference->address - reader->word);
}

CLASSIFIER(exception_pool, "ExceptionPool", "libstdc++'s reserve for exceptions when memory is out",
	   "libstdc++'s pool for exceptions, whose variable is", .strength = STRENGTH_LINKED,
	   .narrow = true, .for_cxx = true, .is_reserve = true, .match = match, .suspect = suspect,
	   .numbers = { .owner = 1 << 2, .own = 1 << 0 });
