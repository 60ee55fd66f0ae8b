/*
 * The result that the program would see is replaced by ERESTARTNOHAND, the kernel's own for "begin
 * anew, unless a handler is to be run: then EINTR". So whether a signal has come is decided by the
 * kernel, when the thread goes on.
 */
#include "analyzer/capture/interrupted_call.h"

#include "analyzer/capture/system_call.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

enum { RESTART_UNLESS_HANDLED = 514 }; /* ERESTARTNOHAND in the kernel */

/*
 * Whether EINTR means that the call has done nothing. It does not for close(), and nobody knows for
 * ioctl().
 */
static bool has_done_nothing(long call)
{
	switch (call) {
	/* They only wait; what they wait for stays until it is fetched. */
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_rt_sigtimedwait: /* sigwait(), sigwaitinfo() */
	case SYS_io_getevents:
	/* With requests to submit, it returns how many were. */
	case SYS_io_uring_enter:
	/* All operations are done at once, or none. */
	case SYS_semop:
	case SYS_semtimedop:
	/* On sockets with SO_RCVTIMEO or SO_SNDTIMEO. What has moved some bytes
	 * or messages returns how many. */
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_accept:
	case SYS_accept4:
	/* Waits on for the connection that it began. */
	case SYS_connect:
		return true;
	default:
		return false;
	}
}

/* A register of the thread; errno is 0 unless it cannot be read. */
static long peek(pid_t thread, size_t offset)
{
	errno = 0;
	return ptrace(PTRACE_PEEKUSER, thread, offset, NULL);
}

/* Calls by int 0x80 have other numbers. */
static bool is_by_syscall(pid_t thread)
{
	long place = peek(thread, offsetof(struct user_regs_struct, rip));

	return errno == 0 && system_call_is_at(thread, (uint64_t)place - SYSTEM_CALL_SIZE);
}

void interrupted_call_restart(pid_t thread)
{
	size_t result = offsetof(struct user_regs_struct, rax);
	size_t call = offsetof(struct user_regs_struct, orig_rax);

	if (peek(thread, result) == -EINTR && has_done_nothing(peek(thread, call)) && errno == 0 &&
	    is_by_syscall(thread))
		ptrace(PTRACE_POKEUSER, thread, result, -(long)RESTART_UNLESS_HANDLED);
}
