/*
 * Debug files with compressed sections, damaged.
 */
#include "tests/fuzz/target.h"

#include "analyzer/base/cleanup.h"
#include "analyzer/program/debug/files.h"

#include <string.h>
#include <sys/stat.h>

/* Deflate makes at most 1032 bytes of one. */
static void check_size(int fd, size_t size)
{
	enum { MOST_OF_ONE = 1100, SLACK = 1 << 16 };
	struct stat status;

	if (fstat(fd, &status) < 0 || (size_t)status.st_size > size * MOST_OF_ONE + SLACK)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct debug_file file = { .fd = -1 };
	_cleanup_(free) uint8_t *copy = malloc(size + 1);
	int fd;

	memcpy(copy, bytes, size);
	elf_version(EV_CURRENT);
	file.elf = elf_memory((char *)copy, size);
	if (!file.elf)
		return 0;
	fd = debug_file_unpack(&file, NULL);
	if (fd >= 0) {
		check_size(fd, size);
		close(fd);
	}
	elf_end(file.elf);
	return 0;
}
