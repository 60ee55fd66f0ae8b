#include "cli/live/run.h"

#include "analyzer/base/list.h"
#include "analyzer/base/progress.h"
#include "analyzer/base/text.h"
#include "cli/live/copies.h"
#include "cli/live/gate_words.h"
#include "cli/live/preload.h"
#include "cli/live/snap.h"
#include "cli/live/watch.h"
#include "cli/options.h"
#include "cli/prompt/execute.h"
#include "cli/prompt/machine.h"
#include "cli/prompt/output_file.h"
#include "cli/prompt/reports.h"
#include "cli/prompt/switches.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/* When the program runs with the recorder: again, if the gate fails; at once; or not. */
enum stacks { STACKS_AUTO, STACKS_ALWAYS, STACKS_NEVER };

struct run_options {
	char **program; /* and its arguments, NULL behind them */
	const char *core_path;
	bool only_failed;   /* remove the core at core_path if nothing failed */
	char *default_core; /* core_path where the user gave none, or NULL */
	bool portable;
	const char *log_path;
	const char *format;
	struct report_file_names files; /* of -o */
	uint64_t timeout;		/* seconds; 0: none */
	int error_status;		/* where the gate found something; 0: the gate's */
	bool follow;
	enum stacks stacks;
	bool quiet;
	bool no_content;
	bool no_cache;
	enum colour colour;
	struct debug_options debug;
	struct word_list commands; /* of -c, instead of the gate */
	char **gate;		   /* the words of the gate, its name first */
	size_t gate_count;
};

enum {
	KEY_CORE = 256,
	KEY_CORE_ON_FAILURE,
	KEY_ERROR_STATUS,
	KEY_TIMEOUT,
};

enum { HIGHEST_STATUS = 255 };

static const char DOCUMENTATION[] =
	"Run PROGRAM at full speed, stop it when it ends, and report what it leaked.\vAll options of the command `gate' work here, too: see `heapcore help gate'. The report goes to standard error.\n"
	"\n"
	"Signals from the terminal reach the program as usual. Other debuggers cannot trace it meanwhile, and set-user-id programs run without that right, unless root starts them. Processes that the program leaves behind continue, watched by a process of heapcore.\n"
	"\n"
	"Exit status: that of PROGRAM, 128+N if signal N killed it, 124 after --timeout; but 1, or that of --error-exitcode, if the gate found something; 2 for wrong usage; 3 if PROGRAM may not be traced or could not be analysed well enough; 126 if it cannot be executed; 127 if it does not exist.";

static const struct argp_option OPTIONS[] = {
	{ "command", 'c', "COMMAND", BY_LETTER(KEEP(LIST, struct run_options, commands)),
	  "Run COMMAND in the end instead of 'gate' (may be repeated)", 0 },
	{ "core", KEY_CORE, "FILE", 0, "Keep the core in FILE; those of children in FILE.PID", 0 },
	{ "core-on-failure", KEY_CORE_ON_FAILURE, "FILE", 0,
	  "Keep the core in FILE only if the exit status is not 0; where CI is set, this is done in $RUNNER_TEMP or $TMPDIR by default",
	  0 },
	{ "portable", KEEP(FLAG, struct run_options, portable), NULL, 0,
	  "Include the parts of the binaries that names need in cores that are kept", 0 },
	{ "error-exitcode", KEY_ERROR_STATUS, "N", 0, "Exit with N if the gate finds something (1)",
	  0 },
	{ "follow-forks", KEEP(FLAG, struct run_options, follow), NULL, 0,
	  "Also analyse the program's children and theirs, and follow daemons to their end", 0 },
	{ "stacks", KEEP(CHOICE, struct run_options, stacks), "auto|always|never", 0,
	  "Show the calls that allocated the leaks: 'auto' runs PROGRAM once more if it leaked too much, without its output and a terminal's input (default); 'always' records in the only run, 'never' does not",
	  0 },
	{ "timeout", KEY_TIMEOUT, "SECONDS", 0,
	  "End the program (SIGTERM, later SIGKILL) if it takes longer", 0 },
	{ "log-file", KEEP(TEXT, struct run_options, log_path), "FILE", 0,
	  "Write the report to FILE, not to standard error", 0 },
	{ "format", KEEP(TEXT, struct run_options, format), "FORMAT", 0,
	  "Write it in FORMAT, as for cores", 0 },
	{ "output", 'o', "FILE", 0,
	  "Also write the report on PROGRAM itself to FILE, in the format of its ending, or to FORMAT:FILE (may be repeated)",
	  0 },
	{ "quiet", 'q', NULL, BY_LETTER(KEEP(FLAG, struct run_options, quiet)),
	  "Show no progress, and only those notes that change what an answer means", 0 },
	{ "no-content", KEEP(FLAG, struct run_options, no_content), NULL, 0,
	  "Leave the contents of memory out of all output", 0 },
	{ "no-cache", KEEP(FLAG, struct run_options, no_cache), NULL, 0,
	  "Keep nothing for other cores of the build", 0 },
	{ "debug-dir", KEEP(TEXT, struct run_options, debug.debug_directory), "DIR", 0,
	  "Also search DIR for separate debug files", 0 },
	{ "debuginfod", KEEP(FLAG, struct run_options, debug.debuginfod), NULL, 0,
	  "Fetch missing debug files from $DEBUGINFOD_URLS", 0 },
	{ 0 },
};

