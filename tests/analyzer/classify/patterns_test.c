#include "analyzer/classify/reference_judge.h"

#include <string.h>
#include <uchar.h>

#include "tests/analyzer/world.h"

/*
 * A heap of blocks of SIZE bytes each, one every STRIDE bytes; containers stand in DATA. A library
 * that is loaded says which C++ there is.
 */
static const uint64_t HEAP = 0x555500000000, STRIDE = 64, SIZE = 56, BLOCKS = 32,
		      DATA = 0x7f0000000000, LIBRARY = 0x7f0000100000, LENGTH = 0x2000,
		      STACK = 0x7ffc00000000;

static const char LIBSTDCXX_PATH[] = "/usr/lib/libstdc++.so.6",
		  LIBCXX_PATH[] = "/usr/lib/libc++.so.1", LIBC_PATH[] = "/usr/lib/libc.so.6";

struct classified {
	struct world world;
	struct patterns *patterns;
};

static uint64_t at(allocation_id id)
{
	return HEAP + STRIDE * id;
}

/* Words of DATA or of a block, from that number on. */
static void put(struct classified *classified, uint64_t address, size_t count,
		const uint64_t *words)
{
	for (size_t i = 0; i < count; i++)
		core_set(&classified->world.core, address + 8 * i, words[i]);
}

#define PUT(classified, address, ...)                                                    \
	put(classified, address, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), \
	    (uint64_t[]){ __VA_ARGS__ })

static void classified_init(struct classified *classified, const char *library)
{
	struct world *world = &classified->world;

	classified->patterns = NULL;
	world_init(world);
	world_add_blocks(world, BLOCKS, HEAP, STRIDE, SIZE);
	core_add(&world->core, DATA, LENGTH, RIGHTS_RW);
	world_add_stack(world, STACK, LENGTH, STACK + 0x1000);
	world_add_elf(world, LIBRARY, LENGTH);
	core_add_file(&world->core, LIBRARY, LIBRARY + LENGTH, 0, library);
}

static void classified_deinit(struct classified *classified)
{
	if (classified->patterns)
		patterns_destroy(classified->patterns);
	world_deinit(&classified->world);
}
DEFINE_DEINIT(classified_deinit, struct classified)

static struct patterns *create_patterns(struct world *world)
{
	struct patterns *patterns;

	assert_no_error(patterns_create(
		&(struct scan_input){
			.image = world->image,
			.program = world->program,
			.index = world->index,
			.roots = world->roots,
			.account = &world->account,
			.progress = &world->progress,
		},
		&patterns));
	return patterns;
}

/* Classify each allocation alone: only its referrers are read. */
static void classify_each(struct classified *classified)
{
	struct world *world = &classified->world;
	_cleanup_(patterns_destroy) struct patterns *few = create_patterns(world);
	struct reader reader;

	if (!patterns_can_find_few(few))
		return;
	world_find_graph(world);
	world_find_incoming(world);
	patterns_init_reader(few, &reader);
	for (allocation_id id = 0; id < allocation_count(world->index); id++) {
		struct edges edges = graph_outgoing(world->incoming, id);
		_cleanup_(bitmap_deinit) struct bitmap sources = { 0 };

		assert_no_error(
			bitmap_init(&sources, allocation_count(world->index), &world->account));
		bitmap_set(&sources, id);
		for (size_t i = 0; i < edges.count; i++) {
			struct edges next = graph_outgoing(world->incoming, edges.targets[i]);

			bitmap_set(&sources, edges.targets[i]);
			if (!patterns_lead_on(few, &reader, edges.targets[i]))
				continue;
			for (size_t j = 0; j < next.count; j++)
				bitmap_set(&sources, next.targets[j]);
		}
		assert_false(patterns_know(few, id));
		assert_no_error(patterns_find_few(few, &id, 1, &sources));
		assert_true(patterns_know(few, id));
	}
	for (allocation_id id = 0; id < allocation_count(world->index); id++) {
		assert_int_equal(patterns_of(few, id), patterns_of(classified->patterns, id));
		assert_int_equal(patterns_owner(few, id), patterns_owner(classified->patterns, id));
	}
}

