/*
 * How a thread refers to its table of thread-local storage.
 *
 * glibc, nptl/pthreadP.h and sysdeps/x86_64/nptl/tls.h: a thread control block begins by its own
 * address, that of the vector, and its own again. The vector has two entries of 16 bytes in front,
 * of which only one is counted:
 *
 *	vector	| length |      | generation |     | block | to free | ...
 *	allocation -^           ^- what the control block refers to
 */
#ifndef ANALYZER_CLASSIFY_THREAD_BLOCK_H
#define ANALYZER_CLASSIFY_THREAD_BLOCK_H

#include "analyzer/classify/reader.h"

enum { THREAD_VECTOR_ENTRY = 16 };

/* Whether a thread control block refers to its vector here. */
static inline bool is_vector_reference(const struct reader *reader,
				       const struct reference *reference)
{
	uint64_t words[3];
	uint64_t block = reference->address - 8;

	return reference_words(reference, -1, 3, words) && words[0] == block && words[2] == block;
}

#endif
