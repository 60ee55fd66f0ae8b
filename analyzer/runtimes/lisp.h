/*
 * What the objects of Guile and ECL have in common: both are allocated by the Boehm collector,
 * without a byte to spare behind them, and refer to each other by words whose lowest bits tell what
 * they are.
 */
#ifndef ANALYZER_RUNTIMES_LISP_H
#define ANALYZER_RUNTIMES_LISP_H

#include "analyzer/classify/classifier.h"

/* Whether the allocation is of a collector's heap. */
bool lisp_is_object(const struct reader *reader, allocation_id id);

/* Whether it may hold no pointers. */
bool lisp_is_plain(const struct reader *reader, allocation_id id);

/* Whether the collector gives an allocation of that size for wanted bytes. */
bool lisp_size_fits(uint64_t size, uint64_t wanted);

/*
 * Whether an object may be at address: an allocation begins there, or it is in memory of none, as
 * constants of the program are.
 */
bool lisp_is_address(struct reader *reader, uint64_t address);

/* The number-th word of the subject, 0 if it is not there. */
static inline uint64_t lisp_word(const struct subject *subject, size_t number)
{
	uint64_t word = 0;

	if (subject->size >= (number + 1) * sizeof(word))
		memcpy(&word, subject->bytes + number * sizeof(word), sizeof(word));
	return word;
}

#endif
