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
	MOST_WAITING = 64 << 20,   /* bytes of rows that are not in the store yet */
};

/* Work lost if a run is killed. Each commit waits for the disk. */
static const double SECONDS_AT_RISK = 0.2;

struct worker {
	const struct fleet_core *core; /* NULL: there is none */
	pid_t process;
	int watched;	/* a pidfd */
	int out, error; /* files in memory */
	double start;
	bool late; /* it was ended for that */
};

/* A core whose result is not in the store yet; owned but for the core. */
struct outcome {
	const struct fleet_core *core;
	struct fleet_result result;
	char *rows, *error;
};

struct workers {
	struct session *session;
	struct store *store;
	const struct worker_limits *limits;
	struct worker *list; /* as many as jobs */
	struct fleet_tally *tally;
	const struct fleet_anew *anew;
	struct outcome *outcomes;
	size_t outcome_count, outcome_bytes;
	double waiting_since;		  /* the first of them */
	const struct fleet_core **others; /* that another process works on */
	size_t other_count;
	char threads[NUMBER_SIZE], memory[NUMBER_SIZE];
};

static void worker_close(struct worker *worker)
{
	close(worker->watched);
	close(worker->out);
	close(worker->error);
	*worker = (struct worker){ .watched = -1, .out = -1, .error = -1 };
}

static void drop_outcomes(struct workers *workers)
{
	list_for_each(outcome, workers->outcomes, workers->outcome_count) {
		store_release(workers->store, outcome->core->path);
		free(outcome->rows);
		free(outcome->error);
	}
	workers->outcome_count = workers->outcome_bytes = 0;
}

