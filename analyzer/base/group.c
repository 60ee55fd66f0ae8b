#include "analyzer/base/group.h"

#include "analyzer/base/cleanup.h"
#include "analyzer/base/macros.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_SIZE = 1 << 14 };

/* "No limit", in version 1, is the highest number of pages. */
static const uint64_t NO_LIMIT = UINT64_C(1) << 62;

struct kind {
	const char *controller; /* "": of the one hierarchy of version 2 */
	const char *root, *limit, *usage;
	const char *lower;	 /* another limit, from which on processes are slowed; or NULL */
	const char *given_up[3]; /* lines of memory.stat, in bytes; ended by NULL */
};

/* By resource and version. */
static const struct kind kinds[][2] = {
	[GROUP_MEMORY] = {
		{ "", "/sys/fs/cgroup", "memory.max", "memory.current", "memory.high",
		  { "\ninactive_file ", "\nactive_file " } },
		{ "memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", NULL,
		  { "\ntotal_inactive_file ", "\ntotal_active_file " } },
	},
	[GROUP_PROCESSES] = {
		{ "", "/sys/fs/cgroup", "pids.max", "pids.current", NULL, { NULL } },
		{ "pids", "/sys/fs/cgroup/pids", "pids.max", "pids.current", NULL, { NULL } },
	},
};

/* The beginning of a file, terminated; false: it cannot be read. */
static bool read_text(const char *folder, const char *name, char ret[static TEXT_SIZE])
{
	char path[GROUP_PATH_SIZE + 64];
	_cleanup_(close) int fd = -1;
	ssize_t size;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? -1 : read(fd, ret, TEXT_SIZE - 1);
	if (size < 0)
		return false;
	ret[size] = '\0';
	return true;
}

/* A number; "max" is none. */
static bool read_number(const char *folder, const char *name, uint64_t *ret)
{
	char text[TEXT_SIZE];

	if (!read_text(folder, name, text) || text[0] < '0' || text[0] > '9')
		return false;
	*ret = strtoull(text, NULL, 10);
	return true;
}

static uint64_t read_given_up(const char *folder, const struct kind *kind)
{
	/* The first line, too, begins behind an end. */
	char text[TEXT_SIZE + 1] = "\n";
	uint64_t sum = 0;

	if (!kind->given_up[0] || !read_text(folder, "memory.stat", text + 1))
		return 0;
	for (size_t i = 0; kind->given_up[i]; i++) {
		const char *line = strstr(text, kind->given_up[i]);

		if (line)
			sum += strtoull(line + strlen(kind->given_up[i]), NULL, 10);
	}
	return sum;
}

bool group_limit_peek(struct group_limit *limit)
{
	return read_number(limit->folder, kinds[limit->resource][limit->is_old].usage,
			   &limit->whole);
}

/* The lower of two limits. */
static uint64_t read_limit(const struct group_limit *limit, const struct kind *kind)
{
	uint64_t most = NO_LIMIT, lower = NO_LIMIT;

	read_number(limit->folder, kind->limit, &most);
	if (kind->lower)
		read_number(limit->folder, kind->lower, &lower);
	return lower < most ? lower : most;
}

bool group_limit_read(struct group_limit *limit)
{
	const struct kind *kind = &kinds[limit->resource][limit->is_old];
	uint64_t given_up;

	limit->most = read_limit(limit, kind);
	if (limit->most >= NO_LIMIT || !group_limit_peek(limit))
		return false;
	given_up = read_given_up(limit->folder, kind);
	limit->used = limit->whole - (given_up < limit->whole ? given_up : limit->whole);
	return true;
}

/* True if the folder is that of a group; its last part is cut off otherwise. */
static bool is_group(const char *folder)
{
	char path[GROUP_PATH_SIZE + 64];

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	return access(path, F_OK) == 0;
}

bool group_limit_in(const char *folder, enum group_resource resource, struct group_limit *ret)
{
	struct group_limit limit = { .resource = resource };
	bool found = false;
	char *slash;

	snprintf(limit.folder, sizeof(limit.folder), "%s", folder);
	do {
		for (int version = 0; version < 2; version++) {
			limit.is_old = version;
			if (!group_limit_read(&limit) ||
			    (found && group_left(&limit) >= group_left(ret)))
				continue;
			*ret = limit;
			found = true;
		}
		slash = strrchr(limit.folder, '/');
		if (slash)
			*slash = '\0';
	} while (slash && is_group(limit.folder));
	return found;
}

/* True if the comma-separated list has the name. "" is in an empty list only. */
static bool has_name(const char *names, const char *name)
{
	size_t length = strlen(name);

	for (; *names && length; names += strcspn(names, ","), names += *names == ',')
		if (strcspn(names, ",") == length && memcmp(names, name, length) == 0)
			return true;
	return *names == '\0' && length == 0;
}

/* The folder of the group that a line tells, if it has what limits the resource. */
static bool find_folder(pid_t process, const struct kind *kind, const char *group,
			char ret[static GROUP_PATH_SIZE])
{
	char path[GROUP_PATH_SIZE + 64];

	/* "/../x": of a container beside that of this process. */
	if (strncmp(group, "/..", 3) != 0) {
		snprintf(ret, GROUP_PATH_SIZE, "%s%s", kind->root, strcmp(group, "/") ? group : "");
		snprintf(path, sizeof(path), "%s/%s", ret, kind->usage);
		/* The root of all groups has no such file. */
		if (access(path, F_OK) == 0 || (is_group(ret) && strcmp(group, "/") != 0))
			return true;
	}
	snprintf(ret, GROUP_PATH_SIZE, "/proc/%d/root%s", process, kind->root);
	snprintf(path, sizeof(path), "%s/%s", ret, kind->usage);
	return access(path, F_OK) == 0;
}

/* Lines are "4:memory:/path"; "0::/path" is of version 2. */
static bool group_folder(pid_t process, enum group_resource resource,
			 char ret[static GROUP_PATH_SIZE])
{
	char text[TEXT_SIZE], folder[64], *rest = text, *line;
	bool found = false;

	snprintf(folder, sizeof(folder), "/proc/%d", process);
	if (!read_text(folder, "cgroup", text))
		return false;
	while (!found && (line = strsep(&rest, "\n"))) {
		const char *names = (strsep(&line, ":"), strsep(&line, ":"));

		for (int version = 0; line && !found && version < 2; version++) {
			const struct kind *kind = &kinds[resource][version];

			found = has_name(names, kind->controller) &&
				find_folder(process, kind, line, ret);
		}
	}
	return found;
}

bool group_limit_of(pid_t process, enum group_resource resource, struct group_limit *ret)
{
	char folder[GROUP_PATH_SIZE];

	return group_folder(process, resource, folder) && group_limit_in(folder, resource, ret);
}
