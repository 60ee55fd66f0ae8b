/*
 * A heap full of holes, in several arenas, which is trimmed on SIGUSR1.
 *
 * Blocks of all sizes are allocated, most of them freed, trimmed, and half of it done again; so of
 * the free pages some are in memory and some are not. On the signal malloc_trim(0) is called, and
 * what that took off the resident anonymous memory is written down: "trimmed BYTES".
 */

#include "truth.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { THREADS = 3, BLOCKS = 1500, MIB = 1 << 20 };

static void *volatile held[THREADS + 1][2 * BLOCKS];
static atomic_int started;

/* Mostly small, some of many pages. */
static size_t choose_size(uint32_t *random)
{
	uint32_t kind = truth_random(random, 100);

	if (kind < 50)
		return 8 + truth_random(random, 120);
	if (kind < 85)
		return 200 + truth_random(random, 4000);
	return 4000 + truth_random(random, 60000);
}

static OUT_OF_LINE void populate(size_t thread, size_t first)
{
	uint32_t random = (uint32_t)(100 * thread + first + 1);
	void *volatile *blocks = &held[thread][first];

	for (size_t i = 0; i < BLOCKS; i++)
		blocks[i] = truth_block(choose_size(&random));
	for (size_t i = 0; i < BLOCKS; i++) {
		uint32_t number = truth_random(&random, BLOCKS);

		if (blocks[number] && truth_random(&random, 8)) {
			truth_free(blocks[number]);
			blocks[number] = NULL;
		}
	}
	/* The end of the heap is free as well. */
	for (size_t i = BLOCKS - 200; i < BLOCKS; i++) {
		if (blocks[i])
			truth_free(blocks[i]);
		blocks[i] = NULL;
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (blocks[i])
			truth_kept(blocks[i]);
}

static void *run(void *argument)
{
	size_t thread = (size_t)argument;

	/* All at once, so that each has an arena of its own. */
	truth_warm_up();
	atomic_fetch_add(&started, 1);
	while (atomic_load(&started) < THREADS)
		sched_yield();
	populate(thread, 0);
	atomic_fetch_add(&started, 1);
	while (atomic_load(&started) < 2 * THREADS + 1)
		sched_yield();
	populate(thread, BLOCKS);
	truth_rest();
}

/* Add up the lines "Rss: N kB" of mappings without a file, read in pieces. */
struct reader {
	int file;
	size_t size, next;
	char bytes[4096];
};

static int next_byte(struct reader *reader)
{
	if (reader->next == reader->size) {
		ssize_t size = read(reader->file, reader->bytes, sizeof(reader->bytes));

		if (size <= 0)
			return -1;
		reader->size = (size_t)size;
		reader->next = 0;
	}
	return (unsigned char)reader->bytes[reader->next++];
}

static bool next_line(struct reader *reader, char *line, size_t size)
{
	size_t used = 0;
	int byte;

	while ((byte = next_byte(reader)) >= 0 && byte != '\n')
		if (used + 1 < size)
			line[used++] = (char)byte;
	line[used] = '\0';
	return byte >= 0;
}

static uint64_t resident(void)
{
	static struct reader reader;
	static char line[256];
	uint64_t sum = 0;
	bool anonymous = false;

	reader = (struct reader){
		.file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC),
	};
	if (reader.file < 0)
		truth_fail("open smaps");
	while (next_line(&reader, line, sizeof(line))) {
		if (strncmp(line, "Rss:", 4) == 0 || strncmp(line, "Swap:", 5) == 0)
			sum += anonymous ? strtoul(strchr(line, ':') + 1, NULL, 10) : 0;
		else if (line[0] < 'A' || line[0] > 'Z')
			anonymous = strchr(line, '/') == NULL;
	}
	close(reader.file);
	return sum * 1024;
}

static void trim(int number __attribute__((unused)))
{
	uint64_t before;

	resident();
	before = resident();
	malloc_trim(0);
	truth_number("trimmed", before - resident());
}

static OUT_OF_LINE void work(void)
{
	pthread_t thread;

	for (size_t i = 1; i <= THREADS; i++)
		if (pthread_create(&thread, NULL, run, (void *)i))
			truth_fail("create a thread");
	populate(0, 0);
	while (atomic_load(&started) < 2 * THREADS)
		sched_yield();
	malloc_trim(0);
	atomic_fetch_add(&started, 1);
	populate(0, BLOCKS);
	truth_await(THREADS);
}

int main(void)
{
	struct sigaction action = { .sa_handler = trim };

	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	truth_open();
	truth_warm_up();
	mallopt(M_ARENA_MAX, THREADS + 1);
	/* Only the signal trims. */
	mallopt(M_MMAP_THRESHOLD, 8 * MIB);
	mallopt(M_TRIM_THRESHOLD, 512 * MIB);
	mallopt(M_TOP_PAD, 3 * MIB);
	work();
	if (sigaction(SIGUSR1, &action, NULL))
		truth_fail("handle the signal");
	truth_ready();
}
