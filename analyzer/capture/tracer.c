#include "analyzer/capture/tracer.h"

#include "analyzer/base/keep.h"
#include "analyzer/base/list.h"
#include "analyzer/base/progress.h"
#include "analyzer/capture/machine.h"
#include "analyzer/capture/process.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef SECCOMP_FILTER_FLAG_SPEC_ALLOW
#define SECCOMP_FILTER_FLAG_SPEC_ALLOW (1UL << 2)
#endif

enum { BUDGET_SECONDS = 2 }; /* for other threads of a process to stop */

/* Messages of the filter's stop to the tracer. */
enum filter_message { FILTER_EXIT, FILTER_SIGNAL_STACK, FILTER_UNMAP };

/* One thread. */
struct task {
	pid_t id;
	pid_t process;
	bool met;     /* was told which stops are wanted of it */
	bool stopped; /* and kept so, until its process was captured */
	bool exiting; /* was let go to its end: has no memory any more */
	int status;   /* of waitpid(), why it stopped */
	/* its stack for signals, as the program set it; 0: none */
	uint64_t signal_stack, signal_stack_size;
};

enum process_state {
	PROCESS_RUNNING,
	PROCESS_GATHERING, /* is about to end: its threads are being stopped */
	PROCESS_ENDING,	   /* was seen to; nothing is to be done any more */
};

struct traced_process {
	pid_t id;
	enum process_state state;
	int signal;	 /* that it is about to die of, or 0 */
	pid_t taker;	 /* the thread that ends it */
	double deadline; /* until when threads may take to stop */
	struct teardown_place teardown;
};

struct tracer {
	const struct tracer_options *options;
	const struct tracer_events *events;
	struct task *tasks;
	size_t task_count;
	struct traced_process *processes;
	size_t process_count;
	size_t unseen; /* processes that ended and were let through */
	bool is_over;  /* the first process has ended, with the status */
	int status;
	struct error *error; /* the first, which ends the tracing */
};

/* Stops without which a filtered process cannot live; and all others. */
enum {
	STOPS_NEEDED = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
		       PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL,
	STOPS_TOLD = STOPS_NEEDED | PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC,
};

/*
 * Returns an errno. Without the flag, kernels before 5.16 slow a filtered program down; before 4.17
 * there is no such flag.
 */
static int install(const struct sock_fprog *program)
{
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		    program) == 0)
		return 0;
	if (errno == EINVAL && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) == 0)
		return 0;
	return errno;
}

int filter_install(bool *ret_weaker)
{
	/* Programs for other machines, as i386, have other numbers. */
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine.audit, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 8, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sigaltstack, 8, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		/* The lower half of the size: more than 4 GiB are looked at in vain, no more. */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TEARDOWN_PAGE_1, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TEARDOWN_PAGE_2, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | FILTER_UNMAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | FILTER_EXIT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | FILTER_SIGNAL_STACK),
	};
	struct sock_fprog program = {
		.len = COUNT_OF(steps),
		.filter = steps,
	};
	int failure = install(&program);

	*ret_weaker = false;
	if (failure != EACCES)
		return failure;
	*ret_weaker = true;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	return install(&program);
}

/* From the back: what is asked for is mostly young. */
static struct task *find_task(const struct tracer *tracer, pid_t id)
{
	for (size_t i = tracer->task_count; i-- > 0;)
		if (tracer->tasks[i].id == id)
			return &tracer->tasks[i];
	return NULL;
}

static struct traced_process *find_process(const struct tracer *tracer, pid_t id)
{
	for (size_t i = tracer->process_count; i-- > 0;)
		if (tracer->processes[i].id == id)
			return &tracer->processes[i];
	return NULL;
}

/* The task of that process, or 0: to be asked. NULL: it is gone, or memory is short. */
static struct task *add_task(struct tracer *tracer, pid_t id, pid_t process)
{
	struct task *known = find_task(tracer, id);

	if (known)
		return known;
	if (!process)
		process = (pid_t)process_status(id, "Tgid", 10, 0);
	if (!process ||
	    (!find_process(tracer, process) &&
	     LIST_APPEND(tracer->processes, tracer->process_count,
			 (struct traced_process){ .id = process })) ||
	    LIST_APPEND(tracer->tasks, tracer->task_count,
			(struct task){ .id = id, .process = process }))
		return NULL;
	return &tracer->tasks[tracer->task_count - 1];
}

