/*
 * Allocations of glibc's functions: a FILE and its buffer, lines read, directories, obstacks, names
 * of locales.
 */
#include "analyzer/classify/classifier.h"

/*
 * libio/bits/types/struct_FILE.h, in words; the table of methods stands behind the FILE:
 *
 *	| magic, flags | read: pointer, end, base |
 *	| write: base, pointer, end | buffer: base, end |
 */
enum { FILE_MAGIC = 0xfbad, BUFFER_BASE = 7, METHODS = 0xd8, NARROW_METHODS = 0x94 };

static void inspect_file(struct reader *reader, const struct subject *subject)
{
	const unsigned int word = reader->word;
	const size_t methods = word == sizeof(uint32_t) ? NARROW_METHODS : METHODS;
	uint32_t flags;

	memcpy(&flags, subject->bytes, sizeof(flags));
	if (flags >> 16 == FILE_MAGIC && subject->size >= methods + word &&
	    reader_in_module(reader, load_word(subject->bytes + methods, word)))
		reader_claim(reader, subject->id, 0);
}

CLASSIFIER(stdio_file, "StdioFile", "a FILE, made by fopen() or the like",
	   "a FILE of the C library", .narrow = true, .strength = STRENGTH_MARKED,
	   .inspect = inspect_file, .least_size = NARROW_METHODS + sizeof(uint32_t),
	   .numbers = { .own_halves = 1 << 0 });

static bool may_be_buffer(const struct reader *reader, const struct reference *reference)
{
	uint64_t flags;

	return reference_words(reference, -BUFFER_BASE, 1, &flags) &&
	       (uint32_t)flags >> 16 == FILE_MAGIC;
}

DEFINE_SUSPECT(suspect_buffer, may_be_buffer)

static void match_buffer(struct reader *reader, const struct reference *reference)
{
	uint64_t words[2]; /* base, end */
	uint64_t size;

	if (!may_be_buffer(reader, reference) || !reference_words(reference, 0, 2, words))
		return;
	size = words[1] - words[0];
	if (size > 0 && reader_fits(reader, reference->range, size))
		reader_claim(reader, reference->target,
			     reference->address - reader->word * (uint64_t)BUFFER_BASE);
}

/* Its contents stay only until they are read or written: none of it is spare. */
static void tell_buffer(struct reader *reader, struct memory_range range,
			struct pattern_facts *facts)
{
	uint64_t words[2];

	if (!reader_words(reader, facts->owner + reader->word * (uint64_t)BUFFER_BASE, 2, words))
		return;
	facts->unit = "bytes";
	facts->length = words[1] - words[0];
	facts->is_measured = words[0] == range.start && words[1] > words[0];
	facts->asked = facts->live_end = facts->length;
}

CLASSIFIER(stdio_buffer, "StdioBuffer", "the buffer of a FILE", "the buffer of the FILE",
	   .narrow = true, .strength = STRENGTH_MARKED, .match = match_buffer,
	   .suspect = suspect_buffer, .tell = tell_buffer, .measures = true,
	   .numbers = { .owner_halves = 1 << 0 });

/*
 * libio/iogetdelim.c: getline() and getdelim() allocate 120 bytes at first, and double that. The
 * caller keeps pointer and size, mostly beside each other; what was read ends with a newline.
 */
enum { FIRST_LINE = 120, DOUBLINGS = 24, NEAR = 2 };

/* The size of the text at the start of the allocation, without the 0 behind it; 0: there is none.
 */
static uint64_t text_size(struct reader *reader, struct memory_range range, const char **ret)
{
	uint64_t size;
	const uint8_t *bytes = reader_bytes(reader, range.start, &size);
	const uint8_t *end;

	if (!bytes)
		return 0;
	size = MIN(size, range_size(range));
	end = memchr(bytes, 0, size);
	*ret = (const char *)bytes;
	return end ? (uint64_t)(end - bytes) : 0;
}

static bool is_line(struct reader *reader, struct memory_range range, uint64_t size)
{
	const char *text;
	uint64_t length;
	int i = 0;

	while (i < DOUBLINGS && size != (uint64_t)FIRST_LINE << i)
		i++;
	if (i == DOUBLINGS || !reader_fits(reader, range, size))
		return false;
	length = text_size(reader, range, &text);
	return length > 0 && text[length - 1] == '\n';
}

/* A size is below 2^31, which few words near a pointer are. */
static inline __attribute__((always_inline)) bool may_be_line(const struct reader *reader,
							      const struct reference *reference)
{
	uint64_t word;

	for (int at = -NEAR; at <= NEAR; at++)
		if (at && reference_words(reference, at, 1, &word) && word - 1 < INT32_MAX &&
		    word % FIRST_LINE == 0)
			return true;
	return false;
}

DEFINE_SUSPECT(suspect_line, may_be_line)

static void match_line(struct reader *reader, const struct reference *reference)
{
	uint64_t word;

	if (range_size(reference->range) < FIRST_LINE)
		return;
	for (int at = -NEAR; at <= NEAR; at++)
		if (at && reference_words(reference, at, 1, &word) &&
		    is_line(reader, reference->range, word))
			reader_claim(reader, reference->target, reference->address);
}

