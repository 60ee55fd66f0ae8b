/*
 * Cores that systemd-coredump keeps, by what coredumpctl(1) calls a match: the number of a process,
 * the name of a command or the path of a program.
 *
 * The journal knows them; it is asked by running coredumpctl, without a shell. Where that is not
 * installed, or the cores are another machine's, the names of their files tell enough:
 *
 *	/var/lib/systemd/coredump/core.COMMAND.UID.BOOT.PID.MICROSECONDS.zst
 */
#pragma once

#include "cli/prompt/session.h"

#include <sys/types.h>

/* The folder of systemd-coredump's files. */
extern const char kept_cores_folder[];

/* The newest core that matches; { .child = 0 } is none. */
struct kept_core {
	char *path;  /* to open it by; a pipe's while the child writes it */
	char *title; /* names the core, for people */
	int fd;	     /* of the pipe, or -1 */
	pid_t child; /* that writes it, or 0 */
};

/* Find it, and say which it is. Below sysroot, unless that is NULL. */
struct error *kept_core_find(struct session *session, const char *match, const char *sysroot,
			     struct kept_core *ret);

/* Once it was read: whether all of it was written. */
struct error *kept_core_finish(struct kept_core *core);
void kept_core_deinit(struct kept_core *core);
DEFINE_DEINIT(kept_core_deinit, struct kept_core)
