/*
 * A program that keeps a mapping out of cores, between guard pages, as libraries for secrets do: 50
 * blocks are held by it alone, and nothing is lost. With "stale", nothing is kept out, and one
 * block is lost; there are addresses of what was unmapped: a large block, and stacks of threads
 * that ended.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 6, BLOCKS = 50, THREADS = 12, LOST = 20 };

static void **secret;
static char *freed;
static pthread_t threads[THREADS];

__attribute__((noinline)) static void keep_out(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *start = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	if (start == MAP_FAILED || madvise(start, PAGES * page, MADV_DONTDUMP) != 0)
		exit(1);
	mprotect(start, page, PROT_NONE);
	mprotect(start + (PAGES - 1) * page, page, PROT_NONE);
	secret = (void **)(start + (PAGES - 1) * page) - BLOCKS;
	for (size_t i = 0; i < BLOCKS; i++)
		secret[i] = calloc(1, 1000);
}

static void *run(void *data)
{
	return data;
}

__attribute__((noinline)) static void leave_stale(void)
{
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	freed = malloc(1 << 20);
	free(freed);
	for (size_t i = 0; i < LOST; i++)
		memset(malloc(500), 'x', 500);
}

/* Registers and the stack have held addresses. */
__attribute__((noinline)) static void forget(void)
{
	volatile char room[4096];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

int main(int count, char *arguments[])
{
	if (count > 1 && strcmp(arguments[1], "stale") == 0)
		leave_stale();
	else
		keep_out();
	forget();
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
