/*
 * System calls that a held thread makes for its tracer.
 *
 * The thread stands in PTRACE_EVENT_STOP, as PTRACE_INTERRUPT leaves it, before and after each
 * call: only there does the kernel begin the call anew that the thread was waiting in.
 *
 * If the tracer is killed meanwhile, the thread goes on with the registers of the call. With a
 * stack that leads it back (way_back.h), it has these from the first call to injection_end();
 * without, it gets its own back after each call, which takes some ten microseconds.
 */
#ifndef ANALYZER_CAPTURE_INJECTION_H
#define ANALYZER_CAPTURE_INJECTION_H

#include "analyzer/base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct injection {
	pid_t process, thread;
	uint64_t gadget;		   /* address of an instruction syscall */
	uint64_t stack;			   /* for the next call; 0: the thread's own */
	long options;			   /* of ptrace(2), which children inherit */
	struct user_regs_struct registers; /* its own */
	uint64_t mask;			   /* of signals, its own */
	bool stop_came;			   /* SIGSTOP, to be sent again */
	bool ended;			   /* the thread is no more */
	pid_t child;			   /* that the last call made, or 0 */
};

/* Take note of the thread's state; options are set until injection_end(). */
struct error *injection_begin(struct injection *injection);

/*
 * What the call returns, negative: an errno. A child that it makes is being traced, with the same
 * options, and about to stop for the first time.
 */
long injection_call(struct injection *injection, long number, long first, long second, long third,
		    long fourth);

/* The thread has its own registers, and goes on being held. */
void injection_end(struct injection *injection);

/* Wait until a traced thread stops; false: it has ended. */
bool injection_await(pid_t thread, int *ret_status);

#endif
