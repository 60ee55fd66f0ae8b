/*
 * Allocations of libtalloc, which have a label each, and belong to one another, whatever else
 * refers to them. Prints its own report, then waits. With the argument "jobs", structures whose
 * member is one of a few texts, which is no label; with "lists", labelled ones that are in two
 * lists, which are no hierarchy.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <talloc.h>
#include <unistd.h>

struct session {
	int number;
	char *user;
};

struct request {
	char body[40];
};

struct job {
	struct job *next;
	long number;
	const char *state;
};

struct entry {
	struct entry *next, *previous, *newer, *older;
	const char *label;
};

enum { SESSIONS = 300, JOBS = 900 };

static struct request *requests[SESSIONS];
static struct entry *entries[JOBS];

static void make_sessions(void *top, int count)
{
	for (int i = 0; i < count; i++) {
		struct session *session = talloc_zero(top, struct session);

		session->user = talloc_asprintf(session, "user number %d", i);
		requests[i] = talloc_zero(session, struct request);
		talloc_zero_array(session, long, i % 10);
	}
}

static struct job *make_jobs(int count)
{
	static const char *const states[] = { "waits", "runs", "has failed" };
	struct job *first = NULL;

	for (int i = 0; i < count; i++) {
		struct job *job = malloc(sizeof(*job));

		*job = (struct job){ first, i, states[i % 3] };
		first = job;
	}
	return first;
}

/* Odd and even ones are in lists of their own, and all in one. */
static struct entry *make_entries(int count)
{
	static const char *const labels[] = { "struct page", "struct file", "struct folder" };

	for (int i = 0; i < count; i++) {
		struct entry *entry = calloc(1, sizeof(*entry) + (size_t)(i % 50) * 16);

		entry->label = labels[i % 3];
		if (i > 0) {
			entry->newer = entries[i - 1];
			entry->newer->older = entry;
		}
		if (i > 1) {
			entry->next = entries[i - 2];
			entry->next->previous = entry;
		}
		entries[i] = entry;
	}
	return entries[0];
}

int main(int count, char **arguments)
{
	void *top = talloc_named_const(NULL, 0, "top");
	void *volatile kept;

	if (count > 1 && strcmp(arguments[1], "lists") == 0)
		kept = make_entries(JOBS);
	else if (count > 1)
		kept = make_jobs(JOBS);
	else
		make_sessions(top, SESSIONS);
	talloc_report_full(top, stdout);
	puts("ready");
	fflush(stdout);
	pause();
	(void)kept;
}
