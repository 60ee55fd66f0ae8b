/*
 * Takes memory away from all others, so that a core is larger than what is
 *left.
 *
 *	ballast LEFT [FLOOR]
 *
 * It locks memory until no more than LEFT MiB are available, says "ready", and
 * keeps that until its standard input ends. If less than FLOOR MiB (1500 if not
 * said) are available, because others need them, it gives all back at once, and
 * its exit status is 3. Where memory runs out nevertheless, the kernel ends the
 * ballast first.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	FLOOR_DEFAULT = 1500,
	BETWEEN_LOOKS = 20, /* milliseconds */
	GAVE_BACK = 3,
};

static const uint64_t MIB = 1 << 20;
static const size_t PIECE = (size_t)64 << 20;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* In bytes. */
static uint64_t available(void)
{
	static const char name[] = "MemAvailable:";
	char text[4096];
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	ssize_t size;
	char *line;

	if (fd < 0)
		fail("/proc/meminfo");
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (size < 0)
		fail("/proc/meminfo");
	text[size] = '\0';
	line = strstr(text, name);
	if (!line)
		fail(name);
	return strtoull(line + strlen(name), NULL, 10) * 1024;
}

static void be_ended_first(void)
{
	FILE *file = fopen("/proc/self/oom_score_adj", "we");

	if (!file)
		return;
	fputs("1000", file);
	fclose(file);
}

/* The bytes that were taken, until so many are left. */
static uint64_t take_all_but(uint64_t left)
{
	uint64_t taken = 0;

	while (available() > left + PIECE) {
		void *bytes = mmap(NULL, PIECE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (bytes == MAP_FAILED)
			fail("mmap");
		if (mlock(bytes, PIECE) < 0)
			fail("mlock");
		taken += PIECE;
	}
	return taken;
}

int main(int argc, char **argv)
{
	uint64_t left, least = FLOOR_DEFAULT * MIB;
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: ballast LEFT [FLOOR]\n");
		return 2;
	}
	left = strtoull(argv[1], NULL, 10) * MIB;
	if (argc == 3)
		least = strtoull(argv[2], NULL, 10) * MIB;
	if (left <= least) {
		fprintf(stderr, "ballast: LEFT must be above %" PRIu64 "\n",
			least / MIB);
		return 2;
	}
	be_ended_first();
	printf("taken %" PRIu64 "\n", take_all_but(left));
	printf("ready\n");
	fflush(stdout);
	while (poll(&input, 1, BETWEEN_LOOKS) == 0) {
		if (available() < least)
			return GAVE_BACK;
	}
	return 0;
}
