#include "tests/analyzer/runtimes/language.h"

extern const struct runtime runtime_go;

/*
 * Go from 1.22 on. Its heap of 4 MiB has a span of objects, of which one that is not among the
 * first two is in use, and a span of a stack; all else is free.
 */
enum {
	LEVELS = 5,
	FIRST_BITS = 14,
	CHUNK_TABLES = 8192,
	SPAN = 128, /* bytes */
	SPAN_PAGE = 8192,
	HEAP_SIZE = 4 << 20,
	ARENA_SIZE = 64 << 20,
	OBJECT_SIZE = 64,
	OBJECTS = SPAN_PAGE / OBJECT_SIZE,
	USED = 3, /* the number of the object */
	IN_USE = 1,
	MANUAL = 2,
};

static const uint64_t HEAP = 0xc000000000, STATE = LANGUAGE_DATA + PAGE,
		      FIELDS = STATE + 24 * LEVELS + 8 * CHUNK_TABLES, RANGES = FIELDS + 0x2000,
		      SPANS = RANGES + 0x100, SPAN_LIST = SPANS + 0x1000, BITS = SPANS + 0x1800,
		      SUMMARIES = 0x100000000000, MAP = 0x200000000000, ARENA = 0x300000000000;

/* Offsets from FIELDS of slices: the ranges of the heap, all spans; and of the map of arenas. */
enum { IN_USE_RANGES = 8, ALL_SPANS = 0x100, ARENAS = 0x200 };

static void set_slice(struct language *go, uint64_t place, uint64_t start, uint64_t count,
		      uint64_t room)
{
	language_set(go, place, start, count, room);
}

static void add_span(struct language *go, uint64_t number, uint64_t start, uint8_t state,
		     uint64_t size)
{
	uint64_t span = SPANS + SPAN * number, bits = BITS;

	language_set(go, span + 24, start, 1, 0, OBJECTS << 16 | 2, 0, bits);
	*core_at(&go->world.core, span + 99, 1) = state;
	memcpy(core_at(&go->world.core, span + 104, 8), &size, 8);
	language_set(go, SPAN_LIST + 8 * number, span);
	set_slice(go, FIELDS + ALL_SPANS, SPAN_LIST, number + 1, 512);
}

/* The map leads to the arena, whose table has the span of each page. */
static void add_arena(struct language *go)
{
	uint64_t place = MAP + 8 * ((HEAP + (UINT64_C(1) << 47)) >> 26);

	core_add(&go->world.core, place & ~UINT64_C(4095), PAGE, RIGHTS_RW);
	core_add(&go->world.core, ARENA, ARENA_SIZE / SPAN_PAGE * 8, RIGHTS_RW);
	language_set(go, place, ARENA);
	language_set(go, ARENA, SPANS, SPANS + SPAN);
	language_set(go, FIELDS + ARENAS, MAP);
}

static void go_init(struct language *go)
{
	language_init(go, "/srv/server");
	memcpy(core_at(&go->world.core, LANGUAGE_DATA, 16), "\xff Go buildinf:", 14);
	for (unsigned int i = 0; i < LEVELS; i++)
		set_slice(go, STATE + 24 * i, SUMMARIES + ((uint64_t)i << 32), 0,
			  UINT64_C(1) << (FIRST_BITS + 3 * i));
	set_slice(go, FIELDS + IN_USE_RANGES, RANGES, 1, 16);
	language_set(go, FIELDS + IN_USE_RANGES + 24, HEAP_SIZE);
	language_set(go, RANGES, HEAP, HEAP + HEAP_SIZE);
	*core_at(&go->world.core, BITS, 1) = 1 << USED;
	add_span(go, 0, HEAP, IN_USE, OBJECT_SIZE);
	add_span(go, 1, HEAP + SPAN_PAGE, MANUAL, 2048);
	add_arena(go);
	/* A block, which objects may refer to. */
	language_add(go, 0, 0);
}

#define START(go)                                      \
	_cleanup_(language_deinit) struct language go; \
	go_init(&go)

#define assert_range(go, address, name) assert_string_equal(language_range(&(go), address), name)

