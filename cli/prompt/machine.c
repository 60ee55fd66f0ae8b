#include "cli/prompt/machine.h"

#include "analyzer/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>

/* A signal handler gets no argument. */
static struct progress *caught;

static void interrupt(int number)
{
	atomic_store(&caught->interrupted, true);
}

void interrupt_catch(struct progress *progress, bool once)
{
	struct sigaction action = {
		.sa_handler = interrupt,
		.sa_flags = once ? (int)SA_RESETHAND : 0,
	};

	caught = progress;
	sigaction(SIGINT, &action, NULL);
}

struct mapping {
	uintptr_t start, end;
};

/* A signal handler gets no argument. */
static atomic_bool happened;

static unsigned int digit_of(char character)
{
	return (unsigned int)(character <= '9' ? character - '0' : character - 'a' + 10);
}

/* Look for address in lines of "START-END ...", in what is open as maps. */
static bool search_maps(int maps, uintptr_t address, struct mapping *ret)
{
	uintptr_t bounds[2] = { 0 };
	size_t field = 0; /* index into bounds; 2: past them */
	char buffer[2048];
	ssize_t size;

	while ((size = read(maps, buffer, sizeof(buffer))) > 0) {
		for (ssize_t i = 0; i < size; i++) {
			if (buffer[i] == '\n')
				field = bounds[0] = bounds[1] = 0;
			else if (field == 2)
				continue;
			else if (buffer[i] != "- "[field])
				bounds[field] = bounds[field] * 16 + digit_of(buffer[i]);
			else if (++field == 2 && address >= bounds[0] && address < bounds[1]) {
				*ret = (struct mapping){ bounds[0], bounds[1] };
				return true;
			}
		}
	}
	return false;
}

static bool find_mapping(uintptr_t address, struct mapping *ret)
{
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool found = maps >= 0 && search_maps(maps, address, ret);

	if (maps >= 0)
		close(maps);
	return found;
}

/* Asked of the kernel, which fails where a read would raise SIGBUS. */
static bool is_gone(uintptr_t page)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)page, 1 };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0 && errno == EFAULT;
}

/*
 * All that is gone of the mapping which has that page: up to its end, as the file ends before. One
 * page after the other would be too many mappings.
 */
static struct mapping find_gone(uintptr_t page)
{
	uintptr_t page_size = (uintptr_t)getpagesize();
	struct mapping mapping = { page, page + page_size };
	uintptr_t low, high = page;

	if (!find_mapping(page, &mapping))
		return mapping;
	low = mapping.start;
	while (low < high) {
		uintptr_t middle = low + (high - low) / 2 / page_size * page_size;

		if (is_gone(middle))
			high = middle;
		else
			low = middle + page_size;
	}
	return (struct mapping){ high, mapping.end };
}

/* Called on any thread, at any instruction that reads memory. */
static void map_zeros(int number, siginfo_t *information, void *context)
{
	uintptr_t page = (uintptr_t)information->si_addr & ~((uintptr_t)getpagesize() - 1);
	int saved = errno;

	/* A page that lies behind the end of its file, and nothing else. */
	if (information->si_code == BUS_ADRERR) {
		struct mapping gone = find_gone(page);

		if (mmap((void *)gone.start, gone.end - gone.start, PROT_READ | PROT_WRITE,
			 MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			 0) != MAP_FAILED) {
			atomic_store(&happened, true);
			errno = saved;
			return;
		}
	}
	/* It comes again at once, and ends the program. */
	signal(number, SIG_DFL);
}

void vanished_catch(void)
{
	struct sigaction action = {
		.sa_sigaction = map_zeros,
		.sa_flags = SA_SIGINFO,
	};

	sigaction(SIGBUS, &action, NULL);
}

bool vanished_any(void)
{
	return atomic_load(&happened);
}

void vanished_forget(void)
{
	atomic_store(&happened, false);
}

/* The folder and file in which a version of control groups keeps limits. */
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

/* The lowest limit of the group and of those around it. */
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

/* The limit of this process, whose groups are "0::/user.slice" or the like. */
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

const char *cache_folder(void)
{
	static char folder[PATH_MAX]; /* one for the process, as its environment is */
	const char *refusal = getenv("HEAPCORE_NO_CACHE");
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int length;

	if (refusal && *refusal)
		return NULL;
	if (cache && cache[0] == '/')
		length = snprintf(folder, sizeof(folder), "%s/heapcore", cache);
	else if (home && home[0] == '/')
		length = snprintf(folder, sizeof(folder), "%s/.cache/heapcore", home);
	else
		return NULL;
	return (size_t)length < sizeof(folder) ? folder : NULL;
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
