/*
 * Why the process ended, as its core says: the signal, and what stood behind it.
 *
 * libstdc++ keeps the exceptions that a thread handles in a thread-local struct __cxa_eh_globals
 * (libsupc++/unwind-cxx.h), as libc++abi does: std::terminate() finds an uncaught one there. glibc
 * keeps the message of assert() and of a failed check of the heap at __abort_msg, behind its size
 * (stdlib/abort_msg.h, assert/assert.c). The kernel says which address a fault was at
 * (sigaction(2)).
 */
#pragma once

#include "analyzer/analysis/analysis.h"

struct ending {
	int signal;	 /* 0: it did not end, or the core does not say why */
	uint32_t thread; /* that took the signal */
	uint32_t sender; /* another process that sent it; 0: none did */
	char *place;	 /* "strlen(), called by parse() at cart.c:12", owned; or NULL */
	char *reason;	 /* "uncaught std::runtime_error", owned; NULL: not known */
	char *message;	 /* what the program said, which is content; owned, or NULL */
};

void ending_deinit(struct ending *ending);
DEFINE_DEINIT(ending_deinit, struct ending)

struct error *ending_find(struct analysis *analysis, struct ending *ret);
