/*
 * Work while the user thinks: between two lines at the prompt, a thread builds the stages that the
 * next questions are likely to need. Before the line is executed, the thread is interrupted as a
 * command is by Ctrl-C, and the stage that it was building is dropped.
 *
 * While the thread runs, nobody else uses the analysis.
 */
#pragma once

#include "cli/prompt/session.h"

#include <pthread.h>

struct ahead {
	struct session *session; /* borrowed */
	pthread_t thread;
	bool is_running;
};

void ahead_start(struct ahead *ahead, struct session *session);

/* Wait for the thread to end, which takes some milliseconds. */
void ahead_stop(struct ahead *ahead);
