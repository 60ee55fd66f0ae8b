/*
 * The label that a program writes into each of its allocations.
 *
 * Some allocators put a header before what they return, with a text from the program's constants in
 * it: the name of the type, or the place in the source. talloc does, and many programs do so by
 * hand. None is known by name here: a word is a label's if many allocations, of several sizes, lead
 * to a constant text by it, and few texts are shared by many.
 */
#pragma once

#include "analyzer/classify/early_words.h"
#include "analyzer/heap/index.h"

/* Which of the first words is the label's; EARLY_WORDS: none. Reads a thousand allocations. */
struct error *label_word_find(const struct image *image, const struct allocation_index *index,
			      const struct module_bounds *bounds, size_t *ret);

/* The label at that address, as "struct session" in quotes; to be freed, or NULL. */
char *label_text(const struct image *image, uint64_t address);
