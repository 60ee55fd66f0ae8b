/*
 * A baton that the chunks of a parallel loop hand on in order, so that what each has found is put
 * behind what the chunks before it have.
 *
 * Chunks are worked on side by side, and end in any order. For what has to go in order, each waits
 * until the one before has passed the baton on. No chunk waits for one that is handed out later, so
 * one is always going on.
 */
#ifndef ANALYZER_BASE_RELAY_H
#define ANALYZER_BASE_RELAY_H

#include "analyzer/base/cleanup.h"
#include "analyzer/base/progress.h"

#include <pthread.h>

struct relay {
	pthread_mutex_t mutex;
	/* By number modulo their count: no more wait at once. */
	pthread_cond_t passed[MOST_LOOP_THREADS];
	size_t next;
	bool ended;
};

void relay_init(struct relay *relay);
void relay_deinit(struct relay *relay);
DEFINE_DEINIT(relay_deinit, struct relay)

/*
 * Wait until all chunks below number have passed the baton on; false if one has ended it instead.
 * Numbers begin with 0, and each is taken once.
 */
bool relay_take(struct relay *relay, size_t number);

/* Let the next one take it. */
void relay_pass(struct relay *relay);

/* A chunk failed, whether or not it has the baton: nobody else gets it. */
void relay_end(struct relay *relay);

#endif
