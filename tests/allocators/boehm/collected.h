/*
 * A process with a Boehm collector, made in memory: the collector's library with its data, its
 * headers and its blocks.
 *
 *	DATA                     SCRATCH                HEAP
 *	| lists | size_map | ..| | index | headers ...| | block | block | ...
 *
 * Blocks are taken from the start of the heap upwards; what a test damages it damages before
 * collected_open().
 */
#pragma once

#include "analyzer/analysis/analysis.h"

#include "tests/analyzer/image/core_builder.h"

static const uint64_t MODULE = 0x7f0000000000, DATA = MODULE + PAGE, DATA_SIZE = 0x10000,
		      LISTS = DATA + 0x1000, SCRATCH = 0x7e0000000000, SCRATCH_SIZE = 0x200000,
		      INDEX = SCRATCH, HEADERS = SCRATCH + 0x20000, HEAP = 0x7d0000000000,
		      HEAP_SIZE = 0x400000, STACK = 0x7ffc00000000;

enum { ATOMIC, NORMAL, UNCOLLECTABLE, ATOMIC_UNCOLLECTABLE, OWN };
enum { UNMAPPED = 2, FREE = 4 };

/* How a build lays out its headers and marks. */
struct build {
	const char *name;
	uint64_t large; /* where hb_large_block is; 0: nowhere */
	uint64_t map;	/* hb_map; 0: nowhere */
	uint64_t marks; /* hb_marks */
	bool byte_marks, by_object;
	uint64_t gap; /* between the lists and size_map */
	unsigned int log_block;
	bool extra_byte;
};

static const struct build BUILD_7_2 = {
	"7.2", 48, 56, 72, true, false, 24, 12, true,
};
static const struct build BUILD_8_2 = {
	"8.2", 0, 48, 64, true, false, 0, 12, true,
};
static const struct build BUILD_SINGLE = {
	"8.2 without threads", 0, 48, 64, false, false, 0, 12, false,
};
static const struct build BUILD_BY_OBJECT = {
	"8.2, marks by object", 0, 0, 56, true, true, 0, 12, true,
};
static const struct build BUILD_LARGE_BLOCKS = {
	"8.2, larger blocks", 0, 48, 64, true, false, 0, 13, true,
};

struct collected {
	const struct build *build;
	struct core core;
	uint64_t next_block, next_header;
	struct progress progress;
	struct debug_options options; /* its memory is that of the machine */
	struct analysis *analysis;
};

static inline uint64_t block_size(const struct collected *collected)
{
	return UINT64_C(1) << collected->build->log_block;
}

static inline uint64_t size_map_of(const struct build *build)
{
	uint64_t heads = (UINT64_C(1) << build->log_block) / 2 / 16 + 1;

	return LISTS + 4 * 8 * heads + build->gap;
}

/* The head of the list of free objects of that kind and size. */
static inline uint64_t list_head(const struct collected *collected, int kind, uint64_t size)
{
	static const uint64_t order[] = { 1, 0, 2, 3 };
	uint64_t heads = block_size(collected) / 2 / 16 + 1;

	return LISTS + 8 * (heads * order[kind] + size / 16);
}

static inline void collected_init(struct collected *collected, const struct build *build)
{
	struct core *core = &collected->core;
	uint64_t map = size_map_of(build);
	unsigned int shift = build->log_block + 10;

	*collected = (struct collected){
		.build = build,
		.next_block = HEAP,
		.next_header = HEADERS,
	};
	core_init(core);
	core_add_module(core, MODULE, DATA_SIZE, "/lib/libgc.so.1");
	core_add(core, SCRATCH, SCRATCH_SIZE, RIGHTS_RW);
	core_add(core, HEAP, HEAP_SIZE, RIGHTS_RW);
	memset(core_add(core, STACK, PAGE, RIGHTS_RW), 0x11, PAGE);
	core_add_auxiliary(core, AT_RANDOM, STACK + PAGE - 0x100);
	core_set(core, DATA + 0x100, INDEX);
	core_set(core, INDEX + 8208, HEAP >> shift);
	core_set(core, map, 1);
	for (uint64_t i = 1; i + build->extra_byte <= 384; i++)
		core_set(core, map + 8 * i, (i + build->extra_byte + 15) / 16);
}

static inline void collected_deinit(struct collected *collected)
{
	if (collected->analysis)
		analysis_destroy(collected->analysis);
	core_deinit(&collected->core);
}
DEFINE_DEINIT(collected_deinit, struct collected)

