/*
 * The heap here is made up: what the order asks of the analysis and its index is answered by this
 * file.
 */

#include "analyzer/query/order.h"

#include "tests/assertions.h"

enum { COUNT = 1000 };

struct analysis {
	struct progress progress;
	struct memory_account account;
};

struct progress *analysis_progress(struct analysis *analysis)
{
	return &analysis->progress;
}

struct memory_account *analysis_account(struct analysis *analysis)
{
	return &analysis->account;
}

const struct allocation_index *analysis_index(const struct analysis *analysis)
{
	return NULL;
}

/* Ten sizes, each of them of a hundred allocations. */
uint64_t allocation_size(const struct allocation_index *index, allocation_id id)
{
	return (id * 7 % 10 + 1) * 16;
}

/* Only an order by what is retained asks for these. */
struct error *analysis_need(struct analysis *analysis, enum stage stage)
{
	return NULL;
}

const struct dominators *analysis_dominators(const struct analysis *analysis)
{
	return NULL;
}

size_t dominators_count(const struct dominators *dominators)
{
	return 0;
}

allocation_id dominators_at(const struct dominators *dominators, size_t position)
{
	return NO_ALLOCATION;
}

size_t dominators_end(const struct dominators *dominators, size_t position)
{
	return position;
}

uint64_t dominators_bytes(const struct dominators *dominators, size_t begin, size_t end)
{
	return 0;
}

const struct bitmap *allocation_used(const struct allocation_index *index)
{
	return NULL;
}

struct seen {
	allocation_id ids[COUNT];
	size_t count;
	size_t stop_at; /* 0: never */
};

static bool see(void *data, allocation_id id)
{
	struct seen *seen = data;

	seen->ids[seen->count++] = id;
	return seen->count != seen->stop_at;
}

/* All with an even id. */
static void fill(struct analysis *analysis, struct members *members)
{
	assert_no_error(members_init(members, COUNT, &analysis->account));
	for (size_t id = 0; id < COUNT; id += 2)
		bitmap_set(&members->set, id);
}

static void visit_with(struct set_query query, struct seen *seen)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	struct analysis analysis = { 0 };
	const struct member_visitor visitor = { .member = see, .data = seen };
	size_t used;

	fill(&analysis, &members);
	used = analysis.account.used;
	assert_no_error(query_visit(&analysis, &query, &members, &visitor));
	assert_int_equal(analysis.account.used, used);
}

TEST(members_come_by_address)
{
	struct seen seen = { 0 };

	visit_with((struct set_query){ 0 }, &seen);
	assert_int_equal(seen.count, COUNT / 2);
	for (size_t i = 0; i < seen.count; i++)
		assert_int_equal(seen.ids[i], 2 * i);
}

static void check_by_size(const struct seen *seen)
{
	for (size_t i = 1; i < seen->count; i++) {
		uint64_t last = allocation_size(NULL, seen->ids[i - 1]);
		uint64_t size = allocation_size(NULL, seen->ids[i]);

		assert_true(size <= last);
		if (size == last)
			assert_true(seen->ids[i] > seen->ids[i - 1]);
	}
}

TEST(large_ones_come_first_and_equal_ones_by_address)
{
	struct seen seen = { 0 };

	visit_with((struct set_query){ .sort = SORT_BYTES }, &seen);
	assert_int_equal(seen.count, COUNT / 2);
	check_by_size(&seen);
	assert_int_equal(allocation_size(NULL, seen.ids[0]), 9 * 16);
}

TEST(limit_takes_the_first_of_the_order)
{
	struct seen all = { 0 }, some = { 0 };

	visit_with((struct set_query){ .sort = SORT_BYTES }, &all);
	visit_with((struct set_query){ .sort = SORT_BYTES, .limit = 123 }, &some);
	assert_int_equal(some.count, 123);
	assert_memory_equal(some.ids, all.ids, 123 * sizeof(*some.ids));
	some.count = 0;
	visit_with((struct set_query){ .limit = 3 }, &some);
	assert_int_equal(some.count, 3);
	some.count = 0;
	visit_with((struct set_query){ .limit = COUNT }, &some);
	assert_int_equal(some.count, COUNT / 2);
}

TEST(visit_ends_when_told_to)
{
	struct seen seen = { .stop_at = 5 };

	visit_with((struct set_query){ 0 }, &seen);
	assert_int_equal(seen.count, 5);
	seen.count = 0;
	visit_with((struct set_query){ .sort = SORT_BYTES }, &seen);
	assert_int_equal(seen.count, 5);
}

