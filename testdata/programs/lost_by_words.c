/*
 * Blocks of one size that several functions ask for, by way of a hook and of a wrapper whose size
 * is an int: their words say which function made them. Others have a size that only the run knows,
 * with text behind them, or are all numbers, or text. For each block a line "FUNCTION ADDRESS" says
 * who made it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline, noclone))

enum { LOST = 4 };

struct conn {
	struct conn *next;
	char *peer;
	long numbers[8];
};

struct job {
	long number;
	struct conn *conn;
	char *title;
	long numbers[7];
};

struct record {
	long length, kind;
	char *text; /* behind it */
	struct conn *conn;
};

#define SAY(value) dprintf(STDOUT_FILENO, "%s %ju\n", __func__, (uintmax_t)(uintptr_t)(value))

/* As libxml2's xmlMalloc. */
void *(*get_by_hook)(size_t size) = malloc;

OUT_OF_LINE static void *get_by_number(int size)
{
	return size ? malloc(size) : NULL;
}

OUT_OF_LINE static struct conn *open_conn(struct conn *next)
{
	struct conn *conn = get_by_hook(sizeof(*conn));

	SAY(conn);
	memset(conn, 0, sizeof(*conn));
	conn->next = next;
	conn->peer = strdup("a peer that is far away");
	return conn;
}

OUT_OF_LINE static struct job *queue_job(struct conn *conn)
{
	struct job *job = get_by_number(sizeof(*job));

	SAY(job);
	memset(job, 0, sizeof(*job));
	job->number = 7;
	job->conn = conn;
	job->title = strdup("what is to be done");
	return job;
}

/* Its words speak for nobody, nor against one. */
OUT_OF_LINE static long *keep_numbers(void)
{
	long *numbers =
		get_by_number(10 * sizeof(*numbers) + 1); /* malloc rounds that as the others */

	SAY(numbers);
	memset(numbers, 0, 10 * sizeof(*numbers));
	numbers[9] = 5;
	return numbers;
}

OUT_OF_LINE static struct record *make_record(struct conn *conn, size_t length)
{
	struct record *record = get_by_hook(sizeof(*record) + length + 1);

	SAY(record);
	memset(record, 0, sizeof(*record) + length + 1);
	record->conn = conn;
	record->text = (char *)(record + 1);
	memset(record->text, 'x', length);
	record->length = (long)length;
	return record;
}

OUT_OF_LINE static long *fill_table(size_t count)
{
	long *table = get_by_hook(count * sizeof(*table));

	SAY(table);
	for (size_t i = 0; i < count; i++)
		table[i] = 7;
	return table;
}

/* It has the size of a conn, which has no text. */
OUT_OF_LINE static char *keep_text(const char *text, size_t length)
{
	char *copy = get_by_hook(length + 1);

	SAY(copy);
	memset(copy, 0, length + 1);
	memcpy(copy, text, strlen(text) + 1);
	memcpy(copy + length - 8, &(void *){ copy }, 8); /* as an old word */
	return copy;
}

void *volatile last;
volatile size_t varying = 205;

int main(void)
{
	for (int i = 0; i < LOST; i++) {
		last = queue_job(open_conn(open_conn(NULL)));
		last = keep_numbers();
		last = make_record(open_conn(NULL), varying);
		last = fill_table(varying);
		last = keep_text("some words", varying / 205 * 80);
	}
	last = NULL;
	dprintf(STDOUT_FILENO, "ready\n");
	pause();
}
