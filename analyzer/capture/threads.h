/*
 * The threads of a process that stand still, held by ptrace(2).
 *
 * Only the thread that took hold of them can read their registers and let them go. Should heapcore
 * die, the kernel lets them go.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/base/progress.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A call in which a thread waits; the number is negative if it waits in none. */
struct waiting_call {
	long number;
	uint64_t first;	      /* argument */
	uint64_t stack, next; /* the stack pointer, and the instruction behind that of the call */
};

struct held_thread {
	pid_t id;
	bool stopped;		     /* else it is in a system call that cannot be left */
	bool interrupted;	     /* by us alone: no signal, no Ctrl-Z stopped it */
	int signal;		     /* that it was about to get, or 0 */
	struct waiting_call waiting; /* before it was stopped */
	uint64_t signal_stack;	     /* 0: none, or not known */
};

struct held_process {
	pid_t id;
	struct held_thread *threads; /* the leader first, if it lives */
	size_t count;
	bool knows_signal_stacks;
};

/*
 * Stop all threads of the process, also those that come up meanwhile. What the caller may not do is
 * ERROR_NOT_SUPPORTED, with the reason.
 */
struct error *process_hold(pid_t process, const struct progress *progress,
			   struct held_process *ret);

/* Resume the threads as if they had not been stopped. Frees nothing. */
void process_let_go(const struct held_process *held);

/* Resume the threads, and forget them. */
void process_release(struct held_process *held);
DEFINE_DEINIT(process_release, struct held_process)

/* Why ptrace(2) refused, from errno and what /proc says. */
struct error *process_refusal(pid_t process);