/* At once, and in two passes: that must not make a difference. */
static void classify(struct classified *classified)
{
	struct world *world = &classified->world;
	_cleanup_(patterns_destroy) struct patterns *slowly = NULL;

	world_open(world);
	world_find_program(world);
	world_find_roots(world);
	classified->patterns = create_patterns(world);
	assert_no_error(patterns_find_owners(classified->patterns));
	slowly = create_patterns(world);
	assert_no_error(patterns_find(slowly));
	assert_no_error(patterns_find_owners(slowly));
	for (allocation_id id = 0; id < allocation_count(world->index); id++) {
		assert_int_equal(patterns_of(slowly, id), patterns_of(classified->patterns, id));
		assert_int_equal(patterns_owner(slowly, id),
				 patterns_owner(classified->patterns, id));
	}
	classify_each(classified);
}

/* The blocks from first on have the patterns, and no other has any. */
static void assert_patterns(const struct classified *classified, allocation_id first, size_t count,
			    const char *const *names)
{
	for (allocation_id id = 0; id < BLOCKS; id++) {
		pattern_number number = patterns_of(classified->patterns, id);
		const char *name = id - first < count ? names[id - first] : NULL;

		if (name)
			assert_int_not_equal(number, NO_PATTERN);
		if (number != NO_PATTERN)
			assert_string_equal(pattern_name(number), name ? name : "none");
	}
}

#define ASSERT_PATTERNS(classified, first, ...)                                         \
	assert_patterns(classified, first,                                              \
			sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(const char *), \
			(const char *[]){ __VA_ARGS__ })

static void assert_nothing(const struct classified *classified)
{
	assert_patterns(classified, 0, 0, NULL);
}

static struct pattern_facts tell(const struct classified *classified, allocation_id id)
{
	struct pattern_facts facts;
	struct reader reader;

	patterns_init_reader(classified->patterns, &reader);
	assert_true(patterns_tell(classified->patterns, &reader, id, &facts));
	return facts;
}

TEST(vector_has_a_body_with_spare_capacity)
{
	_cleanup_(classified_deinit) struct classified classified;
	struct pattern_facts facts;
	const char *part = NULL;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, at(3), at(3) + 40, at(3) + 56);
	classify(&classified);
	ASSERT_PATTERNS(&classified, 3, "VectorBody");
	facts = tell(&classified, 3);
	assert_int_equal(facts.owner, DATA);
	assert_int_equal(facts.length, 40);
	assert_int_equal(facts.capacity, 56);
	assert_false(patterns_is_tainted(classified.patterns, 3, 32, NULL));
	assert_true(patterns_is_tainted(classified.patterns, 3, 40, &part));
	assert_string_equal(part, "spare capacity of a vector");
}

TEST(vector_ends_where_its_body_does)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, at(0), at(0) + 8, at(0) + 16);
	PUT(&classified, DATA + 0x100, at(1), at(1) + 64, at(1) + 56);
	PUT(&classified, DATA + 0x200, at(2), at(2) + 56, at(2) + 64);
	PUT(&classified, DATA + 0x300, at(3) + 8, at(3) + 24, at(3) + 56);
	classify(&classified);
	assert_nothing(&classified);
}

TEST(c_has_no_containers)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBC_PATH);
	PUT(&classified, DATA, at(3), at(3) + 40, at(3) + 56);
	PUT(&classified, DATA + 0x100, at(4), 20, 48, 0);
	classify(&classified);
	assert_nothing(&classified);
}

TEST(string_ends_by_a_zero)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, at(1), 20, 48, 0);
	PUT(&classified, DATA + 0x100, at(2), 20, 48, 0);
	memset(core_at(&classified.world.core, at(1), 20), 'a', 20);
	memset(core_at(&classified.world.core, at(2), 21), 'a', 21);
	classify(&classified);
	ASSERT_PATTERNS(&classified, 1, "LongString", "String");
	assert_true(patterns_is_tainted(classified.patterns, 1, 24, NULL));
	assert_false(patterns_is_tainted(classified.patterns, 1, 16, NULL));
}