static inline void set_slot(struct collected *collected, uint64_t block, uint64_t value)
{
	unsigned int log = collected->build->log_block;

	core_set(&collected->core, INDEX + 8 * ((block >> log) & 1023), value);
}

/* The header of the block, by its slot. */
static inline uint64_t header_of(const struct collected *collected, uint64_t block)
{
	unsigned int log = collected->build->log_block;

	return core_get(&collected->core, INDEX + 8 * ((block >> log) & 1023));
}

static inline void set_mark(struct collected *collected, uint64_t block, uint64_t size,
			    uint64_t number)
{
	const struct build *build = collected->build;
	uint64_t mark = build->by_object ? number : number * size / 16;
	uint64_t marks = header_of(collected, block) + build->marks;

	if (build->byte_marks)
		*core_at(&collected->core, marks + mark, 1) = 1;
	else
		*core_at(&collected->core, marks + mark / 8, 1) |= (uint8_t)(1 << (mark % 8));
}

/* A header whose block, of bytes, begins at the next one. */
static inline uint64_t add_header(struct collected *collected, uint64_t bytes, uint64_t size,
				  unsigned int kind, unsigned int flags, unsigned int swept)
{
	const struct build *build = collected->build;
	struct core *core = &collected->core;
	uint64_t block = collected->next_block;
	uint64_t header = collected->next_header;
	uint64_t step = block_size(collected);

	core_set(core, header + 16, flags & FREE ? 0 : block);
	core_set(core, header + 24, kind | flags << 8 | swept << 16);
	core_set(core, header + 32, size);
	core_set(core, header + 40, kind == ATOMIC || kind == ATOMIC_UNCOLLECTABLE ? 0 : size);
	if (build->map)
		core_set(core, header + build->map, DATA + 0x800);
	if (build->by_object)
		core_set(
			core, header + 24,
			core_get(core, header + 24) |
				(size > step / 2 ? UINT64_C(65536) : (UINT64_C(1) << 32) / size + 1)
					<< 32);
	set_slot(collected, block, header);
	for (uint64_t i = step; i < bytes && !(flags & FREE); i += step)
		set_slot(collected, block + i, i / step);
	collected->next_header += 64 + 1024;
	collected->next_block += (bytes + step - 1) & ~(step - 1);
	return block;
}

/* A block of objects of that size, the mark behind the last one set. */
static inline uint64_t add_small(struct collected *collected, uint64_t size, unsigned int kind,
				 unsigned int swept)
{
	uint64_t block = add_header(collected, block_size(collected), size, kind, 0, swept);

	set_mark(collected, block, size, block_size(collected) / size);
	return block;
}

/* Put the object on the list of free ones of its kind. */
static inline void free_object(struct collected *collected, uint64_t object, int kind,
			       uint64_t size)
{
	uint64_t head = list_head(collected, kind, size);

	core_set(&collected->core, object, core_get(&collected->core, head));
	core_set(&collected->core, head, object);
}

static inline void collected_open(struct collected *collected)
{
	const struct user_regs_struct registers = { .rsp = STACK + 0x800 };

	core_add_thread(&collected->core, 11, &registers);
	core_write_file(&collected->core);
	assert_no_error(analysis_create(collected->core.path, &collected->options,
					&collected->progress, &collected->analysis));
	assert_no_error(analysis_need(collected->analysis, STAGE_HEAP));
}

/* The object that starts there, or NO_ALLOCATION. */
static inline allocation_id find_object(const struct collected *collected, uint64_t address)
{
	const struct allocation_index *index = analysis_index(collected->analysis);
	allocation_id id = allocation_find(index, address);

	return id != NO_ALLOCATION && allocation_start(index, id) == address ? id : NO_ALLOCATION;
}

static inline bool has_trait(const struct collected *collected, uint64_t address,
			     enum block_trait trait)
{
	const struct bitmap *having = allocation_having(analysis_index(collected->analysis), trait);
	allocation_id id = find_object(collected, address);

	assert_int_not_equal(id, NO_ALLOCATION);
	return having && bitmap_get(having, id);
}

static inline void assert_state(const struct collected *collected, uint64_t address,
				enum block_state state, bool dead)
{
	allocation_id id = find_object(collected, address);

	assert_int_not_equal(id, NO_ALLOCATION);
	assert_int_equal(allocation_state(analysis_index(collected->analysis), id), state);
	assert_int_equal(has_trait(collected, address, TRAIT_DEAD), dead);
}
