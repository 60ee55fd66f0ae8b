/*
 * A process with glibc's malloc, made in memory: libc's data with the main arena and malloc's
 * parameters, one thread with a cache, and a heap.
 *
 *	HEAP                                            HEAP + HEAP_SIZE
 *	| cache | chunk | chunk | ...       | top                     |
 *
 * Chunks are taken from next upwards, and what is then done to them is what malloc would have done.
 * process_finish() lays top behind them; what a test damages it damages after that, before
 * process_open().
 */
#pragma once

#include "analyzer/analysis/analysis.h"

#include "tests/analyzer/image/core_builder.h"

static const uint64_t DATA = 0x7f0000001000, DATA_SIZE = 0x2000, ARENA = DATA + 0x800,
		      SBRK_BASE = ARENA + 0xa40, TLS = 0x7e0000000000, THREAD_POINTER = TLS + 0x800,
		      STACK = 0x7ffc00000000, HEAP = 0x555500000000, HEAP_SIZE = 0x10000,
		      CACHE_KEY = 0x1234567890abcdef;

enum { IN_USE = 1, MMAPPED = 2, OTHER_ARENA = 4 };

struct glibc_version {
	const char *name;
	uint64_t fastbins, top, bins, next, system_memory, size;
	bool mangled;
	unsigned int cache_bins;
	bool counts;	   /* the cache counts its members, else free slots */
	uint64_t flags;	   /* bytes of mp_ between its counts of chunks and of bytes */
	uint64_t map_tail; /* not in the size of an mmapped chunk */
	uint64_t subheap_head;
	uint64_t total; /* bytes of mp_ before sbrk_base */
};

/* Before 2.26, threads have no cache: what process_init() makes is any chunk. */
static const struct glibc_version GLIBC_2_11 = {
	"2.11", 8, 88, 104, 2152, 2160, 2176, false, 64, true, 8, 0, 32, 8,
};
static const struct glibc_version GLIBC_2_19 = {
	"2.19", 8, 88, 104, 2152, 2168, 2184, false, 64, true, 0, 0, 32, 8,
};
static const struct glibc_version GLIBC_2_25 = {
	"2.25", 8, 88, 104, 2152, 2176, 2192, false, 64, true, 0, 0, 32,
};

static const struct glibc_version GLIBC_2_31 = {
	"2.31", 16, 96, 112, 2160, 2184, 2200, false, 64, true, 0, 0, 32,
};
static const struct glibc_version GLIBC_2_36 = {
	"2.36", 16, 96, 112, 2160, 2184, 2200, true, 64, true, 4, 0, 48,
};
static const struct glibc_version GLIBC_2_43 = {
	"2.43", 0, 8, 24, 2072, 2096, 2112, true, 76, false, 4, 16, 48,
};

struct process {
	const struct glibc_version *version;
	struct core core;
	uint64_t next;	/* where the next chunk begins */
	uint64_t cache; /* the thread's */
	uint32_t mapped_count;
	uint64_t mapped_size;
	struct debug_options options; /* its memory is that of the machine */
	struct progress progress;
	struct analysis *analysis;
};

/* Chunk and user's memory. */
static inline uint64_t chunk_of(uint64_t user)
{
	return user - 16;
}

static inline uint64_t size_of_chunk(const struct process *process, uint64_t user)
{
	return core_get(&process->core, user - 8) & ~UINT64_C(7);
}

/* Make an arena with empty bins; next is that in the ring. */
static inline void process_add_arena(struct process *process, uint64_t arena, uint64_t next)
{
	const struct glibc_version *version = process->version;
	uint64_t bin = arena + version->bins - 16;

	for (int i = 0; i < 127; i++, bin += 16) {
		core_set(&process->core, bin + 16, bin);
		core_set(&process->core, bin + 24, bin);
	}
	core_set(&process->core, arena + version->next, next);
	core_set(&process->core, arena + version->next + 16, 1);
}

