/*
 * The files of a process that has a root of its own, as in a container.
 */
#pragma once

#include <sys/types.h>

enum { PROCESS_ROOT_SIZE = 32 };

/*
 * Find these files, as a path for --sysroot, if their root is not this process's own; it lasts when
 * the process has ended, until the returned file is closed. -1: they are here, or out of reach.
 */
int process_root_open(pid_t process, char ret[static PROCESS_ROOT_SIZE]);
