#include "analyzer/base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

static int open_in(const char *folder)
{
	_cleanup_(free) char *name = NULL;
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);

	/* Some file systems cannot create files without a name. */
	if (fd >= 0 || asprintf(&name, "%s/heapcore-XXXXXX", folder) < 0)
		return fd;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	return fd;
}

static bool is_fit(const char *folder)
{
	return access(folder, W_OK | X_OK) == 0;
}

const char *temporary_folder(const char *folder)
{
	if (folder)
		return folder;
	return is_fit("/var/tmp") || !is_fit("/tmp") ? "/var/tmp" : "/tmp";
}

struct error *temporary_open(const char *folder, int *ret)
{
	int fd;

	folder = temporary_folder(folder);
	fd = open_in(folder);
	if (fd < 0)
		return error_system("a temporary file in %s", folder);
	*ret = fd;
	return NULL;
}

bool write_fully(int fd, const void *bytes, size_t size, uint64_t offset)
{
	const char *from = bytes;

	while (size > 0) {
		ssize_t written = pwrite(fd, from, size, (off_t)offset);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		from += written;
		offset += (uint64_t)written;
		size -= (size_t)written;
	}
	return true;
}
