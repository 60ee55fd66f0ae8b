#include "analyzer/graph/graph.h"

#include "tests/analyzer/world.h"
#include "tests/random.h"

/* A heap of blocks of SIZE bytes each, one every STRIDE bytes. */
static const uint64_t HEAP = 0x100000, STRIDE = 64, SIZE = 56;

/* The address of the block whose rank is id. */
static uint64_t at(allocation_id id)
{
	return HEAP + STRIDE * id;
}

static void populate(struct world *world, size_t count)
{
	world_init(world);
	world_add_blocks(world, count, HEAP, STRIDE, SIZE);
}

static void populate_drawn(struct world *world, const char *text)
{
	world_init(world);
	world_draw(world, text, HEAP, STRIDE, SIZE);
}

/* The word of that number in the block is value. */
static void set(struct world *world, allocation_id id, size_t word, uint64_t value)
{
	core_set(&world->core, at(id) + 8 * word, value);
}

static void scan(struct world *world)
{
	world_open(world);
	world_find_graph(world);
	world_find_incoming(world);
}

static void assert_edges(struct edges edges, const allocation_id *expected)
{
	for (size_t i = 0; i < edges.count; i++)
		assert_int_equal(edges.targets[i], expected[i]);
	assert_int_equal(expected[edges.count], NO_ALLOCATION);
}

#define ASSERT_EDGES(edges, ...) \
	assert_edges((edges), (const allocation_id[]){ __VA_ARGS__, NO_ALLOCATION })

TEST(references_are_in_order_of_the_words)
{
	_cleanup_(world_deinit) struct world world;

	populate_drawn(&world, "b>d-a---c d>a");
	scan(&world);
	ASSERT_EDGES(graph_outgoing(world.graph, 0), NO_ALLOCATION);
	ASSERT_EDGES(graph_outgoing(world.graph, 1), 3, 0, 2);
	ASSERT_EDGES(graph_outgoing(world.graph, 2), NO_ALLOCATION);
	ASSERT_EDGES(graph_outgoing(world.graph, 3), 0);
	assert_int_equal(graph_edge_count(world.graph), 4);
}

TEST(reference_may_point_into_the_middle)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world, 3);
	set(&world, 0, 0, at(1) + 17);
	set(&world, 0, 1, at(2) + SIZE - 1);
	/* One past the end is not in it. */
	set(&world, 1, 0, at(2) + SIZE);
	set(&world, 1, 1, at(0) - 1);
	scan(&world);
	ASSERT_EDGES(graph_outgoing(world.graph, 0), 1, 2);
	ASSERT_EDGES(graph_outgoing(world.graph, 1), NO_ALLOCATION);
}

/* The word behind SIZE is the allocator's. */
TEST(only_aligned_words_of_the_allocation_count)
{
	_cleanup_(world_deinit) struct world world;
	uint64_t target = at(1);

	populate(&world, 2);
	set(&world, 0, SIZE / 8, target);
	memcpy(core_at(&world.core, at(0) + 12, 8), &target, 8);
	scan(&world);
	ASSERT_EDGES(graph_outgoing(world.graph, 0), NO_ALLOCATION);
}

TEST(reference_to_itself_is_none)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world, 2);
	set(&world, 0, 0, at(0));
	set(&world, 0, 1, at(0) + 8);
	set(&world, 1, 0, at(1) + SIZE - 1);
	scan(&world);
	assert_int_equal(graph_edge_count(world.graph), 0);
}

TEST(only_repeats_in_a_row_are_left_out)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world, 3);
	set(&world, 0, 0, at(1));
	set(&world, 0, 1, at(1) + 8);
	set(&world, 0, 2, at(2));
	set(&world, 0, 3, at(1));
	set(&world, 2, 0, at(1));
	scan(&world);
	ASSERT_EDGES(graph_outgoing(world.graph, 0), 1, 2, 1);
	ASSERT_EDGES(graph_outgoing(world.graph, 2), 1);
	ASSERT_EDGES(graph_outgoing(world.incoming, 1), 0, 2);
	ASSERT_EDGES(graph_outgoing(world.incoming, 2), 0);
	ASSERT_EDGES(graph_outgoing(world.incoming, 0), NO_ALLOCATION);
	assert_int_equal(graph_edge_count(world.incoming), 3);
}

