/*
 * The memory of a Buffer or an ArrayBuffer.
 *
 *	BackingStore	| memory | length | most | room | ...		an allocation
 *	JSArrayBuffer	| ... | length | most | memory | extension | ...	an object
 *
 * src/objects/backing-store.h of V8 10.2 and 11.3: the most that a buffer may grow to, and the room
 * that it has, are as much as its length unless it can be resized.
 */
#include "analyzer/classify/classifier.h"
#include "analyzer/runtimes/node/node.h"

enum { WORDS = 4, ROUNDING = 24, MAPPED = 64 << 10 };

/* True if malloc's size fits that capacity. */
static bool is_room(uint64_t room, struct memory_range range)
{
	uint64_t size = range_size(range);

	return room <= size && size - room <= (size < MAPPED ? ROUNDING : ROUNDING + PAGE);
}

static bool are_sizes(const uint64_t words[static WORDS])
{
	return words[1] != 0 && words[1] <= words[3] && words[3] <= words[2];
}

static bool is_store(const uint64_t words[static WORDS], struct memory_range range)
{
	return words[0] == range.start && are_sizes(words) && is_room(words[3], range);
}

/*
 * Length, most and memory in a JSArrayBuffer: the room is as much as the most. From 11 on, a word
 * more is before them, and from 13 on another.
 */
enum { BUFFER_WORDS = 3, MEMORY = 40, LAST_MEMORY = 56 };

static bool is_memory_word(uint64_t offset)
{
	return offset >= MEMORY && offset <= LAST_MEMORY && offset % V8_WORD == 0;
}

/* Read them up to the word at address. */
static bool read_buffer(struct reader *reader, uint64_t address, uint64_t *ret)
{
	return reader_words(reader, address - (BUFFER_WORDS - 1) * sizeof(*ret), BUFFER_WORDS, ret);
}

static bool are_lengths(const uint64_t words[static BUFFER_WORDS])
{
	return words[0] != 0 && words[0] <= words[1];
}

static bool is_buffer(const uint64_t words[static BUFFER_WORDS], struct memory_range range)
{
	return words[2] == range.start && are_lengths(words) && is_room(words[1], range);
}

/* Only blocks of V8 may be collected, where it is; NULL: its objects are not known. */
static const struct bitmap *blocks_of_v8(const struct reader *reader)
{
	return allocation_having(reader->index, TRAIT_COLLECTABLE);
}

static bool is_of_v8(const struct reader *reader, uint64_t address)
{
	const struct bitmap *collectable = blocks_of_v8(reader);
	allocation_id id = collectable ? allocation_find(reader->index, address) : NO_ALLOCATION;

	return id != NO_ALLOCATION && bitmap_get(collectable, id);
}

static bool may_be_store(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[WORDS];

	return (reference_words(reference, 0, WORDS, words) && are_sizes(words)) ||
	       (reference_words(reference, 1 - BUFFER_WORDS, BUFFER_WORDS, words) &&
		are_lengths(words));
}

DEFINE_SUSPECT(suspect, may_be_store)

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[WORDS], start;

	if (reference->source == NO_ALLOCATION)
		return;
	start = allocation_start(reader->index, reference->source);
	if (blocks_of_v8(reader)
		    ? is_memory_word(reference->address - start) && is_of_v8(reader, start) &&
			      reference_words(reference, 1 - BUFFER_WORDS, BUFFER_WORDS, words) &&
			      is_buffer(words, reference->range)
		    : reference->address == start && reference_words(reference, 0, WORDS, words) &&
			      is_store(words, reference->range))
		reader_claim(reader, reference->target, start);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	uint64_t words[WORDS], place = MEMORY;

	if (!facts->owner)
		return;
	while (place <= LAST_MEMORY &&
	       !(read_buffer(reader, facts->owner + place, words) && is_buffer(words, range)))
		place += V8_WORD;
	if (place <= LAST_MEMORY) {
		facts->length = words[0];
		facts->capacity = words[1];
	} else if (reader_words(reader, facts->owner, WORDS, words) && is_store(words, range)) {
		facts->length = words[1];
		facts->capacity = words[3];
	} else {
		return;
	}
	facts->unit = "bytes";
	facts->has_capacity = true;
	facts->asked = facts->capacity;
}

static bool favors(struct reader *reader, struct memory_range range, uint64_t owner,
		   uint64_t address)
{
	return address == owner || is_memory_word(address - owner);
}

CLASSIFIER(node_buffer, "NodeBuffer", "the memory of a Buffer or an ArrayBuffer of Node.js",
	   "the memory of the ArrayBuffer or its store", .strength = STRENGTH_MARKED,
	   .runtime = &runtime_node, .match = match, .suspect = suspect, .tell = tell,
	   .favors = favors);
