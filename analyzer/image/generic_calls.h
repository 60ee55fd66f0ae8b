/*
 * System calls by the numbers of Linux's <asm-generic/unistd.h>, which machines that came to Linux
 * late have in common.
 */
#pragma once

#include "analyzer/image/arch.h"

static const struct arch_call generic_calls[] = {
	CALL(epoll_pwait, 22, EVENTS),
	CALL(getdents64, 61, READ),
	CALL(read, 63, READ),
	CALL(readv, 65, READV),
	CALL(pread64, 67, READ),
	CALL(preadv, 69, READV),
	CALL(exit, 93, EXIT),
	CALL(exit_group, 94, EXIT),
	CALL(kill, 129, KILL),
	CALL(tgkill, 131, KILL),
	CALL(rt_sigsuspend, 133, SUSPEND),
	CALL(recvfrom, 207, READ),
	CALL(recvmsg, 212, RECVMSG),
	CALL(brk, 214, MEMORY),
	CALL(munmap, 215, MEMORY),
	CALL(mremap, 216, MEMORY),
	CALL(mmap, 222, MEMORY),
	CALL(mprotect, 226, MEMORY),
	CALL(madvise, 233, MEMORY),
	CALL(preadv2, 286, READV),
	CALL(epoll_pwait2, 441, EVENTS),
};
