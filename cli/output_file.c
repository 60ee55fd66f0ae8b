#include "cli/output_file.h"

#include "analyzer/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* Whether others can make files in the folder of path. */
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
	       (!S_ISREG(status.st_mode) ||
		(status.st_uid == geteuid() && status.st_nlink == 1));
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

int output_file_replace(const char *path)
{
	struct stat status;

	if (lstat(path, &status) == 0 && S_ISREG(status.st_mode) &&
	    unlink(path) < 0)
		return -1;
	return open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
}