TEST(free_block_is_referred_to_but_refers_to_none)
{
	_cleanup_(world_deinit) struct world world;

	populate_drawn(&world, "a>BC B>d C>d");
	block_sink_restate(world.sink, at(2), BLOCK_CACHED);
	scan(&world);
	ASSERT_EDGES(graph_outgoing(world.graph, 0), 1, 2);
	assert_int_equal(graph_edge_count(world.graph), 2);
	ASSERT_EDGES(graph_outgoing(world.incoming, 2), 0);
	ASSERT_EDGES(graph_outgoing(world.incoming, 3), NO_ALLOCATION);
}

TEST(pointerless_block_is_referred_to_but_refers_to_none)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world, 2);
	world_add_heap(&world, at(2), STRIDE);
	world_add_block(&world, (struct block){ at(2), SIZE, BLOCK_USED, TRAIT_POINTERLESS });
	set(&world, 0, 0, at(2));
	set(&world, 2, 0, at(1));
	scan(&world);
	ASSERT_EDGES(graph_outgoing(world.graph, 0), 2);
	ASSERT_EDGES(graph_outgoing(world.graph, 2), NO_ALLOCATION);
}

TEST(marking_within_a_set_goes_no_way_around)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(bitmap_deinit) struct bitmap within = { 0 }, from = { 0 }, reached = { 0 };

	populate(&world, 70);
	set(&world, 0, 0, at(1));
	set(&world, 0, 1, at(69));
	set(&world, 1, 0, at(2));
	set(&world, 69, 0, at(68));
	scan(&world);
	assert_no_error(bitmap_init(&within, 70, &world.account));
	assert_no_error(bitmap_init(&from, 70, &world.account));
	assert_no_error(bitmap_init(&reached, 70, &world.account));
	bitmap_fill(&within);
	bitmap_clear(&within, 1);
	bitmap_set(&from, 0);
	assert_no_error(graph_mark_within(world.graph, &within, &from, &reached, &world.account,
					  &world.progress));
	assert_int_equal(bitmap_weight(&reached), 3);
	assert_true(bitmap_get(&reached, 0));
	assert_true(bitmap_get(&reached, 68));
	assert_true(bitmap_get(&reached, 69));
}

/* Part of the block is not in the core; what is behind it is. */
TEST(absent_memory_hides_only_what_is_in_it)
{
	_cleanup_(world_deinit) struct world world;
	struct core *core = &world.core;
	const uint64_t high = HEAP + 0x10000;

	populate(&world, 2);
	core_add(core, high, 0x1000, RIGHTS_RW);
	core_add_part(core, high + 0x1000, 0x1000, 0, RIGHTS_RW);
	core_add(core, high + 0x2000, 0x1000, RIGHTS_RW);
	assert_no_error(block_sink_region(world.sink, high, high + 0x3000, 0));
	world_add_block(&world, (struct block){ high, 0x3000, BLOCK_USED });
	core_set(core, high + 0xff8, at(0));
	core_set(core, high + 0x2000, at(1));
	scan(&world);
	ASSERT_EDGES(graph_outgoing(world.graph, 2), 0, 1);
}

TEST(allocation_may_be_in_several_segments)
{
	_cleanup_(world_deinit) struct world world;
	const uint64_t high = HEAP + 0x10000;

	populate(&world, 2);
	core_add(&world.core, high, 0x1000, RIGHTS_RW);
	core_add(&world.core, high + 0x1000, 0x1000, RIGHTS_RW);
	assert_no_error(block_sink_region(world.sink, high + 0xff0, high + 0x1010, 0));
	world_add_block(&world, (struct block){ high + 0xff0, 32, BLOCK_USED });
	core_set(&world.core, high + 0xff8, at(1));
	core_set(&world.core, high + 0x1000, at(0));
	scan(&world);
	ASSERT_EDGES(graph_outgoing(world.graph, 2), 1, 0);
}

