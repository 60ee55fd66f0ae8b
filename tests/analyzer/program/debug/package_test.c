#include "analyzer/base/cleanup.h"
#include "analyzer/base/text.h"
#include "analyzer/program/debug/package.h"
#include "tests/assertions.h"

#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_list(const char *root, const char *name, const char *text)
{
	_cleanup_(free) char *path = format_text("%s/var/lib/dpkg/info/%s", root, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void assert_package(const char *root, const char *path, const char *expected)
{
	_cleanup_(free) char *package = debug_package_of(root, path);

	if (!expected)
		assert_null(package);
	else
		assert_string_equal(package, expected);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

static void remove_all(const char *root)
{
	assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

TEST(package_is_that_whose_list_has_the_file)
{
	char root[] = "/tmp/heapcore-test-XXXXXX";
	const char *folders[] = { "var", "var/lib", "var/lib/dpkg", "var/lib/dpkg/info" };

	assert_non_null(mkdtemp(root));
	assert_package(root, "/usr/bin/redis-server", NULL);
	for (size_t i = 0; i < 4; i++) {
		_cleanup_(free) char *path = format_text("%s/%s", root, folders[i]);

		assert_int_equal(mkdir(path, 0700), 0);
	}
	write_list(root, "empty.list", "");
	write_list(root, "redis.list", "/.\n/usr\n/usr/bin\n/usr/bin/redis-server\n");
	write_list(root, "libfoo1:amd64.list", "/.\n/lib/libfoo.so.1\n");
	write_list(root, "other.md5sums", "\n/usr/bin/other\n");
	assert_package(root, "/usr/bin/redis-server", "redis-dbgsym");
	assert_package(root, "/usr/lib/libfoo.so.1", "libfoo1-dbgsym");
	assert_package(root, "/usr/bin/redis", NULL);
	assert_package(root, "/usr/bin/other", NULL);
	remove_all(root);
}