static void workers_end(struct workers *workers)
{
	drop_outcomes(workers);
	free(workers->outcomes);
	free(workers->others);
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

/* Standard input becomes what the command writes. */
static void fetch(const char *command, const char *path)
{
	int ends[2];

	if (pipe(ends) < 0)
		_exit(EXIT_NOT_ANALYSED);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl("/bin/sh", "sh", "-c", command, "sh", path, NULL);
		_exit(EXIT_NOT_ANALYSED);
	}
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	close(ends[1]);
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
	words[count++] = limits->fetch ? "-" : path;
	words[count++] = "facts";
	if (limits->holders)
		words[count++] = "--holders";
	if (limits->fetch)
		fetch(limits->fetch, path);
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

/* The first line that the command wrote, if heapcore could not even open the core; or NULL. */
static const char *fetch_complaint(const struct workers *workers, const char *rows, char *messages)
{
	static const char FAILED[] = "{\"row\":\"facts core\"", OURS[] = "heapcore: ";

	if (!workers->limits->fetch || strncmp(rows, FAILED, sizeof(FAILED) - 1) != 0 ||
	    strncmp(messages, OURS, sizeof(OURS) - 1) == 0)
		return NULL;
	messages[strcspn(messages, "\n")] = '\0';
	return messages;
}

static struct error *name_failure(struct workers *workers, const char *path)
{
	static const char QUERY[] = "SELECT path || ' (' || error || ')' FROM core WHERE path = ?1";
	_cleanup_(free) char *former = take(workers->tally->failures);
	_cleanup_(free) char *text = NULL;

	TRY(store_text(workers->store, QUERY, &path, 1, &text));
	workers->tally->failures =
		former ? format_text("%s, %s", former, text ? text : path) : take(text);
	return NULL;
}

static struct error *write_log(const struct workers *workers, const char *path)
{
	static const char QUERY[] =
		"SELECT json_object('core', path, 'host', host, 'build', build, 'program', program,"
		" 'status', status, 'error', error, 'incomplete', json(CASE incomplete WHEN 1 THEN 'true'"
		" ELSE 'false' END), 'leaked_bytes', leaked_bytes, 'seconds', seconds) FROM core WHERE path = ?1";
	_cleanup_(free) char *text = NULL;

	TRY(store_text(workers->store, QUERY, &path, 1, &text));
	if (fprintf(workers->limits->log, "%s\n", text ? text : "{}") < 0 ||
	    fflush(workers->limits->log) != 0)
		return error_system("the log");
	return NULL;
}

static struct error *add(struct workers *workers, const struct outcome *outcome)
{
	const char *path = outcome->core->path;
	bool fine = false;

	TRY(store_add(workers->store, outcome->core, &outcome->result, &fine));
	if (workers->limits->log)
		TRY(write_log(workers, path));
	*(fine ? &workers->tally->analysed : &workers->tally->failed) += 1;
	return fine || workers->tally->failed > FAILURES_NAMED ? NULL : name_failure(workers, path);
}

/* The store is ours only while results are added, so that others get their turn. */
static struct error *flush(struct workers *workers)
{
	if (!workers->outcome_count)
		return NULL;
	TRY(store_begin(workers->store));
	list_for_each(outcome, workers->outcomes, workers->outcome_count)
		TRY(add(workers, outcome));
	TRY(store_commit(workers->store));
	drop_outcomes(workers);
	return NULL;
}

static double flush_time(const struct workers *workers)
{
	bool is_full = workers->outcome_bytes > MOST_WAITING;

	return is_full ? 0 : workers->waiting_since + SECONDS_AT_RISK;
}

/* Keep a result, which is taken. */
static struct error *keep(struct workers *workers, struct outcome *outcome)
{
	outcome->result.rows = outcome->rows;
	outcome->result.error = outcome->error;
	if (!LIST_GROW(workers->outcomes, workers->outcome_count)) {
		free(outcome->rows);
		free(outcome->error);
		return &error_no_memory;
	}
	if (!workers->outcome_count)
		workers->waiting_since = clock_now();
	workers->outcomes[workers->outcome_count++] = *outcome;
	workers->outcome_bytes += outcome->result.rows_size;
	TRY(progress_check(&workers->session->progress.progress, 1));
	return clock_now() > flush_time(workers) ? flush(workers) : NULL;
}

/* It ended: keep what it found. */
static struct error *finish(struct workers *workers, struct worker *worker)
{
	struct outcome outcome = { worker->core, { .seconds = clock_now() - worker->start } };
	_cleanup_(free) char *rows = NULL, *messages = NULL;
	const char *why;
	char buffer[64];
	size_t size;
	int status = 0;

	while (waitpid(worker->process, &status, 0) < 0 && errno == EINTR)
		;
	rows = read_written(worker->out, MOST_ROWS_SIZE, &outcome.result.rows_size);
	messages = read_written(worker->error, MOST_MESSAGE, &size);
	outcome.result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	why = messages ? what_went_wrong(workers, worker, status, messages, buffer) : NULL;
	if (!why && rows && messages)
		why = fetch_complaint(workers, rows, messages);
	worker_close(worker);
	TRY_MEMORY(rows && messages);
	/* Ctrl-C reaches all of them. */
	TRY(progress_check(&workers->session->progress.progress, 0));
	if (outcome.result.status == EXIT_INTERRUPTED)
		return error_create(ERROR_INTERRUPTED, "interrupted");
	if (why) {
		outcome.error = strdup(why);
		TRY_MEMORY(outcome.error);
	}
	outcome.rows = take(rows);
	return keep(workers, &outcome);
}

/* Milliseconds until results must be kept or a worker is late; those that are end. */
static int time_left(struct workers *workers)
{
	double now = clock_now(), least = 3600;

	if (workers->outcome_count)
		least = now < flush_time(workers) ? flush_time(workers) - now : 0;

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
		if (workers->outcome_count && clock_now() > flush_time(workers))
			TRY(flush(workers));
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
	struct outcome outcome = { .core = core };

	outcome.rows =
		fd < 0 ? strdup("") : read_written(fd, MOST_ROWS_SIZE, &outcome.result.rows_size);
	TRY_MEMORY(outcome.rows);
	return keep(workers, &outcome);
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

/* A core that is ours alone. */
static struct error *run_claimed(struct workers *workers, const struct fleet_core *core)
{
	size_t place = free_place(workers);
	bool is_there = false;

	TRY(store_has(workers->store, core, workers->anew, &is_there));
	if (is_there) {
		store_release(workers->store, core->path);
		workers->tally->kept++;
		return progress_check(&workers->session->progress.progress, 1);
	}
	if (!workers->limits->fetch && file_has_rows(core->path))
		return load_rows(workers, core);
	if (place == workers->limits->jobs)
		TRY(wait_for_one(workers, &place));
	return start(workers, core, &workers->list[place]);
}

static struct error *run_one(struct workers *workers, const struct fleet_core *core)
{
	if (store_claim(workers->store, core->path))
		return run_claimed(workers, core);
	return LIST_APPEND(workers->others, workers->other_count, core);
}

static struct error *finish_all(struct workers *workers)
{
	size_t place;

	while (!is_idle(workers))
		TRY(wait_for_one(workers, &place));
	return flush(workers);
}

/* The other process may end without a result, so wait for it. */
static struct error *wait_for_others(struct workers *workers)
{
	static const struct timespec pause = { .tv_nsec = 50000000 };

	for (size_t i = 0; i < workers->other_count; i++) {
		const struct fleet_core *core = workers->others[i];

		while (!store_claim(workers->store, core->path)) {
			/* It may wait for ours. */
			TRY(finish_all(workers));
			TRY(progress_check(&workers->session->progress.progress, 0));
			nanosleep(&pause, NULL);
		}
		TRY(run_claimed(workers, core));
	}
	return finish_all(workers);
}

static struct error *run_all(struct workers *workers, const struct fleet_cores *cores)
{
	progress_begin(&workers->session->progress.progress, "analysing cores", cores->count);
	list_for_each(core, cores->list, cores->count)
		TRY(run_one(workers, core));
	TRY(finish_all(workers));
	return wait_for_others(workers);
}

struct error *workers_run(struct session *session, struct store *store,
			  const struct fleet_cores *cores, const struct worker_limits *limits,
			  const struct fleet_anew *anew, struct fleet_tally *ret)
{
	_cleanup_(workers_end) struct workers workers = { session, store, limits };
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t threads = processors > (long)limits->jobs ? (size_t)processors / limits->jobs : 1;
	struct error *error;

	*ret = (struct fleet_tally){ .cores = cores->count };
	workers.tally = ret;
	workers.anew = anew;
	workers.threads[format_decimal(threads, workers.threads)] = '\0';
	workers.memory[format_decimal(limits->memory, workers.memory)] = '\0';
	workers.list = calloc(limits->jobs, sizeof(*workers.list));
	TRY_MEMORY(workers.list);
	for (size_t i = 0; i < limits->jobs; i++)
		workers.list[i] = (struct worker){ .watched = -1, .out = -1, .error = -1 };
	progress_line_begin(&session->progress);
	error = run_all(&workers, cores);
	/* Keep the results so far, even after Ctrl-C. */
	if (error && error_code(error) == ERROR_INTERRUPTED)
		error = error_first(error, flush(&workers));
	progress_line_stop(&session->progress);
	return error;
}