/* The thread has ended; with the leader, the process has. */
static void remove_task(struct tracer *tracer, pid_t id)
{
	const struct task *task = find_task(tracer, id);
	bool is_leader = task && task->process == id;
	struct traced_process *process = is_leader ? find_process(tracer, id) : NULL;

	tracer->task_count = LIST_KEEP(tracer->tasks, tracer->task_count, other, last,
				       (is_leader ? other->process : other->id) != id);
	if (process)
		*process = tracer->processes[--tracer->process_count];
}

/* How many threads of the process are alive, or only those not stopped. */
static size_t count_tasks(const struct tracer *tracer, pid_t process, bool also_stopped)
{
	size_t found = 0;

	list_for_each(task, tracer->tasks, tracer->task_count) {
		found += task->process == process && !task->exiting &&
			 (also_stopped || !task->stopped);
	}
	return found;
}

struct error *tracer_seize(const struct tracer_options *options)
{
	if (ptrace(PTRACE_SEIZE, options->program, NULL, (void *)(intptr_t)STOPS_TOLD) < 0)
		return process_refusal(options->program);
	return NULL;
}

static int stop_event(int status)
{
	return status >> 16;
}

static bool stops_the_process(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/* Resume a task from its stop as if it had not been traced. */
static void resume(struct task *task)
{
	int event = stop_event(task->status);
	int signal = WSTOPSIG(task->status);

	task->stopped = false;
	if (event == PTRACE_EVENT_EXIT)
		task->exiting = true;
	/* Stopped as by Ctrl-Z: it stays so, until it is continued. */
	if (event == PTRACE_EVENT_STOP && stops_the_process(signal))
		ptrace(PTRACE_LISTEN, task->id, NULL, NULL);
	else
		ptrace(PTRACE_CONT, task->id, NULL, (void *)(intptr_t)(event ? 0 : signal));
}

static bool is_default(pid_t thread, int signal)
{
	uint64_t bit = UINT64_C(1) << (signal - 1);

	return !(process_status(thread, "SigIgn", 16, 0) & bit) &&
	       !(process_status(thread, "SigCgt", 16, 0) & bit);
}

/* True if the signal, about to be delivered, ends the process. */
static bool is_fatal(pid_t thread, int signal)
{
	if (stops_the_process(signal) || signal == SIGCHLD || signal == SIGCONT ||
	    signal == SIGURG || signal == SIGWINCH)
		return false;
	return is_default(thread, signal);
}

/*
 * True if the process uses its parent's memory, as between vfork() and exec(); that memory is the
 * parent's to report.
 */
static bool borrows_memory(pid_t process)
{
	pid_t parent = (pid_t)process_status(process, "PPid", 10, 0);

	return parent != 0 && parent != getpid() &&
	       syscall(SYS_kcmp, process, parent, KCMP_VM, 0, 0) == 0;
}

/* True if a process is traced only because it has the filter. */
static bool is_let_through(const struct tracer *tracer, pid_t process)
{
	return process != tracer->options->program && !tracer->options->follow;
}

static bool is_of_interest(const struct tracer *tracer, const struct traced_process *process)
{
	if (process->state != PROCESS_RUNNING || is_let_through(tracer, process->id))
		return false;
	if (process->id != tracer->options->program && borrows_memory(process->id))
		return false;
	return process_kind(process->id) != PROGRAM_OTHER;
}

/* The stopped threads of a process; the one that ends it comes first. */
static struct error *collect(const struct tracer *tracer, const struct traced_process *process,
			     struct held_process *ret)
{
	struct held_process held = { .id = process->id, .knows_signal_stacks = true };
	pid_t first = process->signal ? process->taker : process->id;

	list_for_each(task, tracer->tasks, tracer->task_count) {
		struct held_thread *last;

		if (task->process != process->id || task->exiting)
			continue;
		if (LIST_APPEND(held.threads, held.count,
				(struct held_thread){
					.id = task->id,
					.stopped = task->stopped,
					.signal_stack = task->signal_stack,
				})) {
			free(held.threads);
			return &error_no_memory;
		}
		last = &held.threads[held.count - 1];
		if (task->id == first) {
			struct held_thread other = *last;

			*last = held.threads[0];
			held.threads[0] = other;
		}
	}
	*ret = held;
	return NULL;
}

/* All its threads are stopped, or cannot be: have it captured, let it go. */
static void finish_gathering(struct tracer *tracer, struct traced_process *process)
{
	pid_t id = process->id;
	struct held_process held;
	struct error *error = collect(tracer, process, &held);

	if (error) {
		tracer->error = error;
		return;
	}
	process->state = PROCESS_ENDING;
	if (held.count > 0)
		tracer->events->ending(tracer->events->data, &held, process->signal);
	free(held.threads);
	list_for_each(task, tracer->tasks, tracer->task_count) {
		if (task->process == id && task->stopped)
			resume(task);
	}
}

static void finish_if_gathered(struct tracer *tracer, struct traced_process *process)
{
	if (process->state == PROCESS_GATHERING &&
	    (count_tasks(tracer, process->id, false) == 0 || clock_now() > process->deadline))
		finish_gathering(tracer, process);
}

/* The thread, which is kept stopped, is about to end its process. */
static void begin_gathering(struct tracer *tracer, struct traced_process *process,
			    struct task *task, int signal)
{
	process->state = PROCESS_GATHERING;
	process->signal = signal;
	process->taker = task->id;
	process->deadline = clock_now() + BUDGET_SECONDS;
	list_for_each(other, tracer->tasks, tracer->task_count) {
		if (other->process == process->id && !other->stopped && !other->exiting)
			ptrace(PTRACE_INTERRUPT, other->id, NULL, NULL);
	}
}

static unsigned long event_message(pid_t thread)
{
	unsigned long message = 0;

	ptrace(PTRACE_GETEVENTMSG, thread, NULL, &message);
	return message;
}

/*
 * The task is about to call sigaltstack(). What the kernel will refuse is left out: stacks that are
 * too small, and a new one while the old one is in use.
 */
static void note_signal_stack(struct task *task)
{
	uint64_t place, stack_pointer;
	stack_t stack;

	if (!machine_read_call(task->id, &place, &stack_pointer) || place == 0 ||
	    process_peek(task->id, place, &stack, sizeof(stack)) != sizeof(stack) ||
	    stack_pointer - task->signal_stack < task->signal_stack_size)
		return;
	if (stack.ss_flags & SS_DISABLE)
		stack = (stack_t){ 0 };
	else if (stack.ss_size < machine.least_signal_stack)
		return;
	task->signal_stack = (uint64_t)stack.ss_sp;
	task->signal_stack_size = stack.ss_size;
}

/*
 * The signal that ends a thread at its exit event, or 0 if it ends by itself. A thread ended by
 * another one's exec() shows 0, too.
 */
static int killed_by(const struct task *task)
{
	return (int)(event_message(task->id) & 0x7f);
}

/* True if the stopped task ends its process; sets the signal. */
static bool ends_process(const struct tracer *tracer, const struct task *task,
			 struct traced_process *process, int *ret_signal)
{
	int event = stop_event(task->status);

	*ret_signal = 0;
	if (event == PTRACE_EVENT_SECCOMP && event_message(task->id) == FILTER_UNMAP)
		return !is_let_through(tracer, process->id) &&
		       teardown_begins(process->id, task->id, tracer->options->teardowns,
				       &process->teardown);
	if (event == PTRACE_EVENT_SECCOMP)
		return event_message(task->id) == FILTER_EXIT;
	if (event == PTRACE_EVENT_EXIT) {
		*ret_signal = killed_by(task);
		return *ret_signal != 0 || count_tasks(tracer, task->process, true) == 1;
	}
	if (event != 0)
		return false;
	*ret_signal = WSTOPSIG(task->status);
	return is_fatal(task->id, *ret_signal);
}

/*
 * A new thread or process, before any of its own stops is seen, or after. A process has the stack
 * for signals of the thread that made it.
 */
static void meet_child(struct tracer *tracer, pid_t parent, int event)
{
	pid_t child = (pid_t)event_message(parent);
	const struct task *maker;
	struct task *task;

	if (!child)
		return;
	/* Only clone() makes threads. */
	if (event == PTRACE_EVENT_CLONE) {
		add_task(tracer, child, 0);
		return;
	}
	task = add_task(tracer, child, child);
	if (tracer->is_over && tracer->options->follow)
		tracer->events->left(tracer->events->data, child);
	maker = find_task(tracer, parent);
	if (!task || !maker || task->signal_stack)
		return;
	task->signal_stack = maker->signal_stack;
	task->signal_stack_size = maker->signal_stack_size;
}

/*
 * The first stop of a thread or process, which has inherited what its parent is asked for. One that
 * is let through stops for as little as possible, but a thread that calls exec() gets another
 * number, which must be known.
 */
static void choose_stops(const struct tracer *tracer, struct task *task)
{
	bool few = is_let_through(tracer, task->process) && task->id == task->process &&
		   !tracer->options->all_programs;

	task->met = true;
	ptrace(PTRACE_SETOPTIONS, task->id, NULL,
	       (void *)(intptr_t)(few ? STOPS_NEEDED : STOPS_TOLD));
}

/*
 * A new program in the process. Of its threads there is one left, which has the number of the
 * process now.
 */
static void replace_program(struct tracer *tracer, struct task *task)
{
	pid_t id = task->id, former = (pid_t)event_message(id);
	char link[64], path[4096];
	struct traced_process *process = find_process(tracer, task->process);
	ssize_t length;

	task->exiting = false;
	task->signal_stack = task->signal_stack_size = 0;
	if (process)
		process->teardown = (struct teardown_place){ 0 };
	if (former && former != id)
		remove_task(tracer, former);
	snprintf(link, sizeof(link), "/proc/%d/exe", id);
	length = readlink(link, path, sizeof(path) - 1);
	path[length < 0 ? 0 : length] = '\0';
	tracer->events->started(tracer->events->data, id, path);
}

static void handle_stop(struct tracer *tracer, pid_t id, int status)
{
	struct task *task = add_task(tracer, id, 0);
	int event = stop_event(status), signal;
	struct traced_process *process;

	/* Better not known than stopped for ever. */
	if (!task) {
		ptrace(PTRACE_CONT, id, NULL, NULL);
		return;
	}
	if (event == PTRACE_EVENT_EXEC)
		replace_program(tracer, task);
	else if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK ||
		 event == PTRACE_EVENT_VFORK)
		meet_child(tracer, id, event);
	else if (event == PTRACE_EVENT_SECCOMP && event_message(id) == FILTER_SIGNAL_STACK)
		note_signal_stack(task);
	/* The lists may have moved. */
	task = find_task(tracer, id);
	process = task ? find_process(tracer, task->process) : NULL;
	if (!process)
		return;
	task->status = status;
	task->stopped = true;
	if (!task->met)
		choose_stops(tracer, task);
	if (process->state == PROCESS_RUNNING && ends_process(tracer, task, process, &signal)) {
		if (is_of_interest(tracer, process))
			begin_gathering(tracer, process, task, signal);
		else
			process->state = PROCESS_ENDING;
	}
	if (process->state == PROCESS_GATHERING)
		finish_if_gathered(tracer, process);
	else
		resume(task);
}

