#include "analyzer/capture/snapshot.h"

#include "analyzer/base/clock.h"
#include "analyzer/capture/clone_obstacle.h"
#include "analyzer/capture/cloned_snapshot.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

/* Seconds that a process may stand still before it is cloned instead. */
enum { LONGEST_STOP = 1 };

struct task {
	struct core_writer *core;
	pid_t process;
	const struct progress *progress;
	double stopped;
	struct error *error;
};

/* What is to be done while the process stands still. */
static void *hold_and_copy(void *data)
{
	struct task *task = data;
	struct held_process held = { 0 };
	double start = clock_now();

	task->error = process_hold(task->process, task->progress, &held);
	if (!task->error)
		task->error = core_describe(task->core, &held, 0);
	if (!task->error)
		task->error = core_copy(task->core);
	process_release(&held);
	task->stopped = clock_now() - start;
	return NULL;
}

/*
 * By a thread of its own: with its end, the kernel lets go also of threads that could not be
 * stopped, and would stop later, for ever.
 */
static struct error *hold_in_thread(struct task *task)
{
	pthread_t thread;
	int failure = pthread_create(&thread, NULL, hold_and_copy, task);

	if (failure) {
		errno = failure;
		return error_system("a thread");
	}
	pthread_join(thread, NULL);
	return task->error;
}

/* With the process standing still until all of its memory is copied. */
static struct error *take_plain(pid_t process, struct core_writer *core,
				const struct progress *progress, struct snapshot *ret)
{
	struct task task = { .process = process, .core = core, .progress = progress };
	struct error *error = core_provide(core, false);

	if (!error)
		error = hold_in_thread(&task);
	ret->stopped = task.stopped;
	return error ? error : core_write(core, &ret->sizes);
}

/* *ret_obstacle: why it is not cloned, which leaves nothing behind, or NULL. */
static struct error *take_cloned(pid_t process, struct core_writer *core,
				 const struct progress *progress, struct snapshot *ret,
				 struct error **ret_obstacle)
{
	uint64_t size;
	const struct memory_map *map = core_surveyed(core, &size);
	struct error *obstacle = clone_obstacle(process, map, size), *error;

	*ret_obstacle = NULL;
	if (obstacle && error_code(obstacle) != ERROR_NOT_SUPPORTED)
		return obstacle;
	*ret_obstacle = obstacle;
	error = obstacle ? NULL : core_provide(core, true);
	if (error || obstacle)
		return error;
	return cloned_snapshot_take(process, core, progress, ret, ret_obstacle);
}

static struct error *begin(pid_t process, const struct core_options *options,
			   struct core_writer **ret)
{
	_cleanup_(core_destroy) struct core_writer *core = NULL;
	struct error *error = core_create(options, &core);

	if (!error)
		error = core_survey(core, process);
	if (error)
		return error;
	*ret = take(core);
	return NULL;
}

struct error *snapshot_take(pid_t process, const struct core_options *options,
			    enum clone_choice choice, struct snapshot *ret)
{
	_cleanup_(core_destroy) struct core_writer *core = NULL, *again = NULL;
	struct error *error = begin(process, options, &core), *obstacle;

	if (error)
		return error;
	if (choice == CLONE_NEVER ||
	    (choice == CLONE_BY_NEED && core_expected_stop(core) <= LONGEST_STOP))
		return take_plain(process, core, options->progress, ret);
	error = take_cloned(process, core, options->progress, ret, &obstacle);
	ret->cloned = !error && !obstacle;
	if (error || !obstacle)
		return error;
	if (choice == CLONE_ALWAYS)
		return error_wrap(obstacle, "process %d cannot be cloned", process);
	snprintf(ret->not_cloned, sizeof(ret->not_cloned), "%s", error_message(obstacle));
	error_destroy(obstacle);
	/* What was planned for a clone does not do for the process. */
	error = begin(process, options, &again);
	return error ? error : take_plain(process, again, options->progress, ret);
}
