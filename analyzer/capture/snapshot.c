#include "analyzer/capture/snapshot.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

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
	double start = now();

	task->error = process_hold(task->process, task->progress, &held);
	if (!task->error)
		task->error = core_copy(task->core, &held, 0);
	process_release(&held);
	task->stopped = now() - start;
	return NULL;
}

/*
 * By a thread of its own: with its end, the kernel lets go also of threads that
 * could not be stopped, and would stop later, for ever.
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

struct error *snapshot_take(pid_t process, const struct core_options *options,
			    struct snapshot *ret)
{
	_cleanup_(core_destroy) struct core_writer *core = NULL;
	struct task task = { .process = process,
			     .progress = options->progress };
	struct error *error = core_create(options, &core);

	if (!error)
		error = core_prepare(core, process);
	task.core = core;
	if (!error)
		error = hold_in_thread(&task);
	ret->stopped = task.stopped;
	if (!error)
		error = core_write(core, &ret->sizes);
	return error;
}
