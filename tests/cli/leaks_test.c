/*
 * If an allocation fails, all others are freed: each allocation of a command fails once, all in one
 * process, and as many are left after as before. tests/cli/shortage_test.py checks the messages.
 */
#include "cli/prompt/execute.h"
#include "tests/assertions.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* glibc's own, behind those here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *place);

static bool counts;
static long live, attempts, failing;

static bool is_short(void)
{
	return counts && ++attempts == failing;
}

static void *note(void *place)
{
	live += counts && place;
	return place;
}

void *malloc(size_t size)
{
	return is_short() ? NULL : note(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
	return is_short() ? NULL : note(__libc_calloc(count, size));
}

void *realloc(void *old, size_t size)
{
	void *place = is_short() ? NULL : __libc_realloc(old, size);

	return old ? place : note(place);
}

void *reallocarray(void *old, size_t count, size_t size)
{
	size_t bytes;

	return __builtin_mul_overflow(count, size, &bytes) ? NULL : realloc(old, bytes);
}

void free(void *place)
{
	live -= counts && place;
	__libc_free(place);
}

/* The build unpacked it for tests/fuzz, beside this program's folder. */
static void find_core(char ret[static PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", ret, PATH_MAX - 64);

	assert_true(length > 0);
	ret[length] = '\0';
	for (int i = 0; i < 2; i++)
		*strrchr(ret, '/') = '\0';
	strcat(ret, "/fuzz/files/trixie-small.core");
}

static void ask(const char *path, const char *line)
{
	/* Avoid leaks in libdw itself: read no files. */
	const struct debug_options options = { .sysroot = "/nonexistent" };
	_cleanup_(session_deinit) struct session session;
	struct error *error;

	session_init(&session, true);
	session.debug = &options;
	error = session_open(&session, path);
	if (error)
		session_complain(&session, error);
	else
		execute_line(&session, line);
	fflush(stdout);
}

static long ask_failing(const char *path, const char *line, long number)
{
	live = attempts = 0;
	failing = number;
	counts = true;
	ask(path, line);
	counts = false;
	return live;
}

/* Threads would be counted by nobody, and what is said is of no interest. */
static void settle(int *ret_output, int *ret_errors)
{
	int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
	fflush(stdout);
	*ret_output = dup(STDOUT_FILENO);
	*ret_errors = dup(STDERR_FILENO);
	dup2(nothing, STDOUT_FILENO);
	dup2(nothing, STDERR_FILENO);
	close(nothing);
}

TEST(all_is_given_back_where_memory_is_short)
{
	static const char *const lines[] = {
		"summarize used", "summarize leaked",
		"gate",		  "bill",
		"fragmentation",  "waste",
		"memprof sizes",  "let x = leaked minus unreferenced",
	};
	long leaked = 0, place = 0, count = 0;
	const char *where = "";
	char path[PATH_MAX];
	int output, errors;

	find_core(path);
	settle(&output, &errors);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		long all;

		/* Allocations that libraries make once and keep are no leaks. */
		ask_failing(path, lines[i], 0);
		leaked += ask_failing(path, lines[i], 0);
		all = attempts;
		for (long number = 1; number <= all && leaked == 0; number++) {
			leaked = ask_failing(path, lines[i], number);
			place = number;
			where = lines[i];
			count++;
		}
	}
	dup2(output, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	if (leaked)
		fail_msg("%s, allocation %ld: %ld are not given back", where, place, leaked);
	assert_true(count > 300);
}
