/*
 * DWARF expressions (DWARF 5, section 2.5): where a variable is, or a register that a caller had.
 * Of all operations, those that compilers and glibc's sources use for these; libdw decodes them,
 * but has no evaluator that others can call. There are no jumps, so a hostile one ends.
 */
#pragma once

#include "analyzer/image/image.h"

#include <elfutils/libdw.h>

/* The inputs of an expression. */
struct expression_context {
	const struct image *image;
	const uint64_t *registers; /* by their DWARF numbers */
	uint64_t known;		   /* a bit for each */
	uint64_t frame_address;	   /* the canonical one; 0: not known */
	/* The value of a register is meant where one is named, as of a frame base. */
	bool is_base;
	/* The frame base; NULL: there is none. */
	bool (*base)(const void *data, uint64_t *ret);
	const void *data;
};

/* The value on top at the end. False if it is not known, or not in memory. */
bool expression_evaluate(const struct expression_context *context, const Dwarf_Op *operations,
			 size_t count, uint64_t *ret);
