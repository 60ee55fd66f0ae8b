#include "cli/serve/guard.h"

#include "tests/assertions.h"

#include <string.h>

static bool takes(const char *address, uint16_t port, const char *host)
{
	struct guard guard;

	assert_true(guard_init(&guard, address, port));
	return guard_takes_host(&guard, host);
}

TEST(a_host_is_the_address_listened_at)
{
	assert_true(takes("127.0.0.1", 8000, "127.0.0.1:8000"));
	assert_true(takes("127.0.0.1", 8000, "localhost:8000"));
	assert_true(takes("127.0.0.1", 80, "localhost"));
	assert_false(takes("127.0.0.1", 8000, "127.0.0.1"));
	assert_false(takes("127.0.0.1", 8000, "127.0.0.2:8000"));
	assert_false(takes("127.0.0.1", 8000, "127.0.0.1:8001"));
	assert_false(takes("127.0.0.1", 8000, "evil.example:8000"));
	assert_false(takes("127.0.0.1", 8000, NULL));
}

TEST(a_host_that_is_none_is_refused)
{
	static const char *const hosts[] = {
		"",	    ":",    ":8000",	       "127.0.0.1:",	  "[",
		"[]",	    "[::1", "127.0.0.1:8000 ", "127.0.0.1:+8000", "127.0.0.1:0x1f40",
		"[::1]8000"
	};
	char longest[1000];

	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i < COUNT_OF(hosts); i++)
		assert_false(takes("127.0.0.1", 8000, hosts[i]));
	assert_false(takes("", 80, longest));
}

TEST(addresses_of_ipv6_stand_in_brackets)
{
	assert_true(takes("::1", 8000, "[::1]:8000"));
	assert_true(takes("::1", 8000, "localhost:8000"));
	assert_false(takes("::1", 8000, "::1:8000"));
}

TEST(all_addresses_but_no_names_lead_to_a_public_one)
{
	assert_true(takes("", 8000, "192.0.2.7:8000"));
	assert_true(takes("", 8000, "[2001:db8::1]:8000"));
	assert_true(takes("", 8000, "localhost:8000"));
	assert_false(takes("", 8000, "evil.example:8000"));
	assert_false(takes("192.0.2.7", 8000, "localhost:8000"));
}

TEST(what_forwards_to_a_path_listens_at_any_port)
{
	assert_true(takes(NULL, 0, "localhost:1234"));
	assert_true(takes(NULL, 0, "127.0.0.1:8000"));
	assert_false(takes(NULL, 0, "evil.example:8000"));
}

TEST(other_pages_must_not_ask)
{
	assert_true(guard_takes_origin("localhost:80", NULL, NULL));
	assert_true(guard_takes_origin("localhost:80", "http://localhost:80", "same-origin"));
	assert_true(guard_takes_origin("localhost:80", NULL, "none"));
	assert_false(guard_takes_origin("localhost:80", "http://localhost:81", NULL));
	assert_false(guard_takes_origin("localhost:80", "https://localhost:80", NULL));
	assert_false(guard_takes_origin("localhost:80", "null", NULL));
	assert_false(guard_takes_origin("localhost:80", "", NULL));
	assert_false(guard_takes_origin("localhost:80", NULL, "cross-site"));
	assert_false(guard_takes_origin("localhost:80", NULL, "same-site"));
}

TEST(a_token_works_as_often_as_it_may)
{
	struct guard guard, other;

	assert_true(guard_init(&guard, "127.0.0.1", 8000));
	assert_true(guard_init(&other, "127.0.0.1", 8000));
	assert_string_not_equal(guard.token, other.token);
	assert_string_not_equal(guard.token, guard.once);
	for (int i = 0; i < 2; i++) {
		assert_true(guard_takes_token(&guard, guard.token));
		assert_true(guard_takes_cookie(&guard, guard.token));
		assert_int_equal(guard_takes_token(&guard, guard.once), i == 0);
		assert_false(guard_takes_cookie(&guard, guard.once));
		assert_false(guard_takes_token(&guard, other.token));
		assert_false(guard_takes_token(&guard, ""));
		assert_false(guard_takes_token(&guard, NULL));
	}
}