static void mark(struct world *world, struct bitmap *from, struct bitmap *reached)
{
	assert_no_error(bitmap_init(reached, world->count, &world->account));
	assert_no_error(graph_mark(world->graph, from, reached, &world->account, &world->progress));
}

TEST(marking_reaches_rings_and_free_blocks_but_no_more)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 }, reached = { 0 };

	populate_drawn(&world, "a>b>c>aE E>f d>a");
	scan(&world);
	assert_no_error(bitmap_init(&from, 6, &world.account));
	bitmap_set(&from, 1);
	mark(&world, &from, &reached);
	assert_int_equal(reached.words[0], 1 << 0 | 1 << 1 | 1 << 2 | 1 << 4);
}

TEST(interrupt_ends_scan_and_transposition)
{
	_cleanup_(world_deinit) struct world world;
	struct graph *graph;

	populate(&world, 3);
	set(&world, 0, 0, at(1));
	scan(&world);
	world.progress.interrupted = true;
	assert_error(graph_create(world.image, world.index, NULL, &world.account, &world.progress,
				  &graph),
		     ERROR_INTERRUPTED, "interrupted");
	assert_error(graph_transpose(world.graph, &world.account, &world.progress, &graph),
		     ERROR_INTERRUPTED, "interrupted");
}

TEST(heap_without_allocations_has_an_empty_graph)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 }, reached = { 0 };

	world_init(&world);
	world_add_heap(&world, HEAP, 0x1000);
	scan(&world);
	assert_int_equal(graph_edge_count(world.graph), 0);
	assert_no_error(bitmap_init(&from, 0, &world.account));
	mark(&world, &from, &reached);
}

enum { MANY = 40000, WORDS = 3 };

/* Random references; many allocations have none, and none refers to itself. */
static void fill(struct world *world, allocation_id (*targets)[WORDS])
{
	for (allocation_id id = 0; id < MANY; id++) {
		for (size_t i = 0; i < WORDS; i++) {
			allocation_id target = (allocation_id)random_below(MANY);

			targets[id][i] = NO_ALLOCATION;
			if (random_below(3) > 0 || target == id)
				continue;
			targets[id][i] = target;
			set(world, id, 2 * i, at(target) + random_below(SIZE));
		}
	}
}

/* Spread from as long as anything new is found. */
static void mark_model(allocation_id (*targets)[WORDS], bool *reached)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (allocation_id id = 0; id < MANY; id++)
			for (size_t i = 0; i < WORDS && reached[id]; i++) {
				allocation_id target = targets[id][i];

				if (target == NO_ALLOCATION || reached[target])
					continue;
				reached[target] = changed = true;
			}
	}
}

static void assert_marked(struct world *world, allocation_id (*targets)[WORDS])
{
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 }, marked = { 0 };
	_cleanup_(free) bool *reached = calloc(MANY, sizeof(*reached));

	assert_non_null(reached);
	assert_no_error(bitmap_init(&from, MANY, &world->account));
	for (int i = 0; i < 5; i++) {
		size_t id = random_below(MANY);

		bitmap_set(&from, id);
		reached[id] = true;
	}
	mark_model(targets, reached);
	mark(world, &from, &marked);
	for (size_t id = 0; id < MANY; id++)
		assert_int_equal(bitmap_get(&marked, id), reached[id]);
}

/* True if row has id, and each of its ids once, in ascending order. */
static bool row_has(struct edges row, allocation_id id)
{
	bool found = false;

	for (size_t i = 0; i < row.count; i++) {
		found = found || row.targets[i] == id;
		assert_true(i == 0 || row.targets[i - 1] < row.targets[i]);
	}
	return found;
}

