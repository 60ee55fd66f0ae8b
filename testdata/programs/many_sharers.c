/*
 * Many small blocks, each of which two variables lead to.
 *
 *	many_sharers PERCENT
 *
 * So many of them are in the tables of names and of numbers; each of the others is in two of 16
 * more tables, next to each other. Writes the bytes of all blocks, and waits.
 */

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 20000, TABLES = 16 };

void **names, **numbers;
void **t0, **t1, **t2, **t3, **t4, **t5, **t6, **t7, **t8, **t9, **t10, **t11, **t12, **t13, **t14,
	**t15;

static void *make(size_t size)
{
	void *block = malloc(size);

	if (!block)
		exit(1);
	memset(block, 0, size);
	return block;
}

int main(int count, char **arguments)
{
	void ***tables[TABLES] = { &t0, &t1, &t2,  &t3,	 &t4,  &t5,  &t6,  &t7,
				   &t8, &t9, &t10, &t11, &t12, &t13, &t14, &t15 };
	int percent = count > 1 ? atoi(arguments[1]) : 100;
	size_t total = 0;

	names = make(BLOCKS * sizeof(*names));
	numbers = make(BLOCKS * sizeof(*numbers));
	for (int i = 0; i < TABLES; i++)
		*tables[i] = make(BLOCKS * sizeof(**tables[i]));
	for (int i = 0; i < BLOCKS; i++) {
		void *block = make(500);

		total += malloc_usable_size(block);
		if (i % 100 < percent) {
			names[i] = numbers[BLOCKS - 1 - i] = block;
		} else {
			(*tables[i % TABLES])[i] = block;
			(*tables[(i + 1) % TABLES])[i] = block;
		}
	}
	printf("%zu\nready\n", total);
	fflush(stdout);
	getchar();
	return 0;
}