TEST(interrupt_ends_the_visit)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	struct analysis analysis = { .progress.interrupted = true };
	const struct set_query query = { .sort = SORT_BYTES };
	struct seen seen = { 0 };
	const struct member_visitor visitor = { .member = see, .data = &seen };

	fill(&analysis, &members);
	assert_error(query_visit(&analysis, &query, &members, &visitor), ERROR_INTERRUPTED,
		     "interrupted");
	assert_int_equal(seen.count, 0);
}

/* Members and comments as they come: 7, or what it leads to, as 1007. */
static bool note_member(void *data, allocation_id id)
{
	struct seen *seen = data;

	seen->ids[seen->count++] = id;
	return true;
}

static void note_comment(void *data, const struct member_comment *comment)
{
	struct seen *seen = data;

	seen->ids[seen->count++] = COUNT + comment->to;
}

static void append(struct members *members, allocation_id id)
{
	const struct member_comment comment = { .kind = COMMENT_REFERENCES, .to = id };

	assert_no_error(members_comment(members, comment));
	assert_no_error(members_append(members, id));
}

/* 30, 10 and 20, a comment in front of each, and a warning at the end. */
static void visit_chain(struct set_query query, bool comments, struct seen *ret)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	const struct member_comment end = { .kind = COMMENT_CYCLE, .to = 30 };
	struct analysis analysis = { 0 };
	const struct member_visitor visitor = { note_member, comments ? note_comment : NULL, ret };

	assert_no_error(members_init(&members, COUNT, &analysis.account));
	append(&members, 30);
	append(&members, 10);
	append(&members, 20);
	assert_no_error(members_comment(&members, end));
	assert_no_error(query_visit(&analysis, &query, &members, &visitor));
}

static void assert_seen(const struct seen *seen, size_t count, const allocation_id *ids)
{
	assert_int_equal(seen->count, count);
	assert_memory_equal(seen->ids, ids, count * sizeof(*ids));
}

TEST(comments_stand_in_front_of_their_members)
{
	const allocation_id all[] = { 1030, 30, 1010, 10, 1020, 20, 1030 };
	const allocation_id bare[] = { 30, 10, 20 };
	struct seen seen = { 0 };

	visit_chain((struct set_query){ 0 }, true, &seen);
	assert_seen(&seen, 7, all);
	seen.count = 0;
	visit_chain((struct set_query){ 0 }, false, &seen);
	assert_seen(&seen, 3, bare);
}

TEST(limit_leaves_warnings_of_the_comments_left_out)
{
	const allocation_id some[] = { 1030, 30, 1030 };
	struct seen seen = { 0 };

	visit_chain((struct set_query){ .limit = 1 }, true, &seen);
	assert_seen(&seen, 3, some);
}

TEST(sorted_members_have_all_comments_in_front)
{
	const allocation_id sorted[] = { 1030, 1010, 1020, 1030, 10, 20, 30 };
	struct seen seen = { 0 };

	visit_chain((struct set_query){ .sort = SORT_ADDRESS }, true, &seen);
	assert_seen(&seen, 7, sorted);
}

/* The members of a sample of all, of which number 1 is the first. */
TEST(sample_takes_powers_of_its_base)
{
	static const struct {
		uint64_t base;
		size_t count;
		allocation_id last;
	} cases[] = { { 1, 1, 0 },	   { 2, 9, 2 * 255 }, { 10, 3, 2 * 99 },
		      { 500, 2, 2 * 499 }, { 501, 1, 0 },     { UINT64_MAX, 1, 0 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(members_deinit) struct members members = { 0 };
		struct analysis analysis = { 0 };
		allocation_id last = 0;

		fill(&analysis, &members);
		members_sample(&members, cases[i].base);
		assert_int_equal(bitmap_weight(&members.set), cases[i].count);
		bitmap_for_each(id, &members.set)
			last = (allocation_id)id;
		assert_int_equal(last, cases[i].last);
	}
}

TEST(sample_of_a_chain_follows_its_order)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	struct analysis analysis = { 0 };

	assert_no_error(members_init(&members, COUNT, &analysis.account));
	append(&members, 30);
	append(&members, 10);
	append(&members, 20);
	members_sample(&members, 3);
	assert_true(bitmap_get(&members.set, 30));
	assert_false(bitmap_get(&members.set, 10));
	assert_true(bitmap_get(&members.set, 20));
}
