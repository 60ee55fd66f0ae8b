#include "cli/watch/target.h"

#include "analyzer/base/text.h"
#include "cli/live/snap.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { DEEPEST = 8 };

#define NAME "name:"

/* Hierarchies in which groups are looked for. */
static const char *const roots[] = {
	"/sys/fs/cgroup",
	"/sys/fs/cgroup/unified",
	"/sys/fs/cgroup/systemd",
	"/sys/fs/cgroup/memory",
};

static bool is_group(const char *folder)
{
	char path[GROUP_PATH_SIZE + 32];

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	return access(path, R_OK) == 0;
}

/* Call visit for each group in the folder until it returns true. */
static bool visit_inner(const char *folder,
			bool (*visit)(void *data, const char *folder, const char *name), void *data)
{
	DIR *entries = opendir(folder);
	const struct dirent *entry;
	bool found = false;

	while (entries && !found && (entry = readdir(entries))) {
		char path[GROUP_PATH_SIZE];

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) <
		    (int)sizeof(path))
			found = visit(data, path, entry->d_name);
	}
	if (entries)
		closedir(entries);
	return found;
}

struct search {
	const char *name;
	int depth;
	char *found; /* of GROUP_PATH_SIZE */
};

/* NOLINTNEXTLINE(misc-no-recursion): as deep as DEEPEST at most */
static bool look_for(void *data, const char *folder, const char *name)
{
	struct search *search = data;
	bool found;

	if (strcmp(name, search->name) == 0 && is_group(folder)) {
		snprintf(search->found, GROUP_PATH_SIZE, "%s", folder);
		return true;
	}
	if (search->depth == DEEPEST)
		return false;
	search->depth++;
	found = visit_inner(folder, look_for, search);
	search->depth--;
	return found;
}

/* A group by its path: a folder, or below one of the roots. */
static bool find_path(const char *path, char ret[static GROUP_PATH_SIZE])
{
	snprintf(ret, GROUP_PATH_SIZE, "%s", path);
	if (path[0] == '/' && is_group(ret))
		return true;
	for (size_t i = COUNT_OF(roots); i-- > 0;) {
		snprintf(ret, GROUP_PATH_SIZE, "%s/%s", roots[i], path);
		if (is_group(ret))
			return true;
	}
	ret[0] = '\0';
	return false;
}

static bool find_unit(const char *name, char ret[static GROUP_PATH_SIZE])
{
	struct search search = { .name = name, .found = ret };

	for (size_t i = 0; i < COUNT_OF(roots); i++)
		if (visit_inner(roots[i], look_for, &search))
			return true;
	ret[0] = '\0';
	return false;
}

static bool has_ending(const char *word)
{
	static const char *const endings[] = { ".service", ".scope", ".slice" };

	for (size_t i = 0; i < COUNT_OF(endings); i++) {
		size_t length = strlen(word), size = strlen(endings[i]);

		if (length > size && strcmp(word + length - size, endings[i]) == 0)
			return true;
	}
	return false;
}

void target_name(pid_t process, char ret[static TARGET_NAME_SIZE])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/comm", process);
	_cleanup_(fclose) FILE *file = fopen(path, "re");
	ret[0] = '\0';
	if (file && fgets(ret, TARGET_NAME_SIZE, file))
		ret[strcspn(ret, "\n")] = '\0';
}

static bool is_over(int end)
{
	struct pollfd file = { end, POLLIN, 0 };

	return end < 0 || poll(&file, 1, 0) > 0;
}

