/*
 * Two structures of one size, and buffers of another whose words are of all sorts: all are lost but
 * what the last ones refer to. Words are stored as bytes, so that nothing has a type. Says so and
 * waits to be cored.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 9, NAMED = 40, NUMBERED = 30, BUFFERS = 20, BUFFER = 15 };

static void *volatile last;
static void *held;

/*
 * Leak a block: bits say which of its words are addresses; the others are numbers, and the last is
 * 0.
 */
static void lose(size_t count, unsigned int addresses)
{
	char *block = calloc(count, sizeof(long));

	for (size_t i = 0; i + 1 < count; i++) {
		long number = 7, *word = addresses >> i & 1 ? (long *)&held : &number;

		memcpy(block + i * sizeof(long), word, sizeof(long));
	}
	last = block;
}

int main(void)
{
	held = malloc(40);
	for (int i = 0; i < NAMED; i++)
		lose(WORDS, 1);
	for (int i = 0; i < NUMBERED; i++)
		lose(WORDS, 8);
	for (unsigned int i = 0; i < BUFFERS; i++)
		lose(BUFFER, i * 11);
	last = malloc(24);
	puts("ready");
	fflush(stdout);
	pause();
	return held == NULL;
}