static uint64_t parse_number(struct argp_state *state, const char *option, const char *word,
			     uint64_t highest)
{
	uint64_t number = 0;
	struct error *error = parse_count(word, &number);

	if (error) {
		error_destroy(error);
		number = 0;
	}
	if (number == 0 || number > highest)
		argp_error(state, "%s is a number from 1 to %ju, not '%s'", option,
			   (uintmax_t)highest, word);
	return number;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct run_options *options = state->input;

	switch (key) {
	case 'o':
		return report_file_names_add(&options->files, state, argument);
	case KEY_CORE:
	case KEY_CORE_ON_FAILURE:
		options->core_path = argument;
		options->only_failed = key == KEY_CORE_ON_FAILURE;
		return 0;
	case KEY_TIMEOUT:
		options->timeout = parse_number(state, "--timeout", argument, INT32_MAX / 1000);
		return 0;
	case KEY_ERROR_STATUS:
		options->error_status =
			(int)parse_number(state, "--error-exitcode", argument, HIGHEST_STATUS);
		return 0;
	default:
		return switch_take(OPTIONS, key, argument, state);
	}
}

const struct argp run_parser = {
	.options = OPTIONS,
	.parser = parse_option,
	.args_doc = "-- PROGRAM [ARGUMENTS...]",
	.doc = DOCUMENTATION,
};

/* All that options point to is in arguments. Exits if they are wrong. */
static void run_options_parse(int count, char **arguments, struct run_options *ret)
{
	size_t room = (size_t)count + 1;
	_cleanup_(free) char **own = calloc(room, sizeof(*own));
	struct gate_words words = { .own = own, .own_count = 1, .gate_count = 1 };
	int program;

	*ret = (struct run_options){ .gate = calloc(room, sizeof(char *)) };
	if (!own || !ret->gate)
		exit(EXIT_NOT_ANALYSED);
	own[0] = arguments[0];
	ret->gate[0] = (char *)"gate";
	words.gate = ret->gate;
	program = gate_words_divide(OPTIONS, count, arguments, &words);
	ret->gate_count = words.gate_count;
	if (argp_parse(&run_parser, (int)words.own_count, own, 0, NULL, ret)) {
		fputs("heapcore: out of memory\n", stderr);
		exit(EXIT_NOT_ANALYSED);
	}
	ret->debug.cache_folder = ret->no_cache ? NULL : cache_folder();
	ret->program = arguments + program;
	if (program < count)
		return;
	fprintf(stderr, "%s: no program is given\n", arguments[0]);
	argp_help(&run_parser, stderr, ARGP_HELP_SEE, arguments[0]);
	exit(EXIT_WRONG_USAGE);
}

static void run_options_deinit(struct run_options *options)
{
	free(options->commands.list);
	free(options->gate);
	free(options->default_core);
}
DEFINE_DEINIT(run_options_deinit, struct run_options)

/* Exit statuses as timeout(1) and shells have them. */
enum {
	EXIT_TIMED_OUT = 124,
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
	EXIT_KILLED = 128,
};

/* Seconds between SIGTERM and SIGKILL for the program. */
enum { GRACE = 10 };

/* A process that ended, and its core. */
struct ended_process {
	struct watch_message message;
	char *path;
	bool is_program; /* not a child of it */
};