/* C programs and V8 keep buffers as a pointer, a length and a capacity, too. */
TEST(string_holds_text_or_grew)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, at(0), at(1), 20, 20, 20);
	PUT(&classified, DATA + 0x100, at(2), 20, 40, 0);
	PUT(&classified, DATA + 0x200, at(4), 20, 20, 0);
	PUT(&classified, DATA + 0x300, at(5), 20, 20, 0);
	PUT(&classified, DATA + 0x400, at(6), 20, 30, 0);
	memset(core_at(&classified.world.core, at(1), 20), 'a', 20);
	memset(core_at(&classified.world.core, at(2), 20), 1, 20);
	memset(core_at(&classified.world.core, at(4), 20), 'a', 20);
	memcpy(core_at(&classified.world.core, at(5), 20),
	       "\xc3\xa4"
	       "bc\0def \xf0\x9f\x98\x80 ghijkl",
	       20);
	memset(core_at(&classified.world.core, at(6), 20), 1, 20);
	classify(&classified);
	ASSERT_PATTERNS(&classified, 1, "String", NULL, NULL, "LongString", "LongString",
			"LongString");
}

/* Numbers, addresses and structures that begin with a name. */
TEST(text_is_all_that_a_string_holds)
{
	static const char text[] = "value number 17";
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBC_PATH);
	for (allocation_id id = 0; id < 6; id++)
		memcpy(core_at(&classified.world.core, at(id), sizeof(text)), text, sizeof(text));
	PUT(&classified, at(1) + 48, at(20));
	PUT(&classified, at(2) + 40, 17);
	memcpy(core_at(&classified.world.core, at(3) + 16, 8), "stale", 6);
	PUT(&classified, at(4), at(20));
	PUT(&classified, at(6), UINT64_C(0x6c6c6548));
	classify(&classified);
	ASSERT_PATTERNS(&classified, 0, "String", NULL, NULL, "String", NULL, "String");
}

/* Small numbers, texts without an end, and structures with wide text in front. */
TEST(wide_text_ends_and_leads_nowhere)
{
	static const wchar_t wide[] = L"wide number 7";
	static const char16_t narrow[] = u"UTF-16 number 17", longer[] = u"UTF-16 number 17 of 20";
	static const uint32_t numbers[] = { 'a', 'a', 'b', 'b', 'a', 'a', 'b', 'b', 'a', 0 };
	static const uint32_t small[] = { 9, 8, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 0 };
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBC_PATH);
	memcpy(core_at(&classified.world.core, at(0), sizeof(wide)), wide, sizeof(wide) - 8);
	memcpy(core_at(&classified.world.core, at(1), sizeof(narrow)), narrow, sizeof(narrow));
	memcpy(core_at(&classified.world.core, at(2), sizeof(narrow)), narrow, sizeof(narrow));
	PUT(&classified, at(2) + 40, at(20));
	memcpy(core_at(&classified.world.core, at(3), sizeof(numbers)), numbers, sizeof(numbers));
	memcpy(core_at(&classified.world.core, at(4), sizeof(small)), small, sizeof(small));
	memcpy(core_at(&classified.world.core, at(5), sizeof(longer)), longer, sizeof(longer));
	PUT(&classified, at(5) + 48, at(20));
	classify(&classified);
	ASSERT_PATTERNS(&classified, 0, "WideString", "WideString", NULL, NULL, NULL, "WideString");
}

TEST(string_of_libcxx_begins_by_its_size)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBCXX_PATH);
	PUT(&classified, DATA, 48 + 1, 20, at(1));
	PUT(&classified, DATA + 0x100, at(2), 20, 48, 0);
	classify(&classified);
	ASSERT_PATTERNS(&classified, 1, "LongString");
}

TEST(shortest_string_of_newer_libcxx)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBCXX_PATH);
	PUT(&classified, DATA, 26 + 1, 23, at(1), 28 + 1, 23, at(2));
	classify(&classified);
	ASSERT_PATTERNS(&classified, 1, "LongString");
}

