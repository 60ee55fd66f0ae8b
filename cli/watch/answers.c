#include "cli/watch/answers.h"

#include "analyzer/base/text.h"
#include "cli/live/slim.h"
#include "cli/prompt/execute.h"
#include "cli/prompt/output_file.h"
#include "cli/prompt/reports.h"
#include "cli/watch/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* A question's words and where its answer goes. */
struct question {
	const char *words[4];
	size_t count;
	const char *text, *rows; /* files; NULL: none */
};

/* The folder's file that heapcore's messages go to. */
static const char MESSAGES[] = "messages.txt";

static const char SLIM_CORE[] = "core.zst";

static void ask(struct session *session, const struct stored *stored,
		const struct question *question)
{
	_cleanup_(free) char *text = stored_path(stored, question->text);
	_cleanup_(free) char *rows = question->rows ? stored_path(stored, question->rows) : NULL;
	struct report_file_names names = { { text, rows }, rows ? 2 : 1 };
	struct error *error;

	if (!text)
		return;
	error = report_files_open(session, &names, "");
	if (!error)
		execute_words(session, (char *const *)question->words, question->count);
	error = error_first(error, report_files_close(session));
	if (error)
		session_complain(session, error);
}

static void ask_all(struct session *session, const struct stored *stored)
{
	static const struct question questions[] = {
		{ { "info" }, 1, "screen.txt", "screen.json" },
		{ { "summarize", "leakroots" }, 2, "leaks.txt", NULL },
	};

	for (size_t i = 0; i < COUNT_OF(questions); i++)
		ask(session, stored, &questions[i]);
}

/*
 * Compare what stays of the core with what stayed of the one before: in a slim core, some kinds
 * are others.
 */
static struct error *ask_growth(struct session *session, const struct stored *stored,
				const char *previous)
{
	_cleanup_(free) char *slim = stored_path(stored, SLIM_CORE);
	const struct question question = { { "diff", previous }, 2, "growth.txt", "growth.json" };

	TRY_MEMORY(slim);
	if (access(slim, R_OK) == 0) {
		session_close(session);
		TRY(session_open(session, slim));
	}
	ask(session, stored, &question);
	return NULL;
}

/* Put a packed core without contents in place of the core. */
static struct error *make_slim(struct session *session, const struct stored *stored,
			       const char *core)
{
	_cleanup_(output_file_deinit) struct output_file file = { .fd = -1 };
	_cleanup_(free) char *path = stored_path(stored, SLIM_CORE);
	struct slim_sizes sizes;
	int fd;

	TRY_MEMORY(path);
	if (output_file_begin_named(path, &file) < 0)
		return error_system("%s", path);
	TRY(slim_core(session, (struct slim_options){ .fd = file.fd, .packed = true }, &sizes));
	fd = output_file_complete(&file);
	if (fd < 0 || unlink(core) < 0)
		return error_system("%s", path);
	close(fd);
	return NULL;
}

/* Leave what of the core may stay. */
static struct error *make_smaller(struct session *session, const struct answers_options *options,
				  const struct stored *stored, const char *core,
				  struct session *told)
{
	struct error *error =
		options->slim || options->prefers_slim ? make_slim(session, stored, core) : NULL;

	if (!error || options->slim)
		return error;
	session_note(told, "%s is kept whole: %s", core, error_message(error));
	error_destroy(error);
	return NULL;
}

/* The child, which tells the user by told; whether the core may stay. */
static bool answer(struct session *told, const struct answers_options *options,
		   const struct stored *stored, pid_t process)
{
	_cleanup_(session_deinit) struct session session;
	_cleanup_(free) char *core = stored_path(stored, "core");
	_cleanup_(free) char *messages = stored_path(stored, MESSAGES);
	_cleanup_(free) char *previous = stored_previous(stored, process);
	_cleanup_(fclose) FILE *file = messages ? fopen(messages, "we") : NULL;
	struct error *error;

	session_init(&session, true);
	session.messages = file;
	session.debug = &options->debug;
	session.no_content = options->no_content;
	session.maximum_memory =
		options->maximum_memory ? options->maximum_memory : machine_memory();
	vanished_catch();
	if (!core || !file)
		return false;
	error = session_open(&session, core);
	if (!error)
		ask_all(&session, stored);
	if (!error)
		error = make_smaller(&session, options, stored, core, told);
	if (!error && previous)
		error = ask_growth(&session, stored, previous);
	if (error)
		session_complain(&session, error);
	session_doubt(&session);
	return !error;
}

