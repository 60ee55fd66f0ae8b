/*
 * Loaded before libc (LD_PRELOAD): what can befall a program that writes files.
 *
 *	ACCIDENT=killed	     it is killed when it writes to a file at some place
 *	ACCIDENT=nameless    there are no files without names, as on NFS
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_to_be(const char *accident)
{
	const char *wanted = getenv("ACCIDENT");

	return wanted && strcmp(wanted, accident) == 0;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	ssize_t (*next)(int, const void *, size_t, off_t) =
		(ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
	ssize_t written = next(fd, bytes, size, offset);

	if (is_to_be("killed"))
		kill(getpid(), SIGKILL);
	return written;
}

int open(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) =
		(int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = va_arg(arguments, mode_t);
	va_end(arguments);
	if ((flags & O_TMPFILE) == O_TMPFILE && is_to_be("nameless")) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return next(path, flags, mode);
}
