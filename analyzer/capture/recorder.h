/*
 * Data of the recorder, in the memory of the program that preloads it: who allocated each used
 * block. `heapcore run` reads it from the core (leak_stacks.h).
 *
 *	heapcore_recorder  the header, a variable of the recorder
 *	  folder           by the highest bits of an address: a plane
 *	    plane          by the rest: the stack of the block that begins there
 *	  stacks           | how many | return addresses, the innermost first | ...
 *
 * Among return addresses are calls of an interpreter's language, marked by the highest bit: so many
 * words behind the start of the stacks is | how many words | line | file, 0, function, 0, zeros |.
 *
 * Only the thread that has a block writes its place in a plane, so there is nothing to lock, and
 * blocks that follow each other are noted side by side. No address of a block is kept, and those of
 * the recorder's own memory as their complements: as they are, they would hold what leaked.
 */
#pragma once

#include <stdint.h>

#define RECORDER_FILE  "heapcore-recorder"
#define RECORDER_SIZES "HEAPCORE_RECORDER_SIZES" /* usable ones: "24,40,4104"; else all */
#define RECORDER_MAGIC "heapcore-stacks"

enum {
	RECORDER_VERSION = 4,
	RECORDER_DEPTH = 24,		/* of a stack, at most */
	RECORDER_SCRIPT_TEXT = 400,	/* file and function of a call in a language, at most */
	RECORDER_STACK_WORDS = 1 << 23, /* of all stacks; 0 is none */
	RECORDER_ADDRESS_BITS = 48,	/* what is above may be a tag */
	RECORDER_PLANE_BITS = 24,
	RECORDER_PLANES = 1 << (RECORDER_ADDRESS_BITS - RECORDER_PLANE_BITS),
	RECORDER_PLACES = 1 << (RECORDER_PLANE_BITS - 3), /* of a plane */
};

#define RECORDER_SCRIPT (UINT64_C(1) << 63) /* marks a call of an interpreter's language */

/* A place's highest bits: two places are no address of the heap then. */
#define RECORDER_MARK UINT32_C(0xff000000)

struct recorder_header {
	char magic[16];
	uint64_t version;
	uint64_t is_called; /* the program's allocations come by it */
	uint64_t lost;	    /* blocks that it had no room for */
	uint64_t stacks;    /* the complement of their address */
	uint64_t folder; /* the complement of its address: complements of those of planes, or 0 */
};

/* The number of its plane. */
static inline uint64_t recorder_plane(uint64_t address)
{
	return (address & ((UINT64_C(1) << RECORDER_ADDRESS_BITS) - 1)) >> RECORDER_PLANE_BITS;
}

/* The place in its plane: addresses that are multiples of 16, as most are, come first. */
static inline uint64_t recorder_place(uint64_t address)
{
	return (address & 8) << (RECORDER_PLANE_BITS - 7) |
	       (address & ((UINT64_C(1) << RECORDER_PLANE_BITS) - 1)) >> 4;
}
