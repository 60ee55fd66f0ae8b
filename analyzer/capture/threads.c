#include "analyzer/capture/threads.h"

#include "analyzer/base/list.h"
#include "analyzer/base/progress.h"
#include "analyzer/capture/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

/* How long a thread may take to stop; waits between looks, in nanoseconds. */
enum { BUDGET_SECONDS = 2, FIRST_WAIT = 10000, LONGEST_WAIT = 5000000 };

static bool holds_back_other_processes(int *ret_scope)
{
	_cleanup_(close) int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char digit;

	if (fd < 0 || read(fd, &digit, 1) != 1)
		return false;
	*ret_scope = digit - '0';
	return *ret_scope > 0;
}

struct error *process_refusal(pid_t process)
{
	int failure = errno, scope;
	pid_t tracer = (pid_t)process_status(process, "TracerPid", 10, 0);
	uint64_t owner = process_status(process, "Uid", 10, geteuid());

	if (failure == ESRCH)
		return error_create(ERROR_USAGE, "there is no process %d", process);
	if (tracer)
		return error_create(
			ERROR_NOT_SUPPORTED,
			"process %d is being traced by process %d already, and two cannot", process,
			tracer);
	if (geteuid() != 0 && owner != geteuid())
		return error_create(ERROR_NOT_SUPPORTED,
				    "process %d belongs to another user (%" PRIu64
				    "): only root may trace it",
				    process, owner);
	if (failure == EPERM && holds_back_other_processes(&scope))
		return error_create(
			ERROR_NOT_SUPPORTED,
			"process %d may not be traced: /proc/sys/kernel/yama/ptrace_scope is %d%s; see 'heapcore doctor'",
			process, scope, scope < 3 ? ", so only root may" : "");
	return error_create(
		ERROR_NOT_SUPPORTED,
		"process %d may not be traced: ptrace(2) is refused (%s); in a container, allow it by --cap-add=SYS_PTRACE; see 'heapcore doctor'",
		process, strerror(failure));
}

/*
 * Threads are listed in the order of their creation, so those held come in the order in which they
 * were held: expected is the number of the next of them.
 */
static bool is_held(const struct held_process *held, pid_t id, size_t *expected)
{
	size_t next = *expected;

	for (size_t i = 0; i < held->count; i++, next++) {
		next = next < held->count ? next : 0;
		if (held->threads[next].id != id)
			continue;
		*expected = next + 1;
		return true;
	}
	return false;
}

static pid_t highest_id(const struct held_process *held)
{
	pid_t highest = 0;

	for (size_t i = 0; i < held->count; i++)
		if (held->threads[i].id > highest)
			highest = held->threads[i].id;
	return highest;
}

/* A leader that ended before its threads is still listed. */
static bool is_zombie(pid_t thread)
{
	_cleanup_(free) char *text = process_thread_text(thread, "stat");
	const char *state = text ? strrchr(text, ')') : NULL;

	return !state || state[1] == '\0' || state[2] == 'Z' || state[2] == 'X';
}

/* Begin to stop one more thread. */
static struct error *seize(struct held_process *held, pid_t id)
{
	struct held_thread thread = { .id = id };

	if (ptrace(PTRACE_SEIZE, id, NULL, NULL) < 0) {
		int failure = errno;

		if (failure == ESRCH || is_zombie(id))
			return NULL;
		errno = failure;
		return process_refusal(held->id);
	}
	machine_note_call(id, &thread.waiting);
	ptrace(PTRACE_INTERRUPT, id, NULL, NULL);
	return LIST_APPEND(held->threads, held->count, thread);
}

/* Returns by *ret_found whether there were new ones. */
static struct error *seize_new(struct held_process *held, bool *ret_found)
{
	pid_t highest = highest_id(held);
	struct error *error = NULL;
	struct dirent *entry;
	size_t expected = 0;
	char path[64];
	DIR *folder;

	*ret_found = false;
	snprintf(path, sizeof(path), "/proc/%d/task", held->id);
	folder = opendir(path);
	if (!folder)
		return error_create(ERROR_USAGE, "there is no process %d", held->id);
	while (!error && (entry = readdir(folder))) {
		size_t before = held->count;
		pid_t id = (pid_t)strtol(entry->d_name, NULL, 10);

		if (id <= 0)
			continue; /* "." and ".." */
		if (id <= highest && is_held(held, id, &expected))
			continue;
		highest = id > highest ? id : highest;
		error = seize(held, id);
		*ret_found |= held->count > before;
	}
	closedir(folder);
	return error;
}

/* Note a thread's status from waitpid(). Returns true if the thread still lives. */
static bool take_stop(struct held_thread *thread, int status)
{
	if (!WIFSTOPPED(status))
		return false;
	thread->stopped = true;
	/* It was stopped by a signal of its own, not by an event. */
	if (status >> 16 == 0)
		thread->signal = WSTOPSIG(status);
	/* Else it stood still already, as after Ctrl-Z. */
	else if (WSTOPSIG(status) == SIGTRAP)
		thread->interrupted = true;
	if (thread->interrupted)
		machine_restart_call(thread->id, &thread->waiting);
	return true;
}

/* Wait for those that were not seen to stop yet, from first on. */
static struct error *await_stops(struct held_process *held, size_t first,
				 const struct progress *progress)
{
	double deadline = clock_now() + BUDGET_SECONDS;
	long wait = FIRST_WAIT;

	for (size_t i = first; i < held->count;) {
		struct held_thread *thread = &held->threads[i];
		int status;
		pid_t found = waitpid(thread->id, &status, WNOHANG | __WALL);

		TRY(progress_glance(progress));
		if (found == 0 && clock_now() < deadline) {
			nanosleep(&(struct timespec){ .tv_nsec = wait }, NULL);
			wait = wait * 2 < LONGEST_WAIT ? wait * 2 : LONGEST_WAIT;
		} else if (found == 0 || (found > 0 && take_stop(thread, status))) {
			i++;
		} else if (found > 0 || errno != EINTR) {
			held->count--;
			memmove(thread, thread + 1, (held->count - i) * sizeof(*thread));
		}
	}
	return NULL;
}

static void put_leader_first(struct held_process *held)
{
	for (size_t i = 1; i < held->count; i++) {
		struct held_thread leader = held->threads[i];

		if (leader.id != held->id)
			continue;
		memmove(held->threads + 1, held->threads, i * sizeof(leader));
		held->threads[0] = leader;
		return;
	}
}

struct error *process_hold(pid_t process, const struct progress *progress, struct held_process *ret)
{
	_cleanup_(process_release) struct held_process held = { .id = process };
	bool found = true;

	while (found) {
		size_t first = held.count;

		TRY(seize_new(&held, &found));
		TRY(await_stops(&held, first, progress));
	}
	if (held.count == 0)
		return error_create(ERROR_USAGE, "process %d has ended", process);
	put_leader_first(&held);
	*ret = held;
	held = (struct held_process){ 0 };
	return NULL;
}

void process_let_go(const struct held_process *held)
{
	for (size_t i = 0; i < held->count; i++) {
		const struct held_thread *thread = &held->threads[i];

		if (thread->interrupted)
			machine_settle_call(thread->id);
		ptrace(PTRACE_DETACH, thread->id, NULL, (void *)(intptr_t)thread->signal);
	}
}

void process_release(struct held_process *held)
{
	process_let_go(held);
	free(held->threads);
	*held = (struct held_process){ 0 };
}
