#include "analyzer/classify/classifier.h"
#include "analyzer/classify/thread_block.h"

/*
 * The thread-local variables of a library loaded later: an entry of the thread's vector is what
 * they begin at, and what was allocated for them. For the layout see thread_block.h.
 */
enum { ENTRY = THREAD_VECTOR_ENTRY, MOST_ENTRIES = 1 << 16 };

static void claim_all(struct reader *reader, uint64_t vector, uint64_t owner)
{
	uint64_t length, entry[2];
	struct memory_range range;

	if (!reader_word(reader, vector - ENTRY, &length) || length > MOST_ENTRIES)
		return;
	for (uint64_t i = 1; i <= length; i++) {
		allocation_id id;

		if (!reader_step(reader) || !reader_words(reader, vector + i * ENTRY, 2, entry))
			return;
		id = reader_start(reader, entry[1], &range);
		if (id != NO_ALLOCATION && entry[0] >= range.start && entry[0] < range.end)
			reader_claim(reader, id, owner);
	}
}

static bool leads_on(struct reader *reader, struct memory_range range)
{
	uint64_t length;

	return reader_word(reader, range.start, &length) && length > 0 && length <= MOST_ENTRIES &&
	       length < range_size(range) / ENTRY;
}

static uint64_t suspect(const struct reader *reader, const struct reference *first, uint64_t mask)
{
	return references_filter(reader, first, mask, is_vector_reference);
}

/* Threads that have ended keep theirs, if their stack is kept. */
static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t vector;

	if (is_vector_reference(reader, reference) && reference_words(reference, 0, 1, &vector))
		claim_all(reader, vector, reference->address - 8);
}

/* The first thread's vector need not be in the heap. */
static void finish(struct reader *reader, struct overview *overview)
{
	for (size_t i = 0; i < program_thread_count(overview->program); i++) {
		uint64_t block = program_thread(overview->program, i)->thread_pointer;
		uint64_t words[3];

		if (reader_words(reader, block, 3, words) && words[0] == block && words[2] == block)
			claim_all(reader, words[1], block);
	}
}

const struct classifier classifier_thread_local_block = {
	.name = "ThreadLocalBlock",
	.summary = "a thread's variables of a library loaded later",
	.role = "a block of thread-local variables of the thread",
	.strength = STRENGTH_MARKED,
	.match = match,
	.offset = ENTRY,
	.suspect = suspect,
	.leads_on = leads_on,
	.finish = finish,
};