/* More allocations than one thread scans in one go. */
TEST(large_graph_agrees_with_its_references)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(free) allocation_id(*targets)[WORDS] = calloc(MANY, sizeof(*targets));
	uint64_t pairs = 0;

	assert_non_null(targets);
	populate(&world, MANY);
	fill(&world, targets);
	scan(&world);
	for (allocation_id id = 0; id < MANY; id++) {
		struct edges row = graph_outgoing(world.graph, id);
		size_t place = 0;

		for (size_t i = 0; i < WORDS; i++) {
			if (targets[id][i] == NO_ALLOCATION)
				continue;
			if (place == 0 || row.targets[place - 1] != targets[id][i])
				assert_int_equal(row.targets[place++], targets[id][i]);
			assert_true(row_has(graph_outgoing(world.incoming, targets[id][i]), id));
		}
		assert_int_equal(place, row.count);
		pairs += row.count;
	}
	assert_int_equal(graph_edge_count(world.graph), pairs);
	assert_true(graph_edge_count(world.incoming) <= pairs);
	for (int i = 0; i < 5; i++)
		assert_marked(&world, targets);
}

static const unsigned int THREADS[] = { 1, 2, 3, 16 };
enum { THREAD_COUNTS = sizeof(THREADS) / sizeof(*THREADS) };

static void assert_same_rows(const struct graph *graph, const struct graph *other, size_t count)
{
	assert_int_equal(graph_edge_count(graph), graph_edge_count(other));
	for (size_t id = 0; id < count; id++) {
		struct edges row = graph_outgoing(graph, (allocation_id)id);
		struct edges same = graph_outgoing(other, (allocation_id)id);

		assert_int_equal(row.count, same.count);
		for (size_t i = 0; i < row.count; i++)
			assert_int_equal(row.targets[i], same.targets[i]);
	}
}

/* A block behind the others that refers to most of them, to some again. */
static allocation_id add_directory(struct world *world)
{
	enum { ROW = MANY };
	const uint64_t start = at(MANY) + 0x10000;

	world_add_heap(world, start, 8 * ROW);
	for (size_t i = 0; i < ROW; i++)
		core_set(&world->core, start + 8 * i, at(random_below(MANY)));
	return world_add_block(world, (struct block){ start, 8 * ROW, BLOCK_USED });
}

TEST(marks_do_not_depend_on_threads)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 }, first = { 0 };
	_cleanup_(free) allocation_id(*targets)[WORDS] = calloc(MANY, sizeof(*targets));
	allocation_id directory;

	assert_non_null(targets);
	populate(&world, MANY);
	fill(&world, targets);
	directory = add_directory(&world);
	scan(&world);
	assert_no_error(bitmap_init(&from, world.count, &world.account));
	bitmap_set(&from, directory);
	for (int i = 0; i < THREAD_COUNTS; i++) {
		_cleanup_(bitmap_deinit) struct bitmap reached = { 0 };

		world.progress.threads = THREADS[i];
		mark(&world, &from, &reached);
		if (i == 0)
			first = reached, reached = (struct bitmap){ 0 };
		else
			assert_memory_equal(reached.words, first.words,
					    bitmap_word_count(&first) * sizeof(uint64_t));
	}
	assert_true(bitmap_weight(&first) > MANY / 2);
	assert_true(bitmap_weight(&first) < MANY);
}

TEST(incoming_references_do_not_depend_on_threads)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(free) allocation_id(*targets)[WORDS] = calloc(MANY, sizeof(*targets));
	allocation_id directory;
	struct edges row;

	assert_non_null(targets);
	populate(&world, MANY);
	fill(&world, targets);
	directory = add_directory(&world);
	world.progress.threads = 1;
	scan(&world);
	row = graph_outgoing(world.graph, directory);
	for (size_t i = 0; i < row.count; i++)
		assert_true(row_has(graph_outgoing(world.incoming, row.targets[i]), directory));
	for (int i = 1; i < THREAD_COUNTS; i++) {
		_cleanup_(graph_destroy) struct graph *incoming = NULL;

		world.progress.threads = THREADS[i];
		assert_no_error(
			graph_transpose(world.graph, &world.account, &world.progress, &incoming));
		assert_same_rows(incoming, world.incoming, world.count);
	}
}

