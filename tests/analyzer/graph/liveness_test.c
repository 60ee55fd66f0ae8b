#include "analyzer/graph/liveness.h"

#include "tests/analyzer/world.h"

#include <dlfcn.h>
#include <errno.h>

/* How many arrays are mapped before one fails; negative: all are. */
static long countdown = -1;

/* Intercepts the mappings of analyzer/base/memory.c. */
void *mmap(void *address, size_t size, int rights, int flags, int fd, off_t offset)
{
	static __typeof__(&mmap) next;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "mmap");
	if (countdown >= 0 && countdown-- == 0) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return next(address, size, rights, flags, fd, offset);
}

static const uint64_t HEAP = 0x100000, STRIDE = 64, SIZE = 56;

/* The traits of a block by its maker: 'm' is malloc(), others are a collector's. */
static unsigned int traits_of(char maker)
{
	switch (maker) {
	case 'c': /* collected */
		return TRAIT_COLLECTABLE | TRAIT_MANAGED;
	case 'p': /* pointerless */
		return TRAIT_COLLECTABLE | TRAIT_MANAGED | TRAIT_POINTERLESS;
	case 'u': /* uncollected */
		return TRAIT_MANAGED;
	default:
		return 0;
	}
}

/* A heap as drawn, with a letter for what allocates each block. Returns what is anchored, as bits.
 */
static uint64_t make(struct world *world, const char *makers, const char *text)
{
	const struct drawing drawing = draw(text);

	world_init(world);
	world_add_heap(world, HEAP, STRIDE * strlen(makers));
	for (const char *maker = makers; *maker; maker++)
		world_add_block(world, (struct block){ HEAP + STRIDE * world->count, SIZE,
						       BLOCK_USED, traits_of(*maker) });
	world_refer(world, &drawing, HEAP, STRIDE);
	return drawing.roots;
}

struct judgement {
	struct bitmap anchored;
	struct liveness liveness;
};

static void judgement_deinit(struct judgement *judgement)
{
	liveness_deinit(&judgement->liveness);
	bitmap_deinit(&judgement->anchored);
}
DEFINE_DEINIT(judgement_deinit, struct judgement)

/* Judge with those blocks, and everything reachable from them, anchored. */
static void judge(struct world *world, uint64_t roots, struct judgement *ret)
{
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 };

	world_open(world);
	world_find_graph(world);
	assert_no_error(bitmap_init(&from, world->count, &world->account));
	assert_no_error(bitmap_init(&ret->anchored, world->count, &world->account));
	from.words[0] = roots;
	assert_no_error(
		graph_mark(world->graph, &from, &ret->anchored, &world->account, &world->progress));
	assert_no_error(liveness_init(&ret->liveness, world->graph, world->index, &ret->anchored,
				      NULL, &world->account, &world->progress));
}

/* 'a' anchored, 'g' garbage, 'h' held, 'l' leaked. */
static char state_of(const struct judgement *judgement, allocation_id id)
{
	const struct liveness *liveness = &judgement->liveness;
	char letter = 0;

	if (bitmap_get(&judgement->anchored, id))
		letter = 'a';
	if (bitmap_get(&liveness->leaked, id)) {
		assert_int_equal(letter, 0);
		letter = 'l';
	}
	if (liveness->garbage.words && bitmap_get(&liveness->garbage, id)) {
		assert_int_equal(letter, 0);
		letter = 'g';
	}
	if (liveness->held.words && bitmap_get(&liveness->held, id)) {
		assert_int_equal(letter, 0);
		letter = 'h';
	}
	return letter;
}

/* The liveness of all blocks, in order of address. */
static void assert_judgement(const struct judgement *judgement, const char *expected)
{
	char found[100] = "";

	assert_int_equal(strlen(expected), judgement->anchored.count);
	for (allocation_id id = 0; id < judgement->anchored.count; id++)
		found[id] = state_of(judgement, id);
	assert_string_equal(found, expected);
}

static void assert_states(const char *makers, const char *text, const char *expected)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(judgement_deinit) struct judgement judgement = { 0 };
	uint64_t roots = make(&world, makers, text);

	judge(&world, roots, &judgement);
	assert_judgement(&judgement, expected);
}

TEST(without_a_collector_all_that_is_lost_is_leaked)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(judgement_deinit) struct judgement judgement = { 0 };
	uint64_t roots = make(&world, "mmmm", "root>a>b c>d");

	judge(&world, roots, &judgement);
	assert_judgement(&judgement, "aall");
	assert_null(judgement.liveness.garbage.words);
	assert_null(judgement.liveness.held.words);
}

/* A word of d that looks like a reference is none. */
TEST(lost_objects_of_a_collector_are_garbage)
{
	assert_states("cccp", "root>a>b c>d>a", "aagg");
}

TEST(what_garbage_alone_leads_to_is_held_by_it)
{
	assert_states("cmmmu", "a>b>c>e", "ghhlh");
}

/* A finalizer of the garbage may free it. */
TEST(what_leaked_and_garbage_lead_to_is_held)
{
	assert_states("cmm", "ab>c", "glh");
}

/* The collector does not look into malloc's blocks. */
TEST(leaked_block_keeps_no_object_from_being_garbage)
{
	assert_states("mcm", "a>b>c", "lgh");
}

/* Over malloc's block the collector does not get to the last. */
TEST(leaked_object_leaks_what_it_keeps)
{
	assert_states("ucpmc", "a>b>cd d>e", "llllg");
}

/* The object b is kept, but by one that garbage leads to. */
TEST(what_a_held_object_keeps_is_held)
{
	assert_states("ucc", "c>a>b", "hhg");
}

TEST(ring_over_both_heaps_is_garbage_and_held)
{
	assert_states("cmmm", "a>b>a c>d>c", "ghll");
}

/* Garbage that refers to what is in use changes nothing. */
TEST(what_live_objects_lead_to_is_anchored)
{
	assert_states("cmcc", "root>a>b>c d>b", "aaag");
}

/* Nothing is left behind, and the next attempt is right. */
TEST(lack_of_memory_at_any_time_is_told)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(judgement_deinit) struct judgement judgement = { 0 };
	long mappings = 0;

	make(&world, "uccm", "a>b c>d");
	judge(&world, 0, &judgement);
	assert_judgement(&judgement, "llgh");
	for (bool failed = true; failed; mappings++) {
		size_t used = world.account.used;
		struct liveness liveness = { 0 };
		struct error *error;

		countdown = mappings;
		error = liveness_init(&liveness, world.graph, world.index, &judgement.anchored,
				      NULL, &world.account, &world.progress);
		countdown = -1;
		failed = error != NULL;
		if (failed)
			assert_int_equal(error_code(error), ERROR_NO_MEMORY);
		error_destroy(error);
		liveness_deinit(&liveness);
		assert_int_equal(world.account.used, used);
	}
	assert_true(mappings > 6);
}
