/*
 * Progress of a long loop, and whether anyone still wants its result.
 *
 * The front end sets show and interrupted; a long loop calls progress_check() every few
 * milliseconds of work. Safe from any thread.
 */
#pragma once

#include "analyzer/base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { MOST_LOOP_THREADS = 64, MOST_SPLITS = 64 };

/* How the work of a loop was split among threads, in units of its own. */
struct work_split {
	const char *task;
	unsigned int threads; /* that did any of it */
	uint64_t total, most; /* all, and that of the thread that did most */
	uint64_t largest;     /* the largest chunk handed out */
	/*
	 * The most of one if all were equally fast: chunks go to the thread that has done least. 0:
	 * there were no chunks.
	 */
	uint64_t even;
};

struct progress {
	atomic_bool interrupted; /* set by a signal handler */
	const char *task;	 /* the task, as "finding leaks" */
	_Atomic uint64_t done;	 /* of total, in units of the loop's own */
	uint64_t total;
	/* Called by each progress_step(), from any thread; may be NULL. */
	void (*show)(struct progress *progress);
	void *show_data;
	unsigned int threads; /* for loops to use; 0: one a processor */
	/* All loops so far, up to MOST_SPLITS; NULL: not recorded. */
	struct work_split *splits;
	size_t split_count;
};

static inline void progress_begin(struct progress *progress, const char *task, uint64_t total)
{
	progress->task = task;
	progress->total = total;
	atomic_store(&progress->done, 0);
}

/* Returns false when the loop must end with ERROR_INTERRUPTED. */
static inline bool progress_step(struct progress *progress, uint64_t amount)
{
	atomic_fetch_add(&progress->done, amount);
	if (progress->show)
		progress->show(progress);
	return !atomic_load(&progress->interrupted);
}

/* Like progress_step(), but returns NULL or the error that ends the loop. */
static inline struct error *progress_check(struct progress *progress, uint64_t amount)
{
	return progress_step(progress, amount) ? NULL
					       : error_create(ERROR_INTERRUPTED, "interrupted");
}

/* Like progress_check(), for one of many short steps, which does not count the amount. */
static inline struct error *progress_glance(const struct progress *progress)
{
	return atomic_load_explicit(&progress->interrupted, memory_order_relaxed)
		       ? error_create(ERROR_INTERRUPTED, "interrupted")
		       : NULL;
}

/*
 * Report progress now and then in a loop over ids, which calls this with each one. *told is 0 at
 * first. Returns false once the user interrupts.
 */
static inline bool progress_pass(struct progress *progress, uint64_t id, uint64_t *told)
{
	enum { BETWEEN_STEPS = 1 << 16 };
	uint64_t passed = id - *told;

	if (passed < BETWEEN_STEPS)
		return true;
	*told = id;
	return progress_step(progress, passed);
}

static inline struct error *progress_check_at(struct progress *progress, uint64_t id,
					      uint64_t *told)
{
	return progress_pass(progress, id, told) ? NULL
						 : error_create(ERROR_INTERRUPTED, "interrupted");
}

/* Seconds since some moment, always the same one while the machine runs. */
static inline double clock_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}
