/*
 * A process with GLib's slices, made in memory: the library with its variable, a thread with
 * magazines, and slabs.
 */
#include "tests/allocators/process.h"

static const uint64_t VARIABLE = DATA + 0x40, MAGAZINES = DATA + 0x1000, COUNTERS = DATA + 0x1400,
		      STACKS = DATA + 0x1800, HEAP = 0x7d0000000000, HEAP_SIZE = 0x20000,
		      TLS = 0x7e0000000000, THREAD = TLS + 0x400;
static const char GLIB_2_74[] = "/lib/libglib-2.0.so.0.7400.6";

enum {
	BINS = 63,
	INFO = 48, /* bytes at the end of a slab */
	KEY_OFFSET = 0x318,
	/* Bins of slices of 32 bytes, in slabs of 512, and of 112 bytes, in slabs of 1024. */
	SMALL = 1,
	SMALL_BYTES = 32,
	SMALL_SLAB = 512,
	SMALL_COUNT = 14,
	LARGE = 6,
	LARGE_BYTES = 112,
	LARGE_SLAB = 1024,
	LARGE_COUNT = 8,
};

struct made {
	struct process process;
	uint64_t next; /* slab */
};

static void set_variable(struct core *core, uint32_t always_malloc)
{
	core_set(core, VARIABLE, 128);
	core_set(core, VARIABLE + 8, 8192);
	core_set(core, VARIABLE + 16, always_malloc);
	core_set(core, VARIABLE + 32, 15000);
	core_set(core, VARIABLE + 40, 1);
	core_set(core, VARIABLE + 48, always_malloc ? 0 : (8192 - INFO) / 8);
	if (always_malloc)
		return;
	core_set(core, VARIABLE + 64, MAGAZINES);
	core_set(core, VARIABLE + 72, COUNTERS);
	core_set(core, VARIABLE + 104, STACKS);
}

static void made_init(struct made *made, const char *library)
{
	struct core *core = &made->process.core;

	process_init(&made->process, library);
	core_add(core, TLS, 2 * PAGE, RIGHTS_RW);
	core_add(core, HEAP, HEAP_SIZE, RIGHTS_RW);
	set_variable(core, 0);
	/* The thread's magazines are in its struct pthread's second block of keys. */
	core_set(core, THREAD + KEY_OFFSET, TLS + PAGE);
	core_set(core, TLS + PAGE + 24, HEAP);
	core_set(core, HEAP, HEAP + 16);
	core_set(core, HEAP + 8, HEAP + 16 + 16 * BINS);
	made->process.thread_pointer = THREAD;
	made->next = HEAP + PAGE;
}

DEFINE_MADE_DEINIT

/* A slab whose chunks are all in use, in its bin's ring; returns the first chunk. */
static uint64_t add_slab(struct made *made, uint64_t bin, uint64_t bytes, uint64_t count,
			 uint64_t color)
{
	struct core *core = &made->process.core;
	uint64_t page = (made->next + bytes - 1) / bytes * bytes, info = page + bytes - INFO;
	uint64_t head = core_get(core, STACKS + 8 * bin), last;

	made->next = page + bytes;
	core_set(core, info + 8, count);
	core_set(core, info + 16, head ? head : info);
	last = head ? core_get(core, head + 24) : info;
	core_set(core, info + 24, last);
	core_set(core, last + 16, info);
	core_set(core, head ? head + 24 : info + 24, head ? info : last);
	core_set(core, STACKS + 8 * bin, info);
	return page + color;
}

static uint64_t add_small(struct made *made)
{
	return add_slab(made, SMALL, SMALL_SLAB, SMALL_COUNT, 0);
}

/* Free the chunk into its slab. */
static void free_chunk(struct made *made, uint64_t chunk, uint64_t bytes)
{
	struct core *core = &made->process.core;
	uint64_t info = chunk / bytes * bytes + bytes - INFO;

	core_set(core, chunk, core_get(core, info));
	core_set(core, info, chunk);
	core_set(core, info + 8, core_get(core, info + 8) - 1);
}

/* Free it into one of the thread's two magazines of the bin. */
static void free_to_thread(struct made *made, uint64_t chunk, uint64_t bin, uint64_t which)
{
	struct core *core = &made->process.core;
	uint64_t magazine = HEAP + 16 + 16 * (BINS * which + bin);

	core_set(core, chunk, core_get(core, magazine));
	core_set(core, chunk + 8, 0);
	core_set(core, magazine, chunk);
}

