/*
 * A process with Google's tcmalloc, made in memory, as of 2023-02 and of 2026-08: the library with
 * the table of size classes and the root of the page map; Spans, caches and a leaf in memory for
 * metadata; and spans.
 */
#include "tests/allocators/process.h"

static const uint64_t CLASSES = DATA + 0x104, SLABS = DATA + 0x800, THREAD = DATA + 0x808,
		      TRANSFER = DATA + 0x818, UNUSED = DATA + 0x820, ROOT = DATA + 0x1008,
		      METADATA = 0x7e0000000000, METADATA_SIZE = 0x400000, SPANS = METADATA,
		      SLAB = METADATA + 0x10000, CACHE = METADATA + 0x20000,
		      ARRAY_START = METADATA + 0x30000, SAMPLE = METADATA + 0x31000,
		      NODE = METADATA + 0x40000, LEAF = METADATA + 0x80000, HEAP = 0x7d0000000000,
		      HEAP_SIZE = 0x200000;

enum { CLASS_COUNT = 30, TC_PAGE = 8192, CLASS_16 = 2, CLASS_128 = 9, CLASS_LAST = 29 };
enum version { OF_2023, OF_2026 };

struct made {
	struct process process;
	enum version version;
	uint64_t next_span, next_page;
};

/* The contents of a Span. */
struct said {
	uint64_t pages;
	unsigned int class, allocated;
	unsigned int embedded, list, cached; /* of its list of free objects */
	uint64_t objects[2];		     /* bits of free ones, or four numbers each */
	uint64_t sample;
};

static uint64_t class_bytes(unsigned int class)
{
	return class == CLASS_LAST ? 256 << 10 : class < 2 ? 8 * class : 16 * (class - 1);
}

static void set_bytes(struct core *core, uint64_t address, uint64_t value, size_t size)
{
	memcpy(core_at(core, address, size), &value, size);
}

static void made_init(struct made *made)
{
	struct core *core = &made->process.core;

	process_init(&made->process, "/lib/libexample.so");
	core_add(core, METADATA, METADATA_SIZE, RIGHTS_RW);
	core_add(core, HEAP, HEAP_SIZE, RIGHTS_RW);
	made->next_span = SPANS;
	made->next_page = HEAP / TC_PAGE;
	for (unsigned int i = 0; i < 2 * CLASS_COUNT; i++)
		set_bytes(core, CLASSES + 4 * i, class_bytes(i % CLASS_COUNT), 4);
}

DEFINE_MADE_DEINIT

/* The root leads to the leaf, or to a node that does. */
static void set_version(struct made *made, enum version version)
{
	struct core *core = &made->process.core;

	made->version = version;
	if (version == OF_2023) {
		core_set(core, ROOT + 8 * (made->next_page >> 15), LEAF);
		return;
	}
	core_set(core, ROOT + 8 * (made->next_page >> 24), NODE);
	core_set(core, NODE + 8 * (made->next_page >> 12 & 0xfff), LEAF);
}

static void name_span(struct made *made, uint64_t page, uint64_t span, uint64_t class)
{
	struct core *core = &made->process.core;

	if (made->version == OF_2023) {
		set_bytes(core, LEAF + (page & 0x7fff), class, 1);
		core_set(core, LEAF + 0x8000 + 8 * (page & 0x7fff), span);
		return;
	}
	set_bytes(core, LEAF + 2 * (page & 0xfff), class, 2);
	core_set(core, LEAF + 0x2000 + 8 * (page & 0xfff), span | class << 48);
}

static void write_2023(struct core *core, uint64_t span, uint64_t page, const struct said *said)
{
	core_set(core, span + 16,
		 said->allocated | (uint64_t)said->embedded << 16 | (uint64_t)said->list << 32 |
			 (uint64_t)said->cached << 48 | (uint64_t)(said->sample != 0) << 62);
	core_set(core, span + 24, said->sample ? said->sample : said->objects[0]);
	core_set(core, span + 32, page);
	core_set(core, span + 40, said->pages);
}

static void write_2026(struct core *core, uint64_t span, uint64_t page, const struct said *said)
{
	bool is_large = said->pages > 63;
	uint64_t flags = (uint64_t)is_large << 35 | (uint64_t)(said->sample != 0) << 36;

	core_set(core, span + 16,
		 said->embedded | (uint64_t)said->list << 16 | (uint64_t)said->allocated << 32 |
			 (uint64_t)said->cached << 48);
	core_set(core, span + 24, page | flags | (flags ? 0 : said->pages << 38));
	core_set(core, span + 40, flags ? said->pages : said->objects[0]);
	core_set(core, span + 48, flags ? said->sample : said->objects[1]);
}

/* A span behind all others; returns where it begins. */
static uint64_t add_span(struct made *made, struct said said)
{
	uint64_t span = made->next_span, page = made->next_page;

	(made->version == OF_2023 ? write_2023 : write_2026)(&made->process.core, span, page,
							     &said);
	for (uint64_t i = 0; i < said.pages; i++)
		if (said.class || i == 0 || i == said.pages - 1)
			name_span(made, page + i, span, said.class);
	made->next_span += 128;
	made->next_page += said.pages;
	return page * TC_PAGE;
}

