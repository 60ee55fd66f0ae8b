/*
 * Text, known by its contents alone.
 *
 *	| e l e m   6 7 0 9 0 | 0 or more text ...            |
 *	  at least 8 bytes, or all but the last 24              no word refers to anything
 *
 * Numbers and addresses may read as a few letters, so everything up to the block's end must be text
 * or zeros: what was there before a short string was is mostly one of these.
 */
#include "analyzer/base/text.h"
#include "analyzer/classify/classifier.h"
#include "analyzer/classify/text_words.h"

enum {
	CERTAIN_LENGTH = 8,    /* of text in a block of any size */
	LEAST_LENGTH = 3,      /* in one that it fills */
	MOST_ROOM = 24,	       /* behind text that fills its block */
	LEAST_ROW = 4,	       /* of letters between zeros */
	MOST_INSPECTED = 4096, /* bytes */
};

static bool is_ascii_letter(uint8_t byte)
{
	return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

/*
 * True if an ASCII letter is next to a Greek, Cyrillic, Hebrew or Arabic one, as when the repeating
 * digits of a fraction happen to be valid UTF-8.
 */
static bool mixes_scripts(const uint8_t *bytes, uint64_t length)
{
	enum { FIRST = 0xcd, LAST = 0xdf };

	for (uint64_t i = 0; i + 1 < length; i++)
		if (bytes[i] >= FIRST && bytes[i] <= LAST &&
		    ((i > 0 && is_ascii_letter(bytes[i - 1])) ||
		     (i + 2 < length && is_ascii_letter(bytes[i + 2]))))
			return true;
	return false;
}

/*
 * True if the bytes from offset on are only zeros and text: many letters in a row, or a few behind
 * another text's end. A few between zeros are numbers.
 */
static bool is_plain(const struct subject *subject, uint64_t offset, uint64_t end)
{
	const uint8_t *bytes = subject->bytes;

	while (offset < end) {
		uint64_t run = 1;

		if (bytes[offset])
			run = text_run((const char *)bytes + offset, end - offset);
		if (run == 0 || (bytes[offset] && run < LEAST_ROW && bytes[offset - 2] == 0))
			return false;
		offset += run;
	}
	return true;
}

/* True if the words behind the end of the text are plain, or stale links of the allocator. */
static bool is_rest_plain(const struct subject *subject, uint64_t length, uint64_t size,
			  unsigned int stale, unsigned int word)
{
	uint64_t offset = length / word * word + word;

	while (offset < size && offset / word < STALE_WORDS && stale >> offset / word & 1)
		offset += word;
	/* A free block has its size, including its header, at its end. */
	if (offset + word <= size && size == range_size(subject->range) && size % word == 0 &&
	    load_word(subject->bytes + size - word, word) == size + word)
		size -= word;
	return is_plain(subject, offset, size);
}

/* True if a letter or two overwrote the low bytes of the first of two links into one list. */
static bool cuts_link(const struct subject *subject, uint64_t length, unsigned int stale,
		      unsigned int word)
{
	return length < LEAST_LENGTH && stale & 2 &&
	       (load_word(subject->bytes, word) ^ load_word(subject->bytes + word, word)) >>
			       8 * LEAST_LENGTH ==
		       0;
}

static bool is_long_enough(const struct subject *subject, uint64_t length, unsigned int stale,
			   unsigned int word)
{
	if (length >= CERTAIN_LENGTH)
		return true;
	return range_size(subject->range) <= length + MOST_ROOM &&
	       (length >= LEAST_LENGTH || cuts_link(subject, length, stale, word));
}

static void inspect_text(struct reader *reader, const struct subject *subject)
{
	uint64_t size = subject->size < MOST_INSPECTED ? subject->size : MOST_INSPECTED;
	uint64_t length = text_run((const char *)subject->bytes, size);
	const unsigned int word = reader->word;
	unsigned int stale;

	if (length == 0 ||
	    (length < CERTAIN_LENGTH && range_size(subject->range) > CERTAIN_LENGTH + MOST_ROOM) ||
	    (length == size ? size < MOST_INSPECTED : subject->bytes[length] != 0))
		return;
	stale = text_find_stale(reader, subject);
	if (!(stale & 1) && is_long_enough(subject, length, stale, word) &&
	    !mixes_scripts(subject->bytes, length) &&
	    is_rest_plain(subject, length, size, stale, word) &&
	    !text_has_address(reader, subject, length < LEAST_LENGTH ? word : 0, size, stale))
		reader_claim(reader, subject->id, 0);
}

CLASSIFIER(text, "String", "text, by its contents", "text", .strength = STRENGTH_TEXT,
	   .narrow = true, .is_text = true, .pointerless = true, .inspect = inspect_text,
	   .least_size = sizeof(uint64_t));