TEST(short_string_taints_what_it_does_not_use)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, at(0), at(0) + 16, 3, 0x636261, at(5));
	PUT(&classified, at(1), at(1) + 16, 9, 0x636261, at(5));
	classify(&classified);
	assert_true(patterns_is_tainted(classified.patterns, 0, 24, NULL));
	assert_false(patterns_is_tainted(classified.patterns, 0, 16, NULL));
	assert_false(patterns_is_tainted(classified.patterns, 1, 24, NULL));
}

TEST(copied_string_is_pointed_at_behind_its_counts)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, at(0) + 24, 0, at(1) + 24, 0, at(2) + 24);
	PUT(&classified, at(0), 20, 31, 0);
	PUT(&classified, at(1), 20, 19, 0);
	PUT(&classified, at(2), 0, 31, 0); /* as MariaDB's my_malloc() has them */
	classify(&classified);
	ASSERT_PATTERNS(&classified, 0, "COWStringBody");
}

TEST(list_is_a_ring_of_as_many_as_it_says)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, at(2), at(3), 2);
	PUT(&classified, at(2), at(3), DATA);
	PUT(&classified, at(3), DATA, at(2));
	PUT(&classified, DATA + 0x100, at(7), at(8), 3);
	PUT(&classified, at(7), at(8), DATA + 0x100);
	PUT(&classified, at(8), DATA + 0x100, at(7));
	classify(&classified);
	ASSERT_PATTERNS(&classified, 2, "ListNode", "ListNode");
}

/* Its nodes look like containers of as many as their elements say. */
TEST(list_may_begin_an_allocation)
{
	_cleanup_(classified_deinit) struct classified classified;
	struct pattern_facts facts;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, at(1));
	PUT(&classified, at(1), at(2), at(3), 2);
	PUT(&classified, at(2), at(3), at(1), 5);
	PUT(&classified, at(3), at(1), at(2), 7);
	classify(&classified);
	ASSERT_PATTERNS(&classified, 2, "ListNode", "ListNode");
	facts = tell(&classified, 2);
	assert_int_equal(facts.owner, at(1));
}

TEST(forward_list_is_a_chain_of_three_at_least)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, at(4));
	PUT(&classified, at(4), at(5));
	PUT(&classified, at(5), at(6));
	PUT(&classified, DATA + 0x100, at(8));
	PUT(&classified, at(8), at(9));
	classify(&classified);
	ASSERT_PATTERNS(&classified, 4, "ForwardListNode", "ForwardListNode", "ForwardListNode");
}

/* The first module stands for the program. */
TEST(chains_of_a_c_library_are_no_forward_list)
{
	static const uint64_t OTHER = LIBRARY + 0x10000;
	_cleanup_(classified_deinit) struct classified classified;
	struct core *core = &classified.world.core;

	classified_init(&classified, LIBSTDCXX_PATH);
	world_add_elf(&classified.world, OTHER, LENGTH);
	core_set(core, OTHER + sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_memsz), 2 * LENGTH);
	core_add(core, OTHER + LENGTH, LENGTH, RIGHTS_RW);
	core_add_file(core, OTHER, OTHER + 2 * LENGTH, 0, LIBC_PATH);
	PUT(&classified, OTHER + LENGTH + 0x100, at(4));
	PUT(&classified, at(4), at(5));
	PUT(&classified, at(5), at(6));
	PUT(&classified, at(6), at(7));
	PUT(&classified, at(1), 0, at(5));
	classify(&classified);
	assert_nothing(&classified);
}

TEST(chain_without_end_is_no_list)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, at(4));
	PUT(&classified, at(4), at(5));
	PUT(&classified, at(5), at(6));
	PUT(&classified, at(6), at(4));
	classify(&classified);
	assert_nothing(&classified);
}