/* A chunk of that size; returns its user's memory. */
static inline uint64_t process_allocate(struct process *process, uint64_t size)
{
	uint64_t user = process->next + 16;

	core_set(&process->core, user - 8, size | IN_USE);
	process->next += size;
	return user;
}

static inline void process_init(struct process *process, const struct glibc_version *version)
{
	struct core *core = &process->core;

	*process = (struct process){ .version = version, .next = HEAP };
	core_init(core);
	core_add(core, DATA, DATA_SIZE, RIGHTS_RW);
	core_add_file(core, DATA, DATA + DATA_SIZE, PAGE, "/lib/libc.so.6");
	core_add(core, TLS, PAGE, RIGHTS_RW);
	core_add(core, HEAP, HEAP_SIZE, RIGHTS_RW);
	/* Its thread has somewhere to return to. */
	memset(core_add(core, STACK, PAGE, RIGHTS_RW), 0x11, PAGE);
	core_add_auxiliary(core, AT_RANDOM, STACK + PAGE - 0x100);
	process_add_arena(process, ARENA, ARENA);
	process->cache = process_allocate(process, version->counts ? 0x290 : 0x300);
	core_set(core, THREAD_POINTER - 0x40, process->cache);
	core_set(core, THREAD_POINTER, THREAD_POINTER);
	for (unsigned int i = 0; i < version->cache_bins && !version->counts; i++)
		memcpy(core_at(core, process->cache + 2 * i, 2), "\x10", 2);
}

static inline void process_deinit(struct process *process)
{
	if (process->analysis)
		analysis_destroy(process->analysis);
	core_deinit(&process->core);
}
DEFINE_DEINIT(process_deinit, struct process)

/* A link to target, as it stands at address. */
static inline void process_link(struct process *process, uint64_t address, uint64_t target)
{
	if (process->version->mangled)
		target ^= address >> 12;
	core_set(&process->core, address, target);
}

/* The bin of the thread's cache for that memory. */
static inline uint64_t process_cache_bin(const struct process *process, uint64_t user)
{
	return process->cache + 2 * process->version->cache_bins +
	       8 * ((size_of_chunk(process, user) - 32) / 16);
}

/* Into the thread's cache. */
static inline void process_cache(struct process *process, uint64_t user)
{
	uint64_t bin = process_cache_bin(process, user);
	uint64_t number = (size_of_chunk(process, user) - 32) / 16;
	uint8_t *counter = core_at(&process->core, process->cache + 2 * number, 2);

	process_link(process, user, core_get(&process->core, bin));
	core_set(&process->core, user + 8, CACHE_KEY);
	core_set(&process->core, bin, user);
	*counter = (uint8_t)(*counter + (process->version->counts ? 1 : -1));
}

static inline uint64_t process_fast_bin(const struct process *process, uint64_t user)
{
	return ARENA + process->version->fastbins + 8 * ((size_of_chunk(process, user) - 32) / 16);
}

/* Into the main arena's fast bin. */
static inline void process_free_fast(struct process *process, uint64_t user)
{
	uint64_t bin = process_fast_bin(process, user);

	process_link(process, user, core_get(&process->core, bin));
	core_set(&process->core, bin, chunk_of(user));
}

/* Into a bin of the main arena, from 1 on; there is a chunk behind it. */
static inline void process_free_into(struct process *process, uint64_t user, uint64_t number)
{
	struct core *core = &process->core;
	uint64_t bin = ARENA + process->version->bins + 16 * number - 32;
	uint64_t first = core_get(core, bin + 16);
	uint64_t size = size_of_chunk(process, user);
	uint64_t above = chunk_of(user) + size;

	core_set(core, above, size);
	core_set(core, above + 8, core_get(core, above + 8) & ~UINT64_C(1));
	core_set(core, user, first);
	core_set(core, user + 8, bin);
	core_set(core, bin + 16, chunk_of(user));
	core_set(core, first + 24, chunk_of(user));
}

