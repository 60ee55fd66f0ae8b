/*
 * Blocks of text and of numbers, each larger than what a slim core keeps in one piece: some from
 * the main heap, some mapped, and one that is leaked. Writes the addresses of three of them.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 24, STEP = 50000, LARGE = 40 << 20 };

struct holder {
	struct holder *next;
	uint64_t *numbers;
	char *text;
};

static struct holder *holders;
static uint64_t state = 43;

static uint64_t draw(void)
{
	state = state * 6364136223846793005 + 1442695040888963407;
	return state | UINT64_C(0x9000000000000001);
}

static uint64_t *numbers(size_t size)
{
	uint64_t *block = malloc(size);

	for (size_t i = 0; i < size / sizeof(*block); i++)
		block[i] = draw();
	return block;
}

static char *text(size_t size)
{
	char *block = malloc(size);

	for (size_t i = 0; i + 1 < size; i++)
		block[i] = (char)('a' + draw() / 128 % 26);
	block[size - 1] = '\0';
	return block;
}

int main(void)
{
	static uint64_t *volatile lost;

	mallopt(M_MMAP_THRESHOLD, 600000);
	for (size_t i = 0; i < COUNT; i++) {
		struct holder *holder = malloc(sizeof(*holder));

		*holder = (struct holder){ holders, numbers(i * STEP + 16), text(i * STEP + 16) };
		holders = holder;
	}
	holders->next->numbers[70000] = (uintptr_t)holders;
	lost = numbers(LARGE);
	printf("%p %p %p\n", (void *)holders->numbers, (void *)holders->text, (void *)lost);
	lost = NULL;
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