/* A magazine of four chunks in a row, in the depot's ring. */
static void add_magazine(struct made *made, uint64_t chunk, uint64_t bytes, uint64_t bin)
{
	struct core *core = &made->process.core;
	uint64_t head = core_get(core, MAGAZINES + 8 * bin), last;

	for (uint64_t i = 0; i < 4; i++)
		core_set(core, chunk + i * bytes, i < 3 ? chunk + (i + 1) * bytes : 0);
	last = head ? core_get(core, head + 8) : chunk;
	core_set(core, chunk + 8, last);
	core_set(core, chunk + bytes + 8, 12345);		    /* its time */
	core_set(core, chunk + 2 * bytes + 8, head ? head : chunk); /* the next one */
	core_set(core, chunk + 3 * bytes + 8, 4);		    /* its length */
	if (head) {
		core_set(core, head + 8, chunk);
		core_set(core, last + 2 * bytes + 8, chunk);
	}
	core_set(core, MAGAZINES + 8 * bin, chunk);
}

static void assert_says(const struct made *made, const char *format, uint64_t address)
{
	char expected[256];

	snprintf(expected, sizeof(expected), format, address);
	assert_finding(analysis_findings(made->process.analysis), FINDING_INCOMPLETE, expected);
}

TEST(chunk_is_free_in_its_slab_and_in_magazines_only)
{
	MADE(made, GLIB_2_74);
	uint64_t first = add_small(&made), second = add_small(&made), list;

	free_chunk(&made, first, SMALL_SLAB);
	free_chunk(&made, first + 3 * SMALL_BYTES, SMALL_SLAB);
	free_to_thread(&made, first + SMALL_BYTES, SMALL, 0);
	free_to_thread(&made, first + 2 * SMALL_BYTES, SMALL, 1);
	/* A list of a member of a magazine. */
	list = first + 4 * SMALL_BYTES;
	core_set(&made.process.core, first + SMALL_BYTES + 8, list);
	core_set(&made.process.core, list, list + SMALL_BYTES);
	add_magazine(&made, second, SMALL_BYTES, SMALL);
	add_magazine(&made, second + 5 * SMALL_BYTES, SMALL_BYTES, SMALL);
	process_open(&made.process);
	for (uint64_t i = 0; i < SMALL_COUNT; i++) {
		bool is_cached = i == 1 || i == 2 || i == 4 || i == 5;

		assert_block(&made.process, first + i * SMALL_BYTES, SMALL_BYTES,
			     is_cached		? BLOCK_CACHED
			     : i == 0 || i == 3 ? BLOCK_FREE
						: BLOCK_USED);
		assert_block(&made.process, second + i * SMALL_BYTES, SMALL_BYTES,
			     i < 4 || (i >= 5 && i < 9) ? BLOCK_FREE : BLOCK_USED);
	}
	assert_free_kind(&made.process, first, "slab list");
	assert_free_kind(&made.process, second, "magazine");
	assert_told(&made.process, first,
		    "in GLib's slab at 0x7d0000001000, of slices of 32 bytes");
	assert_int_equal(count_incomplete(&made.process), 0);
}

TEST(free_chunk_tells_where_chunks_begin)
{
	MADE(made, GLIB_2_74);
	uint64_t first = add_slab(&made, LARGE, LARGE_SLAB, LARGE_COUNT, 32);

	free_chunk(&made, first + 2 * LARGE_BYTES, LARGE_SLAB);
	process_open(&made.process);
	assert_block(&made.process, first, LARGE_BYTES, BLOCK_USED);
	assert_block(&made.process, first + 2 * LARGE_BYTES, LARGE_BYTES, BLOCK_FREE);
}

