#include "analyzer/base/cache.h"

#include "tests/assertions.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static char around[] = "/tmp/cache_test.XXXXXX";
static char folder[sizeof(around) + sizeof("/heapcore")];

static int before_tests(void **state)
{
	assert_non_null(mkdtemp(around));
	snprintf(folder, sizeof(folder), "%s/heapcore", around);
	return 0;
}

/* Remove all files of the folder; returns how many there were. */
static size_t empty(const char *path)
{
	DIR *list = opendir(path);
	const struct dirent *entry;
	size_t count = 0;

	while (list && (entry = readdir(list)))
		count += unlinkat(dirfd(list), entry->d_name, 0) == 0;
	if (list)
		closedir(list);
	return count;
}

static size_t empty_folder(void)
{
	return empty(folder);
}

static int after_tests(void **state)
{
	empty_folder();
	rmdir(folder);
	return rmdir(around);
}

AROUND_TESTS(before_tests, after_tests)

static struct error *save_text(const void *data, struct side_writer *writer)
{
	return side_writer_array(writer, 0, data, strlen(data));
}

static struct error *save_half(const void *data, struct side_writer *writer)
{
	TRY(save_text(data, writer));
	return error_create(ERROR_USAGE, "the other half cannot be kept");
}

static struct cache_key key_of(const char *text)
{
	struct cache_key key = cache_key_begin("test");

	cache_key_add(&key, text, strlen(text));
	return key;
}

static bool has(const struct cache_key *key, const char *text)
{
	_cleanup_(side_file_close) struct side_file *file = cache_find(folder, key);
	struct side_array array = { NULL };

	if (!file)
		return false;
	error_destroy(side_file_find(file, 0, &array));
	return array.bytes && array.size == strlen(text) &&
	       memcmp(array.bytes, text, array.size) == 0;
}

TEST(what_is_kept_is_found_by_its_key_only)
{
	struct cache_key one = key_of("one"), two = key_of("two"), other = cache_key_begin("other");

	cache_key_add(&other, "one", strlen("one"));
	cache_keep(folder, &one, save_text, "first");
	assert_true(has(&one, "first"));
	assert_null(cache_find(folder, &two));
	assert_null(cache_find(folder, &other));
	cache_keep(folder, &one, save_text, "second");
	assert_true(has(&one, "second"));
	assert_int_equal(empty_folder(), 1);
}

TEST(without_a_folder_nothing_is_kept)
{
	struct cache_key key = key_of("one");

	cache_keep(NULL, &key, save_text, "text");
	assert_null(cache_find(NULL, &key));
	cache_keep("/nonexistent/heapcore", &key, save_text, "text");
	assert_null(cache_find("/nonexistent/heapcore", &key));
}

TEST(what_cannot_be_saved_as_a_whole_is_not_kept)
{
	struct cache_key key = key_of("one");

	cache_keep(folder, &key, save_half, "text");
	assert_null(cache_find(folder, &key));
	assert_int_equal(empty_folder(), 0);
}

static char *path_of_only_entry(void)
{
	DIR *list = opendir(folder);
	const struct dirent *entry;
	char *path = NULL;

	while ((entry = readdir(list)))
		if (entry->d_name[0] != '.')
			assert_true(asprintf(&path, "%s/%s", folder, entry->d_name) > 0);
	closedir(list);
	return path;
}

TEST(a_flipped_byte_is_never_taken_for_what_was_kept)
{
	struct cache_key key = key_of("one");
	_cleanup_(free) char *path = NULL;
	struct stat status = { .st_size = 0 };
	size_t unused = 0;
	uint8_t byte;
	int fd;

	cache_keep(folder, &key, save_text, "some text");
	path = path_of_only_entry();
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &status) == 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	for (off_t i = 0; i < status.st_size; i++) {
		assert_int_equal(pread(fd, &byte, 1, i), 1);
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, i), 1);
		/* Bytes between the arrays mean nothing. */
		unused += has(&key, "some text");
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, i), 1);
	}
	assert_true(has(&key, "some text"));
	assert_in_range(unused, 1, (uintmax_t)status.st_size - 1000);
	assert_return_code(ftruncate(fd, status.st_size - 1), 0);
	assert_false(has(&key, "some text"));
	close(fd);
	assert_int_equal(empty_folder(), 1);
}

static bool keeps_in(const char *path)
{
	struct cache_key key = key_of("one");
	struct side_file *file;

	cache_keep(path, &key, save_text, "text");
	file = cache_find(path, &key);
	if (file)
		side_file_close(file);
	return file;
}

TEST(a_folder_that_others_may_write_to_is_not_used)
{
	char link[sizeof(folder) + 8];

	assert_true(keeps_in(folder));
	assert_return_code(chmod(folder, 0770), 0);
	assert_false(keeps_in(folder));
	assert_return_code(chmod(folder, 0707), 0);
	assert_false(keeps_in(folder));
	assert_return_code(chmod(folder, 0700), 0);
	snprintf(link, sizeof(link), "%s.link", folder);
	assert_return_code(symlink(folder, link), 0);
	assert_false(keeps_in(link));
	unlink(link);
	assert_int_equal(empty_folder(), 1);
}

