/*
 * A process with tcmalloc, made in memory: the library with the table of size classes, the root of
 * the page map and the central caches; Spans, a thread's cache and a leaf in memory for metadata;
 * and spans.
 */
#include "tests/allocators/process.h"

static const uint64_t CLASSES = DATA + 0x104, HEAD = DATA + 0x800, ROOT = DATA + 0x1008,
		      CENTRAL = DATA + 0x200000, METADATA = 0x7e0000000000, SPANS = METADATA,
		      CACHE = METADATA + 0x8000, LEAF = METADATA + 0x10000,
		      METADATA_SIZE = 0x400000, HEAP = 0x7d0000000000, HEAP_SIZE = 0x200000;

enum { CLASS_COUNT = 30, STRIDE = 1216, TC_PAGE = 8192, CLASS_16 = 2, CLASS_LAST = 29 };
enum { IN_USE, NORMAL, RETURNED };

struct made {
	struct process process;
	uint64_t next_span, next_page;
};

static uint64_t class_bytes(unsigned int class)
{
	return class == CLASS_LAST ? 256 << 10 : class < 2 ? 8 * class : 16 * (class - 1);
}

static void set_u32(struct core *core, uint64_t address, uint32_t value)
{
	memcpy(core_at(core, address, sizeof(value)), &value, sizeof(value));
}

/* An empty ring of Spans. */
static void add_ring(struct core *core, uint64_t address)
{
	core_set(core, address + 16, address);
	core_set(core, address + 24, address);
}

static uint64_t central_of(unsigned int class)
{
	return CENTRAL + (uint64_t)STRIDE * class;
}

static void made_init(struct made *made)
{
	struct core *core = &made->process.core;

	process_init(&made->process, "/lib/libtcmalloc.so.4");
	core_add(core, METADATA, METADATA_SIZE, RIGHTS_RW);
	core_add(core, HEAP, HEAP_SIZE, RIGHTS_RW);
	made->next_span = SPANS;
	made->next_page = HEAP / TC_PAGE;
	for (unsigned int i = 0; i < CLASS_COUNT; i++) {
		set_u32(core, CLASSES + 4 * i, (uint32_t)class_bytes(i));
		set_u32(core, CACHE + 32 * i + 24, (uint32_t)class_bytes(i));
		core_set(core, central_of(i), i);
		add_ring(core, central_of(i) + 8);
		add_ring(core, central_of(i) + 56);
	}
	core_set(core, ROOT + 8 * (made->next_page >> 18), LEAF);
	core_set(core, HEAD, CACHE);
}

DEFINE_MADE_DEINIT

/* A span behind all others; returns where it begins. */
static uint64_t add_span(struct made *made, uint64_t pages, uint64_t objects, unsigned int refcount,
			 unsigned int class, unsigned int location)
{
	struct core *core = &made->process.core;
	uint64_t span = made->next_span, start = made->next_page;

	core_set(core, span, start);
	core_set(core, span + 8, pages);
	core_set(core, span + 32, objects);
	core_set(core, span + 40, refcount | class << 16 | location << 24);
	core_set(core, LEAF + 8 * (start & 0x3ffff), span);
	core_set(core, LEAF + 8 * ((start + pages - 1) & 0x3ffff), span);
	made->next_span += 48;
	made->next_page += pages;
	return start * TC_PAGE;
}

/* A span of one page, of 512 objects of 16 bytes, of which the first and third are free. */
static uint64_t add_objects(struct made *made)
{
	uint64_t start = made->next_page * TC_PAGE;

	core_set(&made->process.core, start, start + 32);
	return add_span(made, 1, start, 510, CLASS_16, IN_USE);
}

TEST(objects_that_the_span_lists_are_free)
{
	MADE(made);
	uint64_t span = add_objects(&made), large = add_span(&made, 3, 0, 1, 0, IN_USE);

	process_open(&made.process);
	assert_block(&made.process, span, 16, BLOCK_FREE);
	assert_block(&made.process, span + 16, 16, BLOCK_USED);
	assert_block(&made.process, span + 32, 16, BLOCK_FREE);
	assert_block(&made.process, span + TC_PAGE - 16, 16, BLOCK_USED);
	assert_block(&made.process, large, 3 * TC_PAGE, BLOCK_USED);
	assert_free_kind(&made.process, span, "span");
	assert_int_equal(count_incomplete(&made.process), 0);
}

TEST(free_spans_are_told_apart)
{
	MADE(made);
	uint64_t normal, returned;

	add_objects(&made);
	normal = add_span(&made, 2, 0, 0, 0, NORMAL);
	returned = add_span(&made, 5, 0, 0, 0, RETURNED);
	process_open(&made.process);
	assert_block(&made.process, normal, 2 * TC_PAGE, BLOCK_FREE);
	assert_free_kind(&made.process, normal, "page heap");
	assert_free_kind(&made.process, returned, "returned");
	assert_told(&made.process, returned, "a free span of 5 pages, returned to the system");
}

TEST(what_a_thread_keeps_is_free)
{
	MADE(made);
	uint64_t span = add_objects(&made);

	add_span(&made, 1, 0, 1, 0, IN_USE);
	core_set(&made.process.core, CACHE + 32 * CLASS_16, span + 48);
	core_set(&made.process.core, CACHE + 32 * CLASS_16 + 8, 2);
	core_set(&made.process.core, span + 48, span + 80);
	process_open(&made.process);
	assert_block(&made.process, span + 48, 16, BLOCK_CACHED);
	assert_block(&made.process, span + 64, 16, BLOCK_USED);
	assert_block(&made.process, span + 80, 16, BLOCK_CACHED);
	assert_free_kind(&made.process, span + 80, "thread cache");
	assert_told(&made.process, span + 80, "in a thread's cache, of the class of 16 bytes");
	assert_told(&made.process, CACHE + 64, "in a thread's cache");
}

