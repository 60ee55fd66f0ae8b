/*
 * Functions that allocate values of types, and wrappers that do for them. For each value a line
 * "FUNCTION ADDRESS" says who made it. Some of them are lost.
 */
#include "truth.h"

#include <stdlib.h>
#include <string.h>

struct conn {
	struct conn *next;
	char *peer;
	long received, sent;
};

struct order {
	struct order *next;
	struct conn *from;
	long prices[9];
};

struct event {
	struct event *next;
	struct conn *of;
	long times[14];
};

struct page {
	struct page *next;
	char *title;
	long words[21];
};

struct job {
	struct job *next;
	struct page *page;
	char name[240];
};

enum { HELD = 30, LOST = 6 };

struct conn *volatile conns;
struct order *volatile orders;
struct event *volatile events;
struct page *volatile pages;
struct job *volatile jobs;
void *volatile blobs[HELD];

OUT_OF_LINE static void *get_memory(size_t size)
{
	void *memory = malloc(size ? size : 1);

	if (!memory)
		abort();
	return memory;
}

static void *get_zeroed(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		abort();
	return memory;
}

/* Nothing in the code says which function that is. */
void *(*volatile allocate)(size_t size) = get_memory;

#define SAY(value) truth_number(__func__, (uintptr_t)(value))

OUT_OF_LINE static struct conn *open_conn(struct conn *next)
{
	struct conn *conn = get_zeroed(1, sizeof(*conn));

	SAY(conn);
	conn->next = next;
	conn->peer = strdup("a peer that is far away");
	conn->received = 17;
	return conn;
}

OUT_OF_LINE static struct order *parse_order(struct order *next)
{
	struct order *order = get_memory(sizeof(*order));

	memset(order, 0, sizeof(*order));
	SAY(order);
	order->next = next;
	order->from = conns;
	return order;
}

static struct order *copy_order(const struct order *other)
{
	struct order *order = malloc(sizeof(*order));

	if (!order)
		abort();
	SAY(order);
	*order = *other;
	return order;
}

/* Too many to be named. */
#define EVENT(name)                                                  \
	OUT_OF_LINE static struct event *name(struct event *next)    \
	{                                                            \
		struct event *event = get_zeroed(1, sizeof(*event)); \
                                                                     \
		SAY(event);                                          \
		event->next = next;                                  \
		event->of = conns;                                   \
		return event;                                        \
	}
EVENT(on_open)
EVENT(on_close)
EVENT(on_read)
EVENT(on_write)

OUT_OF_LINE static struct page *read_page(struct page *next)
{
	struct page *page = get_memory(sizeof(struct page));

	memset(page, 0, sizeof(*page));
	SAY(page);
	page->next = next;
	page->title = strdup("the title of a page");
	return page;
}

/* As large as a page, and nothing says what it is. */
OUT_OF_LINE static void keep_blob(int number)
{
	blobs[number] = get_memory(sizeof(struct page));
	memset(blobs[number], 0, sizeof(struct page));
}

OUT_OF_LINE static struct job *queue_job(struct job *next)
{
	struct job *job = allocate(sizeof(*job));

	memset(job, 0, sizeof(*job));
	SAY(job);
	job->next = next;
	job->page = pages;
	return job;
}

OUT_OF_LINE static void hold_all(void)
{
	for (int i = 0; i < HELD; i++) {
		conns = open_conn(conns);
		orders = parse_order(orders);
		orders = copy_order(&(struct order){ .next = orders, .from = conns });
		events = on_open(events);
		events = on_close(events);
		events = on_read(events);
		events = on_write(events);
		pages = read_page(pages);
		jobs = queue_job(jobs);
		keep_blob(i);
	}
}

OUT_OF_LINE static void lose_all(void)
{
	for (int i = 0; i < LOST; i++) {
		open_conn(NULL);
		parse_order(NULL);
		on_read(NULL);
		read_page(NULL);
		queue_job(NULL);
	}
}

int main(void)
{
	truth_open();
	hold_all();
	lose_all();
	truth_ready();
}
