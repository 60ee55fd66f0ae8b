#include "analyzer/gate/baseline.h"

#include "tests/assertions.h"

#include <string.h>
#include <sys/stat.h>

#define HEAD "{\"heapcore-baseline\": 1, \"leaks\": [\n"
#define LEAK(print, roots)                                            \
	"{\"fingerprint\": \"" print "\", \"kind\": \"shop::Order\"," \
	" \"size\": 72, \"roots\": " roots ", \"bytes\": 23200}"
#define ONE "0000000000000001"
#define TWO "00000000000000a2"

static struct error *parse(const char *text, struct baseline *ret)
{
	*ret = (struct baseline){ 0 };
	return baseline_parse(text, strlen(text), "file", ret);
}

TEST(leaks_are_read_and_found_by_fingerprint)
{
	_cleanup_(baseline_deinit) struct baseline baseline;

	assert_no_error(parse(HEAD LEAK(TWO, "7") "," LEAK(ONE, "100") "]}", &baseline));
	assert_int_equal(baseline.count, 2);
	assert_int_equal(baseline.list[0].fingerprint, 1);
	assert_int_equal(baseline_find(&baseline, 0xa2)->roots, 7);
	assert_string_equal(baseline_find(&baseline, 1)->kind, "shop::Order");
	assert_null(baseline_find(&baseline, 3));
}

TEST(what_is_wrong_is_said_with_its_line)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "{}", "file:1: this is not a baseline of heapcore" },
		{ "[1]", "file:1: this is not a baseline of heapcore" },
		{ "{\"heapcore-baseline\": 2, \"leaks\": []}",
		  "file:1: this baseline is of another version of heapcore" },
		{ "{\"heapcore-baseline\": 1}", "file:1: there is no list of \"leaks\"" },
		{ HEAD "], \"x\": 1}",
		  "file:1: there are keys other than \"heapcore-baseline\" and \"leaks\"" },
		{ HEAD LEAK(ONE, "1") ",\n\n 5]}",
		  "file:4: this is no leak of a baseline: it is not an object" },
		{ HEAD LEAK(ONE, "1") ",\n" LEAK("xx", "1") "]}",
		  "file:3: this is no leak of a baseline: its \"fingerprint\" is text of 16 hexadecimal digits" },
		{ HEAD LEAK(ONE, "-1") "]}",
		  "file:2: this is no leak of a baseline: its numbers are \"size\", \"roots\" and \"bytes\"" },
		{ HEAD LEAK(ONE, "1") "," LEAK(ONE, "2") "]}",
		  "file: the fingerprint 0000000000000001 is there twice" },
		{ HEAD "{\"rots\": 1}]}",
		  "file:2: this is no leak of a baseline: it has a key that is not known" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(baseline_deinit) struct baseline baseline;

		assert_error(parse(cases[i].text, &baseline), ERROR_USAGE, cases[i].message);
	}
}

TEST(what_is_no_json_is_wrong_usage)
{
	static const char *const texts[] = {
		"", "{", "\xff", "{\"heapcore-baseline\": 1e999}", HEAD "{]}",
	};
	char deep[100001] = "";

	memset(deep, '[', sizeof(deep) - 1);
	for (size_t i = 0; i <= sizeof(texts) / sizeof(*texts); i++) {
		_cleanup_(baseline_deinit) struct baseline baseline;
		bool is_last = i == sizeof(texts) / sizeof(*texts);
		struct error *error = parse(is_last ? deep : texts[i], &baseline);

		assert_non_null(error);
		assert_int_equal(error_code(error), ERROR_USAGE);
		assert_memory_equal(error_message(error), "file:1", 5);
		error_destroy(error);
	}
}

/* Three kinds of leaks, of fingerprints 1 to 3 and so many roots. */
static struct leak_kinds leaks_of(struct leak_kind list[static 3], uint64_t first, uint64_t second,
				  uint64_t third)
{
	uint64_t roots[] = { first, second, third };
	size_t count = 0;

	for (size_t i = 0; i < 3; i++)
		if (roots[i])
			list[count++] = (struct leak_kind){
				.fingerprint = i + 1,
				.name = (char *)"A",
				.size = 24,
				.roots = roots[i],
				.allocations = 2 * roots[i],
				.bytes = 100 * roots[i],
			};
	return (struct leak_kinds){ .list = list, .count = count };
}