TEST(memory_is_named_by_its_spans)
{
	START(go);

	language_open(&go, &runtime_go);
	assert_range(go, HEAP, "Go's heap: objects");
	assert_range(go, HEAP + SPAN_PAGE, "Go's heap: stacks");
	assert_range(go, HEAP + 2 * SPAN_PAGE, "Go's heap: free");
	assert_range(go, HEAP + HEAP_SIZE - 1, "Go's heap: free");
	assert_range(go, HEAP + HEAP_SIZE, "Go's heap: reserved");
	assert_range(go, HEAP + ARENA_SIZE, "none");
	assert_range(go, ARENA, "Go's tables of pages");
	assert_range(go, SUMMARIES, "Go's tables of pages");
}

static bool is_link(struct language *go, uint64_t place)
{
	return runtimes_is_link(go->list, NO_ALLOCATION, 0, LANGUAGE_HEAP, place);
}

TEST(free_objects_and_pages_refer_to_nothing)
{
	START(go);

	language_open(&go, &runtime_go);
	assert_false(is_link(&go, HEAP));
	assert_true(is_link(&go, HEAP + OBJECT_SIZE * (USED - 1)));
	assert_false(is_link(&go, HEAP + OBJECT_SIZE * USED));
	assert_true(is_link(&go, HEAP + OBJECT_SIZE * (USED + 1)));
	assert_false(is_link(&go, HEAP + SPAN_PAGE));
	assert_true(is_link(&go, HEAP + 2 * SPAN_PAGE));
}

/* Their pages count as free. */
TEST(damaged_spans_cost_only_themselves)
{
	START(go);

	for (uint64_t i = 2; i < 16; i++)
		add_span(&go, i, HEAP + i * SPAN_PAGE, MANUAL, 2048);
	language_set(&go, SPANS + SPAN * 2 + 32, UINT64_MAX >> 13);	/* pages */
	language_set(&go, SPANS + SPAN * 3 + 24, HEAP + 4 * SPAN_PAGE); /* as another has */
	language_open(&go, &runtime_go);
	assert_range(go, HEAP, "Go's heap: objects");
	assert_range(go, HEAP + 2 * SPAN_PAGE, "Go's heap: free");
	assert_range(go, HEAP + 3 * SPAN_PAGE, "Go's heap: free");
	assert_range(go, HEAP + 4 * SPAN_PAGE, "Go's heap: stacks");
	assert_range(go, HEAP + 16 * SPAN_PAGE, "Go's heap: free");
}

TEST(slice_of_huge_count_is_not_that_of_spans)
{
	START(go);

	for (uint64_t i = 2; i < 16; i++)
		language_set(&go, SPAN_LIST + 8 * i, SPANS);
	set_slice(&go, FIELDS + ALL_SPANS - 32, SPAN_LIST, UINT64_C(1) << 40, UINT64_C(1) << 40);
	language_open(&go, &runtime_go);
	assert_range(go, HEAP, "Go's heap: objects");
}

/* A bucket of objects of 32 bytes, which one call allocated. */
static uint64_t add_bucket(struct language *go, uint64_t next, uint64_t made, uint64_t freed)
{
	return language_add(go, 0, next, 1, 0, 32, 1, LANGUAGE_MODULE + 0x10, made, freed,
			    32 * made, 32 * freed);
}

static struct error *add_noted(void *data, const struct noted_blocks *noted)
{
	struct noted_blocks *sum = data;

	sum->count += noted->count;
	sum->bytes += noted->bytes;
	return NULL;
}

static struct noted_blocks sum_profile(struct language *go)
{
	struct noted_blocks sum = { 0 };
	void *owner;
	const struct noting *noting;

	language_open(go, &runtime_go);
	noting = runtimes_noting(go->list, 0, &owner);
	assert_no_error(noting->visit(owner, add_noted, &sum));
	return sum;
}

TEST(profile_has_objects_that_were_not_freed)
{
	START(go);
	struct noted_blocks sum;

	language_set(&go, LANGUAGE_DATA + 0x100, add_bucket(&go, add_bucket(&go, 0, 5, 2), 9, 5));
	sum = sum_profile(&go);
	assert_int_equal(sum.count, 3 + 4);
	assert_int_equal(sum.bytes, 32 * 7);
}

TEST(profile_that_returns_to_itself_ends)
{
	START(go);
	uint64_t last = add_bucket(&go, 0, 5, 2), first = add_bucket(&go, last, 9, 5);

	language_set(&go, last + 8, last);
	language_set(&go, LANGUAGE_DATA + 0x100, first);
	assert_int_equal(sum_profile(&go).count, 3 + 4);
}
