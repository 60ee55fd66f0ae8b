/*
 * The words of a module's variables: where allocators without symbols begin to look.
 */
#pragma once

#include "analyzer/image/view.h"
#include "analyzer/program/program.h"

/*
 * Visit each word that is not 0 of the writable memory in [start, end), or of the module, upwards;
 * where is its address. An error ends it.
 */
struct error *data_visit_words(const struct image *image, uint64_t start, uint64_t end,
			       struct error *(*visit)(void *data, uint64_t where, uint64_t word),
			       void *data);
struct error *module_visit_words(const struct image *image, const struct module *module,
				 struct error *(*visit)(void *data, uint64_t where, uint64_t word),
				 void *data);

/*
 * The first address from address on, in steps of step bytes, below end, with a word that is not 0;
 * end if there is none. Holes of the dump are skipped.
 */
uint64_t find_word(struct view *view, uint64_t address, uint64_t end, uint64_t step, uint64_t *ret);

/* True if an allocator's own memory may be at address: anonymous and writable. */
bool is_anonymous_memory(const struct image *image, uint64_t address);

/* The bytes that the dump has: structures that lie apart cannot take more. */
uint64_t image_held_bytes(const struct image *image);
