/*
 * How far a long loop is, and whether anyone still wants its result.
 *
 * The front end sets show and interrupted; whoever loops for long calls
 * progress_step() every few milliseconds of work. Safe from any thread.
 */
#ifndef ANALYZER_BASE_PROGRESS_H
#define ANALYZER_BASE_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct progress {
	atomic_bool interrupted; /* set by a signal handler */
	const char *task;	 /* what is being done, as "finding leaks" */
	_Atomic uint64_t done;	 /* of total, in units of the loop's own */
	uint64_t total;
	/* Called by progress_step() on each call, from any thread; NULL: not.
	 */
	void (*show)(struct progress *progress);
	void *show_data;
};

static inline void progress_begin(struct progress *progress, const char *task,
				  uint64_t total)
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

/*
 * The same for a loop over ids, which calls it with each: progress is told of
 * now and then only. *told is 0 at first.
 */
static inline bool progress_pass(struct progress *progress, uint64_t id,
				 uint64_t *told)
{
	enum { BETWEEN_STEPS = 1 << 16 };
	uint64_t passed = id - *told;

	if (passed < BETWEEN_STEPS)
		return true;
	*told = id;
	return progress_step(progress, passed);
}

#endif
