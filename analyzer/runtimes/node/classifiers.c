/*
 * The memory of a Buffer or an ArrayBuffer.
 *
 *	BackingStore	| memory | length | most | room | ...		an allocation
 *	JSArrayBuffer	| ... | length | most | memory | extension | ...	an object of V8
 *
 * src/objects/backing-store.h of V8 10.2 and 11.3: the most that a buffer may grow to, and the room
 * that it has, are as much as its length unless it can be resized.
 */
#include "analyzer/classify/classifier.h"
#include "analyzer/runtimes/node/node.h"

enum { WORDS = 4, ROUNDING = 24, MAPPED = 64 << 10 };

/* Whether malloc gives so much for that room. */
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

static bool may_be_store(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[WORDS];

	return reference_words(reference, 0, WORDS, words) && are_sizes(words);
}

DEFINE_SUSPECT(suspect, may_be_store)

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[WORDS];

	if (reference->source != NO_ALLOCATION &&
	    reference->address == allocation_start(reader->index, reference->source) &&
	    reference_words(reference, 0, WORDS, words) && is_store(words, reference->range))
		reader_claim(reader, reference->target, reference->address);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	uint64_t words[WORDS];

	if (!facts->owner || !reader_words(reader, facts->owner, WORDS, words) ||
	    !is_store(words, range))
		return;
	facts->unit = "bytes";
	facts->length = words[1];
	facts->has_capacity = true;
	facts->capacity = words[3];
	facts->asked = words[3];
}

const struct classifier classifier_node_buffer = {
	.name = "NodeBuffer",
	.summary = "the memory of a Buffer or an ArrayBuffer of Node.js",
	.role = "the memory of the BackingStore",
	.strength = STRENGTH_MARKED,
	.runtime = &runtime_node,
	.match = match,
	.suspect = suspect,
	.tell = tell,
	.favors = favors_first_word,
};
