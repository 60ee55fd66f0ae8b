#include "cli/live/gate_self_check.h"

#include "analyzer/analysis/analysis.h"
#include "analyzer/capture/snapshot.h"
#include "analyzer/gate/leak_kinds.h"
#include "cli/live/copies.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { SINGLES = 5, RINGS = 3, KEPT = 2 };

/*
 * Addresses of the planted blocks, sent by the leaking process. Their bits are inverted, because as
 * addresses they would be references.
 */
struct planted {
	uint64_t singles[SINGLES]; /* lost one by one; the last is large */
	uint64_t rings[2 * RINGS]; /* lost two by two, which hold each other */
	uint64_t kept[KEPT];
};

enum { SINGLE_SIZE = 1000, LARGE_SIZE = 1 << 20, RING_SIZE = 72 };

/* Volatile, for nothing ever reads it. */
static void *volatile kept[KEPT];

static uint64_t hide(const void *block)
{
	return ~(uint64_t)(uintptr_t)block;
}

static __attribute__((noinline)) bool plant(struct planted *ret)
{
	for (size_t i = 0; i < SINGLES; i++) {
		void *block = calloc(1, i + 1 < SINGLES ? SINGLE_SIZE : LARGE_SIZE);

		if (!block)
			return false;
		ret->singles[i] = hide(block);
	}
	for (size_t i = 0; i < RINGS; i++) {
		void **one = calloc(1, RING_SIZE);
		void **other = calloc(1, RING_SIZE);

		if (!one || !other) {
			free(one);
			free(other);
			return false;
		}
		one[1] = other;
		other[1] = one;
		ret->rings[2 * i] = hide(one);
		ret->rings[2 * i + 1] = hide(other);
	}
	return true;
}

static void keep(struct planted *ret)
{
	for (size_t i = 0; i < KEPT; i++) {
		kept[i] = calloc(1, SINGLE_SIZE);
		ret->kept[i] = hide(kept[i]);
	}
}

int plant_leaks_main(int count, char **arguments)
{
	struct planted planted, others;
	char end;

	/*
	 * Plant twice: stale values on the stack and in registers then refer to the second set,
	 * which is not checked.
	 */
	if (!plant(&planted) || !plant(&others))
		return EXIT_FAILURE;
	keep(&planted);
	if (write(STDOUT_FILENO, &planted, sizeof(planted)) != (ssize_t)sizeof(planted))
		return EXIT_FAILURE;
	/* Until nobody is at the other end. */
	while (read(STDIN_FILENO, &end, 1) < 0 && errno == EINTR)
		;
	_exit(EXIT_SUCCESS);
}

/* The leaking process; -1 where there is none. */
struct planter {
	pid_t process;
	int socket;
};

static void planter_end(struct planter *planter)
{
	if (planter->socket >= 0)
		close(planter->socket);
	if (planter->process < 0)
		return;
	kill(planter->process, SIGKILL);
	while (waitpid(planter->process, NULL, 0) < 0 && errno == EINTR)
		;
}
DEFINE_DEINIT(planter_end, struct planter)

static struct error *start(struct planter *planter)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return error_system("a socket");
	planter->socket = ends[0];
	planter->process = fork();
	if (planter->process == 0) {
		if (dup2(ends[1], STDIN_FILENO) >= 0 && dup2(ends[1], STDOUT_FILENO) >= 0)
			execl("/proc/self/exe", "heapcore", PLANT_LEAKS, (char *)NULL);
		_exit(EXIT_FAILURE);
	}
	close(ends[1]);
	return planter->process < 0 ? error_system("a new process") : NULL;
}

static struct error *read_planted(int socket, struct planted *ret)
{
	ssize_t got;

	do {
		got = recv(socket, ret, sizeof(*ret), MSG_WAITALL);
	} while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(*ret)
		       ? NULL
		       : error_create(ERROR_NOT_SUPPORTED, "the leaking process failed");
}

/* How many of them are in the set, or not used at all. */
static size_t count_lost(const struct analysis *analysis, const uint64_t *hidden, size_t count)
{
	size_t lost = 0;

	for (size_t i = 0; i < count; i++) {
		allocation_id id = allocation_find(analysis_index(analysis), ~hidden[i]);

		lost += id != NO_ALLOCATION && bitmap_get(analysis_leaked(analysis), id);
	}
	return lost;
}

static struct error *compare(const struct analysis *analysis, const struct planted *planted,
			     uint64_t counted)
{
	size_t lost = count_lost(analysis, planted->singles, SINGLES) +
		      count_lost(analysis, planted->rings, 2 * RINGS);
	size_t wrong = count_lost(analysis, planted->kept, KEPT);

	if (lost < SINGLES + 2 * RINGS || counted < lost)
		return error_create(ERROR_NOT_SUPPORTED,
				    "%zu of %d blocks leaked on purpose were found, and %" PRIu64
				    " counted",
				    lost, SINGLES + 2 * RINGS, counted);
	if (wrong > 0)
		return error_create(ERROR_NOT_SUPPORTED, "%zu used blocks were reported as leaked",
				    wrong);
	if (findings_incomplete(analysis_findings(analysis)))
		return error_create(ERROR_NOT_SUPPORTED,
				    "the process could not be analysed well enough: %s",
				    analysis_findings(analysis)->list[0].message);
	return NULL;
}

/* Analyse the core as a gate without options does. */
static struct error *look_into(const char *path, struct progress *progress,
			       const struct planted *planted)
{
	_cleanup_(analysis_destroy) struct analysis *analysis = NULL;
	_cleanup_(leak_kinds_deinit) struct leak_kinds kinds = { 0 };
	struct set_total total;

	TRY(analysis_create(path, NULL, progress, &analysis));
	TRY(leak_kinds_find(analysis, LEAKS_CERTAIN, &kinds));
	TRY(leak_kinds_count(analysis, &kinds, &total));
	return compare(analysis, planted, total.count);
}

static struct error *check(struct progress *progress)
{
	_cleanup_(planter_end) struct planter planter = { -1, -1 };
	_cleanup_(close) int fd = -1;
	struct planted planted;
	struct snapshot snapshot;
	struct core_options options = { .progress = progress };
	char path[64];

	TRY(start(&planter));
	TRY(read_planted(planter.socket, &planted));
	TRY(copies_open(&fd));
	options.fd = fd;
	TRY(snapshot_take(planter.process, &options, CLONE_NEVER, &snapshot));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return look_into(path, progress, &planted);
}

struct error *gate_self_check(struct progress *progress)
{
	struct error *error = check(progress);

	if (error && error_code(error) == ERROR_INTERRUPTED)
		return error;
	/* Whatever it is, it is no mistake of the user. */
	if (error && error_code(error) == ERROR_USAGE) {
		struct error *other = error_create(ERROR_NOT_SUPPORTED, "%s", error_message(error));

		error_destroy(error);
		error = other;
	}
	return error ? error_wrap(error, "the self-check failed, so leaks may be missed here")
		     : NULL;
}
