#include "cli/prompt/machine.h"

#include "cli/prompt/session.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

/* Where a version of control groups keeps its folders, and limits in them. */
struct version {
	const char *folder, *file;
};

static const struct version versions[] = {
	{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes" },
	{ "/sys/fs/cgroup", "memory.max" },
};

/* The limit in the folder of a control group; SIZE_MAX if there is none. */
static size_t group_limit(const struct version *version, const char *group)
{
	char path[PATH_MAX];
	unsigned long long limit;

	if (snprintf(path, sizeof(path), "%s%s/%s", version->folder, group, version->file) >=
	    (int)sizeof(path))
		return SIZE_MAX;
	_cleanup_(fclose) FILE *file = fopen(path, "re");
	/* Without a limit it says "max". */
	if (!file || fscanf(file, "%llu", &limit) != 1)
		return SIZE_MAX;
	return limit;
}

/* What is allowed to the group and to all around it. */
static size_t groups_limit(const struct version *version, char *group)
{
	size_t least = SIZE_MAX;

	for (;;) {
		size_t limit = group_limit(version, group);
		char *slash = strrchr(group, '/');

		if (limit < least)
			least = limit;
		if (!slash)
			return least;
		*slash = '\0';
	}
}

/* The same for this process, whose groups are "0::/user.slice" or the like. */
static size_t own_limit(void)
{
	char line[PATH_MAX];
	size_t least = SIZE_MAX;

	_cleanup_(fclose) FILE *file = fopen("/proc/self/cgroup", "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *group = strstr(line, ":/");
		size_t limit = SIZE_MAX;

		if (!group)
			continue;
		group[strcspn(group, "\n")] = '\0';
		if (strncmp(line, "0::", 3) == 0)
			limit = groups_limit(&versions[1], group + 1);
		else if (strstr(line, ":memory:"))
			limit = groups_limit(&versions[0], group + 1);
		if (limit < least)
			least = limit;
	}
	return least;
}

void give_up(void)
{
	fputs("heapcore: out of memory while debug information was read\n", stderr);
	exit(EXIT_NOT_ANALYSED);
}

size_t machine_memory(void)
{
	size_t limit = own_limit(), all;
	struct sysinfo machine;

	if (sysinfo(&machine) < 0)
		return limit == SIZE_MAX ? 0 : limit;
	all = ((size_t)machine.totalram + machine.totalswap) * machine.mem_unit;
	return limit < all ? limit : all;
}
