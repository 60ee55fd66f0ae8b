#include "analyzer/base/error.h"

#include "tests/assertions.h"

#include <errno.h>

TEST(error_keeps_its_code_and_message)
{
	assert_error(error_create(ERROR_BAD_DUMP, "segment %d is %s", 3, "bad"), ERROR_BAD_DUMP,
		     "segment 3 is bad");
}

TEST(system_error_tells_what_failed_and_why)
{
	errno = ENOENT;
	assert_error(error_system("%s", "core.1"), ERROR_SYSTEM,
		     "core.1: No such file or directory");
}

TEST(system_error_for_lack_of_memory_is_one_of_memory)
{
	struct error *error;

	errno = ENOMEM;
	error = error_system("core.1");
	assert_int_equal(error_code(error), ERROR_NO_MEMORY);
	error_destroy(error);
}

TEST(wrapping_puts_the_context_in_front)
{
	struct error *error = error_create(ERROR_BAD_DUMP, "is empty");

	error = error_wrap(error, "core.%d", 1);
	error = error_wrap(error, "dumps");
	assert_error(error, ERROR_BAD_DUMP, "dumps: core.1: is empty");
}

TEST(lack_of_memory_can_be_wrapped_and_destroyed_often)
{
	for (int i = 0; i < 3; i++)
		assert_error(error_wrap(&error_no_memory, "core.1"), ERROR_NO_MEMORY,
			     "out of memory");
}

TEST(no_error_can_be_destroyed)
{
	_cleanup_(error_destroy) struct error *error = NULL;

	error_destroy(error);
}
