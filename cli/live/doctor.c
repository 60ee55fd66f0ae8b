#include "cli/live/doctor.h"

#include "cli/live/watch.h"
#include "cli/prompt/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>

static const char TRACE_IN_CONTAINER[] =
	"docker run --cap-add=SYS_PTRACE ..., kubectl debug --profile=sysadmin ...";

#define FIND(diagnosis, ...) snprintf((diagnosis)->finding, DOCTOR_TEXT_SIZE, __VA_ARGS__)

/* The first line of a file of the kernel's, without its end; "" if there is none. */
static void read_line(const char *path, char ret[static DOCTOR_TEXT_SIZE])
{
	FILE *file = fopen(path, "re");

	if (!file || !fgets(ret, DOCTOR_TEXT_SIZE, file))
		ret[0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* A number in /proc/self/status. */
static uint64_t own_status(const char *field)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[DOCTOR_TEXT_SIZE];
	uint64_t number = 0;

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, field, strlen(field)) == 0)
			number = strtoull(line + strlen(field) + 1, NULL, 16);
	if (file)
		fclose(file);
	return number;
}

/* Trace a child, as run does: 0, or an errno. */
static int trace_child(void)
{
	pid_t child = fork();
	int failure;

	if (child < 0)
		return errno;
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	failure = ptrace(PTRACE_SEIZE, child, NULL, NULL) < 0 ? errno : 0;
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return failure;
}

/* False, which is found: heapcore was built to read cores only. */
static bool check_built(struct diagnosis *ret)
{
	ret->is_limited = !watch_is_built();
	if (ret->is_limited)
		FIND(ret, "this heapcore only reads cores: it was built without capture");
	return !ret->is_limited;
}

static void check_run(struct diagnosis *ret)
{
	int failure;

	if (!check_built(ret))
		return;
	failure = trace_child();
	ret->is_limited = failure != 0;
	if (failure)
		FIND(ret, "ptrace(2) is refused: %s", strerror(failure));
	else
		FIND(ret, "programs that heapcore starts can be traced");
	ret->change = failure ? TRACE_IN_CONTAINER : NULL;
}

static void check_snap(struct diagnosis *ret)
{
	static const char WHO[] = "sudo sysctl kernel.yama.ptrace_scope=0, or be root";
	enum { MAY_TRACE = 19 }; /* CAP_SYS_PTRACE */
	bool may_all = own_status("CapEff:") >> MAY_TRACE & 1;
	char scope[DOCTOR_TEXT_SIZE];

	if (!check_built(ret))
		return;
	read_line("/proc/sys/kernel/yama/ptrace_scope", scope);
	ret->is_limited = scope[0] == '3' || (scope[0] > '0' && !may_all);
	if (scope[0] == '3')
		FIND(ret,
		     "no process can be traced until the next boot: kernel.yama.ptrace_scope is 3");
	else if (may_all)
		FIND(ret, "processes of all users can be traced");
	else if (scope[0] > '0')
		FIND(ret, "running processes cannot be traced: kernel.yama.ptrace_scope is %c",
		     scope[0]);
	else
		FIND(ret, "processes of this user can be traced");
	ret->change = ret->is_limited && scope[0] != '3' ? WHO : NULL;
}

static void check_kernel_cores(struct diagnosis *ret)
{
	char pattern[DOCTOR_TEXT_SIZE];
	struct rlimit limit;
	bool is_off = getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0;

	read_line("/proc/sys/kernel/core_pattern", pattern);
	if (pattern[0] == '|') {
		FIND(ret, "go to a program: %.200s", pattern + 1);
		return;
	}
	ret->is_limited = is_off || !pattern[0];
	ret->change = is_off ? "ulimit -c unlimited" : NULL;
	if (is_off)
		FIND(ret, "are not written: the limit of their size is 0 (core_pattern: %.160s)",
		     pattern);
	else
		FIND(ret, "are written by core_pattern: %.200s", pattern);
}

static void check_filter(struct diagnosis *ret)
{
	/* Private and shared anonymous memory, headers of files, private huge pages: the usual. */
	enum { WANTED = 0x33 };
	char text[DOCTOR_TEXT_SIZE];
	uint64_t filter;

	read_line("/proc/self/coredump_filter", text);
	filter = text[0] ? strtoull(text, NULL, 16) : WANTED;
	ret->is_limited = (filter & WANTED) != WANTED;
	if (ret->is_limited) {
		FIND(ret, "lack memory: coredump_filter is 0x%" PRIx64 ", see core(5)", filter);
		ret->change = "echo 0x7f > /proc/PID/coredump_filter, which children inherit";
	} else {
		FIND(ret, "have all memory but that of files: coredump_filter is 0x%" PRIx64,
		     filter);
	}
}

static void check_room(struct diagnosis *ret)
{
	const char *folder = getenv("TMPDIR");
	struct statvfs disk;
	uint64_t room;

	folder = folder && *folder ? folder : "/tmp";
	if (statvfs(folder, &disk) < 0) {
		ret->is_limited = true;
		FIND(ret, "%.160s: %s", folder, strerror(errno));
		ret->change = "export TMPDIR=FOLDER";
		return;
	}
	room = (uint64_t)disk.f_bavail * disk.f_frsize;
	FIND(ret, "%" PRIu64 " MiB are free in %.160s; a core is as large as its process's memory",
	     room >> 20, folder);
	/* Less than a process that anyone asks about. */
	ret->is_limited = room >> 30 == 0;
	ret->change = ret->is_limited ? "export TMPDIR=FOLDER, or snap --zstd -o FILE" : NULL;
}

static void check_memory(struct diagnosis *ret)
{
	size_t memory = machine_memory();

	FIND(ret,
	     "%zu MiB for heapcore, by this machine or its control group; a core may be larger",
	     memory >> 20);
	ret->is_limited = memory && memory >> 20 < 64;
}

static void check_debug_information(struct diagnosis *ret)
{
	const char *servers = getenv("DEBUGINFOD_URLS");

	if (!servers || !*servers) {
		FIND(ret,
		     "$DEBUGINFOD_URLS names no server: stripped programs need their debug packages");
		ret->change =
			"export DEBUGINFOD_URLS=https://debuginfod.elfutils.org, then --debuginfod";
	} else {
		FIND(ret, "--debuginfod asks %.200s", servers);
	}
}

static void check_kernel(struct diagnosis *ret)
{
	struct utsname name;

	if (uname(&name) < 0)
		return;
	FIND(ret, "Linux %.64s on %.32s, pages of %ld bytes", name.release, name.machine,
	     sysconf(_SC_PAGESIZE));
}

static const struct check {
	const char *of;
	void (*check)(struct diagnosis *ret);
} checks[] = {
	{ "run, soak", check_run },
	{ "snap, -p", check_snap },
	{ "cores by the kernel", check_kernel_cores },
	{ "these cores", check_filter },
	{ "room for cores", check_room },
	{ "memory", check_memory },
	{ "debug information", check_debug_information },
	{ "kernel", check_kernel },
};

void doctor_visit(void (*visit)(void *data, const struct diagnosis *diagnosis), void *data)
{
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		struct diagnosis diagnosis = { .of = checks[i].of };

		checks[i].check(&diagnosis);
		visit(data, &diagnosis);
	}
}
