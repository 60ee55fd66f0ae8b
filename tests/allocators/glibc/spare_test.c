/* The memory that malloc_trim(0) gives back: to the page, at the limits of its rules. */
#include "tests/allocators/glibc/process.h"

enum { MOST = 8, LINKS = 48 };

struct spares {
	struct spare list[MOST];
	size_t count;
};

static void keep(void *data, const struct spare *spare)
{
	struct spares *spares = data;

	assert_true(spares->count < MOST);
	spares->list[spares->count++] = *spare;
}

/* A used chunk up to address, counted from the heap's begin. */
static void fill_to(struct process *process, uint64_t address)
{
	process_allocate(process, HEAP + address - process->next);
}

/* A free chunk from there to end. */
static uint64_t free_to(struct process *process, uint64_t end)
{
	return process_allocate(process, HEAP + end - process->next);
}

/* Find the memory given back and kept at the end, with top behind the last chunk. */
static struct spares find(struct process *process)
{
	struct spares spares = { .count = 0 };

	process_finish(process);
	process_open(process, STAGE_HEAP);
	heaps_visit_spare(analysis_heaps(process->analysis), keep, &spares);
	return spares;
}

static void assert_spare(const struct spare *spare, uint64_t start, uint64_t end,
			 enum spare_kind kind)
{
	assert_int_equal(spare->start - HEAP, start);
	assert_int_equal(spare->end - HEAP, end);
	assert_int_equal(spare->kind, kind);
}

TEST(page_begins_behind_a_free_chunks_links)
{
	_cleanup_(process_deinit) struct process process;
	struct spares spares;
	uint64_t exact, early;

	process_init(&process, &GLIBC_2_36);
	fill_to(&process, 0x1000 - LINKS);
	exact = free_to(&process, 0x2000);
	fill_to(&process, 0x3000 - LINKS + 16);
	early = free_to(&process, 0x5000);
	fill_to(&process, HEAP_SIZE - 32);
	process_free(&process, exact);
	process_free(&process, early);
	spares = find(&process);
	assert_int_equal(spares.count, 2);
	assert_spare(&spares.list[0], 0x1000, 0x2000, SPARE_INSIDE);
	assert_spare(&spares.list[1], 0x4000, 0x5000, SPARE_INSIDE);
}

TEST(fast_bins_are_merged_and_caches_are_not)
{
	_cleanup_(process_deinit) struct process process;
	struct spares spares;
	uint64_t fast[2], cached, between, behind;

	process_init(&process, &GLIBC_2_36);
	fill_to(&process, 0xfd0);
	fast[0] = free_to(&process, 0x1010);
	between = free_to(&process, 0x2ff0);
	fast[1] = free_to(&process, 0x3030);
	cached = free_to(&process, 0x3070);
	behind = free_to(&process, 0x4070);
	fill_to(&process, HEAP_SIZE - 32);
	process_free(&process, between);
	process_free(&process, behind);
	process_free_fast(&process, fast[0]);
	process_free_fast(&process, fast[1]);
	process_cache(&process, cached);
	spares = find(&process);
	/* Alone, the one between would keep its first page. */
	assert_int_equal(spares.count, 1);
	assert_spare(&spares.list[0], 0x1000, 0x3000, SPARE_INSIDE);
}

/* Find the memory that the heap's end gives back if top begins there. */
static struct spares find_end(struct process *process, uint64_t top)
{
	process_init(process, &GLIBC_2_36);
	fill_to(process, top);
	return find(process);
}

TEST(end_keeps_a_chunk_of_the_least_size)
{
	_cleanup_(process_deinit) struct process large = { 0 }, small = { 0 };
	struct spares spares = find_end(&large, HEAP_SIZE - 0x1000 - 48);

	assert_int_equal(spares.count, 1);
	assert_spare(&spares.list[0], HEAP_SIZE - 0x1000, HEAP_SIZE, SPARE_END);
	assert_int_equal(find_end(&small, HEAP_SIZE - 0x1000 - 32).count, 0);
}

TEST(end_below_memory_of_others_is_kept)
{
	_cleanup_(process_deinit) struct process process;
	struct spares spares;

	process_init(&process, &GLIBC_2_36);
	core_add(&process.core, HEAP + HEAP_SIZE, PAGE, RIGHTS_RW);
	fill_to(&process, 0x8000);
	spares = find(&process);
	assert_int_equal(spares.count, 1);
	assert_spare(&spares.list[0], 0x9000, HEAP_SIZE, SPARE_KEPT);
}

TEST(pages_are_those_of_the_kernel)
{
	enum { LARGE = 1 << 14 };
	_cleanup_(process_deinit) struct process process;
	uint64_t inside;
	struct spares spares;

	process_init(&process, &GLIBC_2_36);
	core_add_auxiliary(&process.core, AT_PAGESZ, LARGE);
	fill_to(&process, 0x1000);
	inside = free_to(&process, 0x9800);
	process_allocate(&process, 0x40);
	process_free(&process, inside);
	spares = find(&process);
	assert_int_equal(spares.count, 2);
	assert_spare(&spares.list[0], LARGE, 2 * LARGE, SPARE_INSIDE);
	assert_spare(&spares.list[1], 3 * LARGE, HEAP_SIZE, SPARE_END);
}
