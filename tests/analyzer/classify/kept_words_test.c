#include "analyzer/classify/kept_words.h"

#include "tests/assertions.h"

TEST(each_member_has_its_own_word)
{
	enum { COUNT = 3000 };
	_cleanup_(bitmap_deinit) struct bitmap members = { 0 };
	_cleanup_(kept_words_destroy) struct kept_words *words = NULL;
	struct memory_account account = { 0 };

	assert_no_error(bitmap_init(&members, COUNT, &account));
	for (size_t id = 0; id < COUNT; id += 1 + id % 70)
		bitmap_set(&members, id);
	assert_no_error(kept_words_create(&members, &account, &words));
	bitmap_for_each(id, &members)
		kept_words_add(words, (allocation_id)id, 1000 + id, id % 2);
	for (allocation_id id = 0; id < COUNT; id++) {
		bool is_member = bitmap_get(&members, id);
		uint64_t word = 0;

		assert_int_equal(kept_words_find(words, id, &word), is_member);
		assert_int_equal(word, is_member ? 1000 + id : 0);
		assert_int_equal(kept_words_may_have_identity(words, id), !is_member || id % 2);
	}
}
