/*
 * The texts of std::string. For what the strings look like, see cxx.c.
 */
#include "analyzer/classify/classifier.h"
#include "analyzer/classify/cxx.h"

static bool may_be_long(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[3];

	return ((reader->cxx & LIBSTDCXX) && reference_words(reference, 0, 3, words) &&
		words[1] <= words[2] && heap_bounds_hold(&reader->bounds, words[0] + words[2])) ||
	       ((reader->cxx & LIBCXX) && reference_words(reference, -2, 2, words) &&
		cxx_is_libcxx_size(words[0]) && words[1] < words[0]);
}

DEFINE_SUSPECT(suspect_long, may_be_long)

static void match_long(struct reader *reader, const struct reference *reference)
{
	uint64_t words[STRING_WORDS_BEHIND];

	if ((reader->cxx & LIBSTDCXX) &&
	    reference_words(reference, 1, STRING_WORDS_BEHIND, words) &&
	    cxx_is_body(reader, reference->address, reference->range, words))
		reader_claim(reader, reference->target, reference->address);
	else if ((reader->cxx & LIBCXX) && reference_words(reference, -2, 2, words) &&
		 cxx_is_libcxx_size(words[0]) &&
		 cxx_is_libcxx_body(reader, reference->range, words[1], words[0] - 2))
		reader_claim(reader, reference->target, reference->address - 16);
}

/* The string's length and capacity: it is libc++'s unless it begins with the pointer. */
static bool read_long(struct reader *reader, struct memory_range range, uint64_t owner,
		      uint64_t *ret_length, uint64_t *ret_capacity)
{
	uint64_t words[3];

	if (!reader_words(reader, owner, 3, words))
		return false;
	*ret_length = words[1];
	*ret_capacity = words[0] == range.start ? words[2] : words[0] - 2;
	return true;
}

/* One byte more ends the text. */
static void tell_long(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	if (!read_long(reader, range, facts->owner, &facts->length, &facts->capacity))
		return;
	facts->unit = "characters";
	facts->has_capacity = true;
	facts->dead = "unused end of a string";
	facts->live_end = facts->length + 1;
	facts->is_measured =
		facts->length <= facts->capacity && facts->capacity < range_size(range);
	facts->asked = facts->capacity + 1;
}

/* The pointer is the first word in libstdc++, the third in libc++. */
static bool favors_long(struct reader *reader, struct memory_range range, uint64_t owner,
			uint64_t address)
{
	return address == owner || address == owner + 16;
}

CLASSIFIER(long_string, "LongString", "the text of a std::string too long to be kept in it",
	   "the text of the std::string", .strength = STRENGTH_BUFFER, .narrow = true,
	   .for_cxx = true, .match = match_long, .suspect = suspect_long, .tell = tell_long,
	   .measures = true, .favors = favors_long, .numbers = { .owner = 1 << 1 | 1 << 2 });

/* True for an address three words behind a place where an allocation may start. */
static bool may_be_shared(const struct reader *reader, const struct reference *reference)
{
	uint64_t word = load_word(reference->bytes, reference->word);

	return (reader->cxx & LIBSTDCXX) && (word - SHARED_TEXT * (uint64_t)reference->word) %
							    allocation_alignment(reader->index) ==
						    0;
}

DEFINE_SUSPECT(suspect_shared, may_be_shared)

static void match_shared(struct reader *reader, const struct reference *reference)
{
	uint64_t length, capacity;

	if (cxx_read_shared(reader, reference->range, &length, &capacity))
		reader_claim(reader, reference->target, reference->address);
}

static void tell_shared(struct reader *reader, struct memory_range range,
			struct pattern_facts *facts)
{
	if (!cxx_read_shared(reader, range, &facts->length, &facts->capacity))
		return;
	facts->unit = "characters";
	facts->has_capacity = true;
	facts->dead = "unused end of a string";
	facts->live_end = cxx_shared_text(reader) + facts->length + 1;
	facts->is_measured = true;
	facts->asked = cxx_shared_text(reader) + facts->capacity + 1;
}

CLASSIFIER(cow_string_body, "COWStringBody", "the text of a std::string that copies on write",
	   "the body of the copy-on-write std::string", .strength = STRENGTH_BUFFER, .narrow = true,
	   .for_cxx = true, .match = match_shared, .suspect = suspect_shared, .offset = SHARED_TEXT,
	   .tell = tell_shared, .measures = true);
