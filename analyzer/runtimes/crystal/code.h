/*
 * Finds the objects that a function allocates, by reading its machine code with capstone, which
 * stays behind this header.
 *
 * An object of Crystal begins with the number of its type, a constant that is stored where the
 * object is made:
 *
 *	mov  edi, 16			size
 *	call GC_malloc_atomic
 *	mov  dword ptr [rax], 204	type
 *
 * The function is read once from one end to the other. What registers and places of the stack hold
 * is followed as far as it is a number or such a new object. Where paths of the program meet, each
 * is followed for some instructions, so that an object whose class is chosen before is known to be
 * of either; then only what is the same on all. So optimised code tells less, but nothing wrong.
 */
#pragma once

#include "analyzer/image/image.h"

struct made_object {
	uint64_t call;	/* the address of the instruction that calls */
	uint64_t maker; /* the function called, that allocates */
	uint64_t store; /* of the instruction that stores the type; 0: none */
	uint32_t type;
	uint64_t size; /* 0: not known */
	bool returned; /* by the function */
	uint64_t user; /* function called with it as first argument; 0: none */
};

/* The number of String, whose objects no constant size is known of. */
enum { STRING_TYPE = 1, MOST_TYPES = 1 << 20, LARGEST_OBJECT = 1 << 20 };

/* True if it may be an object of a class other than String. */
static inline bool made_object_has_type(const struct made_object *made)
{
	return made->type > STRING_TYPE && made->type < MOST_TYPES &&
	       made->size >= sizeof(uint32_t) && made->size <= LARGEST_OBJECT;
}

enum { MOST_MADE = 1024 }; /* that are looked for in one function */

struct code_reader;

/* Which functions allocate; data is borrowed. */
struct error *code_reader_create(const struct image *image,
				 bool (*allocates)(const void *data, uint64_t function),
				 const void *data, struct code_reader **ret);
void code_reader_destroy(struct code_reader *reader);
DEFINE_CLEANUP(code_reader_destroy, struct code_reader *)

/*
 * The objects made by the function at [start, end), of which the reader keeps the list until the
 * next call. Returns how many.
 */
size_t code_find_objects(struct code_reader *reader, uint64_t start, uint64_t end,
			 const struct made_object **ret);

/* True if the function read last may allocate other objects, because it is too large to follow. */
bool code_reader_missed(const struct code_reader *reader);
