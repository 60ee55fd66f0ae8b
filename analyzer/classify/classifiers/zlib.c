/*
 * Streams of zlib: the state behind a z_stream, and its buffers.
 *
 * A state and its stream lead to each other, and the stream has the functions by which the state
 * was allocated. zlib.h, deflate.h and inflate.h of zlib 1.2.11 to 1.3.1, on 64 bits:
 *
 *	z_stream	| ... | state 56 | zalloc | zfree | ...
 *	deflate		| stream | i32 status | pending 16 | ... | window 96 | size | prev | head |
 *... inflate		| stream | i32 mode | ... | window 72 | ...
 */
#include "analyzer/classify/classifier.h"

enum {
	WORD = 8,
	STATE = 7, /* words */
	FREE = 9,
	STREAM_WORDS,
	MOST_STATE_WORDS = 16,
	LEAST_SIZE = MOST_STATE_WORDS * WORD,
};

enum kind { KIND_NONE, KIND_DEFLATE, KIND_INFLATE, KIND_BUFFER };

static enum kind kind_of(uint32_t status)
{
	enum { FIRST_MODE = 16180, LAST_MODE = 16211 };
	static const uint32_t statuses[] = { 42, 57, 69, 73, 91, 103, 113, 666 };

	for (size_t i = 0; i < COUNT_OF(statuses); i++)
		if (status == statuses[i])
			return KIND_DEFLATE;
	return status >= FIRST_MODE && status <= LAST_MODE ? KIND_INFLATE : KIND_NONE;
}

static bool is_code(struct reader *reader, uint64_t address)
{
	const struct region *region = image_find(reader->image, address);

	return region && (region->rights & RIGHT_EXECUTE);
}

static bool is_stream_of(struct reader *reader, uint64_t address, uint64_t state)
{
	uint64_t words[STREAM_WORDS];

	return address % WORD == 0 && reader_words(reader, address, STREAM_WORDS, words) &&
	       words[STATE] == state && is_code(reader, words[FREE - 1]) &&
	       is_code(reader, words[FREE]);
}

static void claim_buffers(struct reader *reader, const uint64_t *words, enum kind kind,
			  uint64_t state)
{
	static const uint8_t places[][4] = {
		[KIND_DEFLATE] = { 2, 12, 14, 15 }, [KIND_INFLATE] = { 9 }
	};

	for (size_t i = 0; i < COUNT_OF(places[kind]) && places[kind][i]; i++) {
		struct memory_range range;
		allocation_id id = reader_start(reader, words[places[kind][i]], &range);

		if (id != NO_ALLOCATION)
			reader_claim(reader, id, state);
	}
}

static void inspect(struct reader *reader, const struct subject *subject)
{
	uint64_t words[MOST_STATE_WORDS];
	enum kind kind;

	memcpy(words, subject->bytes, sizeof(words));
	kind = kind_of((uint32_t)words[1]);
	if (kind == KIND_NONE || !is_stream_of(reader, words[0], subject->range.start))
		return;
	if (reader_kind(reader) == KIND_BUFFER)
		claim_buffers(reader, words, kind, subject->range.start);
	else if (reader_kind(reader) == (int)kind)
		reader_claim(reader, subject->id, 0);
}

#define ZLIB(...) \
	.strength = STRENGTH_MARKED, .inspect = inspect, .least_size = LEAST_SIZE, __VA_ARGS__

CLASSIFIER(deflate_state, "DeflateState", "what zlib keeps of a stream that it compresses",
	   "the state of a stream that zlib compresses", ZLIB(.kind = KIND_DEFLATE));
CLASSIFIER(inflate_state, "InflateState", "what zlib keeps of a stream that it unpacks",
	   "the state of a stream that zlib unpacks", ZLIB(.kind = KIND_INFLATE));
CLASSIFIER(deflate_buffer, "ZlibBuffer", "a window, table or output of a stream of zlib",
	   "a buffer of the stream", ZLIB(.kind = KIND_BUFFER));
