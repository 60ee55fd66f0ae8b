#include "analyzer/capture/snapshot.h"

#include <time.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* What is to be done while the process stands still. */
static struct error *hold_and_copy(struct core_writer *core, pid_t process,
				   const struct progress *progress,
				   double *ret_stopped)
{
	_cleanup_(process_release) struct held_process held = { 0 };
	double start = now();
	struct error *error = process_hold(process, progress, &held);

	if (!error)
		error = core_copy(core, &held, 0);
	process_release(&held);
	*ret_stopped = now() - start;
	return error;
}

struct error *snapshot_take(pid_t process, const struct core_options *options,
			    struct snapshot *ret)
{
	_cleanup_(core_destroy) struct core_writer *core = NULL;
	struct error *error = core_create(options, &core);

	if (!error)
		error = core_prepare(core, process);
	if (!error)
		error = hold_and_copy(core, process, options->progress,
				      &ret->stopped);
	if (!error)
		error = core_write(core, &ret->sizes);
	return error;
}
