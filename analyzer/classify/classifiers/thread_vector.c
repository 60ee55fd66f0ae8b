#include "analyzer/classify/classifier.h"

/*
 * glibc, nptl/pthreadP.h and sysdeps/x86_64/nptl/tls.h: a thread control block
 * begins by its own address, that of the vector, and its own again. The vector
 * has two entries of 16 bytes in front, of which only one is counted:
 *
 *	vector	| length |      | generation |     | block | to free | ...
 *	allocation -^           ^- what the control block refers to
 */
enum { ENTRY = 16 };

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[3], length;
	uint64_t block = reference->address - 8;

	if (reference_words(reference, -1, 3, words) && words[0] == block &&
	    words[2] == block &&
	    reader_word(reader, reference->range.start, &length) &&
	    length > 0 && length < range_size(reference->range) / ENTRY)
		reader_claim(reader, reference->target, block);
}

static void tell(struct reader *reader, struct memory_range range,
		 struct pattern_facts *facts)
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
	.offset = ENTRY,
	.tell = tell,
};
