/*
 * System calls that end with EINTR when their thread is merely stopped.
 *
 * The kernel begins most calls anew after a stop. Some it ends with EINTR instead, which few
 * programs expect where no signal was sent. These can be begun anew as well, where nothing of them
 * was done yet.
 */
#ifndef ANALYZER_CAPTURE_INTERRUPTED_CALL_H
#define ANALYZER_CAPTURE_INTERRUPTED_CALL_H

#include <sys/types.h>

/*
 * The thread has just been stopped by PTRACE_INTERRUPT: if that ended its call, have the kernel
 * begin it anew when the thread goes on. A signal with a handler that comes before still ends the
 * call with EINTR. A time limit of the call begins anew.
 */
void interrupted_call_restart(pid_t thread);

#endif