struct run {
	const struct run_options *options;
	struct session session; /* for messages */
	int socket;
	double start;
	int kills; /* signals sent because of the time */
	struct ended_process *ended_processes;
	size_t count;
	bool ended;
	bool not_run;  /* it could not be started, or not be traced */
	int status;    /* exit status of the program itself */
	size_t others; /* its processes that still run */
	size_t unseen; /* those that ended, but were not followed */
	bool lost;     /* a process could not be looked into */
	off_t input;   /* offset at which standard input began; -1: it cannot be read again */
	char *preload; /* the recorder's file; owned; NULL: not unpacked */
	struct ended_process
		again; /* of the program's second run; its path is NULL if there was none */
};

enum { MOST_LEFT = 64 };

/*
 * A signal handler gets no argument. The processes that the program left are pidfds: their numbers
 * may be others' by then.
 */
static volatile sig_atomic_t program_id, early_signal, left_ends[MOST_LEFT], left_count;

/* Forward fatal signals to the program, or to those it left: their ends are what we analyse. */
static void forward(int number)
{
	for (int i = 0; i < left_count; i++)
		syscall(SYS_pidfd_send_signal, (int)left_ends[i], number, NULL, 0);
	if (left_count)
		return;
	if (program_id > 0)
		kill((pid_t)program_id, number);
	else
		early_signal = number;
}

/* The terminal sends it to the program as well, which knows best. */
static void leave_to_program(int number)
{
}

/*
 * Do not use SIG_IGN, which the program would inherit. Signals that are already ignored stay so, as
 * nohup(1) needs.
 */
static void handle(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler }, former;

	if (sigaction(number, NULL, &former) == 0 && former.sa_handler != SIG_IGN)
		sigaction(number, &action, NULL);
}

static void hand_on_signals(void)
{
	handle(SIGTERM, forward);
	handle(SIGHUP, forward);
	handle(SIGINT, leave_to_program);
	handle(SIGQUIT, leave_to_program);
}

static void take_signals_back(void)
{
	handle(SIGTERM, SIG_DFL);
	handle(SIGHUP, SIG_DFL);
	handle(SIGINT, SIG_DFL);
	handle(SIGQUIT, SIG_DFL);
	program_id = 0;
	while (left_count) {
		left_count = left_count - 1;
		close((int)left_ends[left_count]);
	}
}

/* From now on signals reach it. */
static void set_program(pid_t program)
{
	program_id = program;
	if (early_signal)
		forward(early_signal);
}

/* Find a place for one more process: that of one that has ended, if there is any. */
static int find_place_for_left(void)
{
	for (int i = 0; i < left_count; i++) {
		struct pollfd end = { (int)left_ends[i], POLLIN, 0 };

		if (poll(&end, 1, 0) > 0) {
			close(end.fd);
			return i;
		}
	}
	return left_count;
}

/* The program has ended, but not this process of it: a daemon, which no terminal reaches. */
static void wait_for_left(struct run *run, const struct watch_message *message)
{
	int process = (int)syscall(SYS_pidfd_open, message->process, 0), place;

	if (left_count == 0)
		session_note(
			&run->session,
			"note: the program has ended, but it left processes such as %d (%s), which are "
			"followed: a signal such as Ctrl-C ends them",
			message->process, message->name);
	if (process < 0)
		return;
	place = find_place_for_left();
	if (place == MOST_LEFT) {
		close(process);
		return;
	}
	left_ends[place] = process;
	if (place == left_count)
		left_count = left_count + 1;
	handle(SIGINT, forward);
	handle(SIGQUIT, forward);
}

static void tell(struct run *run, const char *text)
{
	session_complain(&run->session, error_create(ERROR_NOT_SUPPORTED, "%s", text));
}

static void take_core(struct run *run, const struct watch_message *message)
{
	struct ended_process ended = { .message = *message,
				       .is_program = message->process == (pid_t)program_id };

	if (run->options->core_path)
		ended.path = watch_core_path(run->options->core_path, message->process,
					     ended.is_program);
	else
		ended.path = format_text("/proc/self/fd/%d", message->fd);
	if (!ended.path || !LIST_GROW(run->ended_processes, run->count)) {
		session_complain(&run->session, &error_no_memory);
		run->lost = true;
		free(ended.path);
		return;
	}
	run->ended_processes[run->count++] = ended;
}

static int status_of_program(int status)
{
	return WIFSIGNALED(status) ? EXIT_KILLED + WTERMSIG(status) : WEXITSTATUS(status);
}

