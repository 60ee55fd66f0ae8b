#include "analyzer/capture/held.h"

#include "tests/assertions.h"

#include <elf.h>
#include <string.h>

/* Memory that the program can write to; what is above it can only be read. */
static const uint64_t DATA = 0x7f0000000000;

static void read_ring(const char *text, struct held_list *ret)
{
	static struct memory_area areas[] = {
		{ .start = 0x7f0000000000, .end = 0x7f0000010000, .rights = PF_R | PF_W },
		{ .start = 0x7f0000010000, .end = 0x7f0000020000, .rights = PF_R },
	};
	static const struct memory_map map = { .areas = areas, .count = 2 };

	*ret = (struct held_list){ .map = &map };
	assert_no_error(held_read_ring(ret, 5, text));
}

static void assert_value(const struct held_list *list, size_t number, uint64_t value, uint32_t kind)
{
	assert_true(number < list->values.count);
	assert_int_equal(list->values.values[number].value, value);
	assert_int_equal(list->values.values[number].kind, kind);
	assert_int_equal(list->values.values[number].holder, 5);
}

/* As Linux 6.18 writes it. */
TEST(what_waits_in_a_ring_is_held)
{
	static const char text[] =
		"pos:\t0\nino:\t230681\nSqMask:\t0x7\nSqHead:\t3\nSqTail:\t4\n"
		"CachedSqHead:\t3\nCqMask:\t0xf\nCachedCqTail:\t3\nSQEs:\t1\n"
		"    3: opcode:READ, fd:4, flags:0, off:0, addr:0x7f0000000100, rw_flags:0x0, buf_index:0 user_data:139637976727552\n"
		"CQEs:\t1\n    2: user_data:139637976728064, res:0, flags:0\n"
		"UserBufs:\t2\n    0: 0x7f0000000400/4096\n"
		"    1: 0x7f0000010000/4096\nPollList:\nCqOverflowList:\n"
		"  user_data=139637976728576, res=0, flags=0\n";
	struct held_list list;

	read_ring(text, &list);
	assert_int_equal(list.values.count, 5);
	assert_value(&list, 0, DATA, HELD_RING);
	assert_value(&list, 1, DATA + 0x100, HELD_RING);
	assert_value(&list, 2, DATA + 0x200, HELD_RING);
	assert_value(&list, 3, DATA + 0x400, HELD_RING);
	assert_value(&list, 4, DATA + 0x400, HELD_RING);

	held_deinit(&list.values);
}

TEST(requests_that_were_overwritten_are_untold)
{
	static const char *const texts[] = {
		/* More than the ring has slots, not all of them done. */
		"SqMask:\t0x7\nCachedSqHead:\t9\nCachedCqTail:\t8\n",
		/* As many as it has, but one goes on after its completion. */
		"SqMask:\t0x7\nCachedSqHead:\t9\nCachedCqTail:\t9\nPollList:\n"
		"  op=22, task_works=0\n",
		/* Before Linux 5.19. */
		"pos:\t0\nUserFiles:\t0\nUserBufs:\t0\nPollList:\n",
	};

	for (size_t i = 0; i < 3; i++) {
		struct held_list list;

		read_ring(texts[i], &list);
		assert_int_equal(list.values.count, 1);
		assert_value(&list, 0, 0, HELD_UNTOLD);
		held_deinit(&list.values);
	}
}

TEST(ring_whose_requests_all_ended_holds_nothing)
{
	struct held_list list;

	read_ring("SqMask:\t0x7\nCachedSqHead:\t90\nCachedCqTail:\t90\n", &list);
	assert_int_equal(list.values.count, 0);
	read_ring("SqMask:\t0x7\nCachedSqHead:\t8\nCachedCqTail:\t0\n", &list);
	assert_int_equal(list.values.count, 0);
}

TEST(text_that_makes_no_sense_does_no_harm)
{
	static const char text[] = "SqMask:\nCachedSqHead:\t0\nCachedCqTail:\t0\n user_data:\n"
				   "user_data:99999999999999999999999\n 1: 0x\n : "
				   "0x7f\nop=\naddr:0x\nSqMask:\t0xffffffffffffffff\n    ";

	for (size_t size = 0; size < sizeof(text); size++) {
		char cut[sizeof(text)] = "";
		struct held_list list;

		memcpy(cut, text, size);
		read_ring(cut, &list);
		held_deinit(&list.values);
	}
}
