/*
 * System calls by the numbers of Linux's <asm-generic/unistd.h>, which machines that came to Linux
 * late have in common.
 */
#pragma once

#include "analyzer/image/arch.h"

static const struct arch_call generic_calls[] = {
	{ 22, SYSTEM_CALL_EVENTS },   /* epoll_pwait */
	{ 61, SYSTEM_CALL_READ },     /* getdents64 */
	{ 63, SYSTEM_CALL_READ },     /* read */
	{ 65, SYSTEM_CALL_READV },    /* readv */
	{ 67, SYSTEM_CALL_READ },     /* pread64 */
	{ 69, SYSTEM_CALL_READV },    /* preadv */
	{ 93, SYSTEM_CALL_EXIT },     /* exit */
	{ 94, SYSTEM_CALL_EXIT },     /* exit_group */
	{ 131, SYSTEM_CALL_TGKILL },  /* tgkill */
	{ 133, SYSTEM_CALL_SUSPEND }, /* rt_sigsuspend */
	{ 207, SYSTEM_CALL_READ },    /* recvfrom */
	{ 212, SYSTEM_CALL_RECVMSG }, /* recvmsg */
	{ 214, SYSTEM_CALL_MEMORY },  /* brk */
	{ 215, SYSTEM_CALL_MEMORY },  /* munmap */
	{ 216, SYSTEM_CALL_MEMORY },  /* mremap */
	{ 222, SYSTEM_CALL_MEMORY },  /* mmap */
	{ 226, SYSTEM_CALL_MEMORY },  /* mprotect */
	{ 233, SYSTEM_CALL_MEMORY },  /* madvise */
	{ 286, SYSTEM_CALL_READV },   /* preadv2 */
	{ 441, SYSTEM_CALL_EVENTS },  /* epoll_pwait2 */
};
