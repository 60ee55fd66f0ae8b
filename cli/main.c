/*
 * heapcore: what the memory of a process is, from its core.
 */
#include "analyzer/base/text.h"
#include "analyzer/diff/diff.h"
#include "cli/assistants/mcp.h"
#include "cli/fleet/fleet.h"
#include "cli/help/manual.h"
#include "cli/live/coredumpctl.h"
#include "cli/live/gate_self_check.h"
#include "cli/live/process_root.h"
#include "cli/live/run.h"
#include "cli/live/slim.h"
#include "cli/live/snap.h"
#include "cli/live/soak.h"
#include "cli/options.h"
#include "cli/prompt/execute.h"
#include "cli/prompt/machine.h"
#include "cli/prompt/prompt.h"
#include "cli/prompt/session.h"
#include "cli/prompt/shell_completion.h"
#include "cli/serve/serve.h"
#include "cli/watch/receive.h"
#include "cli/watch/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

/* A file that cannot be opened is wrong usage; one that cannot be analysed is not. */
static struct error *check_readable(const struct options *options)
{
	const char *path = options->core;
	_cleanup_(close) int fd = -1;
	struct stat status;

	if (strcmp(path, "-") == 0) {
		if (isatty(STDIN_FILENO))
			return error_create(ERROR_USAGE,
					    "standard input is a terminal, not a core");
		return NULL;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &status) < 0)
		return error_create(ERROR_USAGE, "%s: %s", path, strerror(errno));
	if (S_ISDIR(status.st_mode))
		return error_create(ERROR_USAGE, "%s: %s", path, strerror(EISDIR));
	return NULL;
}

static struct error *check_truncation(const struct session *session)
{
	const struct image *image = analysis_image(session->analysis);
	uint64_t missing = image->missing;
	char size[NUMBER_SIZE], lacking[NUMBER_SIZE];

	format_grouped(image->size, size);
	format_grouped(missing, lacking);
	if (!missing)
		printf("The core is complete: %s bytes.\n", size);
	else
		printf("The core is truncated: %s bytes are missing after the first %s.\n"
		       "Their contents are unknown: allocations may be missing, and others may look\n"
		       "leaked only because the references to them are missing.\n"
		       "Take the core again with enough disk space and 'ulimit -c unlimited'.\n",
		       lacking, size);
	if (fflush(stdout) != 0)
		return error_system("the output");
	return NULL;
}

static void run_given(struct session *session, const struct given *given)
{
	struct error *error = NULL;

	if (given->is_file)
		error = script_run_path(session, given->text);
	else
		execute_line(session, given->text);
	if (error)
		session_complain(session, error);
}

/* Words that came as one, as from `heapcore core 'count used'`, are a line. */
static void run_words(struct session *session, char *const *words, size_t count)
{
	if (count == 1 && strpbrk(words[0], " \t"))
		execute_line(session, words[0]);
	else
		execute_words(session, words, count);
}

static void run_batch(struct session *session, const struct options *options)
{
	for (size_t i = 0; i < options->given_count; i++) {
		if (session->leaving || session_interrupted(session))
			return;
		run_given(session, &options->given[i]);
	}
	if (options->word_count > 0 && !session->leaving && !session_interrupted(session))
		run_words(session, options->words, options->word_count);
}

/* The commands say what they ask of the sets that this makes. */
static struct error *compare(struct session *session, const struct options *options)
{
	_cleanup_(diff_destroy) struct diff *diff = NULL;
	struct error *error;

	if (!options->compared.count)
		return NULL;
	progress_line_begin(&session->progress);
	error = compare_cores(session->analysis, options->compared.list, options->compared.count,
			      ASPECT_SIZE, HOLDERS_NONE, NULL, NULL, &diff);
	progress_line_stop(&session->progress);
	session_show_findings(session);
	return error;
}

/* Without any commands, show an overview. */
static struct error *run_input(struct session *session)
{
	struct error *error = script_run(session, "standard input", stdin);

	if (!error && !session->given_lines && !session_interrupted(session))
		execute_line(session, "info");
	return error;
}

/* True if the first screen is shown and a prompt follows. */
static bool begins_with_screen(const struct session *session, const struct options *options)
{
	return options->given_count + options->word_count == 0 && isatty(STDIN_FILENO) &&
	       prompt_greets(session);
}

static void run_commands(struct session *session, const struct options *options)
{
	struct error *error = NULL;

	/* `heapcore CORE sql` reads queries. */
	session->sql.on = options->given_count == 0 && options->word_count == 1 &&
			  strcmp(options->words[0], "sql") == 0;
	if (options->given_count + options->word_count > 0 && !session->sql.on)
		run_batch(session, options);
	else if (isatty(STDIN_FILENO))
		prompt_run(session);
	else
		error = run_input(session);
	if (error)
		session_complain(session, error);
	if (!session_interrupted(session))
		session_doubt(session);
}

/* `heapcore help` and the like need no core, unless there is one of that name. */
static bool needs_no_core(const struct options *options)
{
	return options->core && command_stands_alone(options->core) &&
	       access(options->core, F_OK) < 0;
}

/* Set the format and files of the output, and open the core. */
static struct error *open_core(struct session *session, const struct options *options)
{
	if (options->format)
		TRY(report_format_find(options->format, &session->format));
	TRY(check_readable(options));
	TRY(report_files_open(session, &options->files, options->core));
	return session_open(session, options->core);
}