TEST(leaks_are_new_known_or_more)
{
	_cleanup_(baseline_deinit) struct baseline baseline;
	struct leak_kind list[3];
	struct leak_kinds leaks = leaks_of(list, 5, 4, 4);

	assert_no_error(
		parse(HEAD LEAK(ONE, "3") "," LEAK("0000000000000002", "4") "," LEAK(TWO, "1") "]}",
		      &baseline));
	baseline_compare(&baseline, &leaks);
	assert_int_equal(list[0].state, LEAK_MORE);
	assert_int_equal(list[1].state, LEAK_KNOWN);
	assert_int_equal(list[2].state, LEAK_NEW);
	/* Two of five roots are too many. */
	assert_int_equal(leak_counted(&list[0]).count, 4);
	assert_int_equal(leak_counted(&list[0]).bytes, 200);
	assert_int_equal(leak_counted(&list[1]).count, 0);
	assert_int_equal(leak_counted(&list[2]).count, 8);
	assert_false(baseline_find(&baseline, 0xa2)->matched);
}

TEST(the_ratchet_lowers_and_never_raises)
{
	_cleanup_(baseline_deinit) struct baseline baseline;
	struct leak_kind list[3];
	struct leak_kinds leaks = leaks_of(list, 2, 9, 0);

	assert_no_error(
		parse(HEAD LEAK(ONE, "3") "," LEAK("0000000000000002", "4") "," LEAK(TWO, "1") "]}",
		      &baseline));
	baseline_compare(&baseline, &leaks);
	assert_true(baseline_ratchet(&baseline, &leaks));
	assert_int_equal(baseline.count, 2);
	assert_int_equal(baseline.list[0].roots, 2);
	assert_int_equal(baseline.list[0].bytes, 200);
	assert_int_equal(baseline.list[1].roots, 4);
	assert_false(baseline_ratchet(&baseline, &leaks));
}

TEST(what_is_written_is_read_again)
{
	char folder[] = "/tmp/heapcore-baseline-XXXXXX", path[64], link[64];
	_cleanup_(baseline_deinit) struct baseline old, accepted = { 0 }, again = { 0 };
	struct leak_kind list[3];
	struct leak_kinds leaks = leaks_of(list, 3, 2, 1);
	struct stat status;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(link, sizeof(link), "%s/other", folder);
	list[0].name = (char *)"odd \"name\" \x1b\xff";
	list[1].state = LEAK_SUPPRESSED;
	assert_no_error(parse(
		HEAD
		"{\"fingerprint\": \"" ONE
		"\", \"kind\": \"A\", \"size\": 1, \"roots\": 1, \"bytes\": 1, \"reason\": \"they live for ever\"}]}",
		&old));
	assert_no_error(baseline_accept(&old, &leaks, &accepted));
	/* A link is not followed. */
	assert_int_equal(symlink(link, path), 0);
	assert_no_error(baseline_write(&accepted, path));
	assert_int_equal(lstat(path, &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(lstat(link, &status), -1);
	assert_no_error(baseline_read(path, &again));
	assert_int_equal(again.count, 2);
	assert_int_equal(again.list[0].roots, 3);
	assert_string_equal(again.list[0].reason, "they live for ever");
	assert_int_equal(again.list[1].fingerprint, 3);
	unlink(path);
	rmdir(folder);
}

TEST(each_leak_is_a_line)
{
	_cleanup_(baseline_deinit) struct baseline baseline;
	_cleanup_(free) char *text = NULL;
	size_t size;

	assert_no_error(parse(HEAD LEAK(TWO, "7") "," LEAK(ONE, "100") "]}", &baseline));
	assert_no_error(baseline_print(&baseline, &text, &size));
	assert_string_equal(text, "{\n"
				  "  \"heapcore-baseline\": 1,\n"
				  "  \"leaks\": [\n"
				  "    " LEAK(ONE, "100") ",\n"
							  "    " LEAK(TWO, "7") "\n"
										"  ]\n"
										"}\n");
}

TEST(only_regular_files_are_read)
{
	struct baseline baseline = { 0 };

	assert_error(baseline_read("/dev/zero", &baseline), ERROR_USAGE,
		     "/dev/zero: this is not a regular file");
	assert_error(baseline_read("/nonexistent/file", &baseline), ERROR_USAGE,
		     "/nonexistent/file: No such file or directory");
}