/* A span of 64 objects of 128 bytes, of which the first and third are free. */
static uint64_t add_objects(struct made *made)
{
	return add_span(
		made,
		(struct said){ .pages = 1, .class = CLASS_128, .allocated = 62, .objects = { 5 } });
}

/* One of 512 objects of 16 bytes: the list leads to the 8th, which has the 11th, and to the 6th. */
static uint64_t add_list(struct made *made)
{
	struct core *core = &made->process.core;
	uint64_t start = made->next_page * TC_PAGE;

	set_bytes(core, start + 7 * 16, 5 * 2 | 10 * 2 << 16, 4);
	set_bytes(core, start + 5 * 16, 0xffff, 2);
	for (uint64_t i = 1; i < 8; i++)
		set_bytes(core, start + 5 * 16 + 2 * i, 2 * (20 + i), 2);
	return add_span(made, (struct said){ .pages = 1,
					     .class = CLASS_16,
					     .allocated = 512 - 12,
					     .embedded = 1,
					     .list = 7 * 2,
					     .cached = 2,
					     .objects = { 0 * 2 | 1 * 2 << 16 } });
}

/* Some of each, and an object in a transfer cache, without which there is no cache. */
static uint64_t fill(struct made *made, enum version version)
{
	set_version(made, version);
	add_list(made);
	return add_objects(made);
}

static void check_free_objects(enum version version)
{
	MADE(made);
	uint64_t span = fill(&made, version), list = span - TC_PAGE;
	static const unsigned int is_free[] = { 0, 1, 5, 7, 10, 21, 27 };
	static const unsigned int is_used[] = { 2, 6, 8, 20, 28, 511 };

	process_open(&made.process);
	assert_block(&made.process, span, 128, BLOCK_FREE);
	assert_block(&made.process, span + 128, 128, BLOCK_USED);
	assert_block(&made.process, span + 256, 128, BLOCK_FREE);
	assert_block(&made.process, span + TC_PAGE - 128, 128, BLOCK_USED);
	assert_free_kind(&made.process, span, "span");
	for (size_t i = 0; i < COUNT_OF(is_free); i++)
		assert_block(&made.process, list + 16 * is_free[i], 16, BLOCK_FREE);
	for (size_t i = 0; i < COUNT_OF(is_used); i++)
		assert_block(&made.process, list + 16 * is_used[i], 16, BLOCK_USED);
	assert_told(&made.process, LEAF + 8, "in the page map");
	assert_told(&made.process, SPANS + 8, "the metadata of the span at 0x7d0000000000");
	assert_told(&made.process, SLAB, "in the metadata of tcmalloc");
}

TEST(objects_that_the_span_lists_are_free)
{
	check_free_objects(OF_2023);
	check_free_objects(OF_2026);
}

static void check_cpu(enum version version)
{
	MADE(made);
	uint64_t span = fill(&made, version), slab = SLAB + 0x1000;
	struct core *core = &made.process.core;

	core_set(core, SLABS, SLAB | 12);
	if (version == OF_2023) {
		set_bytes(core, slab + 8 * CLASS_128,
			  102 | 110ull << 16 | 100ull << 32 | 110ull << 48, 8);
	} else {
		set_bytes(core, slab + 4 * CLASS_128, 102 | 110 << 16, 4);
		core_set(core, slab + 8 * 99, (slab + 8 * 98) | 1);
	}
	core_set(core, slab + 8 * 100, span + 128);
	core_set(core, slab + 8 * 101, span + 128 * 7);
	core_set(core, slab + 8 * 102, span + 128 * 8); /* old */
	process_open(&made.process);
	assert_block(&made.process, span + 128, 128, BLOCK_CACHED);
	assert_block(&made.process, span + 128 * 7, 128, BLOCK_CACHED);
	assert_block(&made.process, span + 128 * 8, 128, BLOCK_USED);
	assert_free_kind(&made.process, span + 128, "CPU cache");
	assert_told(&made.process, span + 128, "in the cache of CPU 1, of the class of 128 bytes");
	assert_int_equal(count_incomplete(&made.process), 0);
}

TEST(what_a_processor_keeps_is_free)
{
	check_cpu(OF_2023);
	check_cpu(OF_2026);
}

static void check_thread(enum version version)
{
	MADE(made);
	uint64_t span = fill(&made, version), list = version == OF_2023 ? 32 : 24;
	struct core *core = &made.process.core;

	core_set(core, THREAD, CACHE);
	for (unsigned int i = 1; i < CLASS_COUNT; i++)
		set_bytes(core, CACHE + list * i + 16, 1, 4);
	core_set(core, CACHE + list * CLASS_128, span + 128);
	set_bytes(core, CACHE + list * CLASS_128 + 8, 2, 4);
	core_set(core, span + 128, span + 128 * 7);
	process_open(&made.process);
	assert_block(&made.process, span + 128, 128, BLOCK_CACHED);
	assert_block(&made.process, span + 128 * 7, 128, BLOCK_CACHED);
	assert_block(&made.process, span + 128 * 6, 128, BLOCK_USED);
	assert_told(&made.process, span + 128, "in a thread's cache, of the class of 128 bytes");
	assert_int_equal(count_incomplete(&made.process), 0);
}

