#include "cli/live/process_root.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* True if both paths lead to one and the same. */
static bool is_same(const char *one, const char *other)
{
	struct stat first, second;

	return stat(one, &first) == 0 && stat(other, &second) == 0 &&
	       first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

int process_root_open(pid_t process, char ret[static PROCESS_ROOT_SIZE])
{
	char root[64], mounts[64];
	int fd;

	snprintf(root, sizeof(root), "/proc/%d/root", process);
	snprintf(mounts, sizeof(mounts), "/proc/%d/ns/mnt", process);
	if (is_same(mounts, "/proc/self/ns/mnt") && is_same(root, "/"))
		return -1;
	fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		snprintf(ret, PROCESS_ROOT_SIZE, "/proc/self/fd/%d", fd);
	return fd;
}
