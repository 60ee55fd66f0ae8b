/*
 * System calls by the numbers of Linux's <asm-generic/unistd.h>, which machines that came to Linux
 * late have in common.
 */
#ifndef ANALYZER_IMAGE_GENERIC_CALLS_H
#define ANALYZER_IMAGE_GENERIC_CALLS_H

#include "analyzer/image/arch.h"

static const struct arch_call generic_calls[] = {
	{ 93, SYSTEM_CALL_EXIT },     /* exit */
	{ 94, SYSTEM_CALL_EXIT },     /* exit_group */
	{ 131, SYSTEM_CALL_TGKILL },  /* tgkill */
	{ 133, SYSTEM_CALL_SUSPEND }, /* rt_sigsuspend */
	{ 214, SYSTEM_CALL_MEMORY },  /* brk */
	{ 215, SYSTEM_CALL_MEMORY },  /* munmap */
	{ 216, SYSTEM_CALL_MEMORY },  /* mremap */
	{ 222, SYSTEM_CALL_MEMORY },  /* mmap */
	{ 226, SYSTEM_CALL_MEMORY },  /* mprotect */
	{ 233, SYSTEM_CALL_MEMORY },  /* madvise */
};

#endif