static void follow(struct run *run, const struct watch_message *message)
{
	char text[WATCH_TEXT_SIZE + 64];

	switch (message->kind) {
	case WATCH_STARTED:
		set_program(message->process);
		return;
	case WATCH_NOTE:
		session_note(&run->session, "note: %s", message->text);
		return;
	case WATCH_CAPTURED:
		take_core(run, message);
		return;
	case WATCH_LOST:
		snprintf(text, sizeof(text), "no core of process %d: %s", message->process,
			 message->text);
		tell(run, text);
		run->lost = true;
		return;
	case WATCH_REFUSED:
		tell(run, message->text);
		run->status = EXIT_NOT_ANALYSED;
		run->not_run = true;
		break;
	case WATCH_NOT_RUN:
		snprintf(text, sizeof(text), "%s: %s", run->options->program[0],
			 strerror(message->status));
		tell(run, text);
		run->status = message->status == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
		run->not_run = true;
		break;
	case WATCH_LEFT:
		wait_for_left(run, message);
		return;
	case WATCH_ENDED:
		run->status = status_of_program(message->status);
		run->others = message->others;
		run->unseen = message->unseen;
		break;
	}
	run->ended = true;
}

/* Milliseconds until the program is to be killed (again), or -1. */
static int time_left(const struct run *run)
{
	double limit = (double)run->options->timeout + run->kills * GRACE;
	double left = limit - (clock_now() - run->start);

	if (!run->options->timeout || run->kills > 1)
		return -1;
	return left <= 0 ? 0 : (int)(left * 1000) + 1;
}

static void time_is_up(struct run *run)
{
	session_note(&run->session, "%s after %ju s: sending %s", run->options->program[0],
		     (uintmax_t)(run->options->timeout + (uintmax_t)(run->kills * GRACE)),
		     run->kills ? "SIGKILL" : "SIGTERM");
	forward(run->kills ? SIGKILL : SIGTERM);
	run->kills++;
}

/* Listen until the program has ended, one way or the other. */
static void wait_for_end(struct run *run)
{
	while (!run->ended) {
		struct pollfd waiting = { run->socket, POLLIN, 0 };
		int ready = poll(&waiting, 1, time_left(run));
		struct watch_message message;

		if (ready == 0)
			time_is_up(run);
		if (ready <= 0)
			continue;
		if (watch_receive(run->socket, &message)) {
			follow(run, &message);
		} else if (errno != EINTR) {
			tell(run, "the process that watches the program was killed");
			run->lost = true;
			return;
		}
	}
}

static void run_commands(struct session *session, const struct run_options *options)
{
	if (options->commands.count == 0)
		execute_words(session, options->gate, options->gate_count);
	for (size_t i = 0; i < options->commands.count; i++)
		if (!session->leaving && !session_interrupted(session))
			execute_line(session, options->commands.list[i]);
	if (!session_interrupted(session))
		session_doubt(session);
}

/* The core of the program itself, or NULL. */
static struct ended_process *find_ended_program(const struct run *run)
{
	for (size_t i = 0; i < run->count; i++)
		if (run->ended_processes[i].is_program)
			return &run->ended_processes[i];
	return NULL;
}

static void ended_process_deinit(struct ended_process *ended)
{
	close(ended->message.fd);
	free(ended->path);
}

static void run_deinit(struct run *run)
{
	for (size_t i = 0; i < run->count; i++)
		ended_process_deinit(&run->ended_processes[i]);
	free(run->ended_processes);
	if (run->again.path)
		ended_process_deinit(&run->again);
	if (run->preload)
		unlink(run->preload);
	free(run->preload);
	if (run->socket >= 0)
		close(run->socket);
	session_deinit(&run->session);
}
DEFINE_DEINIT(run_deinit, struct run)

/* Run the program with the recorder; its core becomes run->again. */
static struct error *record(struct run *run, const char *sizes)
{
	struct run_options options = *run->options;
	_cleanup_(run_deinit) struct run again = { .socket = -1,
						   .options = &options,
						   .start = clock_now() };
	const struct watch_options watch = {
		.arguments = options.program,
		.preload = run->preload,
		.sizes = sizes,
		.again = true,
	};
	struct ended_process *ended;
	struct error *error;

