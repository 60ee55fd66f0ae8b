/*
 * Values of types as text, as gdb prints them:
 *
 *	{next = 0x55d0c0ffee10 (struct order), note = 0x55d0c0ffee40 "fragile", amount = 3,
 *	 state = PAID, tags = {1, 2, 0 <repeats 14 times>}}
 *
 * A pointer is followed by the type of what it leads to, by text, or by a symbol. At most
 * 200 elements of a value are printed, then "...". Text is as it is in the dump, hostile.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

/*
 * The value of the type at address; to be freed. NULL: memory is short.
 * Needs STAGE_TYPES and STAGE_CLASSES.
 */
char *value_text_of(const struct analysis *analysis, type_number type, uint64_t address);

/* Like value_text_of(), for an array of that many elements. */
char *value_text_of_elements(const struct analysis *analysis, type_number element, uint64_t address,
			     uint64_t count);

/* Like value_text_of_elements(), for a member of the structure at address. */
char *value_text_of_member(const struct analysis *analysis, const struct type_member *member,
			   uint64_t address);

/* Text of that size. Needs no types. */
char *value_text_of_text(const struct analysis *analysis, uint64_t address, uint64_t size);

/* The word at address, as a pointer. Needs no types. */
char *value_text_of_word(const struct analysis *analysis, uint64_t address);
