/*
 * Blocks of which nothing is known but their size, lost by functions that ask for a constant number
 * of bytes, themselves or by way of a wrapper. For each block a line "FUNCTION ADDRESS" says who
 * made it. Built with -DVARIES, another call asks for a number that only the run knows; so would
 * those of truth.c. Built with -DUNKNOWN, it keeps blocks by numbers, which say no type.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline, noclone))

enum { LOST = 4, KEPT = 64 };

uintptr_t kept[KEPT];

struct conn {
	struct conn *next;
	char peer[56];
};

struct job {
	long words[30];
};

#define SAY(value) dprintf(STDOUT_FILENO, "%s %ju\n", __func__, (uintmax_t)(uintptr_t)(value))

static void *get_memory(size_t size)
{
	void *memory = malloc(size ? size : 1);

	if (!memory)
		abort();
	return memory;
}

/* The only ones of their size. */
OUT_OF_LINE static struct conn *open_conn(void)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	SAY(conn);
	conn->peer[3] = 1;
	return conn;
}

/* malloc rounds 233 to 248, as it does 240. */
OUT_OF_LINE static struct job *queue_job(void)
{
	struct job *job = get_memory(sizeof(*job));

	SAY(job);
	memset(job, 0, sizeof(*job));
	job->words[4] = 5;
	return job;
}

OUT_OF_LINE static void *fill_buffer(void)
{
	char *buffer = get_memory(233);

	SAY(buffer);
	memset(buffer, 0, 233);
	buffer[32] = 5;
	return buffer;
}

/* malloc gives 24 bytes at least. */
OUT_OF_LINE static void *keep_flag(void)
{
	char *flag = malloc(5);

	SAY(flag);
	*flag = 1;
	return flag;
}

OUT_OF_LINE static void *keep_point(void)
{
	int *point = calloc(6, sizeof(*point));

	SAY(point);
	point[1] = 5;
	return point;
}

/* Too many to be named. */
#define PACKET(name)                                            \
	OUT_OF_LINE static void *name(void)                     \
	{                                                       \
		long *packet = calloc(4, 10 * sizeof(*packet)); \
                                                                \
		SAY(packet);                                    \
		packet[4] = 5;                                  \
		return packet;                                  \
	}
PACKET(on_open)
PACKET(on_close)
PACKET(on_read)
PACKET(on_write)

void *volatile last;
volatile size_t varying = 5000;

int main(void)
{
	for (int i = 0; i < LOST; i++) {
		last = open_conn();
		last = queue_job();
		last = fill_buffer();
		last = keep_flag();
		last = keep_point();
		last = on_open();
		last = on_close();
		last = on_read();
		last = on_write();
	}
#ifdef VARIES
	last = get_memory(varying);
#endif
#ifdef UNKNOWN
	for (int i = 0; i < KEPT; i++)
		kept[i] = (uintptr_t)get_memory(varying);
#endif
	last = NULL;
	dprintf(STDOUT_FILENO, "ready\n");
	pause();
}
