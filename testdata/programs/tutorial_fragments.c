/*
 * A program whose heap is mostly free, and yet does not shrink, for docs/tutorial.md. It reads a
 * large table, and notes down some of the rows while it does; then it frees the table. The notes
 * stand all over the heap.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 100000, ROW_SIZE = 1000, NOTED = 100 };

struct note {
	struct note *next;
	int row;
};

static struct note *notes;

static void note_down(int row)
{
	struct note *note = malloc(sizeof(*note));

	note->row = row;
	note->next = notes;
	notes = note;
}

int main(void)
{
	static char *table[ROWS];

	for (int row = 0; row < ROWS; row++) {
		table[row] = calloc(1, ROW_SIZE);
		if (row % NOTED == 0)
			note_down(row);
	}
	for (int row = 0; row < ROWS; row++) {
		free(table[row]);
		table[row] = NULL;
	}
	puts("ready");
	fflush(stdout);
	pause();
}