/* The largest process of the name, unless the one that was found still runs. */
static void find_named(struct target *target)
{
	const char *wanted = target->word + strlen(NAME);
	const struct dirent *entry;
	uint64_t most = 0;
	DIR *processes;

	if (!is_over(target->end))
		return;
	target_close(target);
	target->process = 0;
	processes = opendir("/proc");
	while (processes && (entry = readdir(processes))) {
		pid_t process = (pid_t)strtol(entry->d_name, NULL, 10);
		char name[TARGET_NAME_SIZE] = "";
		uint64_t size;

		if (process > 0)
			target_name(process, name);
		/* The kernel cuts names. */
		if (!name[0] || strncmp(name, wanted, TARGET_NAME_SIZE - 1) != 0)
			continue;
		size = anonymous_memory(process);
		if (size > most) {
			most = size;
			target->process = process;
		}
	}
	if (processes)
		closedir(processes);
	target->end = target->process ? (int)syscall(SYS_pidfd_open, target->process, 0) : -1;
	if (target->end < 0)
		target->process = 0;
}

struct error *target_open(const char *word, struct target *ret)
{
	*ret = (struct target){ .word = word, .end = -1 };
	if (word[0] != '\0' && strspn(word, "0123456789") == strlen(word)) {
		TRY(parse_process(word, &ret->process));
		ret->end = (int)syscall(SYS_pidfd_open, ret->process, 0);
		if (ret->end >= 0)
			return NULL;
		return errno == ESRCH || errno == EINVAL
			       ? error_create(ERROR_USAGE, "there is no process %d", ret->process)
			       : error_system("process %d", ret->process);
	}
	ret->kind = TARGET_NAME;
	if (strncmp(word, NAME, strlen(NAME)) == 0 && word[strlen(NAME)])
		return NULL;
	ret->kind = TARGET_GROUP;
	if (strchr(word, '/') && find_path(word, ret->folder))
		return NULL;
	ret->kind = TARGET_UNIT;
	if (!strchr(word, '/') && has_ending(word)) {
		find_unit(word, ret->folder);
		return NULL;
	}
	return error_not(word,
			 "a process, 'name:' and a name, a control group or a unit of systemd");
}

void target_close(struct target *target)
{
	if (target->end >= 0)
		close(target->end);
	target->end = -1;
}

bool target_has_ended(struct target *target)
{
	if (target->kind == TARGET_PROCESS)
		return is_over(target->end);
	if (target->kind == TARGET_NAME)
		return false;
	if (target->folder[0] && is_group(target->folder))
		return false;
	if (target->kind == TARGET_GROUP)
		return true;
	find_unit(target->word, target->folder);
	return false;
}

struct listing {
	pid_t *list;
	size_t count;
	int depth;
};

/* NOLINTNEXTLINE(misc-no-recursion): as deep as DEEPEST at most */
static bool list_group(void *data, const char *folder, const char *name)
{
	struct listing *listing = data;
	char path[GROUP_PATH_SIZE + 32];
	int process;

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	_cleanup_(fclose) FILE *file = fopen(path, "re");
	while (file && listing->count < MOST_PROCESSES && fscanf(file, "%d", &process) == 1)
		if (process > 0) /* 0: of a namespace that is not seen from here */
			listing->list[listing->count++] = process;
	if (listing->depth < DEEPEST) {
		listing->depth++;
		visit_inner(folder, list_group, listing);
		listing->depth--;
	}
	return false;
}

size_t target_processes(struct target *target, pid_t ret[static MOST_PROCESSES])
{
	struct listing listing = { .list = ret };

	if (target->kind == TARGET_NAME)
		find_named(target);
	if (target->kind == TARGET_PROCESS || target->kind == TARGET_NAME) {
		ret[0] = target->process;
		return target->process > 0;
	}
	if (target->folder[0])
		list_group(&listing, target->folder, "");
	return listing.count;
}

/* Fields of /proc/PID/statm, in bytes: all, resident, shared, and so on; false: it has ended. */
enum { STATM_ALL, STATM_RESIDENT, STATM_SHARED, STATM_CODE, STATM_NONE, STATM_DATA, STATM_FIELDS };

