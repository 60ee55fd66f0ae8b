#include "cli/machine.h"

#include "cli/session.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

static const char GROUPS[] = "/sys/fs/cgroup";

/* The limit in the folder of a control group; SIZE_MAX if there is none. */
static size_t group_limit(const char *folder)
{
	char path[PATH_MAX];
	unsigned long long limit;

	if (snprintf(path, sizeof(path), "%s%s/memory.max", GROUPS, folder) >=
	    (int)sizeof(path))
		return SIZE_MAX;
	_cleanup_(fclose) FILE *file = fopen(path, "re");
	/* Without a limit it says "max". */
	if (!file || fscanf(file, "%llu", &limit) != 1)
		return SIZE_MAX;
	return limit;
}

/* The control group of this process in version 2, as "/user.slice". */
static void find_group(char *ret, size_t size)
{
	char line[PATH_MAX];

	ret[0] = '\0';
	_cleanup_(fclose) FILE *file = fopen("/proc/self/cgroup", "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "0::/", 4) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(ret, size, "%s", line + 3);
	}
}

/* What is allowed to its group and to all around it. */
static size_t groups_limit(void)
{
	char group[PATH_MAX];
	size_t least = SIZE_MAX;

	find_group(group, sizeof(group));
	for (;;) {
		size_t limit = group_limit(group);
		char *slash = strrchr(group, '/');

		if (limit < least)
			least = limit;
		if (!slash)
			return least;
		*slash = '\0';
	}
}

void give_up(void)
{
	fputs("heapcore: out of memory while debug information was read\n",
	      stderr);
	exit(EXIT_NOT_ANALYSED);
}

size_t machine_memory(void)
{
	size_t limit = groups_limit(), all;
	struct sysinfo machine;

	if (sysinfo(&machine) < 0)
		return limit == SIZE_MAX ? 0 : limit;
	all = ((size_t)machine.totalram + machine.totalswap) * machine.mem_unit;
	return limit < all ? limit : all;
}
