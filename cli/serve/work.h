/*
 * The commands that clients ask for: a queue, and the one thread that runs them, one after the
 * other, since only one may use the analysis.
 *
 * A client waits for its job until that is done, or until the connection is closed: then the job is
 * dropped, or interrupted if it runs. What commands wrote is kept for a while, so that further
 * pages of it, and other clients, need no thread to wait for.
 */
#pragma once

#include "cli/prompt/session.h"
#include "cli/serve/kept_rows.h"
#include "cli/serve/reading.h"

enum job_kind {
	JOB_ROWS,  /* the rows of a command, as a JSON document */
	JOB_TEXT,  /* what the prompt would print, as JSON */
	JOB_WORDS, /* what the line's last word may become, as JSON */
};

struct job {
	enum job_kind kind;
	const char *text; /* the command, or the beginning of one */
	const char *id;	  /* by which it can be cancelled; or NULL */

	/* The results. */
	bool cancelled;
	char *complaint;	/* why there is no answer; owned */
	struct kept_rows *rows; /* of JOB_ROWS */
	char *notes;		/* beside it, a line each; owned */
	struct writer answer;	/* of others */

	/* For the queue. */
	int done; /* an eventfd; 0: none */
	struct job *next;
};

void job_deinit(struct job *job);
DEFINE_DEINIT(job_deinit, struct job)

struct work;

/*
 * Begin: a thread opens the core, and makes its first screen. The session is used by nobody else
 * from now on. When the core cannot be opened, *failed is written to, which is an eventfd.
 */
struct error *work_start(struct session *session, const char *core, const struct word_list *older,
			 int failed, struct work **ret);
/* End all jobs, and the thread. */
void work_stop(struct work *work);
DEFINE_CLEANUP(work_stop, struct work *)

/* Why the core could not be opened; or NULL. Takes it. */
struct error *work_failure(struct work *work);

/*
 * Have the job done, and wait for that; false: the connection was closed meanwhile, or all ends.
 * connection is a socket, or -1.
 */
bool work_do(struct work *work, struct job *job, int connection);

/* End the job of that id, if there is one. */
void work_cancel(struct work *work, const char *id);

/* Write the first rows of the job of that id, which still runs; false: there are none yet. */
bool work_first_rows(struct work *work, const char *id, uint64_t rows, struct writer *writer);

/* Write the state, as JSON. */
void work_state(struct work *work, struct writer *writer);