TEST(tree_is_linked_both_ways)
{
	_cleanup_(classified_deinit) struct classified classified;
	struct pattern_facts facts;

	classified_init(&classified, LIBSTDCXX_PATH);
	/* The header follows what compares keys. */
	PUT(&classified, DATA + 8, 0, at(1), at(0), at(2), 3);
	PUT(&classified, at(0), 0, at(1), 0, 0);
	PUT(&classified, at(1), 1, DATA + 8, at(0), at(2));
	PUT(&classified, at(2), 0, at(1), 0, 0);
	PUT(&classified, DATA + 0x100, 0, at(5), at(4), at(6), 3);
	PUT(&classified, at(5), 1, DATA + 0x108, at(4), at(6));
	classify(&classified);
	ASSERT_PATTERNS(&classified, 0, "MapOrSetNode", "MapOrSetNode", "MapOrSetNode");
	facts = tell(&classified, 2);
	assert_int_equal(facts.owner, DATA);
	assert_int_equal(facts.length, 3);
}

/* Links that lead back up, or to themselves, end the walk. */
TEST(tree_with_rings_is_walked_once)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, 0, at(1), at(0), at(2), 3);
	PUT(&classified, at(0), 0, at(1), 0, at(0));
	PUT(&classified, at(1), 1, DATA, at(0), at(0));
	PUT(&classified, at(2), 0, at(1), at(1), 0);
	classify(&classified);
	assert_non_null(classified.patterns);
}

TEST(tree_of_libcxx)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBCXX_PATH);
	PUT(&classified, DATA, at(0), at(1), 2);
	PUT(&classified, at(1), at(0), 0, DATA + 8, 1);
	PUT(&classified, at(0), 0, 0, at(1), 0);
	classify(&classified);
	ASSERT_PATTERNS(&classified, 0, "MapOrSetNode", "MapOrSetNode");
}

TEST(hash_table_has_buckets_and_nodes)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, at(4), 7, at(5), 2, 0x3f800000, 7, 0);
	PUT(&classified, at(4), 0, 0, DATA + 16, 0, at(5), 0, 0);
	PUT(&classified, at(5), at(6), 42);
	PUT(&classified, at(6), 0, 43);
	/* No bucket leads to the first node. */
	PUT(&classified, DATA + 0x100, at(8), 7, at(9), 1, 0x3f800000, 7, 0);
	classify(&classified);
	ASSERT_PATTERNS(&classified, 4, "UnorderedMapOrSetBuckets", "UnorderedMapOrSetNode",
			"UnorderedMapOrSetNode");
}

TEST(deque_has_a_map_and_blocks)
{
	_cleanup_(classified_deinit) struct classified classified;
	uint64_t end = at(2) + 56;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, at(1), 7, at(2) + 16, at(2), end, at(1) + 16, at(3) + 24, at(3),
	    at(3) + 56, at(1) + 24);
	PUT(&classified, at(1), 0, 0, at(2), at(3), at(9));
	classify(&classified);
	ASSERT_PATTERNS(&classified, 1, "DequeMap", "DequeBlock", "DequeBlock");
	assert_true(patterns_is_tainted(classified.patterns, 2, 8, NULL));
	assert_false(patterns_is_tainted(classified.patterns, 2, 16, NULL));
	assert_true(patterns_is_tainted(classified.patterns, 3, 24, NULL));
	assert_true(patterns_is_tainted(classified.patterns, 1, 32, NULL));
}

TEST(file_has_a_buffer_though_a_vector_looks_so)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, 0xfbad2a84, at(0), at(0), at(0), at(0), at(0) + 8, at(0) + 48, at(0),
	    at(0) + 48);
	classify(&classified);
	ASSERT_PATTERNS(&classified, 0, "StdioBuffer");
}

TEST(thread_vector_is_known_by_the_thread)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBC_PATH);
	PUT(&classified, DATA, DATA, at(0) + 16, DATA);
	PUT(&classified, at(0), 2, 0, 1, 0, at(5) + 8, at(5));
	PUT(&classified, DATA + 0x100, DATA, at(1) + 16, DATA);
	PUT(&classified, at(1), 2);
	classify(&classified);
	assert_string_equal(pattern_name(patterns_of(classified.patterns, 0)), "ThreadVector");
	assert_string_equal(pattern_name(patterns_of(classified.patterns, 5)), "ThreadLocalBlock");
	assert_int_equal(patterns_of(classified.patterns, 1), NO_PATTERN);
}