	options.core_path = NULL;
	session_init(&again.session, true);
	if (run->input > 0 && lseek(STDIN_FILENO, run->input, SEEK_SET) < 0)
		return error_system("standard input");
	hand_on_signals();
	error = watch_start(&watch, &again.socket);
	if (!error)
		wait_for_end(&again);
	take_signals_back();
	if (error)
		return error;
	ended = find_ended_program(&again);
	if (!ended)
		return error_create(ERROR_NOT_SUPPORTED, "the end of its second run was not seen");
	run->again = *ended;
	*ended = again.ended_processes[--again.count];
	return NULL;
}

/* See struct rerun. */
static struct error *run_again(void *data, const char *sizes, char **ret)
{
	struct run *run = data;
	struct ended_process *ended = find_ended_program(run);

	*ret = NULL;
	if (run->options->stacks == STACKS_AUTO) {
		if (run->input < 0) {
			session_note(
				&run->session,
				"note: the calls that allocated the leaks are not known: standard input cannot be read again; use --stacks=always");
			return NULL;
		}
		session_note(
			&run->session,
			"note: %s runs once more to record the calls that allocated the leaks (--stacks=never skips that)",
			run->options->program[0]);
		TRY(preload_unpack(&run->preload));
		TRY(record(run, sizes));
		if (run->again.message.signal && !ended->message.signal)
			session_note(
				&run->session, "note: the second run was killed by signal %d (%s)",
				run->again.message.signal, strsignal(run->again.message.signal));
		ended = &run->again;
	}
	*ret = strdup(ended->path);
	return *ret ? NULL : &error_no_memory;
}

/* The offset of standard input, or -1 if it cannot be read twice. */
static off_t input_place(void)
{
	struct stat status, nothing;

	if (fstat(STDIN_FILENO, &status) < 0 || isatty(STDIN_FILENO))
		return 0;
	if (S_ISREG(status.st_mode))
		return lseek(STDIN_FILENO, 0, SEEK_CUR);
	return S_ISCHR(status.st_mode) && stat("/dev/null", &nothing) == 0 &&
			       status.st_rdev == nothing.st_rdev
		       ? 0
		       : -1;
}

static void introduce(struct session *session, const struct ended_process *ended)
{
	const struct watch_message *message = &ended->message;

	if (message->signal)
		session_note(session,
			     "process %d (%s), killed by signal %d (%s):", message->process,
			     message->name, message->signal, strsignal(message->signal));
	else
		session_note(session, "process %d (%s):", message->process, message->name);
}

/*
 * Set where output goes and how it names the process. Only the program, not its children, is
 * written to the files of -o.
 */
static struct error *open_reports(struct session *session, const struct run_options *options,
				  const struct ended_process *ended)
{
	if (!options->core_path || options->only_failed)
		session->subject = ended->is_program ? options->program[0] : ended->message.name;
	if (options->format)
		TRY(report_format_find(options->format, &session->format));
	if (!ended->is_program)
		return NULL;
	return report_files_open(session, &options->files, ended->path);
}

/* Returns the exit status that the analysis gives. */
static int analyse(struct run *run, const struct ended_process *ended)
{
	const struct rerun rerun = { run_again, run, run->options->stacks == STACKS_AUTO };
	const struct run_options *options = run->options;
	_cleanup_(session_deinit) struct session session;
	struct error *error;

	session_init(&session, options->quiet);
	session.colour = options->colour;
	session.debug = &options->debug;
	session.no_content = options->no_content;
	vanished_catch();
	interrupt_catch(&session.progress.progress, true);
	if (run->count > 1 || options->follow || ended->message.signal)
		introduce(&session, ended);
	snap_tell_gaps(&session, &ended->message.sizes);
	error = open_reports(&session, options, ended);
	if (!error)
		error = session_open(&session, ended->path);
	if (error)
		return session_end(&session, error);
	session_show_findings(&session);
	if (ended->is_program && options->stacks != STACKS_NEVER)
		analysis_set_rerun(session.analysis, &rerun);
	run_commands(&session, options);
	error = report_files_close(&session);
	fflush(stdout);
	return session_end(&session, error);
}

/* The status to exit with, by precedence: interrupted, wrong usage, not analysed, found. */
static int graver(int one, int other)
{
	static const int order[] = {
		EXIT_INTERRUPTED,
		EXIT_WRONG_USAGE,
		EXIT_NOT_ANALYSED,
		EXIT_FOUND,
	};

	for (size_t i = 0; i < COUNT_OF(order); i++)
		if (one == order[i] || other == order[i])
			return order[i];
	return EXIT_FINE;
}

