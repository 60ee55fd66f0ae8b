#include "analyzer/classify/classifier.h"
#include "analyzer/classify/thread_block.h"

static uint64_t suspect(const struct reader *reader, const struct reference *first, uint64_t mask)
{
	return references_filter(reader, first, mask, is_vector_reference);
}

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t size = range_size(reference->range), length;

	if (is_vector_reference(reader, reference) &&
	    reader_word(reader, reference->range.start, &length) && length > 0 &&
	    length < size / THREAD_VECTOR_ENTRY)
		reader_claim(reader, reference->target, reference->address - 8);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	facts->unit = "modules";
	reader_word(reader, range.start, &facts->length);
}

const struct classifier classifier_thread_vector = {
	.name = "ThreadVector",
	.summary = "a thread's table of its thread-local storage (dtv)",
	.role = "the table of thread-local storage of the thread",
	.strength = STRENGTH_MARKED,
	.match = match,
	.offset = THREAD_VECTOR_ENTRY,
	.suspect = suspect,
	.tell = tell,
};
