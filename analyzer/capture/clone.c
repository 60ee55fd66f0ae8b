#include "analyzer/capture/clone.h"

#include "analyzer/capture/injected_thread.h"
#include "analyzer/capture/interrupted_call.h"
#include "analyzer/capture/system_call.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

enum {
	STOPS = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
		PTRACE_O_TRACEVFORK,
	/* Should a new process ever run without a way, it faults at once. */
	NO_STACK = 16,
};

static void kill_traced(pid_t id)
{
	int status;

	kill(id, SIGKILL);
	while (waitpid(id, &status, __WALL) < 0 && errno == EINTR)
		continue;
}

/* A process that was just made: await it, and have it die with heapcore. */
static bool adopt(struct injection *injection, long options)
{
	int status;

	injection->options = options | PTRACE_O_EXITKILL;
	return injection_await(injection->thread, &status) &&
	       ptrace(PTRACE_SETOPTIONS, injection->thread, NULL, (void *)injection->options) == 0;
}

/* Have the process collect a child; false: that has not ended yet. */
static bool collect(struct injection *injection, pid_t named)
{
	return injection_call(injection, SYS_wait4, named, 0, __WALL | WNOHANG, 0) != 0;
}

/* Have the thread make a process; *ret_named is what that calls it. */
static struct error *make_process(struct injection *maker, long flags, long stack, pid_t *ret,
				  pid_t *ret_named)
{
	long result = injection_call(maker, SYS_clone, flags, stack, 0, 0);
	struct injection made = { .thread = maker->child };

	if (result < 0) {
		errno = (int)-result;
		return error_system("clone(2) in the process failed");
	}
	if (!adopt(&made, maker->options)) {
		collect(maker, (pid_t)result);
		return error_create(ERROR_NOT_SUPPORTED, "its clone was killed");
	}
	*ret = made.thread;
	*ret_named = (pid_t)result;
	return NULL;
}

/* Have the process make one that ends by itself if nobody traces it. */
static struct error *make_first(struct injection *injection, const struct way_back *way, long flags,
				pid_t *ret, pid_t *ret_named)
{
	injection->stack = way->collect;
	return make_process(injection, flags, way->leave ? (long)way->leave : NO_STACK, ret,
			    ret_named);
}

/* The clone is a child of a child, which ends. */
static struct error *make_orphan(struct injection *injection, const struct way_back *way,
				 struct process_clone *clone)
{
	struct injection middle = { .gadget = injection->gadget };
	pid_t named = 0, ignored;
	struct error *error =
		make_first(injection, way, CLONE_VM | CLONE_FILES, &middle.thread, &named);

	if (error)
		return error;
	middle.process = middle.thread;
	middle.options = injection->options | PTRACE_O_EXITKILL;
	error = injection_begin(&middle);
	if (!error)
		error = make_process(&middle, CLONE_FILES, 0, &clone->id, &ignored);
	kill_traced(middle.thread);
	injection->stack = way->home;
	collect(injection, named);
	return error;
}

static bool is_first_of_namespace(pid_t process)
{
	_cleanup_(free) char *text = NULL;
	size_t size;
	struct error *error = process_read(process, "status", &text, &size);
	const char *line = error ? NULL : strstr(text, "\nNSpid:");
	const char *last;

	if (error)
		error_destroy(error);
	if (!line)
		return false;
	line++;
	last = line + strcspn(line, "\n");
	return last - line > 2 && last[-1] == '1' && last[-2] == '\t';
}

/*
 * Whether the process has asked for orphans. It can only be asked by a call that writes the answer
 * to its memory. If that fails, the answer is yes, which is right for both.
 */
static bool gets_orphans(struct injection *injection, const struct way_back *way)
{
	long answer;

	if (is_first_of_namespace(injection->process) || !way->answer)
		return true;
	injection->stack = way->home;
	if (injection_call(injection, SYS_prctl, PR_GET_CHILD_SUBREAPER, (long)way->answer, 0, 0) <
	    0)
		return true;
	errno = 0;
	answer = ptrace(PTRACE_PEEKDATA, injection->thread, way->answer, NULL);
	return errno != 0 || (answer & UINT32_MAX) != 0;
}

void process_clone_prepare(pid_t process, const struct memory_map *map, struct process_clone *ret)
{
	*ret = (struct process_clone){ .process = process, .map = map };
	way_back_find(process, map, &ret->code);
}

