/*
 * Which allocations are objects of a program written in Crystal.
 *
 * An object begins with the number of its type, and was allocated for the type's size, with or
 * without pointers. Other memory may look so by chance, as the elements of an array of numbers;
 * what an object holds as its buffer is no object.
 */
#ifndef ANALYZER_RUNTIMES_CRYSTAL_CRYSTAL_H
#define ANALYZER_RUNTIMES_CRYSTAL_CRYSTAL_H

#include "analyzer/runtimes/crystal/layouts.h"
#include "analyzer/runtimes/crystal/types.h"
#include "analyzer/runtimes/runtimes.h"

extern const struct runtime runtime_crystal;

struct crystal;

/* The program's objects, which are known. */
struct crystal *crystal_of(const struct runtimes *runtimes);

/* The number of the allocation's type; 0: it is no object. */
uint32_t crystal_type_of(const struct crystal *crystal, allocation_id id);

/* The buffers that the object holds; returns how many, CRYSTAL_BUFFERS at most.
 */
size_t crystal_buffers_of(struct crystal *crystal, allocation_id id, struct crystal_buffer *ret);

/* "the elements of the Array(Foo)"; lives as long as crystal, or is NULL. */
const char *crystal_phrase(struct crystal *crystal, const char *part, uint64_t object);

/* Whether a function of the program begins at address. */
bool crystal_is_function(const struct crystal *crystal, uint64_t address);

#endif
