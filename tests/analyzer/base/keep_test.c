#include "analyzer/base/keep.h"

#include "analyzer/base/array.h"
#include "tests/assertions.h"

struct stretch {
	unsigned int start, end;
};

TEST(elements_are_kept_in_their_order)
{
	unsigned int list[] = { 5, 2, 7, 4, 6 };
	size_t count = LIST_KEEP(list, 5, number, last, *number >= 5);

	assert_int_equal(count, 3);
	assert_int_equal(list[0], 5);
	assert_int_equal(list[1], 7);
	assert_int_equal(list[2], 6);
	assert_int_equal(LIST_KEEP((unsigned int *)NULL, 0, number, last, true), 0);
}

/* Not with one that was left out: the third is apart from the first. */
TEST(each_is_compared_with_the_one_kept_before)
{
	struct memory_account account = { 0 };
	ARRAY(struct stretch) stretches = { .memory.account = &account };

	assert_no_error(array_append(&stretches, (struct stretch){ 1, 4 }));
	assert_no_error(array_append(&stretches, (struct stretch){ 2, 9 }));
	assert_no_error(array_append(&stretches, (struct stretch){ 4, 6 }));
	array_keep(&stretches, stretch, last, !last || stretch->start >= last->end);
	assert_int_equal(stretches.count, 2);
	assert_int_equal(stretches.items[1].start, 4);
	array_release(&stretches);
}
