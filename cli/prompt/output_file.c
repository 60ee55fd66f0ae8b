#include "cli/prompt/output_file.h"
#include "analyzer/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

/* True if others can create files in the folder of path. */
static bool is_shared(const char *path)
{
	_cleanup_(free) char *copy = strdup(path);
	struct stat status;

	return !copy || stat(dirname(copy), &status) < 0 ||
	       (status.st_mode & (S_IWOTH | S_ISVTX)) != 0;
}

/* A link of another name to a file of the user's is as bad as a symbolic one.
 */
static bool is_own(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 &&
	       (!S_ISREG(status.st_mode) || (status.st_uid == geteuid() && status.st_nlink == 1));
}

int output_file_open(const char *path, int flags)
{
	bool shared = is_shared(path);
	int fd;

	flags |= O_WRONLY | O_NOCTTY | O_CLOEXEC;
	fd = open(path, flags | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd >= 0 || errno != EEXIST)
		return fd;
	fd = open(path, shared ? flags | O_NOFOLLOW : flags);
	if (fd >= 0 && shared && !is_own(fd)) {
		close(fd);
		errno = EPERM;
		return -1;
	}
	return fd;
}

/* Check that a file may take the name: only a regular file may be replaced. */
static int check_name(const char *path)
{
	struct stat status;

	if (lstat(path, &status) < 0 || S_ISREG(status.st_mode))
		return 0;
	errno = EEXIST;
	return -1;
}

/* Remove a regular file, so that another gets its name. */
static int vacate(const char *path)
{
	if (check_name(path) < 0)
		return -1;
	return unlink(path) < 0 && errno != ENOENT ? -1 : 0;
}

/* A file without a name, which is gone with this process; not all file systems
 * have such. */
static int open_nameless(const char *path)
{
	_cleanup_(free) char *copy = strdup(path);

	return copy ? open(dirname(copy), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600) : -1;
}

static int open_named(struct output_file *file)
{
	file->temporary = format_text("%s.%jd.new", file->path, (intmax_t)getpid());
	return file->temporary ? open(file->temporary,
				      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)
			       : -1;
}

int output_file_begin(const char *path, struct output_file *ret)
{
	_cleanup_(output_file_deinit) struct output_file file = {
		.fd = -1,
		.path = strdup(path),
	};

	if (!file.path || vacate(path) < 0)
		return -1;
	file.fd = open_nameless(path);
	if (file.fd < 0)
		file.fd = open_named(&file);
	if (file.fd < 0)
		return -1;
	*ret = file;
	file = (struct output_file){ .fd = -1 };
	return 0;
}

/* Without symbolic links in it: the folder's own path and the name. */
static char *resolve_folder(const char *path)
{
	_cleanup_(free) char *copy = strdup(path), *other = strdup(path);
	_cleanup_(free) char *folder = copy ? realpath(dirname(copy), NULL) : NULL;

	return folder && other ? format_text("%s/%s", folder, basename(other)) : NULL;
}

int output_file_begin_named(const char *path, struct output_file *ret)
{
	_cleanup_(output_file_deinit) struct output_file file = {
		.fd = -1,
		.path = resolve_folder(path),
	};

	if (!file.path || check_name(file.path) < 0)
		return -1;
	file.fd = open_named(&file);
	if (file.fd < 0)
		return -1;
	*ret = file;
	file = (struct output_file){ .fd = -1 };
	return 0;
}

static int link_nameless(const struct output_file *file)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	return linkat(AT_FDCWD, link, AT_FDCWD, file->path, AT_SYMLINK_FOLLOW);
}

int output_file_complete(struct output_file *file)
{
	int fd = file->fd;

	/* Somebody may have put a file there meanwhile. */
	if (vacate(file->path) < 0 ||
	    (file->temporary ? rename(file->temporary, file->path) : link_nameless(file)) < 0)
		return -1;
	free(take(file->temporary));
	file->fd = -1;
	return fd;
}

void output_file_deinit(struct output_file *file)
{
	int failure = errno;

	if (file->temporary && file->fd >= 0)
		unlink(file->temporary);
	free(file->temporary);
	free(file->path);
	if (file->fd >= 0)
		close(file->fd);
	errno = failure;
}
