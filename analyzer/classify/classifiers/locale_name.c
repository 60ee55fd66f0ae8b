#include "analyzer/classify/classifier.h"

/*
 * glibc, locale/setlocale.c: libc's variable has the name of the locale for each category, 13 of
 * them, and after setlocale(LC_ALL) all the same.
 */
enum { LONGEST_NAME = 256 };

static bool is_name(struct reader *reader, struct memory_range range)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-@/;=+:";
	uint64_t size;
	const uint8_t *bytes = reader_bytes(reader, range.start, &size);
	const uint8_t *end;

	if (!bytes || range_size(range) > LONGEST_NAME)
		return false;
	if (size > range_size(range))
		size = range_size(range);
	end = memchr(bytes, 0, size);
	return end && end > bytes &&
	       strspn((const char *)bytes, allowed) == (size_t)(end - bytes) &&
	       reader_fits(reader, range, (uint64_t)(end - bytes) + 1);
}

static bool may_match(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[3];

	return reference_words(reference, -1, 3, words) && words[0] == words[1] &&
	       words[1] == words[2];
}

static uint64_t suspect(const struct reader *reader, const struct reference *first, uint64_t mask)
{
	if (first->source != NO_ALLOCATION)
		return 0;
	return references_filter(reader, first, mask, may_match);
}

static void match(struct reader *reader, const struct reference *reference)
{
	if (reference->source == NO_ALLOCATION && may_match(reader, reference) &&
	    is_name(reader, reference->range) && reader_in_module(reader, reference->address))
		reader_claim(reader, reference->target, reference->address);
}

const struct classifier classifier_locale_name = {
	.name = "LocaleName",
	.summary = "the name of the locale that setlocale() chose",
	.role = "the name of the locale, kept",
	.strength = STRENGTH_SPAN,
	.match = match,
	.suspect = suspect,
};
