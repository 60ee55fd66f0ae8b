#include "cli/fleet/workers.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	MOST_ROWS_SIZE = 64 << 20, /* bytes; the rows of 'facts' are bounded */
	MOST_MESSAGE = 4096,
	MEMORY_MARGIN = 512 << 20, /* for what libraries take, and stacks */
};

struct worker {
	const struct fleet_core *core; /* NULL: there is none */
	pid_t process;
	int watched;	/* a pidfd */
	int out, error; /* files in memory */
	double start;
	bool late; /* it was ended for that */
};

struct workers {
	struct session *session;
	struct store *store;
	const struct worker_limits *limits;
	struct worker *list; /* as many as jobs */
	struct fleet_tally *tally;
	char threads[NUMBER_SIZE], memory[NUMBER_SIZE];
};

static void worker_close(struct worker *worker)
{
	close(worker->watched);
	close(worker->out);
	close(worker->error);
	*worker = (struct worker){ .watched = -1, .out = -1, .error = -1 };
}

static void workers_end(struct workers *workers)
{
	for (size_t i = 0; workers->list && i < workers->limits->jobs; i++) {
		struct worker *worker = &workers->list[i];

		if (!worker->core)
			continue;
		kill(worker->process, SIGKILL);
		while (waitpid(worker->process, NULL, 0) < 0 && errno == EINTR)
			;
		worker_close(worker);
	}
	free(workers->list);
}
DEFINE_DEINIT(workers_end, struct workers)

/* With the address sanitizer not: its own memory is terabytes, of which it uses little. */
static void limit_memory(uint64_t most)
{
#ifndef __SANITIZE_ADDRESS__
	const struct rlimit memory = { most + MEMORY_MARGIN, most + MEMORY_MARGIN };

	if (most)
		setrlimit(RLIMIT_DATA, &memory);
#endif
}

/* In the new process, which ends with its parent, and before it where memory is short. */
static void limit_itself(const struct workers *workers, pid_t parent)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "500", 3) < 0)
		close(fd);
	limit_memory(workers->limits->memory);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_NOT_ANALYSED);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
}

static void look_into(const struct workers *workers, const char *path)
{
	const struct worker_limits *limits = workers->limits;
	const char *words[20] = { "heapcore", "-q",	   "--format",
				  "ndjson",   "--threads", workers->threads };
	size_t count = 6;

	if (limits->memory) {
		words[count++] = "--max-memory";
		words[count++] = workers->memory;
	}
	if (limits->sysroot) {
		words[count++] = "--sysroot";
		words[count++] = limits->sysroot;
	}
	if (limits->debug_directory) {
		words[count++] = "--debug-dir";
		words[count++] = limits->debug_directory;
	}
	words[count++] = path;
	words[count++] = "facts";
	execv("/proc/self/exe", (char *const *)words);
	_exit(EXIT_NOT_ANALYSED);
}

static struct error *start(const struct workers *workers, const struct fleet_core *core,
			   struct worker *ret)
{
	pid_t parent = getpid();
	struct worker worker = {
		.core = core,
		.watched = -1,
		.out = memfd_create("rows", MFD_CLOEXEC),
		.error = memfd_create("messages", MFD_CLOEXEC),
		.start = clock_now(),
	};

	worker.process = worker.out < 0 || worker.error < 0 ? -1 : fork();
	if (worker.process == 0) {
		limit_itself(workers, parent);
		if (dup2(worker.out, STDOUT_FILENO) >= 0 && dup2(worker.error, STDERR_FILENO) >= 0)
			look_into(workers, core->path);
		_exit(EXIT_NOT_ANALYSED);
	}
	if (worker.process > 0)
		worker.watched = pidfd_open(worker.process, 0);
	*ret = worker;
	if (worker.watched >= 0)
		return NULL;
	if (worker.process < 0)
		ret->core = NULL;
	return error_system("a process for %s", core->path);
}

/* Read what was written, up to most bytes, and end it with a NUL; NULL: memory is short. */
static char *read_written(int fd, size_t most, size_t *ret_size)
{
	struct stat status;
	size_t size = fstat(fd, &status) == 0 ? (size_t)status.st_size : 0, done = 0;
	char *text;

	size = size < most ? size : most;
	text = malloc(size + 1);
	while (text && done < size) {
		ssize_t got = pread(fd, text + done, size - done, (off_t)done);

		if (got <= 0)
			break;
		done += (size_t)got;
	}
	if (text)
		text[done] = '\0';
	*ret_size = done;
	return text;
}

/* The last line, without who says it. */
static const char *last_line(char *text)
{
	static const char WHO[] = "heapcore: ";
	size_t size = strlen(text);
	char *line;

	while (size > 0 && text[size - 1] == '\n')
		text[--size] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	return strncmp(line, WHO, sizeof(WHO) - 1) == 0 ? line + sizeof(WHO) - 1 : line;
}

/*
 * The reason why there are no facts; NULL: there should be some. Written to a buffer, or the
 * messages.
 */
