#include "analyzer/capture/clone.h"

#include "analyzer/base/group.h"
#include "analyzer/capture/machine.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
	SPARE_PROCESSES = 16, /* to be left, two of them for us */
	/*
	 * Limits, so that the kernel need not kill the clone for memory: shared memory may be
	 * written to meanwhile, and then be copied; this part of it at most. Page tables are small.
	 */
	WRITTEN_PART = 4,
	MOST_EXAMINED = 256, /* threads */
};

static struct error *refuse(const char *reason)
{
	return error_create(ERROR_NOT_SUPPORTED, "%s", reason);
}

/* Room in the control groups, so that neither fork nor the kernel's killer comes in the way. */
static struct error *check_groups(pid_t process, uint64_t wanted)
{
	struct group_limit limit;

	if (group_limit_of(process, GROUP_PROCESSES, &limit) &&
	    group_left(&limit) < SPARE_PROCESSES)
		return refuse("its control group is near the limit of processes (pids.max)");
	if (group_limit_of(process, GROUP_MEMORY, &limit) && group_left(&limit) < wanted)
		return refuse("its control group is near the limit of memory (memory.max)");
	return NULL;
}

static struct error *check_map(const struct memory_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		if (map->areas[i].watched)
			return refuse("its memory is watched by userfaultfd(2)");
		/* Writing to a copied one may fail for want of another. */
		if (map->areas[i].huge && !map->areas[i].shared)
			return refuse("it has private huge pages (MAP_HUGETLB)");
	}
	return NULL;
}

static struct error *check_status(pid_t process)
{
	_cleanup_(free) char *text = NULL;
	size_t size;
	const char *features;

	TRY(process_read(process, "status", &text, &size));
	features = strstr(text, "\nx86_Thread_features:");
	if (features && memmem(features, strcspn(features + 1, "\n"), "shstk", 5))
		return refuse("it has shadow stacks");
	if (strstr(text, "\nState:\tT"))
		return refuse("it is stopped");
	return NULL;
}

struct error *clone_obstacle(pid_t process, const struct memory_map *map, uint64_t size)
{
	uint64_t wanted = size / WRITTEN_PART;

	TRY(check_map(map));
	TRY(check_status(process));
	if (available_memory() < wanted)
		return refuse("memory is short");
	return check_groups(process, wanted);
}

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
	_cleanup_(free) char *text = process_text(process, "status");
	const char *line = text ? strstr(text, "\nNSpid:") : NULL;
	const char *last = line ? line + 1 + strcspn(line + 1, "\n") : NULL;

	return line && last - line > 3 && last[-1] == '1' && last[-2] == '\t';
}

/*
 * True if the process adopts orphans (PR_SET_CHILD_SUBREAPER). The only way to ask is a call that
 * writes the answer to the process's memory. If that fails, assume yes, which is right for both.
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

/* How well a thread suits for injected calls, as a set; larger is better. */
enum fitness {
	FIT = 1 << 0,
	FIT_CALL = 1 << 1,	 /* waits in a system call */
	FIT_UNFILTERED = 1 << 2, /* has no seccomp filter: the most wanted */
	FIT_BEST = FIT | FIT_CALL | FIT_UNFILTERED,
};

static unsigned int examine(const struct held_thread *thread, uint64_t *gadget)
{
	bool call;

	if (!thread->interrupted || !injection_fits(thread->id, gadget, &call))
		return 0;
	return FIT | (call ? FIT_CALL : 0) |
	       (process_status(thread->id, "Seccomp", 10, 1) == 0 ? FIT_UNFILTERED : 0);
}

/* Have the kernel leave out the thread's filter, which only root may. */
static bool suspend_filter(struct injection *injection)
{
	injection->options |= PTRACE_O_SUSPEND_SECCOMP;
	return ptrace(PTRACE_SETOPTIONS, injection->thread, NULL, (void *)injection->options) == 0;
}

/*
 * Choose the thread of the process that makes the call, and an instruction syscall, and add to the
 * options what that thread needs. Fails, with the reason, if there is none.
 */
static struct error *choose_thread(const struct held_process *held, struct process_clone *clone,
				   struct injection *injection)
{
	unsigned int best = 0;

	injection->process = held->id;
	for (size_t i = 0; i < held->count && i < MOST_EXAMINED && best != FIT_BEST; i++) {
		uint64_t gadget = injection->gadget;
		unsigned int fitness = examine(&held->threads[i], &gadget);

		if (fitness <= best)
			continue;
		best = fitness;
		injection->thread = held->threads[i].id;
		injection->gadget = gadget;
	}
	if (!best)
		return refuse(
			"none of its threads waits, or runs 64-bit code outside of restartable sequences");
	if (!(best & FIT_UNFILTERED) && !suspend_filter(injection))
		return refuse(
			"its threads run under a seccomp filter, which only root may suspend");
	if (!injection_is_gadget(injection->thread, injection->gadget))
		injection->gadget = clone->code.call;
	if (injection_is_gadget(injection->thread, injection->gadget))
		return NULL;
	machine_code_find(held->id, clone->map, &clone->code);
	injection->gadget = clone->code.call;
	return injection->gadget ? NULL : refuse("none of its code calls the kernel");
}

void process_clone_prepare(pid_t process, const struct memory_map *map, struct process_clone *ret)
{
	*ret = (struct process_clone){ .process = process, .map = map };
	machine_code_find(process, map, &ret->code);
}

struct error *process_clone_create(const struct held_process *held, struct process_clone *clone)
{
	struct injection injection = { .options = STOPS };
	struct way_back *way = &clone->way;
	struct error *error;

	TRY(choose_thread(held, clone, &injection));
	TRY(injection_begin(&injection));
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

/* Make the kernel kill the clone first when memory is short. */
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
	long result;

	offer_to_kill(clone->id);
	TRY(injection_begin(&injection));
	result = injection_call(&injection, SYS_close_range, 0, UINT32_MAX, CLOSE_RANGE_UNSHARE, 0);
	if (result < 0) {
		errno = (int)-result;
		return error_system("the files of the clone");
	}
	injection_call(&injection, SYS_setsid, 0, 0, 0, 0);
	return NULL;
}

/* The thread was interrupted. */
static bool collect_now(struct process_clone *clone, pid_t thread,
			const struct waiting_call *waiting)
{
	struct injection injection = { .process = clone->process,
				       .thread = thread,
				       .gadget = clone->gadget,
				       .options = clone->options };
	bool call, done;

	machine_restart_call(thread, waiting);
	if (!injection_fits(thread, &injection.gadget, &call) ||
	    !injection_is_gadget(thread, injection.gadget) || injection_begin(&injection))
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
	struct waiting_call waiting;
	int status, signal = 0;
	bool done = false;

	if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) < 0)
		return false;
	machine_note_call(thread, &waiting);
	ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
	if (!injection_await(thread, &status))
		return false;
	if (status >> 16 == 0)
		signal = WSTOPSIG(status);
	else if (WSTOPSIG(status) == SIGTRAP)
		done = collect_now(clone, thread, &waiting);
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