/* Words are filtered by rows of 64: what a match takes may be in two. */
TEST(matches_may_lie_across_rows_of_words)
{
	for (uint64_t word = 0; word <= 72; word++) {
		_cleanup_(classified_deinit) struct classified classified;
		uint64_t address = DATA + 8 * word;

		classified_init(&classified, LIBSTDCXX_PATH);
		PUT(&classified, address, 0xfbad2a84, 0, 0, 0, 0, 0, 0, at(2), at(2) + 48);
		PUT(&classified, address + 0x400, at(3), at(3) + 40, at(3) + 56);
		PUT(&classified, address + 0x800, address + 0x800, at(4) + 16, address + 0x800);
		PUT(&classified, at(4), 1);
		classify(&classified);
		ASSERT_PATTERNS(&classified, 2, "StdioBuffer", "VectorBody", "ThreadVector");
	}
}

TEST(taint_of_all_references_is_found)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, at(0), at(0) + 8, at(0) + 56);
	PUT(&classified, at(0), at(1), at(2), at(1));
	classify(&classified);
	assert_null(patterns_find_taint(classified.patterns, 0, 1));
	assert_string_equal(patterns_find_taint(classified.patterns, 0, 2),
			    "spare capacity of a vector");
}

TEST(each_name_is_found)
{
	for (size_t i = 0; pattern_name_at(i); i++) {
		pattern_number number = pattern_find(pattern_name_at(i));

		assert_int_equal(number, i + 1);
	}
	assert_int_equal(pattern_find("Nothing"), NO_PATTERN);
}

/* True if source holds target by the word at that offset. */
static bool favors(struct classified *classified, allocation_id source, uint64_t offset,
		   allocation_id target)
{
	struct reference_judge judge;

	assert_no_error(patterns_find_owners(classified->patterns));
	reference_judge_init(&judge, classified->patterns);
	reference_judge_set_source(&judge, source);
	return reference_judge_favors(&judge, offset, target);
}

TEST(list_holds_a_node_by_the_link_from_in_front)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, at(1));
	PUT(&classified, at(1), at(2), at(3), 2);
	PUT(&classified, at(2), at(3), at(1), 5);
	PUT(&classified, at(3), at(1), at(2), 7);
	/* An iterator. */
	PUT(&classified, at(5), at(2));
	classify(&classified);
	ASSERT_PATTERNS(&classified, 2, "ListNode", "ListNode");
	assert_true(favors(&classified, 1, 0, 2));
	assert_false(favors(&classified, 1, 8, 3));
	assert_true(favors(&classified, 2, 0, 3));
	assert_false(favors(&classified, 3, 8, 2));
	assert_false(favors(&classified, 5, 0, 2));
	/* The list itself is no part of a container. */
	assert_true(favors(&classified, 3, 0, 1));
	assert_true(favors(&classified, 2, 8, 1));
}

TEST(tree_holds_a_node_by_the_link_down)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, DATA, at(7));
	PUT(&classified, at(7) + 8, 0, at(1), at(0), at(2), 3);
	PUT(&classified, at(0), 0, at(1), 0, 0);
	PUT(&classified, at(1), 1, at(7) + 8, at(0), at(2));
	PUT(&classified, at(2), 0, at(1), 0, 0);
	classify(&classified);
	ASSERT_PATTERNS(&classified, 0, "MapOrSetNode", "MapOrSetNode", "MapOrSetNode");
	assert_true(favors(&classified, 7, 16, 1));
	assert_false(favors(&classified, 7, 24, 0));
	assert_false(favors(&classified, 7, 32, 2));
	assert_true(favors(&classified, 1, 16, 0));
	assert_true(favors(&classified, 1, 24, 2));
	assert_false(favors(&classified, 0, 8, 1));
}

TEST(vector_holds_its_body_by_its_first_word)
{
	_cleanup_(classified_deinit) struct classified classified;

	classified_init(&classified, LIBSTDCXX_PATH);
	PUT(&classified, at(1) + 8, at(3), at(3) + 40, at(3) + 56);
	classify(&classified);
	ASSERT_PATTERNS(&classified, 3, "VectorBody");
	assert_true(favors(&classified, 1, 8, 3));
	assert_false(favors(&classified, 1, 16, 3));
}