struct error *process_clone_create(const struct held_process *held, struct process_clone *clone)
{
	struct injection injection = { .options = STOPS };
	struct way_back *way = &clone->way;
	struct error *error = injected_thread_find(held, clone->map, &injection);

	if (!error)
		error = injection_begin(&injection);
	if (error)
		return error;
	way_back_lay(&clone->code, clone->map, &injection, way);
	clone->gadget = injection.gadget;
	clone->thread = injection.thread;
	clone->options = injection.options;
	error = gets_orphans(&injection, way)
			? make_first(&injection, way, CLONE_FILES, &clone->id, &clone->named)
			: make_orphan(&injection, way, clone);
	injection_end(&injection);
	way_back_remove(way, clone->thread);
	return error;
}

/* Where memory runs short, the clone goes first. */
static void offer_to_kill(pid_t process)
{
	char path[64];
	_cleanup_(close) int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", process);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "1000", 4) < 0)
		return;
}

struct error *process_clone_isolate(struct process_clone *clone)
{
	struct injection injection = { .process = clone->id,
				       .thread = clone->id,
				       .gadget = clone->gadget,
				       .options = STOPS | PTRACE_O_EXITKILL };
	struct error *error;
	long result;

	offer_to_kill(clone->id);
	error = injection_begin(&injection);
	if (error)
		return error;
	result = injection_call(&injection, SYS_close_range, 0, UINT32_MAX, CLOSE_RANGE_UNSHARE, 0);
	if (result < 0) {
		errno = (int)-result;
		return error_system("the files of the clone");
	}
	injection_call(&injection, SYS_setsid, 0, 0, 0, 0);
	return NULL;
}

/* The thread was interrupted. */
static bool collect_now(struct process_clone *clone, pid_t thread)
{
	struct injection injection = { .process = clone->process,
				       .thread = thread,
				       .gadget = clone->gadget,
				       .options = clone->options };
	bool call, done;

	interrupted_call_restart(thread);
	if (!injected_thread_fits(thread, &injection.gadget, &call) ||
	    !system_call_is_at(thread, injection.gadget) || injection_begin(&injection))
		return false;
	way_back_lay(&clone->code, clone->map, &injection, &clone->way);
	injection.stack = clone->way.home;
	done = collect(&injection, clone->named);
	injection_end(&injection);
	way_back_remove(&clone->way, thread);
	return done;
}

/* Stop that thread, and have it collect the clone; false: it did not. */
static bool collect_by(struct process_clone *clone, pid_t thread)
{
	int status, signal = 0;
	bool done = false;

	if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) < 0)
		return false;
	ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
	if (!injection_await(thread, &status))
		return false;
	if (status >> 16 == 0)
		signal = WSTOPSIG(status);
	else if (WSTOPSIG(status) == SIGTRAP)
		done = collect_now(clone, thread);
	ptrace(PTRACE_DETACH, thread, NULL, (void *)(intptr_t)signal);
	return done;
}

/* Before, it could not be collected: one stop of the process is to do. */
static void await_end(pid_t id)
{
	enum { BUDGET = 1000 /* milliseconds */ };
	_cleanup_(close) int end = (int)syscall(SYS_pidfd_open, id, 0);

	if (end >= 0)
		poll(&(struct pollfd){ end, POLLIN, 0 }, 1, BUDGET);
}

/*
 * The process has to collect the clone, in a short stop of one thread. It may be about to get a
 * signal, or be where it cannot; then it may be elsewhere soon.
 */
static void collect_later(struct process_clone *clone)
{
	enum { ATTEMPTS = 20, WAIT = 5000000 };

	for (int i = 0; i < ATTEMPTS; i++) {
		if (collect_by(clone, clone->thread) || collect_by(clone, clone->process))
			return;
		nanosleep(&(struct timespec){ .tv_nsec = WAIT }, NULL);
	}
}

void process_clone_end(struct process_clone *clone, struct error **error)
{
	int status;
	bool ended = clone->id && waitpid(clone->id, &status, WNOHANG | __WALL) != 0;

	if (clone->id && !ended)
		kill_traced(clone->id);
	if (clone->id && clone->named)
		await_end(clone->id);
	clone->id = 0;
	if (clone->named)
		collect_later(clone);
	clone->named = 0;
	if (ended && error && !*error)
		*error = error_create(
			ERROR_SYSTEM,
			"the clone of the process was killed, perhaps because memory is short");
}