TEST(rows_of_some_targets_are_those_of_all)
{
	_cleanup_(free) allocation_id(*targets)[WORDS] = calloc(MANY, sizeof(*targets));
	_cleanup_(world_deinit) struct world world;
	_cleanup_(bitmap_deinit) struct bitmap some = { 0 };
	_cleanup_(graph_destroy) struct graph *incoming = NULL;

	assert_non_null(targets);
	populate(&world, MANY);
	fill(&world, targets);
	add_directory(&world);
	scan(&world);
	assert_no_error(bitmap_init(&some, world.count, &world.account));
	for (allocation_id id = 0; id < world.count; id += 7)
		bitmap_set(&some, id);
	assert_no_error(graph_transpose_to(world.graph, allocation_used(world.index), &some,
					   &world.account, &world.progress, &incoming));
	for (allocation_id id = 0; id < world.count; id++) {
		struct edges row = graph_outgoing(incoming, id);
		struct edges expected = graph_outgoing(world.incoming, id);

		assert_int_equal(row.count, bitmap_get(&some, id) ? expected.count : 0);
		assert_memory_equal(row.targets, expected.targets,
				    row.count * sizeof(*row.targets));
	}
}

/* Blocks of 100 KB behind the others, so many that their share is cut. */
static void add_medium_blocks(struct world *world, uint64_t start)
{
	enum { COUNT = 60, BYTES = 100000 };

	world_add_heap(world, start, COUNT * BYTES);
	for (size_t i = 0; i < COUNT; i++) {
		uint64_t block = start + i * BYTES;

		world_add_block(world, (struct block){ block, BYTES, BLOCK_USED });
		for (uint64_t word = 0; word < BYTES; word += 64)
			core_set(&world->core, block + word, at(random_below(100)));
	}
}

/* It is cut into parts: rows must not show where. */
TEST(rows_of_large_allocations_do_not_depend_on_threads)
{
	enum { LARGE_BYTES = 21 << 20, STEP = 4096, SEAM = 4 << 20 };
	_cleanup_(world_deinit) struct world world;
	const uint64_t start = at(100) + 0x10000;
	allocation_id large;

	populate(&world, 100);
	set(&world, 3, 0, at(4));
	world_add_heap(&world, start, LARGE_BYTES + 64);
	large = world_add_block(&world, (struct block){ start, LARGE_BYTES, BLOCK_USED });
	world_add_block(&world, (struct block){ start + LARGE_BYTES, 64, BLOCK_USED });
	for (uint64_t i = 0; i < LARGE_BYTES; i += STEP)
		core_set(&world.core, start + i, at(i / STEP % 50));
	/* Put the same target on both sides of a seam, and a reference to itself between them. */
	core_set(&world.core, start + SEAM - 8, at(70));
	core_set(&world.core, start + SEAM, at(70));
	core_set(&world.core, start + 2 * SEAM - 8, start);
	core_set(&world.core, start + 3 * SEAM, at(71));
	core_set(&world.core, start + 3 * SEAM + 8, at(71));
	core_set(&world.core, start + LARGE_BYTES - 8, at(72));
	core_set(&world.core, start + LARGE_BYTES, start);
	add_medium_blocks(&world, start + (UINT64_C(1) << 30));
	world.progress.threads = 1;
	scan(&world);
	assert_int_equal(graph_outgoing(world.graph, large).count, LARGE_BYTES / STEP + 1);
	for (int i = 1; i < THREAD_COUNTS; i++) {
		_cleanup_(graph_destroy) struct graph *graph = NULL;

		world.progress.threads = THREADS[i];
		assert_no_error(graph_create(world.image, world.index, NULL, &world.account,
					     &world.progress, &graph));
		assert_same_rows(graph, world.graph, world.count);
	}
}

TEST(only_references_take_no_memory_of_their_own)
{
	enum { COUNT = 1000 };
	_cleanup_(world_deinit) struct world world;
	size_t before;

	populate(&world, COUNT);
	for (allocation_id id = 0; id + 1 < COUNT; id += 2)
		set(&world, id, id % 7, at(id + 1));
	world_open(&world);
	before = world.account.used;
	world_find_graph(&world);
	assert_int_equal(world.account.used - before, (COUNT + 1) * sizeof(uint32_t));
	assert_int_equal(graph_edge_count(world.graph), COUNT / 2);
	for (allocation_id id = 0; id < COUNT; id++) {
		struct edges row = graph_outgoing(world.graph, id);

		assert_int_equal(row.count, id % 2 == 0);
		if (row.count)
			assert_int_equal(*row.targets, id + 1);
	}
}