CLASSIFIER(getdelim_line, "GetdelimLine", "a line read by getline() or getdelim()",
	   "the line read by getline() for the pointer", .narrow = true, .strength = STRENGTH_SPAN,
	   .match = match_line, .suspect = suspect_line);

/*
 * locale/setlocale.c: libc's variable has the name of the locale for each category, 13 of them, and
 * after setlocale(LC_ALL) all the same.
 */
static bool is_locale_name(struct reader *reader, struct memory_range range)
{
	enum { LONGEST_NAME = 256 };
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-@/;=+:";
	const char *text;
	uint64_t length = range_size(range) <= LONGEST_NAME ? text_size(reader, range, &text) : 0;

	return length > 0 && strspn(text, allowed) == length &&
	       reader_fits(reader, range, length + 1);
}

static bool may_be_locale_name(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[3];

	return reference_words(reference, -1, 3, words) && words[0] == words[1] &&
	       words[1] == words[2];
}

static uint64_t suspect_locale_name(const struct reader *reader, const struct reference *first,
				    uint64_t mask)
{
	if (first->source != NO_ALLOCATION)
		return 0;
	return references_filter(reader, first, mask, may_be_locale_name);
}

static void match_locale_name(struct reader *reader, const struct reference *reference)
{
	if (reference->source == NO_ALLOCATION && may_be_locale_name(reader, reference) &&
	    is_locale_name(reader, reference->range) &&
	    reader_in_module(reader, reference->address))
		reader_claim(reader, reference->target, reference->address);
}

CLASSIFIER(locale_name, "LocaleName", "the name of the locale that setlocale() chose",
	   "the name of the locale, kept", .narrow = true, .strength = STRENGTH_SPAN,
	   .match = match_locale_name, .suspect = suspect_locale_name);

/*
 * sysdeps/unix/sysv/linux/dirstream.h:
 *
 *	| descriptor, lock | allocation | size | offset | position | error |
 *	| data, as many bytes as the allocation says ...
 */
enum { DIR_HEADER = 48, NARROW_DIR_HEADER = 28, LEAST_DIR_DATA = 32768 };

static void inspect_directory(struct reader *reader, const struct subject *subject)
{
	enum { MOST_DESCRIPTOR = 1 << 20 };
	const unsigned int word = reader->word;
	const uint64_t header = word == sizeof(uint32_t) ? NARROW_DIR_HEADER : DIR_HEADER;
	struct {
		int32_t descriptor, lock;
	} dir;
	uint64_t words[3]; /* allocation, size, offset */

	memcpy(&dir, subject->bytes, sizeof(dir));
	for (unsigned int i = 0; i < 3; i++)
		words[i] = load_word(subject->bytes + sizeof(dir) + i * word, word);
	if (dir.descriptor < 0 || dir.descriptor > MOST_DESCRIPTOR || dir.lock < 0 ||
	    dir.lock > 2 || words[0] < LEAST_DIR_DATA || words[0] % 4096 || words[1] > words[0] ||
	    words[2] > words[1])
		return;
	if (words[0] <= range_size(subject->range) - header &&
	    reader_fits(reader, subject->range, header + words[0]))
		reader_claim(reader, subject->id, 0);
}

CLASSIFIER(directory_stream, "DirectoryStream", "a DIR, made by opendir()",
	   "a DIR of the C library, with its buffer", .narrow = true, .strength = STRENGTH_BUFFER,
	   .inspect = inspect_directory, .least_size = NARROW_DIR_HEADER + LEAST_DIR_DATA,
	   .numbers = { .own = 0xf });

/*
 * <obstack.h>: a program takes objects from the chunk in order, and frees all of a chunk at once.
 *
 *	| limit: the chunk's end | the chunk before, or null | objects ...
 */
static bool names_its_end(struct reader *reader, struct memory_range range, uint64_t limit)
{
	struct memory_range next;

	/* In adjacent blocks, it may be the link of a free list to the next block. */
	return limit > range.start && reader_fits(reader, range, limit - range.start) &&
	       reader_start(reader, limit, &next) == NO_ALLOCATION;
}

static void inspect_obstack(struct reader *reader, const struct subject *subject)
{
	struct memory_range before;
	uint64_t words[2], limit;

	words[0] = load_word(subject->bytes, reader->word);
	words[1] = load_word(subject->bytes + reader->word, reader->word);
	if (!names_its_end(reader, subject->range, words[0]))
		return;
	if (words[1] != 0 &&
	    (reader_start(reader, words[1], &before) == NO_ALLOCATION ||
	     !reader_word(reader, words[1], &limit) || !names_its_end(reader, before, limit)))
		return;
	reader_claim(reader, subject->id, 0);
}

CLASSIFIER(obstack_chunk, "ObstackChunk", "memory from which an obstack takes objects in order",
	   "a chunk of an obstack", .narrow = true, .strength = STRENGTH_BUFFER,
	   .inspect = inspect_obstack, .least_size = 64);
