#include "cli/views/rows.h"

#include "tests/assertions.h"

#include <stdlib.h>

static void assert_own(const char *name, bool is_member, const char *expected)
{
	char *own = rows_own_words(name, is_member);

	assert_string_equal(own, expected);
	free(own);
}

TEST(members_of_the_library_are_no_own_words)
{
	assert_own("owners._M_t._M_impl (server)", false, "owners (server)");
	assert_own("list._M_impl._M_start[3].name", false, "list[3].name");
	assert_own("_M_impl._M_start[3].name", true, "[3].name");
	assert_own("__tree_", true, "");
}

TEST(variable_may_be_called_as_a_member_of_the_library)
{
	assert_own("__items._M_impl (server)", false, "__items (server)");
	assert_own("app::__items[2]->__next_", false, "app::__items[2]");
	assert_own("__items", false, "__items");
}
