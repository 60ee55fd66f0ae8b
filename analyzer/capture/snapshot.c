#include "analyzer/capture/snapshot.h"

#include "analyzer/base/progress.h"
#include "analyzer/capture/clone.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seconds that a process may stand still before it is cloned instead. */
enum { LONGEST_STOP = 1 };

enum { KEEPER_STACK = 1 << 19 };

struct task {
	struct core_writer *core;
	pid_t process;
	const struct progress *progress;
	double stopped;
	struct error *error;
};

static struct error *begin_thread(void *(*run)(void *), void *data, pthread_t *ret)
{
	int failure = pthread_create(ret, NULL, run, data);

	if (!failure)
		return NULL;
	errno = failure;
	return error_system("a thread");
}

/* The work to do while the process is stopped. */
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
 * Hold the process in a thread of its own: when that ends, the kernel also releases threads that
 * could not be stopped, and would stop later, for ever.
 */
static struct error *hold_in_thread(struct task *task)
{
	pthread_t thread;

	TRY(begin_thread(hold_and_copy, task, &thread));
	pthread_join(thread, NULL);
	return task->error;
}

/* With the process standing still until all of its memory is copied. */
static struct error *take_plain(pid_t process, struct core_writer *core,
				const struct progress *progress, bool at_once, struct snapshot *ret)
{
	struct task task = { .process = process, .core = core, .progress = progress };
	struct error *error = at_once ? NULL : core_provide(core, false);

	if (!error)
		error = hold_in_thread(&task);
	ret->stopped = task.stopped;
	return error ? error : core_write(core, &ret->sizes);
}

struct cloning {
	pid_t process;
	struct core_writer *core;
	const struct memory_map *map; /* as the core was told of it last */
	const struct progress *progress;
	int to_heapcore, to_keeper; /* events: the other's turn */
	int heapcore;		    /* that process, as a file */
	struct held_process held;
	struct process_clone clone;
	double stopped;
	struct error *obstacle; /* why there is no clone */
	struct error *error;
};

static void hand_over(int event)
{
	uint64_t one = 1;

	while (write(event, &one, sizeof(one)) < 0 && errno == EINTR)
		continue;
}

static void await_chunk(int event)
{
	uint64_t count;

	while (read(event, &count, sizeof(count)) < 0 && errno == EINTR)
		continue;
}

/* The keeper's wait; false: heapcore is no more. */
static bool await_heapcore(const struct cloning *cloning)
{
	struct pollfd files[] = { { cloning->to_keeper, POLLIN, 0 },
				  { cloning->heapcore, POLLIN, 0 } };

	while (poll(files, 2, -1) < 0 && errno == EINTR)
		continue;
	if (!(files[0].revents & POLLIN))
		return false;
	await_chunk(cloning->to_keeper);
	return true;
}

static void hold_and_clone(struct cloning *cloning)
{
	struct error *error = process_hold(cloning->process, cloning->progress, &cloning->held);

	if (!error)
		error = core_describe(cloning->core, &cloning->held, 0);
	cloning->error = error;
	if (!error)
		cloning->obstacle = process_clone_create(&cloning->held, &cloning->clone);
}

/*
 * The keeper. It borrows the thread-local memory of the thread that waits for it. When heapcore is
 * no more, nothing may be allocated or freed: a thread of it may have been killed in the middle of
 * that.
 */
static int keep(void *data)
{
	struct cloning *cloning = data;
	double start;
	bool go_on;

	setsid();
	process_clone_prepare(cloning->process, cloning->map, &cloning->clone);
	start = clock_now();
	hold_and_clone(cloning);
	hand_over(cloning->to_heapcore);
	go_on = !cloning->clone.id || await_heapcore(cloning);
	process_let_go(&cloning->held);
	cloning->stopped = clock_now() - start;
	if (go_on && cloning->clone.id) {
		cloning->error = process_clone_isolate(&cloning->clone);
		hand_over(cloning->to_heapcore);
		go_on = await_heapcore(cloning);
	}
	process_clone_end(&cloning->clone, go_on ? &cloning->error : NULL);
	return 0;
}

