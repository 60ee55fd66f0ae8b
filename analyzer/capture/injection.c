#include "analyzer/capture/injection.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MASK_SIZE = 8,	     /* of a set of signals in the kernel */
	AGAIN = 513,	     /* ERESTARTNOINTR in the kernel */
	MOST_ATTEMPTS = 100, /* to make a call that is put off */
	SYSCALL_STOP = SIGTRAP | 0x80,
};

bool injection_await(pid_t thread, int *ret_status)
{
	pid_t found;

	do {
		found = waitpid(thread, ret_status, __WALL);
	} while (found < 0 && errno == EINTR);
	return found == thread && WIFSTOPPED(*ret_status);
}

struct error *injection_begin(struct injection *injection)
{
	pid_t thread = injection->thread;

	if (ptrace(PTRACE_SETOPTIONS, thread, NULL, (void *)injection->options) < 0 ||
	    ptrace(PTRACE_GETREGS, thread, NULL, &injection->registers) < 0 ||
	    ptrace(PTRACE_GETSIGMASK, thread, (void *)MASK_SIZE, &injection->mask) < 0)
		return error_system("thread %d", thread);
	return NULL;
}

/* Go on, by a request of ptrace(2), to the next stop but that of a signal. */
static bool go_on(struct injection *injection, enum __ptrace_request request, int *ret_status)
{
	int status;

	do {
		if (ptrace(request, injection->thread, NULL, NULL) < 0 ||
		    !injection_await(injection->thread, &status)) {
			injection->ended = true;
			return false;
		}
		/* All that can be blocked is. */
		injection->stop_came |= status >> 8 == SIGSTOP;
	} while (status >> 16 == 0 && WSTOPSIG(status) != SYSCALL_STOP);
	*ret_status = status;
	return true;
}

static bool makes_child(int status)
{
	int event = status >> 16;

	return event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK ||
	       event == PTRACE_EVENT_VFORK;
}

/* From before the instruction to the stop behind it. */
static bool make_call(struct injection *injection, long *ret)
{
	unsigned int stops = 0;
	int status;

	while (stops < 2) {
		unsigned long child = 0;

		if (!go_on(injection, PTRACE_SYSCALL, &status))
			return false;
		stops += WSTOPSIG(status) == SYSCALL_STOP;
		if (!makes_child(status))
			continue;
		ptrace(PTRACE_GETEVENTMSG, injection->thread, NULL, &child);
		injection->child = (pid_t)child;
	}
	errno = 0;
	*ret = ptrace(PTRACE_PEEKUSER, injection->thread, offsetof(struct user_regs_struct, rax),
		      NULL);
	return errno == 0;
}

/* Back to where the kernel handles signals, and restarts calls. */
static bool park(struct injection *injection)
{
	int status;

	ptrace(PTRACE_INTERRUPT, injection->thread, NULL, NULL);
	do {
		if (!go_on(injection, PTRACE_CONT, &status))
			return false;
	} while (status >> 16 != PTRACE_EVENT_STOP);
	return true;
}

/* The way back would restore both, so the mask comes first, and is set last. */
static void restore(const struct injection *injection)
{
	pid_t thread = injection->thread;

	ptrace(PTRACE_SETSIGMASK, thread, (void *)MASK_SIZE, &injection->mask);
	ptrace(PTRACE_SETREGS, thread, NULL, &injection->registers);
}

long injection_call(struct injection *injection, long number, long first, long second, long third,
		    long fourth)
{
	struct user_regs_struct registers = injection->registers;
	uint64_t all = UINT64_MAX;
	long result = -AGAIN;

	injection->child = 0;
	if (injection->ended)
		return -ESRCH;
	registers.rip = injection->gadget;
	registers.rax = (unsigned long)number;
	registers.orig_rax = UINT64_MAX; /* no call is to be begun anew */
	registers.rdi = (unsigned long)first;
	registers.rsi = (unsigned long)second;
	registers.rdx = (unsigned long)third;
	registers.r10 = (unsigned long)fourth;
	registers.r8 = registers.r9 = 0;
	if (injection->stack)
		registers.rsp = injection->stack;
	for (int i = 0; result == -AGAIN && i < MOST_ATTEMPTS; i++) {
		ptrace(PTRACE_SETREGS, injection->thread, NULL, &registers);
		/* A signal that waits would have clone() put off. */
		ptrace(PTRACE_SETSIGMASK, injection->thread, (void *)MASK_SIZE, &all);
		if (!make_call(injection, &result))
			break;
	}
	if (!injection->ended && park(injection) && !injection->stack)
		restore(injection);
	return injection->ended ? -ESRCH : result == -AGAIN ? -EAGAIN : result;
}

void injection_end(struct injection *injection)
{
	if (injection->ended)
		return;
	restore(injection);
	ptrace(PTRACE_SETOPTIONS, injection->thread, NULL, NULL);
	if (injection->stop_came)
		syscall(SYS_tgkill, injection->process, injection->thread, SIGSTOP);
}
