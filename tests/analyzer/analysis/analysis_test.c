#include "analyzer/analysis/analysis.h"

#include "tests/allocators/glibc/process.h"

#include <dlfcn.h>
#include <errno.h>

/*
 * How many allocations succeed before one fails; negative: all do. The sanitizers need what they
 * allocate for a new thread, in that thread.
 */
static _Thread_local long countdown = -1;

static bool is_short(void)
{
	if (countdown < 0 || countdown-- != 0)
		return false;
	errno = ENOMEM;
	return true;
}

/* The function of that name which these here stand in front of. */
#define NEXT(name)                                                  \
	({                                                          \
		static __typeof__(&name) next_;                     \
		if (!next_)                                         \
			*(void **)&next_ = dlsym(RTLD_NEXT, #name); \
		next_;                                              \
	})

void *malloc(size_t size)
{
	return is_short() ? NULL : NEXT(malloc)(size);
}

void *calloc(size_t count, size_t size)
{
	return is_short() ? NULL : NEXT(calloc)(count, size);
}

void *realloc(void *old, size_t size)
{
	return is_short() ? NULL : NEXT(realloc)(old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
	return is_short() ? NULL : NEXT(reallocarray)(old, count, size);
}

char *strdup(const char *text)
{
	return is_short() ? NULL : NEXT(strdup)(text);
}

void *mmap(void *address, size_t size, int rights, int flags, int fd, off_t offset)
{
	return is_short() ? MAP_FAILED : NEXT(mmap)(address, size, rights, flags, fd, offset);
}

/* All of its callers let the mapping move. */
void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
	return is_short() ? MAP_FAILED : NEXT(mremap)(old, old_size, size, flags);
}

/* A heap with two leak roots: one of a ring and of what hangs on it. */
static void make_core(struct process *process)
{
	uint64_t kept, ring[2], tail, free_chunk;

	process_init(process, &GLIBC_2_36);
	kept = process_allocate(process, 0x30);
	ring[0] = process_allocate(process, 0x30);
	ring[1] = process_allocate(process, 0x40);
	tail = process_allocate(process, 0x50);
	process_allocate(process, 0x30);
	free_chunk = process_allocate(process, 0x500);
	process_allocate(process, 0x30);
	process_cache(process, process_allocate(process, 0x30));
	process_free(process, free_chunk);
	core_set(&process->core, ring[0], ring[1]);
	core_set(&process->core, ring[1], ring[0]);
	core_set(&process->core, ring[1] + 8, tail);
	core_set(&process->core, DATA, kept);
	process_finish(process);
	core_set(&process->core, STACK + 0x900, process->next - 0x60 + 16);
	process_open(process, STAGE_IMAGE);
}

static void assert_right(struct analysis *analysis)
{
	assert_int_equal(bitmap_weight(analysis_leaked(analysis)), 4);
	assert_int_equal(analysis_leaks(analysis)->count, 2);
	assert_int_equal(analysis_leaks(analysis)->roots[0].owned_count, 3);
}

/* Returns false when fewer allocations were made than it takes to fail. */
static bool analyse(const char *path, long allocations)
{
	_cleanup_(analysis_destroy) struct analysis *analysis = NULL;
	struct progress progress = { 0 };
	struct error *error;
	long left;

	countdown = allocations;
	error = analysis_create(path, NULL, &progress, &analysis);
	if (!error)
		error = analysis_need(analysis, STAGE_LEAKS);
	left = countdown;
	countdown = -1;
	if (error && error_code(error) != ERROR_NO_MEMORY)
		fail_msg("allocation %ld: %s", allocations, error_message(error));
	error_destroy(error);
	if (!error) {
		assert_right(analysis);
		assert_no_finding(analysis_findings(analysis));
	}
	return left < 0;
}

/* A lack of memory is an error, or the result is right without it. */
TEST(lack_of_memory_at_any_time_is_told)
{
	_cleanup_(process_deinit) struct process process;
	long allocations = 0;

	make_core(&process);
	while (analyse(process.core.path, allocations))
		allocations++;
	assert_true(allocations > 20);
}

/* Dropping pages after they were read does not change an answer. */
TEST(dump_larger_than_memory_has_the_same_answers)
{
	_cleanup_(process_deinit) struct process process;
	_cleanup_(analysis_destroy) struct analysis *analysis = NULL;
	const struct debug_options options = { .memory = 4096 };
	struct progress progress = { 0 };

	make_core(&process);
	assert_no_error(analysis_create(process.core.path, &options, &progress, &analysis));
	for (enum stage stage = 0; stage < STAGES; stage++) {
		assert_no_error(analysis_need(process.analysis, stage));
		assert_no_error(analysis_need(analysis, stage));
		assert_int_equal(analysis_cost(analysis, stage).count,
				 analysis_cost(process.analysis, stage).count);
	}
	assert_right(analysis);
	assert_no_finding(analysis_findings(analysis));
}

/* Build the stage within the limit. Returns whether it could be. */
static bool build_within(struct analysis *analysis, enum stage stage, size_t limit)
{
	struct error *error;

	analysis_limit_memory(analysis, limit);
	error = analysis_need(analysis, stage);
	if (!error)
		return true;
	assert_int_equal(error_code(error), ERROR_NO_MEMORY);
	assert_non_null(strstr(error_message(error), "out of memory in the stage '"));
	assert_non_null(strstr(error_message(error), " bytes more "));
	error_destroy(error);
	return false;
}

/* The first attempt leaves what is below the stage; the others leave nothing.
 */
TEST(stage_beyond_the_limit_releases_what_it_had)
{
	for (enum stage stage = 0; stage < STAGES; stage++) {
		_cleanup_(process_deinit) struct process process;
		const struct memory_account *account;
		size_t limit = 1024, used;

		make_core(&process);
		account = analysis_account(process.analysis);
		while (!build_within(process.analysis, stage, limit)) {
			used = account->used;
			assert_true(used <= limit);
			assert_false(build_within(process.analysis, stage, limit));
			assert_int_equal(account->used, used);
			limit += 1024;
		}
		assert_true(account->peak <= limit);
		analysis_limit_memory(process.analysis, 0);
		assert_no_error(analysis_need(process.analysis, STAGE_LEAKS));
		assert_right(process.analysis);
	}
}

TEST(stage_can_be_asked_for_again_after_an_interrupt)
{
	_cleanup_(process_deinit) struct process process;
	struct error *error;

	make_core(&process);
	process.progress.interrupted = true;
	error = analysis_need(process.analysis, STAGE_LEAKS);
	assert_non_null(error);
	assert_int_equal(error_code(error), ERROR_INTERRUPTED);
	error_destroy(error);
	process.progress.interrupted = false;
	assert_no_error(analysis_need(process.analysis, STAGE_LEAKS));
	assert_right(process.analysis);
}

/* An analysis that was asked about an allocation. */
static void make_asked(struct process *process)
{
	const allocation_id id = 0;

	make_core(process);
	assert_no_error(analysis_need(process->analysis, STAGE_REACHABILITY));
	assert_no_error(analysis_build_ahead(process->analysis));
	assert_false(analysis_cost(process->analysis, STAGE_LEAKS).built);
	assert_no_error(analysis_need_owners_of(process->analysis, &id, 1));
	assert_true(analysis_has_ahead(process->analysis));
}

TEST(stages_are_built_ahead_once_an_allocation_was_asked_about)
{
	_cleanup_(process_deinit) struct process process;
	_cleanup_(error_destroy) struct error *error = NULL;

	make_asked(&process);
	process.progress.interrupted = true;
	error = analysis_build_ahead(process.analysis);
	assert_non_null(error);
	assert_int_equal(error_code(error), ERROR_INTERRUPTED);
	assert_true(analysis_has_ahead(process.analysis));
	process.progress.interrupted = false;
	assert_no_error(analysis_build_ahead(process.analysis));
	assert_false(analysis_has_ahead(process.analysis));
	assert_true(analysis_cost(process.analysis, STAGE_OWNERS).built);
	assert_right(process.analysis);
}

TEST(building_ahead_takes_no_more_than_half_of_the_memory)
{
	_cleanup_(process_deinit) struct process process;
	_cleanup_(error_destroy) struct error *error = NULL;
	const struct memory_account *account;

	make_asked(&process);
	account = analysis_account(process.analysis);
	analysis_limit_memory(process.analysis, 2 * account->used);
	error = analysis_build_ahead(process.analysis);
	assert_non_null(error);
	assert_int_equal(error_code(error), ERROR_NO_MEMORY);
	assert_int_equal(account->limit, 2 * account->used);
	/* It would fail again. */
	assert_false(analysis_has_ahead(process.analysis));
}

TEST(stage_is_built_once_and_only_with_those_below)
{
	_cleanup_(process_deinit) struct process process;
	const struct allocation_index *index;

	make_core(&process);
	assert_no_error(analysis_need(process.analysis, STAGE_HEAP));
	index = analysis_index(process.analysis);
	assert_true(analysis_cost(process.analysis, STAGE_PROGRAM).built);
	assert_false(analysis_cost(process.analysis, STAGE_ROOTS).built);
	assert_false(analysis_cost(process.analysis, STAGE_GRAPH).built);
	assert_no_error(analysis_need(process.analysis, STAGE_HEAP));
	assert_ptr_equal(analysis_index(process.analysis), index);
	assert_no_error(analysis_need(process.analysis, STAGE_LEAKS));
	assert_false(analysis_cost(process.analysis, STAGE_INCOMING).built);
	assert_right(process.analysis);
}

TEST(anchors_are_told_apart_by_kind)
{
	_cleanup_(process_deinit) struct process process;
	const struct bitmap *static_ones, *stacks, *registers;

	make_core(&process);
	assert_no_error(analysis_need(process.analysis, STAGE_REACHABILITY));
	assert_no_error(analysis_anchored_by(process.analysis, ROOT_STATIC, &static_ones));
	assert_no_error(analysis_anchored_by(process.analysis, ROOT_STACK, &stacks));
	assert_no_error(analysis_anchored_by(process.analysis, ROOT_REGISTER, &registers));
	/* The thread's cache and kept; the last used one; none. */
	assert_int_equal(bitmap_weight(static_ones), 2);
	assert_int_equal(bitmap_weight(stacks), 1);
	assert_int_equal(bitmap_weight(registers), 0);
}
