#include "analyzer/base/group.h"

#include "tests/assertions.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Folders that look like groups: one, and one within it. */
struct groups {
	char outer[64], inner[80];
};

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static struct groups make_groups(void)
{
	struct groups groups = { .outer = "/tmp/heapcore-test-XXXXXX" };

	assert_non_null(mkdtemp(groups.outer));
	snprintf(groups.inner, sizeof(groups.inner), "%s/inner", groups.outer);
	assert_int_equal(mkdir(groups.inner, 0700), 0);
	write_file(groups.outer, "cgroup.procs", "");
	write_file(groups.inner, "cgroup.procs", "");
	return groups;
}

static void remove_groups(const struct groups *groups)
{
	static const char *const names[] = {
		"cgroup.procs",		 "memory.max",	"memory.current",
		"memory.stat",		 "memory.high", "memory.limit_in_bytes",
		"memory.usage_in_bytes",
	};
	char path[128];

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", groups->inner, names[i]);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%s", groups->outer, names[i]);
		unlink(path);
	}
	rmdir(groups->inner);
	rmdir(groups->outer);
}

TEST(pages_of_files_do_not_count_as_used)
{
	struct groups groups = make_groups();
	struct group_limit limit;

	write_file(groups.outer, "memory.max", "1000000\n");
	write_file(groups.outer, "memory.current", "900000\n");
	write_file(groups.outer, "memory.stat",
		   "inactive_file 100000\nanon 5\nworkingset active_file\nactive_file 200000\n");
	assert_true(group_limit_in(groups.outer, GROUP_MEMORY, &limit));
	assert_int_equal(limit.most, 1000000);
	assert_int_equal(limit.whole, 900000);
	assert_int_equal(limit.used, 600000);
	assert_int_equal(group_left(&limit), 400000);
	remove_groups(&groups);
}

TEST(the_limit_with_least_left_counts)
{
	struct groups groups = make_groups();
	struct group_limit limit;

	write_file(groups.inner, "memory.max", "max\n");
	write_file(groups.inner, "memory.current", "5\n");
	assert_false(group_limit_in(groups.inner, GROUP_MEMORY, &limit));
	write_file(groups.outer, "memory.limit_in_bytes", "9000\n");
	write_file(groups.outer, "memory.usage_in_bytes", "8000\n");
	assert_true(group_limit_in(groups.inner, GROUP_MEMORY, &limit));
	assert_string_equal(limit.folder, groups.outer);
	assert_true(limit.is_old);
	write_file(groups.inner, "memory.max", "1000\n");
	assert_true(group_limit_in(groups.inner, GROUP_MEMORY, &limit));
	assert_string_equal(limit.folder, groups.inner);
	assert_int_equal(group_left(&limit), 995);
	write_file(groups.inner, "memory.current", "1001\n");
	assert_true(group_limit_peek(&limit));
	assert_int_equal(limit.whole, 1001);
	assert_true(group_limit_read(&limit));
	assert_int_equal(group_left(&limit), 0);
	write_file(groups.inner, "memory.high", "900\n");
	assert_true(group_limit_read(&limit));
	assert_int_equal(limit.most, 900);
	remove_groups(&groups);
	assert_false(group_limit_peek(&limit));
}

TEST(what_version_1_has_without_a_limit_is_none)
{
	struct groups groups = make_groups();
	struct group_limit limit;

	write_file(groups.outer, "memory.limit_in_bytes", "9223372036854771712\n");
	write_file(groups.outer, "memory.usage_in_bytes", "8000\n");
	assert_false(group_limit_in(groups.outer, GROUP_MEMORY, &limit));
	remove_groups(&groups);
}