static int analyse_all(struct run *run)
{
	int status = run->lost ? EXIT_NOT_ANALYSED : EXIT_FINE;

	for (size_t i = 0; i < run->count; i++) {
		status = graver(status, analyse(run, &run->ended_processes[i]));
		if (status == EXIT_INTERRUPTED)
			break;
	}
	if (status == EXIT_FOUND && run->options->error_status)
		return run->options->error_status;
	return status;
}

/* Stands behind the verdict, which says nothing of these. */
static void tell_unchecked(struct run *run)
{
	if (run->others)
		session_caveat(&run->session,
			       "note: %zu process%s of the program still run%s and %s not checked",
			       run->others, run->others == 1 ? "" : "es",
			       run->others == 1 ? "s" : "", run->others == 1 ? "is" : "are");
	if (run->unseen)
		session_caveat(
			&run->session,
			"note: %zu child process%s not checked: --follow-forks checks children, too",
			run->unseen, run->unseen == 1 ? " was" : "es were");
}

/* Open the log; -1: standard error. */
static struct error *open_log(const struct run_options *options, int *ret)
{
	*ret = -1;
	if (!options->log_path)
		return NULL;
	*ret = output_file_open(options->log_path, 0);
	/* Only regular files can be truncated. */
	if (*ret < 0 || (ftruncate(*ret, 0) < 0 && errno != EINVAL))
		return error_create(ERROR_USAGE, "%s: %s", options->log_path, strerror(errno));
	return NULL;
}

/* Standard output is the program's. What is to be read by a machine stands alone in its file. */
static void divert_output(const struct run_options *options, int log)
{
	if (log >= 0 && options->format && strcmp(options->format, "text") != 0) {
		dup2(log, STDOUT_FILENO);
		return;
	}
	if (log >= 0)
		dup2(log, STDERR_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
}

static int conclude(struct run *run)
{
	int status;

	if (run->ended && !find_ended_program(run) && !run->lost) {
		tell(run, "the end of the program was not seen: its memory could not be analysed");
		run->lost = true;
	}
	status = analyse_all(run);
	tell_unchecked(run);
	if (status != EXIT_FINE)
		return status;
	return run->kills > 0 ? EXIT_TIMED_OUT : run->status;
}

/* Keep the cores of what failed, and say how to go on. */
static void settle_cores(struct run *run, int status)
{
	for (size_t i = 0; i < run->count && run->options->only_failed; i++) {
		const char *path = run->ended_processes[i].path;

		if (status == EXIT_FINE)
			unlink(path);
		else
			session_note(
				&run->session,
				"note: the core is kept; go on with: heapcore %s explain leakroots --limit 3",
				path);
	}
}

static int start_and_analyse(struct run *run)
{
	struct watch_options watch = {
		.arguments = run->options->program,
		.core_path = run->options->core_path,
		.portable = run->options->portable,
		.follow = run->options->follow,
	};
	_cleanup_(close) int log = -1;
	struct error *error = open_log(run->options, &log);
	int status;

	run->input = input_place();
	hand_on_signals();
	if (!error && run->options->stacks == STACKS_ALWAYS)
		error = preload_unpack(&run->preload);
	watch.preload = run->preload;
	if (!error)
		error = watch_start(&watch, &run->socket);
	if (error)
		return session_end(&run->session, error);
	divert_output(run->options, log);
	wait_for_end(run);
	take_signals_back();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	status = run->not_run ? run->status : conclude(run);
	settle_cores(run, status);
	return status;
}

/* In continuous integration, nobody can run it again by hand. */
static struct error *default_core(struct run_options *options)
{
	const char *ci = getenv("CI"), *folder = getenv("RUNNER_TEMP");

	if (options->core_path || !ci || !*ci)
		return NULL;
	if (!folder || !*folder)
		folder = copies_folder();
	if (access(folder, W_OK) < 0)
		return NULL;
	options->default_core = format_text("%s/heapcore-%d.core", folder, getpid());
	TRY_MEMORY(options->default_core);
	options->core_path = options->default_core;
	options->only_failed = true;
	return NULL;
}

int run_main(int count, char **arguments)
{
	_cleanup_(run_options_deinit) struct run_options options = { 0 };
	_cleanup_(run_deinit) struct run run = { .socket = -1 };
	struct error *error;

	run_options_parse(count, arguments, &options);
	run.options = &options;
	run.start = clock_now();
	session_init(&run.session, options.quiet);
	error = default_core(&options);
	return error ? session_end(&run.session, error) : start_and_analyse(&run);
}
