/*
 * A program that reserves 20 TB, as sanitizers and databases do, and touches two pages of it, in
 * the middle and at the end. Each has the only pointer to a block; a third block is lost. Says
 * where the reservation is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t SIZE = (size_t)20 << 40, PAGE = 4096;

__attribute__((noinline)) static void fill(char *place)
{
	char *block = malloc(200);

	strcpy(block, "held by the middle");
	memcpy(place + SIZE / 2, &block, sizeof(block));
	block = malloc(200);
	memcpy(place + SIZE - PAGE, &block, sizeof(block));
	block = malloc(300);
	memset(block, 'x', 300);
	__asm__ volatile("" : "+r"(block) : : "memory");
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
	char *place = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (place == MAP_FAILED)
		return 77;
	fill(place);
	forget();
	printf("%p\nready\n", (void *)place);
	fflush(stdout);
	if (count == 1 || strcmp(arguments[1], "end") != 0)
		pause();
	return 0;
}