static int analyse(struct session *session, const struct options *options)
{
	struct error *error = open_core(session, options);
	int status;

	if (error)
		execute_unopened(session, options->words, options->word_count, options->core,
				 error);
	if (!error && options->side_file && !options->truncation_check)
		error = session_use_side_file(session, options->core);
	/* The check says it all in words of its own; the first screen has what is known by then. */
	if (!error && options->truncation_check)
		error = check_truncation(session);
	else if (!error && !begins_with_screen(session, options))
		session_show_findings(session);
	if (!error)
		error = compare(session, options);
	if (!error && options->verify_side_file)
		error = session_verify_side_file(session, options->core);
	if (error)
		return session_end(session, error);
	if (options->truncation_check)
		return analysis_image(session->analysis)->missing ? EXIT_NOT_ANALYSED
		       : session->failed			  ? EXIT_NOT_ANALYSED
								  : EXIT_FINE;
	if (!options->verify_side_file)
		run_commands(session, options);
	status = session_end(session, report_files_close(session));
	if (options->verbose)
		session_show_costs(session);
	return session->at_prompt ? EXIT_FINE : status;
}

static int analyse_process(struct session *session, struct options *options)
{
	_cleanup_(free) char *path = NULL;
	_cleanup_(close) int root_file = -1;
	pid_t process = 0;
	struct error *error = parse_process(options->process, &process);

	if (!error && !options->debug.sysroot) {
		root_file = process_root_open(process, options->process_root);
		options->debug.sysroot = root_file >= 0 ? options->process_root : NULL;
	}
	if (!error)
		error = snap_to_analyse(session, process, &path);
	if (error)
		return session_end(session, error);
	options->core = path;
	return analyse(session, options);
}

/* The core is read to its end when the analysis begins. */
static int analyse_kept(struct session *session, struct options *options)
{
	_cleanup_(kept_core_deinit) struct kept_core core = { .fd = -1 };
	struct error *error = kept_core_find(session, options->kept, options->debug.sysroot, &core);
	int status;

	if (error)
		return session_end(session, error);
	options->core = core.path;
	session->subject = core.title;
	status = analyse(session, options);
	session->subject = NULL;
	error = kept_core_finish(&core);
	return error ? session_end(session, error) : status;
}

static int execute_alone(struct session *session, const struct options *options)
{
	struct error *error =
		options->format ? report_format_find(options->format, &session->format) : NULL;

	if (!error)
		execute_words(session, options->words - 1, options->word_count + 1);
	return session_end(session, error);
}

static int look_into_core(int count, char **arguments)
{
	_cleanup_(options_deinit) struct options options;
	_cleanup_(session_deinit) struct session session;
	int status;

	options_parse(count, arguments, &options);
	session_init(&session, options.quiet);
	session.colour = options.colour;
	session.progress.progress.threads = options.threads;
	if (options.verbose)
		session.progress.progress.splits = session.splits;
	options.debug.give_up = give_up;
	options.debug.cache_folder = options.no_cache ? NULL : cache_folder();
	session.debug = &options.debug;
	session.no_content = options.no_content;
	session.table = options.table;
	session.tags = &options.tags;
	session.chap = options.chap;
	session.pages = !options.no_pager;
	options.debug.memory = machine_memory();
	session.maximum_memory =
		options.maximum_memory ? options.maximum_memory : options.debug.memory;
	interrupt_catch(&session.progress.progress, true);
	vanished_catch();

	if (options.manual) {
		status = session_end(&session, manual_write(options.manual, stdout));
	} else if (needs_no_core(&options)) {
		status = execute_alone(&session, &options);
	} else if (options.kept) {
		status = analyse_kept(&session, &options);
	} else if (options.process) {
		status = analyse_process(&session, &options);
	} else {
		status = analyse(&session, &options);
	}
	return session_interrupted(&session) ? EXIT_INTERRUPTED : status;
}

/* Modes that do not open a core, chosen by the first argument that is no option. */
static const struct mode {
	const char *name;
	int (*main)(int count, char **arguments);
} modes[] = {
	{ "run", run_main },	     { "snap", snap_main },	  { "slim", slim_main },
	{ "soak", soak_main },	     { "watch", watch_main },	  { "fleet", fleet_main },
	{ "mcp", mcp_main },	     { "serve", serve_main },	  { PLANT_LEAKS, plant_leaks_main },
	{ "receive", receive_main }, { COMPLETE, complete_main },
};

/* The rest of the command line is the mode's own, also the options in front of its name. */
static int run_mode(const struct mode *mode, int place, int count, char **arguments)
{
	char name[32];

	snprintf(name, sizeof(name), "heapcore %s", mode->name);
	memmove(&arguments[2], &arguments[1], ((size_t)place - 1) * sizeof(*arguments));
	arguments[1] = name;
	return mode->main(count - 1, arguments + 1);
}

/*
 * The kernel starts what reads cores without any but standard input, and what is opened next would
 * take their place.
 */
static void open_standard_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			exit(EXIT_NOT_ANALYSED);
}

static const struct mode *find_mode(const char *word)
{
	for (size_t i = 0; i < COUNT_OF(modes); i++)
		if (strcmp(word, modes[i].name) == 0)
			return &modes[i];
	return NULL;
}

int main(int count, char **arguments)
{
	const struct mode *mode;
	int place;

	open_standard_files();
	setlocale(LC_CTYPE, "");
	argp_err_exit_status = EXIT_WRONG_USAGE;
	place = options_end(count, arguments);
	mode = place < count ? find_mode(arguments[place]) : NULL;
	/*
	 * A pipe that breaks, and a file that becomes too large, are errors like others; see
	 * cli/prompt/output.c. The program that 'run' starts has the signals as they were.
	 */
	if (!mode || mode->main != run_main) {
		signal(SIGPIPE, SIG_IGN);
		signal(SIGXFSZ, SIG_IGN);
	}
	return mode ? run_mode(mode, place, count, arguments) : look_into_core(count, arguments);
}
