/*
 * For slots `.visit_structure` whose visits do not end by an error: it is noted, and nothing more
 * is kept. The functions return whether there was one.
 */
#pragma once

#include "analyzer/runtimes/runtime.h"

struct keeper {
	const struct structure_visitor *visitor;
	struct view view;
	struct error *error;
	struct object_space *space;
};

static inline bool keep_numbers(struct keeper *keeper, uint64_t start, uint64_t size)
{
	if (!keeper->error)
		keeper->error = keeper->visitor->number(keeper->visitor->data, start, size);
	return keeper->error != NULL;
}

static inline bool keep_name(struct keeper *keeper, uint64_t start, uint64_t size)
{
	if (!keeper->error)
		keeper->error = keeper->visitor->name(keeper->visitor->data, start, size);
	return keeper->error != NULL;
}

/* Keep a name that a zero ends, with its end. */
static inline void keep_c_text(struct keeper *keeper, uint64_t start, uint64_t most)
{
	uint64_t size = 0;
	char byte = 1;

	while (byte && size < most && view_read(&keeper->view, start + size, &byte, 1))
		size++;
	keep_name(keeper, start, size);
}

/* Keep words that are counts, or -1. */
static inline void keep_counts(struct keeper *keeper, uint64_t start, uint64_t end)
{
	uint64_t word;

	for (uint64_t at = start; at < end; at += sizeof(word))
		if (view_word(&keeper->view, at, &word) && word + 1 <= UINT32_MAX)
			keep_numbers(keeper, at, sizeof(word));
}