static bool read_statm(pid_t process, uint64_t ret[static STATM_FIELDS])
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char path[64];
	int count;

	snprintf(path, sizeof(path), "/proc/%d/statm", process);
	_cleanup_(fclose) FILE *file = fopen(path, "re");
	for (count = 0; file && count < STATM_FIELDS; count++) {
		if (fscanf(file, "%" SCNu64, &ret[count]) != 1)
			return false;
		ret[count] *= page;
	}
	return count == STATM_FIELDS;
}

uint64_t anonymous_memory(pid_t process)
{
	uint64_t sizes[STATM_FIELDS];

	if (!read_statm(process, sizes) || sizes[STATM_RESIDENT] < sizes[STATM_SHARED])
		return 0;
	return sizes[STATM_RESIDENT] - sizes[STATM_SHARED];
}

static void add_resource(pid_t process, enum meter_kind kind, struct meter *meters, size_t *count)
{
	struct rlimit limit;

	if (prlimit(process, kind == METER_DATA ? RLIMIT_DATA : RLIMIT_AS, NULL, &limit) < 0 ||
	    limit.rlim_cur == RLIM_INFINITY)
		return;
	meters[(*count)++] =
		(struct meter){ .kind = kind, .process = process, .most = limit.rlim_cur };
}

size_t target_meters(struct target *target, struct meter ret[static MOST_METERS])
{
	pid_t *processes = calloc(MOST_PROCESSES, sizeof(*processes)), process = 0;
	size_t count = 0;

	if (processes && target_processes(target, processes))
		process = processes[0];
	free(processes);
	if (!process)
		return 0;
	ret[count] = (struct meter){ .kind = METER_GROUP, .process = process };
	if ((target->folder[0] &&
	     group_limit_in(target->folder, GROUP_MEMORY, &ret[count].limit)) ||
	    group_limit_of(process, GROUP_MEMORY, &ret[count].limit))
		count++;
	else
		ret[count++].kind = METER_MACHINE;
	if (!target->folder[0]) {
		add_resource(process, METER_ADDRESSES, ret, &count);
		add_resource(process, METER_DATA, ret, &count);
	}
	return count;
}

static bool read_machine(uint64_t *ret_used, uint64_t *ret_most)
{
	_cleanup_(fclose) FILE *file = fopen("/proc/meminfo", "re");
	uint64_t most = 0, available = 0;
	char line[128];

	while (file && !available && fgets(line, sizeof(line), file)) {
		sscanf(line, "MemTotal: %" SCNu64, &most);
		sscanf(line, "MemAvailable: %" SCNu64, &available);
	}
	*ret_most = most * 1024;
	*ret_used = (available < most ? most - available : 0) * 1024;
	return most > 0;
}

bool meter_read(struct meter *meter, unsigned int percent, uint64_t *ret_used, uint64_t *ret_most)
{
	uint64_t sizes[STATM_FIELDS];

	switch (meter->kind) {
	case METER_GROUP:
		/* Limits are changed seldom. */
		if (!(meter->readings++ % 32 ? group_limit_peek(&meter->limit)
					     : group_limit_read(&meter->limit)))
			return false;
		*ret_most = meter->limit.most;
		*ret_used = meter->limit.whole;
		/* Telling how much of that is of files takes long. */
		if (*ret_used / 100 * 100 < *ret_most / 100 * percent)
			return true;
		group_limit_read(&meter->limit);
		*ret_used = meter->limit.used;
		return true;
	case METER_MACHINE:
		return read_machine(ret_used, ret_most);
	default:
		if (!read_statm(meter->process, sizes))
			return false;
		*ret_most = meter->most;
		*ret_used = sizes[meter->kind == METER_DATA ? STATM_DATA : STATM_ALL];
		return true;
	}
}

const char *meter_name(const struct meter *meter)
{
	static const char *const names[] = {
		[METER_GROUP] = "its control group's limit",
		[METER_ADDRESSES] = "its limit of address space (RLIMIT_AS)",
		[METER_DATA] = "its limit of data (RLIMIT_DATA)",
		[METER_MACHINE] = "this machine's memory",
	};

	return names[meter->kind];
}
