/*
 * The heap of AddressSanitizer, from GCC 12 and Clang 14 on, on x86-64.
 *
 * Of an address that differs between versions on, each size of chunks has 64 GiB to itself, of
 *which what is in use at all can be written to (sanitizer_allocator_primary64.h, asan_allocator.h).
 *A chunk keeps 16 bytes or more before the program's as a red zone, and a header at the end of
 *that:
 *
 *	chunk	| header | the program's bytes | red zone |
 *	chunk	| magic, header's address | red zone | header | the program's bytes | red zone |
 *	header	| u8 state, u8 flags, u16 and u32 size | u32 stack, u32 thread |
 *
 * What is freed stays in quarantine for a while. Chunks that are larger than all sizes are mappings
 * for themselves, which begin with a page that describes them, and are on a list that has a mapping
 * for itself, too (sanitizer_allocator_secondary.h).
 */
#pragma once

#include "analyzer/heap/allocator.h"
#include "analyzer/heap/damage.h"
#include "analyzer/image/view.h"

enum { ASAN_CLASSES = 53, ASAN_HEADER = 16 };

/* The states of chunks. */
enum { ASAN_FREE = 0, ASAN_USED = 2, ASAN_QUARANTINED = 3, ASAN_DAMAGED = UINT8_MAX };

struct asan_chunk {
	uint64_t start, size; /* of what the program has */
	uint32_t stack;	      /* that allocated it, see depot.c */
	uint8_t state;
};

/* A mapping that a large chunk has for itself, from its start to the mapping's end. */
struct asan_large {
	uint64_t start, end, chunk;
};

struct asan_heap {
	struct heap heap;
	struct heap_context context;
	const struct module *module;	 /* that it is in */
	uint64_t space;			 /* where the sizes begin */
	uint64_t ends[ASAN_CLASSES];	 /* of what is in use of each size, or 0 */
	ARRAY(struct asan_large) larges; /* by address */
	struct heap_damage heads;
};

typedef struct error *asan_visitor(void *data, const struct asan_chunk *chunk);

/* Read the chunk at [start, end); one that makes no sense is damaged. */
struct asan_chunk asan_read_chunk(struct view *view, uint64_t start, uint64_t end);

/* Visit the chunks of the size of that number, by address. */
struct error *asan_visit_class(const struct asan_heap *heap, unsigned int number,
			       asan_visitor *visit, void *data);

/* The memory of the chunk that address is in; false: of none. */
bool asan_find_extent(const struct asan_heap *heap, uint64_t address, struct memory_range *ret);

/* Visit what leads to the stack of that number, and is no address. */
struct error *asan_visit_trace(const struct asan_heap *heap, struct view *view, uint64_t number,
			       program_range_visitor *visit, void *data);

extern const struct noting asan_noting;
