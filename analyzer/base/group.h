/*
 * Control groups (cgroups), of either version, that limit what processes use.
 *
 * Files are those of the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/. A group
 * is limited by those around it, too: what counts is the limit that has least left.
 *
 * Groups of a process in a container may lie outside of what can be seen from here. Then they are
 * read as the process sees them, by /proc/PID/root.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { GROUP_PATH_SIZE = 4096 + 64 };

enum group_resource { GROUP_MEMORY, GROUP_PROCESSES };

/* In bytes, or processes. */
struct group_limit {
	char folder[GROUP_PATH_SIZE]; /* of the group that has the limit */
	enum group_resource resource;
	bool is_old; /* version 1 */
	uint64_t most;
	uint64_t whole; /* all that is used */
	uint64_t used;	/* without pages of files, which the kernel gives up before it kills */
};

/* The limit with least left, of the group in that folder and those around it; false: none. */
bool group_limit_in(const char *folder, enum group_resource resource, struct group_limit *ret);

/* Find that of the process. */
bool group_limit_of(pid_t process, enum group_resource resource, struct group_limit *ret);

/* Read whole anew, which is quick; false: the group is gone. */
bool group_limit_peek(struct group_limit *limit);

/* Read all anew; false: it is gone, or has no limit now. */
bool group_limit_read(struct group_limit *limit);

static inline uint64_t group_left(const struct group_limit *limit)
{
	return limit->most > limit->used ? limit->most - limit->used : 0;
}