/* Standard output goes nowhere: files have all. */
static void silence(void)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(nothing, STDIN_FILENO);
	dup2(nothing, STDOUT_FILENO);
}

/* One with contents must not stay. */
static void remove_core(struct session *session, const struct stored *stored)
{
	_cleanup_(free) char *core = stored_path(stored, "core");

	if (core && unlink(core) == 0)
		session_note(session, "%s: none without contents could be made, so it is removed",
			     core);
}

static struct error *answer_in_child(struct session *session, const struct answers_options *options,
				     const struct stored *stored, pid_t process)
{
	pid_t parent = getpid(), child;
	int status = 0;
	bool stays;

	/* Else what is in buffers would be written by both. */
	fflush(NULL);
	child = fork();
	if (child < 0)
		return error_system("a process");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		silence();
		stays = getppid() == parent && answer(session, options, stored, process);
		fflush(NULL);
		_exit(!stays);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		if (session_interrupted(session))
			kill(child, SIGKILL);
	if (status && options->slim)
		remove_core(session, stored);
	if (WIFSIGNALED(status))
		return error_create(ERROR_NOT_SUPPORTED,
				    "the analysis of %s/core was ended by signal %d",
				    stored->folder, WTERMSIG(status));
	return NULL;
}

/* The environment of the command. */
static void tell_by_environment(const struct stored *stored, const struct stored_process *process)
{
	static const char *const files[][2] = {
		{ "HEAPCORE_CORE", "core" },	     { "HEAPCORE_REASON", "reason.json" },
		{ "HEAPCORE_SCREEN", "screen.txt" }, { "HEAPCORE_LEAKS", "leaks.txt" },
		{ "HEAPCORE_GROWTH", "growth.txt" }, { "HEAPCORE_CORE", SLIM_CORE },
	};
	char number[NUMBER_SIZE];

	snprintf(number, sizeof(number), "%d", process->id);
	setenv("HEAPCORE_PID", number, 1);
	setenv("HEAPCORE_NAME", process->name, 1);
	setenv("HEAPCORE_CAUSE", process->cause, 1);
	setenv("HEAPCORE_DIR", stored->folder, 1);
	for (size_t i = 0; i < COUNT_OF(files); i++) {
		_cleanup_(free) char *path = stored_path(stored, files[i][1]);

		if (path && access(path, R_OK) == 0)
			setenv(files[i][0], path, 1);
	}
}

/* Nobody waits for the command: it may take long, and the next answer does not. */
static struct error *call_command(const char *command, const struct stored *stored,
				  const struct stored_process *process)
{
	const char *words[] = { "sh", "-c", command, NULL };
	pid_t child = fork();
	sigset_t none;

	if (child < 0)
		return error_system("a process");
	if (child == 0) {
		if (fork() != 0)
			_exit(0);
		setsid();
		signal(SIGPIPE, SIG_DFL);
		signal(SIGXFSZ, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		tell_by_environment(stored, process);
		execv("/bin/sh", (char *const *)words);
		_exit(EXIT_NOT_ANALYSED);
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		continue;
	return NULL;
}

/* Files of the page cache are given back: they count against a group, and nobody reads them soon.
 */
static void forget_pages(const struct stored *stored)
{
	_cleanup_(free) char *core = stored_path(stored, "core");
	_cleanup_(close) int fd = core ? open(core, O_RDONLY | O_CLOEXEC) : -1;

	if (fd >= 0)
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

struct error *answers_write(struct session *session, const struct answers_options *options,
			    const struct stored *stored, const struct stored_process *process)
{
	struct error *error = answer_in_child(session, options, stored, process->id);

	forget_pages(stored);
	error = error_first(error, metrics_write(options->metrics, stored, process->name));
	error = error_first(error, stored_publish(stored));
	if (options->command)
		error = error_first(error, call_command(options->command, stored, process));
	return error;
}
