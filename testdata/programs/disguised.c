/*
 * Blocks whose address is kept only in disguise: with a tag in its high bits or below it, packed,
 * one past the end, before the start, in a box of LuaJIT's (a tag, a segment, and the lowest bits),
 * and as the distance to the next node of a list. And blocks that are lost.
 *
 * Writes "HOW ADDRESS" for each, and waits.
 *
 *	disguised [MORE [one]]	loses MORE blocks besides; one: of all others, there is one large
 *one disguised MORE many	loses MORE small blocks, and keeps each 32nd with a tag; none is
 *written
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUT_OF_LINE __attribute__((noinline))

enum { COUNT = 50, STACK = 1 << 16 };

struct __attribute__((packed)) record {
	char kind;
	void *block;
};

/* All that malloc() gives for it is requested, as of the others. */
struct relative {
	intptr_t next;
	long numbers[8];
};

static volatile uint64_t kept[1 << 16];
static volatile uint64_t tagged[COUNT], shifted[COUNT], boxed[COUNT];
static char *volatile past_end[COUNT], *volatile before[COUNT];
static volatile struct record packed[COUNT];
static struct relative *volatile first;

/* Filled, so that it does not hold what its memory held before. */
static void *make(const char *how, size_t size)
{
	void *block = malloc(size);

	if (!block)
		exit(1);
	memset(block, 0x55, size);
	printf("%s %jx\n", how, (uintmax_t)(uintptr_t)block);
	return block;
}

static OUT_OF_LINE void make_blocks(void)
{
	enum { SIZE = 72 }; /* all that malloc() gives is requested */

	for (int i = 0; i < COUNT; i++) {
		tagged[i] = (uintptr_t)make("tagged", SIZE) | (uint64_t)(0x8001 + i) << 48;
		shifted[i] = (uintptr_t)make("shifted", SIZE) << 16 | (unsigned int)i;
		past_end[i] = (char *)make("past", SIZE) + SIZE;
		before[i] = (char *)make("before", SIZE) - (1 << i % 4);
		packed[i].block = make("packed", SIZE);
		boxed[i] = UINT64_C(0x1fffc) << 47 | UINT64_C(3) << 39 |
			   ((uintptr_t)make("boxed", SIZE) & ((UINT64_C(1) << 39) - 1));
		make("lost", SIZE);
	}
}

/* Forward, and so all distances are positive and the same, but for where something was lost. */
static OUT_OF_LINE void make_relative(void)
{
	struct relative *last = NULL;

	for (int i = 0; i < COUNT; i++) {
		struct relative *node = make("relative", sizeof(*node));

		node->next = 0;
		if (last)
			last->next = (char *)node - (char *)last;
		else
			first = node;
		last = node;
		if (i % 10 == 0)
			make("lost", sizeof(*node));
	}
}

/* One that is larger than all that is lost. */
static OUT_OF_LINE void make_large(void)
{
	tagged[0] = (uintptr_t)make("tagged", 1 << 16) | UINT64_C(0x8001) << 48;
}

static OUT_OF_LINE void lose(int count)
{
	for (int i = 0; i < count; i++)
		make("lost", 72);
}

static OUT_OF_LINE void lose_many(int count)
{
	enum { SMALL = 24, KEPT_ONE_IN = 32 };

	for (int i = 0; i < count; i++) {
		void *block = malloc(SMALL);

		if (!block)
			exit(1);
		memset(block, 1, SMALL);
		if (i % KEPT_ONE_IN == 0)
			kept[i / KEPT_ONE_IN % (1 << 16)] = (uintptr_t)block | UINT64_C(1) << 60;
	}
}

static OUT_OF_LINE void overwrite_stack(void)
{
	char stack[STACK];

	memset(stack, 0, sizeof(stack));
	__asm__ volatile("" ::"r"(stack) : "memory");
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 2 && strcmp(argv[2], "many") == 0) {
		lose_many(atoi(argv[1]));
	} else if (argc > 2) {
		make_large();
		lose(atoi(argv[1]));
	} else {
		make_blocks();
		make_relative();
		lose(argc > 1 ? atoi(argv[1]) : 0);
	}
	overwrite_stack();
	puts("ready");
	getchar();
	return 0;
}
