/*
 * The instruction by which 64-bit code of x86-64 calls the kernel.
 */
#ifndef ANALYZER_CAPTURE_SYSTEM_CALL_H
#define ANALYZER_CAPTURE_SYSTEM_CALL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/types.h>

enum { SYSTEM_CALL_SIZE = 2 }; /* bytes of it */

/* Whether it stands there in the memory of a thread that is held. */
static inline bool system_call_is_at(pid_t thread, uint64_t address)
{
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, thread, address, NULL);
	return errno == 0 && (word & 0xffff) == 0x050f;
}

#endif
