/*
 * Files of control groups are those of the kernel's Documentation/admin-guide/cgroup-v2.rst and
 * cgroup-v1/.
 */
#include "analyzer/capture/clone_obstacle.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

enum {
	SPARE_PROCESSES = 16, /* to be left, two of them for us */
	/* Of what is shared, as much may be written to meanwhile, and copied
	 * then; more makes the kernel kill the clone. Page tables are small. */
	WRITTEN_PART = 4,
};

static struct error *refuse(const char *reason)
{
	return error_create(ERROR_NOT_SUPPORTED, "%s", reason);
}

uint64_t available_memory(void)
{
	_cleanup_(free) char *text = NULL;
	size_t size;
	struct error *error = process_read_file("/proc/meminfo", &text, &size);
	const char *line = error ? NULL : strstr(text, "MemAvailable:");

	if (error)
		error_destroy(error);
	return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) * 1024 : 0;
}

/* A resource that groups of processes may be limited in. */
struct limited {
	const char *controller;		  /* "": of the one hierarchy of version 2 */
	const char *root, *limit, *usage; /* the hierarchy, files of a group */
	const char *cache;		  /* line of memory.stat: used, but soon given up */
};

/* A number that the file of a group begins with, or behind the text key. */
static bool read_number(const char *root, const char *group, const char *file, const char *key,
			uint64_t *ret)
{
	char path[PATH_MAX + 64];
	_cleanup_(free) char *text = NULL;
	size_t size;
	struct error *error;
	const char *number;

	snprintf(path, sizeof(path), "%s%s/%s", root, group, file);
	error = process_read_file(path, &text, &size);
	if (error) {
		error_destroy(error);
		return false;
	}
	number = strstr(text, key);
	if (number)
		number += strlen(key);
	/* "max" is no limit. */
	if (!number || *number < '0' || *number > '9')
		return false;
	*ret = strtoull(number, NULL, 10);
	return true;
}

/* What the resource has left in the group of that path and those above. */
static uint64_t find_left(const struct limited *limited, const char *path)
{
	char group[PATH_MAX];
	uint64_t left = UINT64_MAX;
	char *end;

	snprintf(group, sizeof(group), "%s", path);
	do {
		uint64_t most, used, cache = 0;

		if (read_number(limited->root, group, limited->limit, "", &most) &&
		    read_number(limited->root, group, limited->usage, "", &used)) {
			if (limited->cache)
				read_number(limited->root, group, "memory.stat", limited->cache,
					    &cache);
			used -= cache < used ? cache : used;
			most = most > used ? most - used : 0;
			left = most < left ? most : left;
		}
		end = strrchr(group, '/');
		if (end)
			*end = '\0';
	} while (end);
	return left;
}

/* Whether a line "4:memory:/path" is of that controller; "0::" is of all. */
static bool is_of(const char *line, const char *controller, size_t *ret_start)
{
	const char *names = strchr(line, ':');
	size_t length = strlen(controller);
	const char *found;

	if (!names)
		return false;
	found = strstr(names, controller);
	*ret_start = (size_t)(strchrnul(names + 1, ':') + 1 - line);
	return found && (size_t)(found - line) < *ret_start &&
	       (length == 0 || (found[-1] == ':' || found[-1] == ','));
}

static uint64_t find_limited(char *groups, const struct limited *limited)
{
	uint64_t left = UINT64_MAX;
	size_t start;

	for (char *line = groups; *line;) {
		size_t length = strcspn(line, "\n");
		char *next = line + length + (line[length] == '\n');
		char end = line[length];

		line[length] = '\0';
		if ((*limited->controller ? is_of(line, limited->controller, &start)
					  : strncmp(line, "0::", 3) == 0 && (start = 3))) {
			uint64_t here = find_left(limited, line + start);
			left = here < left ? here : left;
		}
		line[length] = end;
		line = next;
	}
	return left;
}

static struct error *check_groups(pid_t process, uint64_t wanted)
{
	static const struct limited processes[] = {
		{ "", "/sys/fs/cgroup", "pids.max", "pids.current" },
		{ "pids", "/sys/fs/cgroup/pids", "pids.max", "pids.current" },
	};
	static const struct limited memory[] = {
		{ "", "/sys/fs/cgroup", "memory.max", "memory.current", "\ninactive_file " },
		{ "memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
		  "memory.usage_in_bytes", "\ntotal_inactive_file " },
	};
	_cleanup_(free) char *groups = NULL;
	size_t size;
	struct error *error = process_read(process, "cgroup", &groups, &size);

	if (error) {
		error_destroy(error);
		return NULL;
	}
	for (size_t i = 0; i < 2; i++) {
		if (find_limited(groups, &processes[i]) < SPARE_PROCESSES)
			return refuse(
				"its control group is near the limit of processes (pids.max)");
		if (find_limited(groups, &memory[i]) < wanted)
			return refuse("its control group is near the limit of memory (memory.max)");
	}
	return NULL;
}

static struct error *check_map(const struct memory_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		if (map->areas[i].watched)
			return refuse("its memory is watched by userfaultfd(2)");
		/* Writing to a copied one may fail for want of another. */
		if (map->areas[i].huge && !map->areas[i].shared)
			return refuse("it has private huge pages (MAP_HUGETLB)");
	}
	return NULL;
}

static struct error *check_status(pid_t process)
{
	_cleanup_(free) char *text = NULL;
	size_t size;
	struct error *error = process_read(process, "status", &text, &size);
	const char *features;

	if (error)
		return error;
	features = strstr(text, "\nx86_Thread_features:");
	if (features && memmem(features, strcspn(features + 1, "\n"), "shstk", 5))
		return refuse("it has shadow stacks");
	if (strstr(text, "\nState:\tT"))
		return refuse("it is stopped");
	return NULL;
}

struct error *clone_obstacle(pid_t process, const struct memory_map *map, uint64_t size)
{
	uint64_t wanted = size / WRITTEN_PART;
	struct error *error = check_map(map);

	if (!error)
		error = check_status(process);
	if (!error && available_memory() < wanted)
		error = refuse("memory is short");
	return error ? error : check_groups(process, wanted);
}
