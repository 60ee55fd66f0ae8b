/*
 * For cores without contents: words of MRI that are no addresses, and names; see structure.c.
 */
#pragma once

#include "analyzer/runtimes/ruby/symbols.h"

struct ruby;

struct ruby_structure {
	struct ruby *ruby;
	const struct ruby_slots *slots;
	const struct ruby_symbols *symbols;
	const struct structure_visitor *visitor;
	struct view view;
	struct bitmap made; /* texts of symbols that programs made from strings */
};

static inline struct error *ruby_keep(const struct ruby_structure *structure, uint64_t start,
				      uint64_t size)
{
	return structure->visitor->number(structure->visitor->data, start, size);
}

/* Keep counts, flags and IDs: of a word that was never written, remains of values would stay. */
struct error *ruby_keep_numbers(struct ruby_structure *structure, uint64_t start, uint64_t end);

/*
 * Keep VALUEs that are neither numbers nor addresses, such as nil and symbols of code; and
 * numbers that are the address of a block: these are references, too.
 */
struct error *ruby_keep_values(struct ruby_structure *structure, uint64_t start, uint64_t count);

/* The size of the used block that begins there and is no object, or 0. */
uint64_t ruby_block_size(const struct ruby_structure *structure, uint64_t address);

/* Keep the text of a String that is a name. */
struct error *ruby_keep_text(struct ruby_structure *structure, uint64_t string);
