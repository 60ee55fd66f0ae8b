/*
 * Loops whose turns do not depend on each other, spread over the processors.
 */
#ifndef ANALYZER_BASE_PARALLEL_H
#define ANALYZER_BASE_PARALLEL_H

#include "analyzer/base/error.h"
#include "analyzer/base/progress.h"

/* How many threads a loop may use: the processors this process may run on. */
unsigned int parallel_threads(void);

/* The same, unless the front end said how many. */
unsigned int parallel_threads_for(const struct progress *progress);

/* How much each thread did of a loop that is split; all 0 at first. */
struct split_work {
	uint64_t done[MOST_LOOP_THREADS], largest[MOST_LOOP_THREADS];
	uint64_t *amounts; /* by chunk; NULL: nobody wants to know, or none */
	size_t chunks;
};

/* The loop will have so many chunks. */
void split_work_begin(struct split_work *work, const struct progress *progress, size_t chunks);

/*
 * Count what a chunk took, and tell progress of it: false when the loop must end. Each thread
 * counts for itself.
 */
static inline bool split_work_step(struct split_work *work, size_t chunk, unsigned int thread,
				   struct progress *progress, uint64_t amount)
{
	work->done[thread] += amount;
	if (amount > work->largest[thread])
		work->largest[thread] = amount;
	if (work->amounts)
		work->amounts[chunk] = amount;
	return progress_step(progress, amount);
}

/* Keep how the loop was split among so many threads, when it is done, if the front end wants it. */
void split_work_keep(struct split_work *work, unsigned int threads, struct progress *progress);

/*
 * Call work(data, chunk, thread) for every chunk below chunks, on up to threads threads, the
 * calling one among them; thread is below threads. Chunks are handed out in order. The first error
 * stops handing out and is returned.
 */
struct error *parallel_for(size_t chunks, unsigned int threads,
			   struct error *(*work)(void *data, size_t chunk, unsigned int thread),
			   void *data);

#endif