TEST(what_a_thread_keeps_is_free)
{
	check_thread(OF_2023);
	check_thread(OF_2026);
}

/* The others of this file that have a cache of a processor or thread say nothing. */
TEST(what_transfer_caches_keep_is_free_and_lack_of_others_is_said)
{
	MADE(made);
	uint64_t span = fill(&made, OF_2023);
	struct core *core = &made.process.core;

	core_set(core, TRANSFER, ARRAY_START);
	set_bytes(core, TRANSFER - 8, 2 | 32ull << 32, 8);
	core_set(core, ARRAY_START, span + 128);
	core_set(core, ARRAY_START + 8, span + 128 * 5);
	core_set(core, ARRAY_START + 16, span + 128 * 6); /* old */
	process_open(&made.process);
	assert_block(&made.process, span + 128 * 5, 128, BLOCK_FREE);
	assert_block(&made.process, span + 128 * 6, 128, BLOCK_USED);
	assert_free_kind(&made.process, span + 128 * 5, "transfer cache");
	assert_int_equal(count_incomplete(&made.process), 1);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"Google's tcmalloc: no cache of a processor or thread was found: what is in them counts as used");
}

/* given: the bytes that the sample says, in its word of that number; 0: it says none. */
static void check_sampled(unsigned int word, uint64_t given, uint64_t expected)
{
	MADE(made);
	uint64_t span = fill(&made, OF_2023), sampled;
	struct core *core = &made.process.core;

	sampled = add_span(&made, (struct said){ .pages = 1, .sample = SAMPLE });
	core_set(core, SAMPLE + 32, span + 128 * 9);
	core_set(core, SAMPLE + 40, 115);
	core_set(core, SAMPLE + 56, 1);
	core_set(core, SAMPLE + 8 * word, given);
	core_set(core, SAMPLE + 80, 0);
	core_set(core, SAMPLE + 88 + 8 * (64 + 2), sampled);
	process_open(&made.process);
	assert_block(&made.process, sampled, expected, BLOCK_USED);
	assert_block(&made.process, span + 128 * 9, 128, BLOCK_FREE);
	assert_free_kind(&made.process, span + 128 * 9, "proxy");
}

TEST(sampled_allocation_is_as_large_as_others_and_its_proxy_is_free)
{
	check_sampled(7, 0, 128);
}

/* With an alignment, it is larger than its class would be. */
TEST(sampled_allocation_is_as_large_as_its_sample_says)
{
	check_sampled(7, TC_PAGE, TC_PAGE);
	check_sampled(8, TC_PAGE, TC_PAGE);
	check_sampled(8, 100, 128);  /* less than was asked for, */
	check_sampled(8, 1000, 128); /* and no class */
}

static void check_large(enum version version)
{
	MADE(made);
	uint64_t large, stale;

	fill(&made, version);
	large = add_span(&made, (struct said){ .pages = 70 });
	stale = add_span(&made, (struct said){ .pages = 3 });
	core_set(&made.process.core, UNUSED, made.next_span - 128);
	process_open(&made.process);
	assert_block(&made.process, large, 70 * TC_PAGE, BLOCK_USED);
	assert_block(&made.process, stale, HEAP + HEAP_SIZE - stale, BLOCK_FREE);
	assert_free_kind(&made.process, stale, "page heap");
}

TEST(large_allocations_are_used_and_pages_without_a_span_are_free)
{
	check_large(OF_2023);
	check_large(OF_2026);
}

TEST(contradictions_are_said)
{
	MADE(made);

	fill(&made, OF_2026);
	add_objects(&made);
	add_objects(&made);
	add_span(
		&made,
		(struct said){ .pages = 1, .class = CLASS_128, .allocated = 60, .objects = { 5 } });
	add_span(&made, (struct said){ .pages = 1, .class = CLASS_16, .cached = 3 });
	process_open(&made.process);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"Google's tcmalloc: spans whose list of free objects contradicts their count of used ones: 1, the first at 0x7d0000008000");
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"Google's tcmalloc: spans whose list of free objects is damaged: 1, the first at 0x7d000000a000");
}

/* Any word may lead to slabs, of which each may be empty: all that could be would take hours. */
TEST(looks_at_what_may_be_caches_are_bounded)
{
	static const uint64_t EMPTY = 0x7c0000000000, EMPTY_SIZE = 4096ull << 12;
	MADE(made);
	struct core *core = &made.process.core;
	uint64_t span = fill(&made, OF_2026);

	core_add(core, EMPTY, EMPTY_SIZE, RIGHTS_RW);
	for (uint64_t at = DATA + 0x10000; at < DATA + 0x80000; at += 8)
		core_set(core, at, EMPTY | 12);
	process_open(&made.process);
	assert_block(&made.process, span + 128, 128, BLOCK_USED);
}