static void tell_end(const struct tracer *tracer, size_t others)
{
	tracer->events->ended(tracer->events->data, tracer->status, others, tracer->unseen);
}

/* The program has ended; what it left is followed, or that is all. */
static void end_program(struct tracer *tracer, int status)
{
	tracer->is_over = true;
	tracer->status = status;
	if (!tracer->options->follow)
		tell_end(tracer, tracer->process_count);
	for (size_t i = 0; tracer->options->follow && i < tracer->process_count; i++)
		tracer->events->left(tracer->events->data, tracer->processes[i].id);
}

static void handle_end(struct tracer *tracer, pid_t id, int status)
{
	struct task *task = find_task(tracer, id);
	pid_t owner = task ? task->process : id;
	struct traced_process *process;

	tracer->unseen += owner == id && is_let_through(tracer, id);
	remove_task(tracer, id);
	process = find_process(tracer, owner);
	if (process)
		finish_if_gathered(tracer, process);
	if (id == tracer->options->program)
		end_program(tracer, status);
}

/* True if threads of a process are still stopping, which may be late. */
static bool is_gathering(const struct tracer *tracer)
{
	for (size_t i = 0; i < tracer->process_count; i++)
		if (tracer->processes[i].state == PROCESS_GATHERING)
			return true;
	return false;
}