/* Into the unsorted bin. */
static inline void process_free(struct process *process, uint64_t user)
{
	process_free_into(process, user, 1);
}

/*
 * A chunk with a mapping of its own, or at the end of one of which the first bytes below are
 * somebody else's; aligned moves the chunk up.
 */
static inline uint64_t process_map(struct process *process, uint64_t start, uint64_t size,
				   uint64_t aligned)
{
	struct core *core = &process->core;
	uint64_t tail = process->version->map_tail;

	core_set(core, start + aligned, aligned);
	core_set(core, start + aligned + 8, (size - aligned - tail) | MMAPPED);
	process->mapped_count++;
	process->mapped_size += size;
	return start + aligned + 16;
}

/* All behind the last chunk is free: top. */
static inline void process_finish(struct process *process)
{
	const struct glibc_version *version = process->version;
	struct core *core = &process->core;

	core_set(core, ARENA + version->top, process->next);
	core_set(core, ARENA + version->system_memory, HEAP_SIZE);
	core_set(core, ARENA + version->system_memory + 8, HEAP_SIZE);
	core_set(core, process->next + 8, (HEAP + HEAP_SIZE - process->next) | IN_USE);
}

/* malloc's parameters, with its count of mmapped chunks. */
static inline void process_add_parameters(struct process *process)
{
	const uint64_t sizes = SBRK_BASE - process->version->total - 16;
	struct core *core = &process->core;
	const uint32_t counts[] = { process->mapped_count, 65536, process->mapped_count };

	memcpy(core_at(core, sizes - 16 - process->version->flags, 12), counts, sizeof(counts));
	core_set(core, sizes, process->mapped_size);
	core_set(core, sizes + 8, process->mapped_size);
	core_set(core, SBRK_BASE, HEAP);
}

/* Take the core, and analyse it up to that stage. */
static inline void process_open(struct process *process, enum stage stage)
{
	const struct user_regs_struct registers = {
		.rsp = STACK + 0x800,
		.fs_base = THREAD_POINTER,
	};

	process_add_parameters(process);
	core_add_thread(&process->core, 11, &registers);
	core_write_file(&process->core);
	assert_no_error(analysis_create(process->core.path, &process->options, &process->progress,
					&process->analysis));
	assert_no_error(analysis_need(process->analysis, stage));
}

/* The allocation that starts there, or NO_ALLOCATION. */
static inline allocation_id process_find(const struct process *process, uint64_t user)
{
	const struct allocation_index *index = analysis_index(process->analysis);
	allocation_id id = allocation_find(index, user);

	if (id != NO_ALLOCATION && allocation_start(index, id) != user)
		return NO_ALLOCATION;
	return id;
}

static inline void assert_block(const struct process *process, uint64_t user, uint64_t size,
				enum block_state state)
{
	const struct allocation_index *index = analysis_index(process->analysis);
	allocation_id id = process_find(process, user);

	if (id == NO_ALLOCATION)
		fail_msg("no allocation at %#lx", (unsigned long)user);
	assert_int_equal(allocation_size(index, id), size);
	assert_int_equal(allocation_state(index, id), state);
}

static inline size_t process_used(const struct process *process)
{
	return bitmap_weight(allocation_used(analysis_index(process->analysis)));
}

/* There is nothing to say about the heap. */
static inline void assert_undamaged(const struct process *process)
{
	assert_no_finding(analysis_findings(process->analysis));
}

/* Nothing of that sort is said. */
static inline void assert_no_incomplete(const struct process *process, const char *words)
{
	const struct findings *findings = analysis_findings(process->analysis);

	for (size_t i = 0; i < findings->count; i++)
		assert_null(strstr(findings->list[i].message, words));
}

static inline void assert_incomplete(const struct process *process, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static inline void assert_incomplete(const struct process *process, const char *format, ...)
{
	char expected[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(expected, sizeof(expected), format, arguments);
	va_end(arguments);
	assert_finding(analysis_findings(process->analysis), FINDING_INCOMPLETE, expected);
}