/* The longest row that a word can encode, and one more. */
TEST(rows_may_be_of_any_length_beside_single_references)
{
	for (size_t words = 2046; words <= 2049; words++) {
		_cleanup_(world_deinit) struct world world;
		const uint64_t start = at(100) + 0x10000;
		allocation_id large;
		struct edges row;

		populate(&world, 100);
		for (allocation_id id = 0; id < 99; id++)
			set(&world, id, 1, at(id + 1));
		world_add_heap(&world, start, 8 * words + 64);
		large = world_add_block(&world, (struct block){ start, 8 * words, BLOCK_USED });
		for (size_t i = 0; i < words; i++)
			core_set(&world.core, start + 8 * i, at(i % 90));
		scan(&world);
		row = graph_outgoing(world.graph, large);
		assert_int_equal(row.count, words);
		for (size_t i = 0; i < words; i++)
			assert_int_equal(row.targets[i], i % 90);
		for (allocation_id id = 0; id < 99; id++)
			ASSERT_EDGES(graph_outgoing(world.graph, id), id + 1);
		ASSERT_EDGES(graph_outgoing(world.incoming, 1), 0, large);
		ASSERT_EDGES(graph_outgoing(world.incoming, 90), 89);
	}
}

/* Nobody waits for ever for a thread that fails. */
TEST(shortage_ends_a_scan_on_several_threads)
{
	enum { LARGE_BYTES = 40 << 20 };
	_cleanup_(world_deinit) struct world world;
	const uint64_t start = at(100) + 0x10000;
	_cleanup_(graph_destroy) struct graph *graph = NULL;

	populate(&world, 100);
	world_add_heap(&world, start, LARGE_BYTES);
	world_add_block(&world, (struct block){ start, LARGE_BYTES, BLOCK_USED });
	for (uint64_t i = 0; i < LARGE_BYTES; i += 8)
		core_set(&world.core, start + i, at(i / 8 % 50));
	world_open(&world);
	world.progress.threads = 4;
	world.account.limit = world.account.used + (10 << 20);
	assert_ptr_equal(graph_create(world.image, world.index, NULL, &world.account,
				      &world.progress, &graph),
			 &error_no_memory);
	world.account.limit = 0;
}

/* Only those with an even number. */
static size_t take_even(void *data, allocation_id source, allocation_id *targets, size_t count)
{
	size_t *rows = data, left = 0;

	assert_true(count > 0);
	++*rows;
	for (size_t i = 0; i < count; i++)
		if (targets[i] % 2 == 0)
			targets[left++] = targets[i];
	return left;
}

TEST(narrowed_graph_has_the_edges_that_are_to_stay)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(graph_destroy) struct graph *narrowed = NULL;
	size_t rows = 0;

	populate(&world, 5);
	set(&world, 0, 0, at(4));
	set(&world, 0, 1, at(1));
	set(&world, 0, 2, at(2));
	set(&world, 1, 0, at(3));
	set(&world, 3, 0, at(0));
	scan(&world);
	assert_no_error(graph_narrow(world.graph, 0, take_even, &rows, &world.account,
				     &world.progress, &narrowed));
	assert_int_equal(rows, 3);
	assert_int_equal(graph_edge_count(narrowed), 3);
	ASSERT_EDGES(graph_outgoing(narrowed, 0), 4, 2);
	ASSERT_EDGES(graph_outgoing(narrowed, 1), NO_ALLOCATION);
	ASSERT_EDGES(graph_outgoing(narrowed, 3), 0);
	graph_destroy(take(narrowed));
	world.progress.interrupted = true;
	assert_error(graph_narrow(world.graph, 0, take_even, &rows, &world.account, &world.progress,
				  &narrowed),
		     ERROR_INTERRUPTED, "interrupted");
}
