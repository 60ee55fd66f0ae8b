#include "analyzer/gate/small_file.h"

#include "analyzer/base/cleanup.h"
#include "analyzer/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct error *wrong_file(const char *path, const char *what)
{
	return error_create(ERROR_USAGE, "%s: %s", path, what);
}

struct error *read_small_file(const char *path, char **ret, size_t *ret_size)
{
	/* Opening a FIFO must not block. */
	_cleanup_(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(free) char *text = NULL;
	struct stat status;
	size_t size = 0;
	ssize_t got = 1;

	if (fd < 0 || fstat(fd, &status) < 0)
		return wrong_file(path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return wrong_file(path, "this is not a regular file");
	if (status.st_size > MOST_FILE_BYTES)
		return wrong_file(path, "this file is too large");
	text = malloc((size_t)status.st_size + 1);
	TRY_MEMORY(text);
	while (size < (size_t)status.st_size && got > 0) {
		got = read(fd, text + size, (size_t)status.st_size - size);
		if (got < 0 && errno != EINTR)
			return wrong_file(path, strerror(errno));
		size += got > 0 ? (size_t)got : 0;
		got = got < 0 ? 1 : got;
	}
	text[size] = '\0';
	*ret = take(text);
	*ret_size = size;
	return NULL;
}

static bool write_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t put = write(fd, text, size);

		if (put < 0 && errno != EINTR)
			return false;
		if (put > 0) {
			text += put;
			size -= (size_t)put;
		}
	}
	return fsync(fd) == 0 || errno == EINVAL;
}

struct error *replace_file(const char *path, const char *text, size_t size)
{
	_cleanup_(free) char *new_path = NULL;
	_cleanup_(close) int fd = -1;
	struct error *error = NULL;
	struct stat former;

	new_path = format_text("%s.%jd.new", path, (intmax_t)getpid());
	TRY_MEMORY(new_path);
	fd = open(new_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return error_create(ERROR_USAGE, "%s: %s", new_path, strerror(errno));
	if (lstat(path, &former) == 0 && S_ISREG(former.st_mode) &&
	    fchmod(fd, former.st_mode & 0777) < 0)
		error = error_system("%s", new_path);
	if (!error && !write_all(fd, text, size))
		error = error_system("%s", new_path);
	if (!error && rename(new_path, path) < 0)
		error = error_system("%s", path);
	if (error)
		unlink(new_path);
	return error;
}
