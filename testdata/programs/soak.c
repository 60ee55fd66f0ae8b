/*
 * A service for tests of `heapcore soak`: at each line of the FIFO of its first argument, it does
 * what the second one says once, amid buffers of 0 to 10 MB that come and go, and writes a line to
 * the FIFO's other end, of the third argument.
 *
 *	keep	one job more is kept in registry
 *	mixed	a note more, of another size each time, is kept in notes
 *	lose	one allocation is lost
 *	fill	the first ten entries fill a cache; then each replaces one
 *	end	it ends at its fourth line
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
	struct buffer *next;
	char data[65000];
};

struct job {
	struct job *next;
	int number;
	char name[40];
};

struct entry {
	int number;
	char text[96];
};

static struct buffer *pending;
static struct job *registry;
static char **notes;
static struct entry *cache[10];

static void make_noise(int number)
{
	int count = (number * 7919 + 13) % 150;

	while (pending) {
		struct buffer *next = pending->next;

		free(pending);
		pending = next;
	}
	for (int i = 0; i < count; i++) {
		struct buffer *buffer = malloc(sizeof(*buffer));

		memset(buffer, number, sizeof(*buffer));
		buffer->next = pending;
		pending = buffer;
	}
}

static void keep(int number)
{
	struct job *job = calloc(1, sizeof(*job));

	job->number = number;
	snprintf(job->name, sizeof(job->name), "job %d", number);
	job->next = registry;
	registry = job;
}

static void note(int number)
{
	if (!notes)
		notes = calloc(1000, sizeof(*notes));
	notes[number] = malloc(100 + 48 * (size_t)(number * 5 % 17));
	strcpy(notes[number], "a note");
}

static void fill(int number)
{
	struct entry **place = &cache[number % 10];

	free(*place);
	*place = calloc(1, sizeof(**place));
	(*place)->number = number;
}

/* The compiler must not leave out what nobody needs. */
static __attribute__((noipa)) void use(void *block)
{
	memset(block, 1, 200);
}

static void work(const char *what, int number)
{
	make_noise(number);
	if (strcmp(what, "keep") == 0)
		keep(number);
	if (strcmp(what, "mixed") == 0)
		note(number);
	if (strcmp(what, "lose") == 0)
		use(malloc(200));
	if (strcmp(what, "fill") == 0)
		fill(number);
	if (strcmp(what, "end") == 0 && number == 3)
		exit(1);
}

int main(int count, char **arguments)
{
	char line[64];

	if (count != 4)
		return 2;
	for (int number = 0; number < 900; number++) {
		FILE *requests = fopen(arguments[1], "r"), *answers;

		if (!requests || !fgets(line, sizeof(line), requests))
			return 3;
		fclose(requests);
		work(arguments[2], number);
		answers = fopen(arguments[3], "w");
		if (!answers)
			return 3;
		fputs("done\n", answers);
		fclose(answers);
	}
	return 0;
}
