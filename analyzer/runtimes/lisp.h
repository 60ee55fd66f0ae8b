/*
 * The objects of Guile and ECL. Both are allocated by the Boehm collector, without an extra byte
 * behind them, and refer to each other by words whose lowest bits are tags.
 */
#pragma once

#include "allocators/boehm/rounding.h"
#include "analyzer/classify/classifier.h"

/* True if the allocation is in a collector's heap. */
bool lisp_is_object(const struct reader *reader, allocation_id id);

/* True if it may be free of pointers. */
bool lisp_is_plain(const struct reader *reader, allocation_id id);

/*
 * True if an object may be at address: the start of an allocation, or memory outside of all of
 * them, such as constants of the program.
 */
bool lisp_is_address(struct reader *reader, uint64_t address);

/* The number-th word of the subject; 0 if that is absent. */
static inline uint64_t lisp_word(const struct subject *subject, size_t number)
{
	uint64_t word = 0;

	if (subject->size >= (number + 1) * sizeof(word))
		memcpy(&word, subject->bytes + number * sizeof(word), sizeof(word));
	return word;
}

/* True if the collector made the subject for wanted bytes. */
static inline bool lisp_fits(const struct subject *subject, uint64_t wanted)
{
	return boehm_rounds_to(range_size(subject->range), wanted, 0);
}
