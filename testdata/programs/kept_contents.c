/*
 * Blocks with contents that `heapcore slim --keep` keeps or not. For each a line "lost ADDRESS
 * SIZE" or "kept ADDRESS SIZE"; text that is shorter than what was there before is "text ADDRESS".
 */
#include "truth.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 20, SIZE = 96, TEXT = 120 };

static void *volatile kept[2 * COUNT];

/* Numbers that no rule keeps. */
static void *make_numbers(uint64_t first)
{
	uint64_t *words = malloc(SIZE);

	for (size_t i = 0; i < SIZE / sizeof(*words); i++)
		words[i] = first + i * 0x0101010101010101;
	return words;
}

static OUT_OF_LINE void make(void)
{
	for (size_t i = 0; i < COUNT; i++) {
		char *text = malloc(TEXT);

		truth_lost(make_numbers(0x1122334455667700 + i));
		kept[i] = make_numbers(0x1f2e3d4c5b6a7900 + i);
		truth_kept(kept[i]);
		memset(text, 0, TEXT);
		strcpy(text, "the password of before, which nobody may read: swordfish");
		strcpy(text, "customer Smith from Springfield");
		kept[COUNT + i] = text;
		truth_number("text", (uintptr_t)text);
	}
}

int main(void)
{
	truth_open();
	make();
	truth_ready();
}