TEST(a_folder_is_made_and_the_one_around_it)
{
	char one[sizeof(folder) + 8], two[sizeof(one) + 8], three[sizeof(two) + 8];
	struct stat status;

	snprintf(one, sizeof(one), "%s/a", around);
	snprintf(two, sizeof(two), "%s/b", one);
	snprintf(three, sizeof(three), "%s/c", two);
	assert_false(keeps_in(three));
	assert_int_equal(stat(one, &status), -1);
	assert_true(keeps_in(two));
	assert_return_code(stat(two, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
	assert_int_equal(empty(two), 1);
	rmdir(two);
	assert_return_code(rmdir(one), 0);
}

TEST(root_makes_no_folder_in_that_of_another_user)
{
	char home[sizeof(around) + 8], below[sizeof(home) + 16];
	struct stat status;

	if (geteuid() != 0)
		skip();
	snprintf(home, sizeof(home), "%s/home", around);
	snprintf(below, sizeof(below), "%s/heapcore", home);
	assert_return_code(mkdir(home, 0700), 0);
	assert_return_code(chown(home, 12345, 12345), 0);
	assert_false(keeps_in(below));
	assert_int_equal(stat(below, &status), -1);
	assert_return_code(mkdir(below, 0700), 0);
	assert_return_code(chown(below, 12345, 12345), 0);
	assert_false(keeps_in(below));
	assert_return_code(rmdir(below), 0);
	rmdir(home);
}

TEST(what_was_used_least_recently_goes_first)
{
	enum { COUNT = 6, HOURS = 3600 };
	struct cache_key key = key_of("new");
	char path[COUNT][sizeof(folder) + 64], other[sizeof(folder) + 64];
	struct stat status;

	cache_keep(folder, &key, save_text, "older text");
	snprintf(other, sizeof(other), "%s/not-ours", folder);
	close(open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	for (int i = 0; i < COUNT; i++) {
		struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					     { .tv_sec = time(NULL) - (i + 1) * HOURS } };
		int fd;

		snprintf(path[i], sizeof(path[i]), "%s/%032x.hcc", folder, i);
		fd = open(path[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_return_code(ftruncate(fd, 50 << 20), 0);
		assert_return_code(futimens(fd, times), 0);
		close(fd);
	}
	cache_keep(folder, &key, save_text, "text");
	assert_true(has(&key, "text"));
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(stat(path[i], &status), i < 3 ? 0 : -1);
	assert_return_code(stat(other, &status), 0);
	assert_int_equal(empty_folder(), 5);
}

TEST(many_may_keep_the_same_at_once)
{
	enum { PROCESSES = 4, TIMES = 50 };
	struct cache_key key = key_of("one");
	int status;

	cache_keep(folder, &key, save_text, "text");
	for (size_t i = 0; i < PROCESSES; i++) {
		if (fork() != 0)
			continue;
		for (size_t j = 0; j < TIMES; j++) {
			cache_keep(folder, &key, save_text, "text");
			if (!has(&key, "text"))
				_exit(1);
		}
		_exit(0);
	}
	for (size_t i = 0; i < PROCESSES; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(empty_folder(), 1);
}

/* Keep a file with that text; returns what was made, to be closed. */
static int keep_file(const struct cache_key *key, const char *text, bool whole)
{
	struct cache_draft draft;
	int fd = cache_begin_file(folder, key, &draft);

	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	cache_end_file(&draft, key, fd, whole);
	return fd;
}

static bool has_file(const struct cache_key *key, const char *text)
{
	char found[64] = "";
	int fd = cache_find_file(folder, key);

	if (fd < 0)
		return false;
	assert_true(read(fd, found, strlen(text)) > 0);
	close(fd);
	return strcmp(found, text) == 0;
}

TEST(a_file_is_found_by_its_key_only_and_its_maker_can_read_it)
{
	struct cache_key one = key_of("one"), two = key_of("two");
	struct cache_draft draft;
	char text[6] = "";
	int fd = keep_file(&one, "first", true);

	assert_int_equal(pread(fd, text, 5, 0), 5);
	assert_string_equal(text, "first");
	close(fd);
	assert_true(has_file(&one, "first"));
	assert_int_equal(cache_find_file(folder, &two), -1);
	assert_null(cache_find(folder, &one));
	close(keep_file(&one, "second", true));
	assert_true(has_file(&one, "second"));
	assert_int_equal(empty_folder(), 1);
	assert_int_equal(cache_begin_file(NULL, &one, &draft), -1);
	assert_int_equal(cache_begin_file("/nonexistent/heapcore", &one, &draft), -1);
	cache_end_file(&draft, &one, -1, true);
}

TEST(a_file_that_is_not_whole_or_too_large_or_empty_is_not_kept)
{
	struct cache_key key = key_of("one");
	struct cache_draft draft;
	int fd = keep_file(&key, "half", false);

	close(fd);
	fd = cache_begin_file(folder, &key, &draft);
	assert_return_code(ftruncate(fd, (off_t)cache_largest_file() + 1), 0);
	cache_end_file(&draft, &key, fd, true);
	close(fd);
	close(keep_file(&key, "", true));
	assert_int_equal(empty_folder(), 0);
}

TEST(a_changed_byte_of_a_file_is_noticed)
{
	struct cache_key key = key_of("one");
	_cleanup_(free) char *path = NULL;
	struct stat status = { .st_size = 0 };
	uint8_t byte;
	int fd;

	close(keep_file(&key, "some text", true));
	path = path_of_only_entry();
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &status) == 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	for (off_t i = 0; i < status.st_size; i++) {
		assert_int_equal(pread(fd, &byte, 1, i), 1);
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, i), 1);
		assert_int_equal(cache_find_file(folder, &key), -1);
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, i), 1);
	}
	assert_true(has_file(&key, "some text"));
	assert_return_code(chmod(path, 0660), 0);
	assert_false(has_file(&key, "some text"));
	assert_return_code(chmod(path, 0600), 0);
	for (off_t size = status.st_size - 1; size >= 0; size--) {
		assert_return_code(ftruncate(fd, size), 0);
		assert_false(has_file(&key, "some text"));
	}
	close(fd);
	assert_int_equal(empty_folder(), 1);
}