TEST(what_central_caches_keep_is_free)
{
	MADE(made);
	uint64_t span = add_objects(&made), batches = central_of(CLASS_16) + 120;

	add_span(&made, 1, 0, 1, 0, IN_USE);
	core_set(&made.process.core, batches, span + 48);
	core_set(&made.process.core, batches + 8, span + 80);
	core_set(&made.process.core, batches + 16 * 64, 1);
	core_set(&made.process.core, span + 48, span + 80);
	core_set(&made.process.core, span + 80, span + 96); /* old */
	process_open(&made.process);
	assert_block(&made.process, span + 80, 16, BLOCK_FREE);
	assert_block(&made.process, span + 96, 16, BLOCK_USED);
	assert_free_kind(&made.process, span + 48, "transfer cache");
	assert_int_equal(count_incomplete(&made.process), 0);
}

/* The second of two has the addresses of an old one, whose objects are in use again. */
TEST(batch_that_is_just_added_takes_no_object_that_is_in_use)
{
	MADE(made);
	uint64_t span = add_objects(&made), batches = central_of(CLASS_16) + 120;

	add_span(&made, 1, 0, 1, 0, IN_USE);
	core_set(&made.process.core, batches, span + 48);
	core_set(&made.process.core, batches + 8, span + 48);
	core_set(&made.process.core, batches + 16, span + 80);
	core_set(&made.process.core, batches + 24, span + 96);
	core_set(&made.process.core, batches + 16 * 64, 2);
	core_set(&made.process.core, span + 80, 0x1234);
	process_open(&made.process);
	assert_block(&made.process, span + 48, 16, BLOCK_FREE);
	assert_block(&made.process, span + 80, 16, BLOCK_USED);
	assert_block(&made.process, span + 96, 16, BLOCK_USED);
	assert_int_equal(count_incomplete(&made.process), 1);
}

TEST(sampled_allocation_is_as_large_as_others)
{
	MADE(made);
	uint64_t sampled;

	add_objects(&made);
	core_set(&made.process.core, METADATA + 0x9000, 33);
	sampled = add_span(&made, 1, METADATA + 0x9000, 1, 0, IN_USE | 1 << 2);
	process_open(&made.process);
	assert_block(&made.process, sampled, 48, BLOCK_USED);
}

TEST(contradictions_are_said)
{
	MADE(made);
	uint64_t span = add_objects(&made), other = add_span(&made, 1, HEAP, 510, CLASS_16, IN_USE);

	core_set(&made.process.core, SPANS + 40, 509 | CLASS_16 << 16);
	add_objects(&made);
	add_objects(&made);
	process_open(&made.process);
	assert_block(&made.process, span, 16, BLOCK_FREE);
	assert_block(&made.process, other, 16, BLOCK_USED);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"tcmalloc: spans whose list of free objects contradicts their count of used ones: 1, the first at 0x7d0000000000");
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"tcmalloc: lists of free objects with a wrong head, or that end too soon or late: 1, the first at 0x7d0000002000");
}

TEST(ring_in_a_list_ends_it)
{
	MADE(made);
	uint64_t span = add_objects(&made);

	add_span(&made, 1, 0, 1, 0, IN_USE);
	core_set(&made.process.core, span + 32, span);
	core_set(&made.process.core, CACHE + 32 * CLASS_16, span + 48);
	set_u32(&made.process.core, CACHE + 32 * CLASS_16 + 8, UINT32_MAX);
	core_set(&made.process.core, span + 48, span + 48);
	process_open(&made.process);
	assert_block(&made.process, span + 48, 16, BLOCK_CACHED);
	assert_int_equal(count_incomplete(&made.process), 1);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"tcmalloc: free objects that were freed twice, as lists have them twice: 2, the first at 0x7d0000000030;");
}

TEST(object_that_was_written_to_after_it_was_freed_is_named)
{
	MADE(made);
	uint64_t span = add_objects(&made);

	add_span(&made, 1, 0, 1, 0, IN_USE);
	core_set(&made.process.core, CACHE + 32 * CLASS_16, span + 48);
	set_u32(&made.process.core, CACHE + 32 * CLASS_16 + 8, 2);
	core_set(&made.process.core, span + 48, 0x5757575757575757);
	process_open(&made.process);
	assert_block(&made.process, span + 48, 16, BLOCK_CACHED);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"tcmalloc: free objects whose link was overwritten after they were freed: 1, the first at 0x7d0000000030;");
}

TEST(address_in_metadata_is_told)
{
	MADE(made);

	add_objects(&made);
	add_span(&made, 1, 0, 1, 0, IN_USE);
	process_open(&made.process);
	assert_told(&made.process, SPANS + 8, "the metadata of the span at 0x7d0000000000");
	assert_told(&made.process, LEAF + 8, "in the page map");
	assert_told(&made.process, ROOT + 8, "in the root of the page map");
	assert_told(&made.process, central_of(3), "in the central caches");
}

/* The others of this file have both, and say nothing. */
TEST(lack_of_caches_is_said)
{
	MADE(made);

	add_objects(&made);
	add_span(&made, 1, 0, 1, 0, IN_USE);
	core_set(&made.process.core, HEAD, 0);
	for (unsigned int i = 0; i < CLASS_COUNT; i++)
		core_set(&made.process.core, central_of(i) + 8 + 16, 0);
	process_open(&made.process);
	assert_int_equal(count_incomplete(&made.process), 2);
	assert_finding(analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		       "tcmalloc: no cache of a thread was found: what is in them counts as used");
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"tcmalloc: the central caches were not found: what is in them counts as used");
}
