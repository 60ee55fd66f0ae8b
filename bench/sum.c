/*
 * The yardstick: how long it takes to read a core and do next to nothing.
 *
 *	sum FILE
 *
 * The file is mapped as an analyzer maps a core, and all of its 64-bit words are added up.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s FILE\n", argv[0]);
		return 2;
	}

	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	struct stat status;
	if (fd < 0 || fstat(fd, &status) < 0)
		fail(argv[1]);

	const uint64_t *words = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (words == MAP_FAILED)
		fail(argv[1]);

	size_t word_count = status.st_size / sizeof(*words);
	uint64_t sum = 0;
	for (size_t i = 0; i < word_count; i++)
		sum += words[i];
	printf("%" PRIu64 "\n", sum);
}