/* Wait for news, but no longer than threads may be late. */
static void await_stops(struct tracer *tracer)
{
	struct timespec budget = { .tv_nsec = 100000000 };
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigtimedwait(&signals, NULL, &budget);
	for (size_t i = tracer->process_count; i-- > 0;)
		finish_if_gathered(tracer, &tracer->processes[i]);
}

struct error *tracer_run(const struct tracer_options *options, const struct tracer_events *events)
{
	struct tracer tracer = { .options = options, .events = events };

	if (!add_task(&tracer, options->program, 0))
		tracer.error = &error_no_memory;
	while (!tracer.error) {
		int late = is_gathering(&tracer) ? WNOHANG : 0, status;
		pid_t id = waitpid(-1, &status, late | __WALL);

		if (id < 0 && errno != EINTR)
			break; /* there is nobody left */
		if (id == 0)
			await_stops(&tracer);
		else if (id > 0 && WIFSTOPPED(status))
			handle_stop(&tracer, id, status);
		else if (id > 0)
			handle_end(&tracer, id, status);
	}
	/* A process that was met after its end is still in the list: only the kernel knows. */
	if (options->follow && tracer.is_over && !tracer.error)
		tell_end(&tracer, 0);
	free(tracer.tasks);
	free(tracer.processes);
	return tracer.error;
}