/* The thread that starts the keeper, and waits for its end. */
static void *run_keeper(void *data)
{
	_Alignas(16) char stack[KEEPER_STACK];
	struct cloning *cloning = data;
	sigset_t all;
	pid_t keeper;
	int status;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	keeper = clone(keep, stack + sizeof(stack), CLONE_VM | CLONE_FILES | CLONE_FS, data);
	if (keeper < 0)
		cloning->error = error_system("a process");
	else
		while (waitpid(keeper, &status, __WALL) < 0 && errno == EINTR)
			continue;
	if (keeper > 0 && WIFSIGNALED(status) && !cloning->error)
		cloning->error =
			error_create(ERROR_SYSTEM, "the process that held process %d was killed",
				     cloning->process);
	/* Should it not have come so far. A clone went with it, but may have
	 * to be collected. */
	process_clone_end(&cloning->clone, NULL);
	hand_over(cloning->to_heapcore);
	hand_over(cloning->to_heapcore);
	return NULL;
}

/* heapcore's part, while the keeper keeps the process, and then the clone. */
static struct error *copy_and_write(struct cloning *cloning, struct snapshot *ret)
{
	struct error *error = NULL;

	await_chunk(cloning->to_heapcore);
	if (cloning->error || cloning->obstacle)
		return NULL;
	error = core_copy(cloning->core);
	hand_over(cloning->to_keeper);
	await_chunk(cloning->to_heapcore);
	if (!error && !cloning->error)
		error = core_take_clone(cloning->core, cloning->clone.id);
	if (!error && !cloning->error)
		error = core_write(cloning->core, &ret->sizes);
	hand_over(cloning->to_keeper);
	return error;
}

static struct error *clone_and_write(struct cloning *cloning, struct snapshot *ret)
{
	pthread_t thread;
	struct error *error = begin_thread(run_keeper, cloning, &thread);

	if (error)
		return error;
	error = copy_and_write(cloning, ret);
	pthread_join(thread, NULL);
	if (error && cloning->error)
		error_destroy(cloning->error);
	return error ? error : cloning->error;
}

/* *ret_obstacle: why it is not cloned, which leaves nothing behind, or NULL. */
static struct error *take_cloned(pid_t process, struct core_writer *core,
				 const struct progress *progress, struct snapshot *ret,
				 struct error **ret_obstacle)
{
	uint64_t size;
	const struct memory_map *map = core_surveyed(core, &size);
	struct error *obstacle = clone_obstacle(process, map, size), *error;
	_cleanup_(close) int heapcore = (int)syscall(SYS_pidfd_open, getpid(), 0);
	_cleanup_(close) int to_heapcore = -1, to_keeper = -1;
	struct cloning cloning = { process, core, map, progress, .heapcore = heapcore };

	*ret_obstacle = NULL;
	if (obstacle && error_code(obstacle) != ERROR_NOT_SUPPORTED)
		return obstacle;
	*ret_obstacle = obstacle || heapcore >= 0 ? obstacle : error_system("pidfd_open(2)");
	if (*ret_obstacle)
		return NULL;
	TRY(core_provide(core, true));
	cloning.to_heapcore = to_heapcore = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	cloning.to_keeper = to_keeper = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (to_heapcore < 0 || to_keeper < 0)
		return error_system("an event");
	error = clone_and_write(&cloning, ret);
	free(cloning.held.threads);
	ret->stopped = cloning.stopped;
	*ret_obstacle = cloning.obstacle;
	return error;
}

static struct error *begin(pid_t process, const struct core_options *options,
			   struct core_writer **ret)
{
	_cleanup_(core_destroy) struct core_writer *core = NULL;

	TRY(core_create(options, &core));
	TRY(core_survey(core, process));
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
	if (choice == CLONE_NEVER || choice == STOP_AT_ONCE ||
	    (choice == CLONE_BY_NEED && core_expected_stop(core) <= LONGEST_STOP))
		return take_plain(process, core, options->progress, choice == STOP_AT_ONCE, ret);
	error = take_cloned(process, core, options->progress, ret, &obstacle);
	ret->cloned = !error && !obstacle;
	if (error || !obstacle)
		return error;
	if (choice == CLONE_ALWAYS)
		return error_wrap(obstacle, "process %d cannot be cloned", process);
	snprintf(ret->not_cloned, sizeof(ret->not_cloned), "%s", error_message(obstacle));
	error_destroy(obstacle);
	/* A plan for cloning does not fit the process itself, so start over. */
	error = begin(process, options, &again);
	return error ? error : take_plain(process, again, options->progress, false, ret);
}
