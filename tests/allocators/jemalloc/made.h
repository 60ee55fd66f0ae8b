/*
 * A process with jemalloc, made in memory: the library with the root of its radix tree, a block of
 * metadata with the tree's nodes, an arena and the metadata of extents, and extents.
 *
 *	DATA                        BASE                                       HEAP
 *	| root of the tree | arenas | block, base | arena | extents | nodes ..| extent | extent |
 *...
 *
 * Extents are taken from the start of the heap upwards; what a test damages it damages before
 * made_open().
 */
#pragma once

#include "tests/allocators/process.h"

static const uint64_t ROOT = DATA + 0x1008, ARENAS = DATA + 0x300000, BASE = 0x7e0000000000,
		      BASE_SIZE = 0x800000, ARENA = BASE + 0x1000, EXTENTS = BASE + 0x40000,
		      NODES = BASE + 0x200000, HEAP = 0x7d0000000000, HEAP_SIZE = 0x800000,
		      DESCRIPTOR = STACK + 0x100;

enum { ACTIVE, DIRTY, MUZZY, RETAINED, CHANGING };

/* How a build lays out its tree and metadata. */
struct build {
	const char *name;
	unsigned int log_page, log_quantum;
	unsigned int bits[3];	   /* of each level; the last is 0 if there are two */
	unsigned int state, class; /* shifts */
	bool caches_fall;
};

static const struct build BUILD_5_3 = { "5.3", 12, 4, { 18, 18 }, 17, 20, true };
static const struct build BUILD_5_2 = { "5.2", 12, 4, { 18, 18 }, 16, 18, false };
static const struct build BUILD_5_0 = { "5.0", 12, 4, { 18, 18 }, 15, 17, false };
static const struct build BUILD_57 = { "57 bits", 12, 4, { 15, 15, 15 }, 17, 20, true };
static const struct build BUILD_8 = { "quantum of 8", 12, 3, { 18, 18 }, 17, 20, true };
static const struct build BUILD_64K = { "64 KiB pages", 16, 4, { 16, 16 }, 17, 20, true };

struct made {
	struct process process;
	const struct build *build;
	uint64_t next_extent, next_metadata;
};

static inline uint64_t page_of(const struct made *made)
{
	return UINT64_C(1) << made->build->log_page;
}

/* The index of the address at a level of the tree. */
static inline uint64_t index_at(const struct build *build, unsigned int level, uint64_t address)
{
	unsigned int shift = build->log_page;

	for (unsigned int i = 2; i > level; i--)
		shift += build->bits[i];
	return address >> shift & ((UINT64_C(1) << build->bits[level]) - 1);
}

/* The element of the leaf for the page at address. */
static inline uint64_t element_of(const struct build *build, uint64_t address)
{
	return build->bits[2] ? NODES + 0x100000 + 16 * index_at(build, 2, address)
			      : NODES + 8 * index_at(build, 1, address);
}

/* A base in its block, and an arena of it. */
static inline void made_add_arena(struct core *core)
{
	core_set(core, BASE, BASE_SIZE);
	core_set(core, BASE + 24, NODES);
	core_set(core, BASE + 32, BASE + BASE_SIZE - NODES);
	core_set(core, BASE + 192 + 160, BASE);
	core_set(core, ARENA + 0x8000, BASE + 192);
	core_set(core, ARENAS, ARENA);
}

static inline void made_init(struct made *made, const struct build *build)
{
	struct core *core = &made->process.core;

	made->build = build;
	made->next_extent = HEAP;
	made->next_metadata = EXTENTS;
	process_init(&made->process, "/lib/libjemalloc.so.2");
	core_add(core, BASE, BASE_SIZE, RIGHTS_RW);
	core_add(core, HEAP, HEAP_SIZE, RIGHTS_RW);
	core_set(core, ROOT + 8 * index_at(build, 0, HEAP), NODES);
	if (build->bits[2])
		core_set(core, NODES + 8 * index_at(build, 1, HEAP), NODES + 0x100000);
	made_add_arena(core);
}

DEFINE_MADE_DEINIT

/* The metadata of the extent at address. */
static inline uint64_t metadata_of(const struct made *made, uint64_t address)
{
	return core_get(&made->process.core, element_of(made->build, address)) & 0xffffffffffc0;
}

/* How many classes of sizes a build has: of free extents, it is their class. */
static inline unsigned int class_count(const struct made *made)
{
	return made->build->log_quantum == 4 ? 232 : 235;
}

/* An extent of bytes, behind all others. */
static inline uint64_t add_extent(struct made *made, uint64_t bytes, unsigned int class, bool slab,
				  unsigned int state)
{
	const struct build *build = made->build;
	struct core *core = &made->process.core;
	uint64_t start = made->next_extent, metadata = made->next_metadata;

	core_set(core, metadata,
		 (uint64_t)slab << 12 | (uint64_t)state << build->state |
			 (uint64_t) class << build->class);
	core_set(core, metadata + 8, start);
	core_set(core, metadata + 16, bytes | 5);
	core_set(core, element_of(build, start), metadata | slab);
	made->next_extent += bytes;
	made->next_metadata += made->build->log_page == 12 ? 128 : 640;
	return start;
}

static inline uint64_t add_slab(struct made *made, uint64_t bytes, unsigned int class)
{
	return add_extent(made, bytes, class, true, ACTIVE);
}

/* A large allocation of a class, which begins at an offset in the first page. */
static inline uint64_t add_large(struct made *made, uint64_t bytes, unsigned int class,
				 uint64_t offset)
{
	uint64_t start = add_extent(made, bytes, class, false, ACTIVE);

	core_set(&made->process.core, metadata_of(made, start) + 8, start + offset);
	return start + offset;
}

static inline uint64_t add_free(struct made *made, uint64_t bytes, unsigned int state)
{
	return add_extent(made, bytes, class_count(made), false, state);
}

static inline void count_free(struct made *made, uint64_t slab, int more)
{
	uint64_t metadata = metadata_of(made, slab);
	uint64_t unit = UINT64_C(1) << (made->build->class + 8);

	core_set(&made->process.core, metadata,
		 core_get(&made->process.core, metadata) + (uint64_t)(int64_t)more * unit);
}

/* Free the number-th region of the slab. */
static inline void free_region(struct made *made, uint64_t slab, unsigned int number)
{
	uint64_t word = metadata_of(made, slab) + 64 + 8 * (number / 64);

	core_set(&made->process.core, word,
		 core_get(&made->process.core, word) | UINT64_C(1) << number % 64);
	count_free(made, slab, 1);
}
