/*
 * Data of the recorder, in the memory of the program that preloads it: who allocated each used
 * block. `heapcore run` reads it from the core (leak_stacks.h).
 *
 *	heapcore_recorder  the header, a variable of the recorder
 *	  shards           tables of blocks: address and stack, by a hash of the address
 *	  stacks           | how many | return addresses, the innermost first | ...
 *
 * Addresses of blocks, and of the recorder's own memory, are kept as their complements: as they
 * are, they would hold what leaked.
 */
#pragma once

#include <stdint.h>

#define RECORDER_FILE  "heapcore-recorder"
#define RECORDER_SIZES "HEAPCORE_RECORDER_SIZES" /* usable ones: "24,40,4104"; else all */
#define RECORDER_MAGIC "heapcore-stacks"

enum {
	RECORDER_VERSION = 1,
	RECORDER_SHARDS = 64,
	RECORDER_DEPTH = 24,		/* of a stack, at most */
	RECORDER_STACK_WORDS = 1 << 23, /* of all stacks; 0 is none */
};

struct recorded_block {
	uint64_t address; /* its complement; 0: there is none */
	uint64_t stack;	  /* where among the words of stacks */
};

struct recorder_shard {
	uint64_t lock;
	uint64_t count;	 /* of blocks */
	uint64_t room;	 /* a power of two, or 0 */
	uint64_t blocks; /* the complement of their address */
};

struct recorder_header {
	char magic[16];
	uint64_t version;
	uint64_t lost;	 /* blocks that it had no room for */
	uint64_t stacks; /* the complement of their address */
	struct recorder_shard shards[RECORDER_SHARDS];
};

/* The highest bits say which shard the address is in, and the rest where a search begins there. */
static inline uint64_t recorder_hash(uint64_t address)
{
	address *= UINT64_C(0x9e3779b97f4a7c15);
	return address ^ address >> 29;
}

static inline uint64_t recorder_shard_of(uint64_t hash)
{
	return hash >> 58;
}
