#include "analyzer/owners/holders.h"

#include "tests/analyzer/drawn_process.h"

struct found {
	struct drawn drawn;
	struct holder list[MOST_HOLDERS];
	size_t count;
};

static void found_deinit(struct found *found)
{
	drawn_deinit(&found->drawn);
}
DEFINE_DEINIT(found_deinit, struct found)

static void find_holders(struct found *found, const char *text)
{
	drawn_init(&found->drawn, text);
	assert_no_error(
		holders_find(drawn_open(&found->drawn, STAGE_HEAP), found->list, &found->count));
}

/* Chunks of these letters are large: a holder has a fiftieth of all at least. */
#define FOUND(found, text, ...)                                                          \
	_cleanup_(found_deinit) struct found found = { .drawn.chunk = { __VA_ARGS__ } }; \
	find_holders(&(found), text)

/* The holder that begins with the letter's allocation; NULL: there is none. */
static const struct holder *holder_at(const struct found *found, char letter)
{
	for (size_t i = 0; i < found->count; i++)
		if (found->list[i].id == drawn_find(&found->drawn, letter))
			return &found->list[i];
	return NULL;
}

TEST(links_of_a_chain_are_one_holder)
{
	FOUND(found, "root>a a>b>c>d>e", 0);
	const struct holder *chain = holder_at(&found, 'a');

	assert_non_null(chain);
	assert_int_equal(chain->bytes, 5 * DRAWN_SIZE);
	assert_int_equal(chain->retained, 5 * DRAWN_SIZE);
	assert_int_equal(chain->content_count, 5);
	assert_int_not_equal(chain->root, NO_ROOT);
}

TEST(bytes_count_for_the_deepest_holder)
{
	FOUND(found, "root>a a>bd b>c d>e", 0, 0x1000, 0x2000, 0x800, 0x600);
	const struct holder *larger = holder_at(&found, 'c'), *smaller = holder_at(&found, 'e');

	assert_null(holder_at(&found, 'a')); /* has only itself besides */
	assert_non_null(larger);
	assert_int_equal(larger->bytes, 0x1ff8);
	assert_int_equal(larger->retained, 0x1ff8);
	assert_non_null(smaller);
	assert_int_equal(smaller->bytes, 0x5f8);
	assert_int_equal(holder_at(&found, 'b')->bytes, 0xff8);
	assert_int_equal(holder_at(&found, 'b')->retained, 0xff8 + 0x1ff8);
	assert_ptr_equal(larger, &found.list[0]);
}

TEST(what_many_have_alike_in_an_object_is_in_it)
{
	FOUND(found, "root>a a>bcdefgh", 0x9000);
	const struct holder *holder = holder_at(&found, 'a');

	assert_non_null(holder);
	assert_int_equal(holder->bytes, 0x8ff8 + 7 * DRAWN_SIZE);
}

TEST(what_leaked_is_no_holder)
{
	FOUND(found, "root>a b>c", 0x400, 0x4000, 0x4000);

	assert_non_null(holder_at(&found, 'a'));
	assert_null(holder_at(&found, 'b'));
	assert_null(holder_at(&found, 'c'));
}