/* Objects have their private data before them: references lead behind the start. */
TEST(references_tell_where_chunks_begin_if_all_are_used)
{
	MADE(made, GLIB_2_74);
	uint64_t known = add_slab(&made, LARGE, LARGE_SLAB, LARGE_COUNT, 64);
	uint64_t full = add_slab(&made, LARGE, LARGE_SLAB, LARGE_COUNT, 48);

	free_chunk(&made, known, LARGE_SLAB);
	for (uint64_t i = 1; i < LARGE_COUNT; i++) {
		core_set(&made.process.core, DATA + 0x2000 + 16 * i, known + i * LARGE_BYTES + 16);
		core_set(&made.process.core, DATA + 0x2008 + 16 * i, full + i * LARGE_BYTES + 16);
	}
	process_open(&made.process);
	assert_block(&made.process, full, LARGE_BYTES, BLOCK_USED);
	assert_block(&made.process, full + 7 * LARGE_BYTES, LARGE_BYTES, BLOCK_USED);
	assert_int_equal(count_incomplete(&made.process), 0);
}

TEST(slice_that_was_written_to_after_it_was_freed_is_named)
{
	MADE(made, GLIB_2_74);
	uint64_t first = add_small(&made);

	for (uint64_t i = 0; i < 3; i++)
		free_to_thread(&made, first + i * SMALL_BYTES, SMALL, 1);
	core_set(&made.process.core, first + SMALL_BYTES, 0x5757575757575757);
	process_open(&made.process);
	assert_block(&made.process, first + SMALL_BYTES, SMALL_BYTES, BLOCK_CACHED);
	assert_block(&made.process, first, SMALL_BYTES, BLOCK_USED);
	assert_says(
		&made,
		"free slices whose link was overwritten after they were freed: 1, the first at %#lx",
		first + SMALL_BYTES);
}

TEST(slice_that_was_freed_twice_is_named)
{
	MADE(made, GLIB_2_74);
	uint64_t first = add_small(&made);

	free_to_thread(&made, first + SMALL_BYTES, SMALL, 0);
	free_to_thread(&made, first + SMALL_BYTES, SMALL, 1);
	process_open(&made.process);
	assert_says(
		&made,
		"free slices that were freed twice, as lists have them twice: 1, the first at %#lx",
		first + SMALL_BYTES);
}

TEST(count_and_ring_of_slabs_are_checked)
{
	MADE(made, GLIB_2_74);
	uint64_t first = add_small(&made), second = add_small(&made), third = add_small(&made);

	free_chunk(&made, first, SMALL_SLAB);
	core_set(&made.process.core, first + SMALL_SLAB - INFO + 8, 3);
	/* From either side, all are found. */
	core_set(&made.process.core, second + SMALL_SLAB - INFO + 16, 0x5757575757575757);
	process_open(&made.process);
	assert_block(&made.process, second, SMALL_BYTES, BLOCK_USED);
	assert_block(&made.process, third, SMALL_BYTES, BLOCK_USED);
	assert_says(
		&made,
		"slabs whose list contradicts their count of slices in use: 1, the first at %#lx",
		first);
	assert_says(&made, "slabs whose neighbours do not name them: 1, the first at %#lx",
		    second + SMALL_SLAB - INFO);
	assert_finding(analysis_findings(made.process.analysis), FINDING_NOTE,
		       "G_SLICE=always-malloc");
}

TEST(glib_that_keeps_no_slices_has_none)
{
	MADE(made, GLIB_2_74);

	set_variable(&made.process.core, 1);
	process_open(&made.process);
	assert_null(strstr(analysis_findings(made.process.analysis)->list[0].message, "slices"));
}

/* Only a GLib that has them, and only if a thread used them. */
TEST(slices_that_are_not_found_are_missed)
{
	static const struct {
		const char *library;
		bool is_used, expected;
	} cases[] = {
		{ GLIB_2_74, true, true },
		{ GLIB_2_74, false, false },
		{ "/lib/libglib-2.0.so.0.8400.3", true, false },
		{ "/lib/libglib-2.0.so.0", true, true },
		{ "/lib/libother.so.0", true, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		MADE(made, cases[i].library);
		const struct findings *findings;
		bool found = false;

		core_set(&made.process.core, VARIABLE, 0);
		if (!cases[i].is_used)
			core_set(&made.process.core, HEAP, 0);
		process_open(&made.process);
		findings = analysis_findings(made.process.analysis);
		for (size_t j = 0; j < findings->count; j++)
			found |= findings->list[j].weight == FINDING_INCOMPLETE &&
				 strstr(findings->list[j].message, "its slices could not be read");
		assert_int_equal(found, cases[i].expected);
	}
}
