/*
 * Where pointers stand in values of a type, and what they point to.
 *
 * Structures within structures, arrays and base classes are taken apart, once for each type that is
 * asked for.
 */
#ifndef ANALYZER_TYPES_SLOTS_H
#define ANALYZER_TYPES_SLOTS_H

#include "analyzer/base/array.h"
#include "analyzer/program/debug/type_table.h"

struct slot {
	uint32_t offset;    /* in bytes */
	type_number target; /* NO_TYPE: of "void *" */
	bool is_choice;	    /* something else may stand there: a member of a union */
};

struct slot_range {
	uint32_t first, count;
};

/* All is borrowed from the table, which outlives it. */
struct slot_table {
	const struct type_table *types;
	ARRAY(struct slot) slots;
	ARRAY(struct slot_range) ranges; /* by type */
};

struct error *slot_table_init(struct slot_table *table, const struct type_table *types,
			      struct memory_account *account);
void slot_table_deinit(struct slot_table *table);

/*
 * The slots of a value of the type, by offset; those of an array without bounds are of one element.
 * They are valid until the next question.
 */
struct error *slots_of(struct slot_table *table, type_number type, const struct slot **ret,
		       size_t *ret_count);

#endif