static const char *what_went_wrong(const struct workers *workers, const struct worker *worker,
				   int status, char *messages, char buffer[static 64])
{
	if (worker->late)
		snprintf(buffer, 64, "it took more than %" PRIu64 " s", workers->limits->seconds);
	else if (WIFSIGNALED(status))
		snprintf(buffer, 64, "ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (lseek(worker->out, 0, SEEK_END) <= 0)
		return *messages ? last_line(messages) : "no facts";
	else
		return NULL;
	return buffer;
}

static struct error *add(struct workers *workers, const struct fleet_core *core,
			 const struct fleet_result *result)
{
	struct progress *progress = &workers->session->progress.progress;
	bool fine = false;

	TRY(store_add(workers->store, core, result, &fine));
	TRY(store_commit(workers->store, false));
	*(fine ? &workers->tally->analysed : &workers->tally->failed) += 1;
	return progress_check(progress, 1);
}

/* It ended: keep what it found. */
static struct error *finish(struct workers *workers, struct worker *worker)
{
	struct fleet_result result = { .seconds = clock_now() - worker->start };
	_cleanup_(free) char *rows = NULL, *messages = NULL;
	const struct fleet_core *core = worker->core;
	char buffer[64];
	size_t size;
	int status = 0;

	while (waitpid(worker->process, &status, 0) < 0 && errno == EINTR)
		;
	rows = read_written(worker->out, MOST_ROWS_SIZE, &result.rows_size);
	messages = read_written(worker->error, MOST_MESSAGE, &size);
	result.rows = rows;
	result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	result.error = messages ? what_went_wrong(workers, worker, status, messages, buffer) : NULL;
	worker_close(worker);
	TRY_MEMORY(rows && messages);
	/* Ctrl-C reaches all of them. */
	TRY(progress_check(&workers->session->progress.progress, 0));
	if (result.status == EXIT_INTERRUPTED)
		return error_create(ERROR_INTERRUPTED, "interrupted");
	return add(workers, core, &result);
}

/* Milliseconds until a worker is late; those that are end. */
static int time_left(struct workers *workers)
{
	double now = clock_now(), least = 3600;

	list_for_each(worker, workers->list, workers->limits->jobs) {
		double left = worker->start + (double)workers->limits->seconds - now;

		if (!worker->core || worker->late)
			continue;
		if (left <= 0) {
			worker->late = true;
			kill(worker->process, SIGKILL);
		} else if (left < least) {
			least = left;
		}
	}
	return (int)(least * 1000) + 1;
}

/* Until one has ended; *ret_free is its place, or one that was free. */
static struct error *wait_for_one(struct workers *workers, size_t *ret_free)
{
	size_t jobs = workers->limits->jobs;
	_cleanup_(free) struct pollfd *watched = calloc(jobs, sizeof(*watched));
	int ready;

	TRY_MEMORY(watched);
	for (size_t i = 0; i < jobs; i++)
		watched[i] = (struct pollfd){ workers->list[i].watched, POLLIN, 0 };
	do {
		ready = poll(watched, jobs, time_left(workers));
		TRY(progress_check(&workers->session->progress.progress, 0));
	} while (ready == 0 || (ready < 0 && errno == EINTR));
	if (ready < 0)
		return error_system("waiting for processes");
	for (size_t i = 0; i < jobs; i++) {
		if (!watched[i].revents)
			continue;
		*ret_free = i;
		TRY(finish(workers, &workers->list[i]));
	}
	return NULL;
}

static struct error *load_rows(struct workers *workers, const struct fleet_core *core)
{
	_cleanup_(close) int fd = open(core->path, O_RDONLY | O_CLOEXEC);
	struct fleet_result result = { 0 };
	_cleanup_(free) char *rows = NULL;

	rows = fd < 0 ? strdup("") : read_written(fd, MOST_ROWS_SIZE, &result.rows_size);
	TRY_MEMORY(rows);
	result.rows = rows;
	return add(workers, core, &result);
}

static size_t free_place(const struct workers *workers)
{
	size_t place = 0;

	while (place < workers->limits->jobs && workers->list[place].core)
		place++;
	return place;
}

static bool is_idle(const struct workers *workers)
{
	for (size_t i = 0; i < workers->limits->jobs; i++)
		if (workers->list[i].core)
			return false;
	return true;
}

static struct error *run_one(struct workers *workers, const struct fleet_core *core, bool again)
{
	size_t place = free_place(workers);
	bool is_there = false;

	TRY(store_has(workers->store, core, again, &is_there));
	if (is_there) {
		workers->tally->kept++;
		return progress_check(&workers->session->progress.progress, 1);
	}
	if (file_has_rows(core->path))
		return load_rows(workers, core);
	if (place == workers->limits->jobs)
		TRY(wait_for_one(workers, &place));
	return start(workers, core, &workers->list[place]);
}

static struct error *run_all(struct workers *workers, const struct fleet_cores *cores, bool again)
{
	size_t place;

	progress_begin(&workers->session->progress.progress, "analysing cores", cores->count);
	list_for_each(core, cores->list, cores->count)
		TRY(run_one(workers, core, again));
	while (!is_idle(workers))
		TRY(wait_for_one(workers, &place));
	return NULL;
}

struct error *workers_run(struct session *session, struct store *store,
			  const struct fleet_cores *cores, const struct worker_limits *limits,
			  bool again, struct fleet_tally *ret)
{
	_cleanup_(workers_end) struct workers workers = { session, store, limits };
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t threads = processors > (long)limits->jobs ? (size_t)processors / limits->jobs : 1;
	struct error *error;

	*ret = (struct fleet_tally){ .cores = cores->count };
	workers.tally = ret;
	workers.threads[format_decimal(threads, workers.threads)] = '\0';
	workers.memory[format_decimal(limits->memory, workers.memory)] = '\0';
	workers.list = calloc(limits->jobs, sizeof(*workers.list));
	TRY_MEMORY(workers.list);
	for (size_t i = 0; i < limits->jobs; i++)
		workers.list[i] = (struct worker){ .watched = -1, .out = -1, .error = -1 };
	progress_line_begin(&session->progress);
	error = run_all(&workers, cores, again);
	progress_line_stop(&session->progress);
	/* Keep the results so far, even after an error. */
	return error_first(error, store_commit(store, true));
}
