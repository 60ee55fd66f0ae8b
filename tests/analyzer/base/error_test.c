#include "analyzer/base/error.h"

#include "tests/assertions.h"

#include <errno.h>

static void test_error_keeps_its_code_and_message(void **state)
{
	assert_error(error_create(ERROR_BAD_DUMP, "segment %d is %s", 3, "bad"), ERROR_BAD_DUMP,
		     "segment 3 is bad");
}

static void test_system_error_tells_what_failed_and_why(void **state)
{
	errno = ENOENT;
	assert_error(error_system("%s", "core.1"), ERROR_SYSTEM,
		     "core.1: No such file or directory");
}

static void test_system_error_for_lack_of_memory_is_one_of_memory(void **state)
{
	struct error *error;

	errno = ENOMEM;
	error = error_system("core.1");
	assert_int_equal(error_code(error), ERROR_NO_MEMORY);
	error_destroy(error);
}

static void test_wrapping_puts_the_context_in_front(void **state)
{
	struct error *error = error_create(ERROR_BAD_DUMP, "is empty");

	error = error_wrap(error, "core.%d", 1);
	error = error_wrap(error, "dumps");
	assert_error(error, ERROR_BAD_DUMP, "dumps: core.1: is empty");
}

static void test_lack_of_memory_can_be_wrapped_and_destroyed_often(void **state)
{
	for (int i = 0; i < 3; i++)
		assert_error(error_wrap(&error_no_memory, "core.1"), ERROR_NO_MEMORY,
			     "out of memory");
}

static void test_no_error_can_be_destroyed(void **state)
{
	_cleanup_(error_destroy) struct error *error = NULL;

	error_destroy(error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_error_keeps_its_code_and_message),
		cmocka_unit_test(test_system_error_tells_what_failed_and_why),
		cmocka_unit_test(test_system_error_for_lack_of_memory_is_one_of_memory),
		cmocka_unit_test(test_wrapping_puts_the_context_in_front),
		cmocka_unit_test(test_lack_of_memory_can_be_wrapped_and_destroyed_often),
		cmocka_unit_test(test_no_error_can_be_destroyed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
