/*
 * Allocations of libtalloc, which have a label each. Prints its own report, then waits. With an
 * argument, structures whose member is one of a few texts, which is no label.
 */
#include <stdio.h>
#include <stdlib.h>
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

static void make_sessions(void *top, int count)
{
	for (int i = 0; i < count; i++) {
		struct session *session = talloc_zero(top, struct session);

		session->user = talloc_asprintf(session, "user number %d", i);
		talloc_zero(session, struct request);
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

int main(int count, char **arguments)
{
	enum { SESSIONS = 300, JOBS = 900 };
	void *top = talloc_named_const(NULL, 0, "top");
	struct job *volatile jobs;

	(void)arguments;
	if (count > 1)
		jobs = make_jobs(JOBS);
	else
		make_sessions(top, SESSIONS);
	talloc_report_full(top, stdout);
	puts("ready");
	fflush(stdout);
	pause();
	(void)jobs;
}
