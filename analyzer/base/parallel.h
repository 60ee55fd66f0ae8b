/*
 * Loops whose turns do not depend on each other, spread over the processors.
 */
#ifndef ANALYZER_BASE_PARALLEL_H
#define ANALYZER_BASE_PARALLEL_H

#include "analyzer/base/error.h"

/* How many threads a loop may use: the processors this process may run on. */
unsigned int parallel_threads(void);

/*
 * Call work(data, turn, thread) for every turn below turns, on up to threads
 * threads, the calling one among them; thread is below threads. Turns are
 * handed out in order. The first error stops handing out and is returned.
 */
struct error *parallel_for(size_t turns, unsigned int threads,
			   struct error *(*work)(void *data, size_t turn,
						 unsigned int thread),
			   void *data);

#endif
