#include "cli/live/soak.h"

#include "analyzer/base/text.h"
#include "analyzer/diff/growth.h"
#include "cli/live/copies.h"
#include "cli/live/gate_words.h"
#include "cli/live/preload.h"
#include "cli/live/process_root.h"
#include "cli/live/snap.h"
#include "cli/prompt/execute.h"
#include "cli/prompt/output_file.h"
#include "cli/prompt/reports.h"
#include "cli/prompt/switches.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { DEFAULT_SNAPSHOTS = 6, DEFAULT_WARM_UP = 2 };

static const char DOCUMENTATION[] =
	"Start PROGRAM, or look at a running process, let it do the same again and again, and fail if memory grows in each iteration.\vSnapshots are taken between the iterations, as by `heapcore snap'; the process goes on. Limits, baselines and suppressions of the command `gate' work here, too: see `heapcore help gate'. What PROGRAM and COMMAND write goes to standard error.\n"
	"\n"
	"The first iteration is repeated for 30 s until it succeeds, because PROGRAM may still be starting. In the end PROGRAM gets SIGTERM, and SIGKILL 10 s later.\n"
	"\n"
	"Exit status: 0 if nothing grows; 1 if something does; 2 for wrong usage; 3 if the process ended, a COMMAND failed, or a snapshot could not be analysed well enough.";

struct soak_options {
	char **program; /* and its arguments, NULL behind them; or NULL */
	const char *process;
	const char *every;
	uint64_t wait; /* ns; 0: every is a command */
	uint64_t snapshots, iterations, warm_up;
	bool has_snapshots, has_iterations, has_warm_up;
	const char *keep;
	const char *format;
	struct report_file_names files; /* of -o */
	bool stacks;
	bool quiet;
	bool no_content;
	bool no_cache;
	struct debug_options debug;
	char **gate; /* the words of the gate, with room for two a snapshot */
	size_t gate_count;
};

static const struct argp_option OPTIONS[] = {
	{ "every", 'e', "COMMAND|TIME", BY_LETTER(KEEP(TEXT, struct soak_options, every)),
	  "An iteration: a command for the shell, or a time such as 60s or 5m to wait", 0 },
	{ "pid", 'p', "PID", BY_LETTER(KEEP(TEXT, struct soak_options, process)),
	  "Look at this process instead of starting one", 0 },
	{ "iterations", KEEP_GIVEN(COUNT, struct soak_options, iterations, has_iterations), "COUNT",
	  0, "Iterations that count (5)", 0 },
	{ "snapshots", KEEP_GIVEN(COUNT, struct soak_options, snapshots, has_snapshots), "COUNT", 0,
	  "Snapshots to take, one more than iterations (6)", 0 },
	{ "warm-up", KEEP_GIVEN(COUNT, struct soak_options, warm_up, has_warm_up), "COUNT", 0,
	  "Iterations before the first snapshot (2)", 0 },
	{ "keep", KEEP(TEXT, struct soak_options, keep), "DIR", 0,
	  "Keep the snapshots in DIR, as 1.core, 2.core and so on", 0 },
	{ "stacks", KEEP(FLAG, struct soak_options, stacks), NULL, 0,
	  "Preload the recorder into PROGRAM, to say who allocated what grows", 0 },
	{ "format", KEEP(TEXT, struct soak_options, format), "FORMAT", 0,
	  "Write the report in FORMAT, as for cores", 0 },
	{ "output", 'o', "FILE", 0,
	  "Also write the report to FILE, in the format of its ending, or to FORMAT:FILE (may be repeated)",
	  0 },
	{ "quiet", 'q', NULL, BY_LETTER(KEEP(FLAG, struct soak_options, quiet)),
	  "Show no progress, and only those notes that change what an answer means", 0 },
	{ "no-content", KEEP(FLAG, struct soak_options, no_content), NULL, 0,
	  "Leave the contents of memory out of all output", 0 },
	{ "no-cache", KEEP(FLAG, struct soak_options, no_cache), NULL, 0,
	  "Keep nothing for other cores of the build", 0 },
	{ "debug-dir", KEEP(TEXT, struct soak_options, debug.debug_directory), "DIR", 0,
	  "Also search DIR for separate debug files", 0 },
	{ "debuginfod", KEEP(FLAG, struct soak_options, debug.debuginfod), NULL, 0,
	  "Fetch missing debug files from $DEBUGINFOD_URLS", 0 },
	{ 0 },
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct soak_options *options = state->input;

	return key == 'o' ? report_file_names_add(&options->files, state, argument)
			  : switch_take(OPTIONS, key, argument, state);
}

const struct argp soak_parser = {
	.options = OPTIONS,
	.parser = parse_option,
	.args_doc = "{-- PROGRAM [ARGUMENTS...] | --pid PID}",
	.doc = DOCUMENTATION,
};

/* Find mistakes in the gate's switches before anything is started. */
static struct error *check_gate(const struct soak_options *options)
{
	const struct command *gate = command_find("gate");
	_cleanup_(free) void *arguments = calloc(1, gate->arguments_size);
	struct common_switches common = { 0 };
	struct error *error;

	TRY_MEMORY(arguments);
	error = switches_parse(gate, options->gate + 1, options->gate_count - 1, arguments,
			       &common);
	gate->release(arguments);
	return error;
}

static struct error *check(struct soak_options *options)
{
	struct error *error;

	if (!options->every)
		return error_create(ERROR_USAGE, "no iteration is given: --every COMMAND or TIME");
	if (!options->program == !options->process)
		return error_create(ERROR_USAGE, "give a program or --pid PID");
	if (options->stacks && options->process)
		return error_create(ERROR_USAGE,
				    "--stacks is for a program that soak starts, not for --pid");
	if (options->has_iterations && options->has_snapshots)
		return error_create(ERROR_USAGE, "give --iterations or --snapshots");
	if (options->has_iterations)
		options->snapshots = options->iterations + 1;
	else if (!options->has_snapshots)
		options->snapshots = DEFAULT_SNAPSHOTS;
	if (options->snapshots < LEAST_GROWING_CORES || options->snapshots > MOST_CORES)
		return error_create(ERROR_USAGE, "snapshots are %d to %d in number",
				    LEAST_GROWING_CORES, MOST_CORES);
	if (!options->has_warm_up)
		options->warm_up = DEFAULT_WARM_UP;
	error = parse_time(options->every, &options->wait);
	if (error)
		error_destroy(error); /* it is a command */
	return NULL;
}

/* All that options point to is in arguments. Exits if they are wrong. */
static struct error *parse(int count, char **arguments, struct soak_options *ret)
{
	size_t room = (size_t)count + 1;
	_cleanup_(free) char **own = calloc(room, sizeof(*own));
	struct gate_words words = { .own = own, .own_count = 1, .gate_count = 1 };
	int program;

	*ret = (struct soak_options){ .gate = calloc(room + 2 * (size_t)MOST_CORES,
						     sizeof(*ret->gate)) };
	TRY_MEMORY(own && ret->gate);
	own[0] = arguments[0];
	ret->gate[0] = (char *)"gate";
	words.gate = ret->gate;
	program = gate_words_divide(OPTIONS, count, arguments, &words);
	ret->gate_count = words.gate_count;
	if (argp_parse(&soak_parser, (int)words.own_count, own, 0, NULL, ret))
		return &error_no_memory;
	ret->debug.cache_folder = ret->no_cache ? NULL : cache_folder();
	ret->program = program < count ? arguments + program : NULL;
	return check(ret);
}

/* Seconds for the program to start, between attempts, to end, and to come to rest. */
static const double STARTING = 30, BETWEEN = 0.2, ENDING = 10, RESTING = 0.1;

struct soak {
	struct soak_options options;
	struct session session;
	char *preload; /* the recorder's file; owned */
	pid_t process;
	int end;  /* a file that can be read when it has ended */
	int root; /* of a process with files of its own; or -1 */
	char root_path[PROCESS_ROOT_SIZE];
	bool is_started; /* by us: it is to be ended */
	char *paths[MOST_CORES];
	int files[MOST_CORES];
	size_t count;	/* of snapshots that are taken */
	double longest; /* seconds that it was stopped */
};

static bool has_ended(const struct soak *soak)
{
	struct pollfd file = { soak->end, POLLIN, 0 };

	return poll(&file, 1, 0) > 0;
}

/* Wait, but not beyond the process's end or an interrupt. */
static struct error *pause_for(struct soak *soak, double seconds)
{
	double end = clock_now() + seconds, left;

	while ((left = end - clock_now()) > 0 && !has_ended(soak)) {
		enum { LONGEST = 3600 };
		struct pollfd file = { soak->end, POLLIN, 0 };

		poll(&file, 1, (int)((left < LONGEST ? left : LONGEST) * 1000) + 1);
		TRY(progress_check(&soak->session.progress.progress, 0));
	}
	return NULL;
}

static struct error *check_alive(const struct soak *soak)
{
	int status;

	if (!has_ended(soak))
		return NULL;
	if (!soak->is_started || waitpid(soak->process, &status, WNOHANG) <= 0)
		status = 0;
	if (WIFSIGNALED(status))
		return error_create(ERROR_NOT_SUPPORTED,
				    "process %d was killed by signal %d after %zu snapshots",
				    soak->process, WTERMSIG(status), soak->count);
	return error_create(ERROR_NOT_SUPPORTED, "process %d ended after %zu snapshots",
			    soak->process, soak->count);
}

/* In a child: what it writes must not mix with the report. */
static void become(const char *file, char *const *arguments)
{
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	execvp(file, arguments);
}

static struct error *watch_end(struct soak *soak)
{
	soak->end = (int)syscall(SYS_pidfd_open, soak->process, 0);
	if (soak->end >= 0)
		return NULL;
	if (errno == ESRCH)
		return error_create(ERROR_USAGE, "there is no process %d", soak->process);
	return error_system("process %d", soak->process);
}

static struct error *start_program(struct soak *soak)
{
	char **program = soak->options.program;
	pid_t heapcore = getpid();
	int failure = 0, reported[2];

	if (soak->options.stacks)
		TRY(preload_unpack(&soak->preload));
	if (pipe2(reported, O_CLOEXEC) < 0)
		return error_system("a pipe");
	soak->process = fork();
	if (soak->process == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (soak->preload)
			preload_set(soak->preload, NULL);
		if (getppid() == heapcore)
			become(program[0], program);
		failure = errno;
		_exit(write(reported[1], &failure, sizeof(failure)) < 0);
	}
	close(reported[1]);
	soak->is_started = soak->process > 0;
	if (soak->is_started && read(reported[0], &failure, sizeof(failure)) != sizeof(failure))
		failure = 0;
	close(reported[0]);
	if (failure)
		return error_create(ERROR_USAGE, "%s: %s", program[0], strerror(failure));
	return soak->is_started ? watch_end(soak) : error_system("a process");
}

static struct error *begin_process(struct soak *soak)
{
	if (soak->options.program)
		return start_program(soak);
	TRY(parse_process(soak->options.process, &soak->process));
	soak->root = process_root_open(soak->process, soak->root_path);
	if (soak->root >= 0)
		soak->options.debug.sysroot = soak->root_path;
	return watch_end(soak);
}

/* SIGTERM, and SIGKILL if that does not help. */
static void end_process(struct soak *soak)
{
	double end = clock_now() + ENDING;

	if (!soak->is_started)
		return;
	soak->is_started = false;
	kill(soak->process, SIGTERM);
	while (soak->end >= 0 && !has_ended(soak) && clock_now() < end) {
		struct pollfd file = { soak->end, POLLIN, 0 };

		poll(&file, 1, (int)(ENDING * 1000));
	}
	kill(soak->process, SIGKILL);
	waitpid(soak->process, NULL, 0);
}

/* Run the command of an iteration; *ret is its status as a shell has it. */
static struct error *run_command(struct soak *soak, int *ret)
{
	const char *words[] = { "sh", "-c", soak->options.every, NULL };
	pid_t command = fork();
	int status = 0;

	if (command < 0)
		return error_system("a process");
	if (command == 0) {
		setpgid(0, 0);
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
		become("/bin/sh", (char *const *)words);
		_exit(EXIT_NOT_ANALYSED);
	}
	setpgid(command, command); /* by both, as either may be first */
	while (waitpid(command, &status, 0) < 0 && errno == EINTR)
		if (session_interrupted(&soak->session))
			kill(-command, SIGTERM);
	TRY(progress_check(&soak->session.progress.progress, 0));
	*ret = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return NULL;
}

/* An iteration; *ret is the status of its command. */
static struct error *iterate_once(struct soak *soak, int *ret)
{
	*ret = 0;
	if (soak->options.wait)
		TRY(pause_for(soak, (double)soak->options.wait / 1e9));
	else
		TRY(run_command(soak, ret));
	return check_alive(soak);
}

enum { NO_SUCH_COMMAND = 127 }; /* what a shell says */

/* Until the end, a command that fails is tried again. */
static struct error *iterate(struct soak *soak, double end)
{
	int status;

	TRY(iterate_once(soak, &status));
	while (status && status != NO_SUCH_COMMAND && clock_now() < end) {
		TRY(pause_for(soak, BETWEEN));
		TRY(iterate_once(soak, &status));
	}
	if (!status)
		return pause_for(soak, RESTING);
	return error_create(ERROR_NOT_SUPPORTED,
			    "the command of --every failed after %zu snapshots: status %d",
			    soak->count, status);
}

/* Name the files of all snapshots: temporary ones unless they are kept. */
static struct error *name_snapshots(struct soak *soak)
{
	struct soak_options *options = &soak->options;

	for (size_t i = 0; i < options->snapshots; i++) {
		if (options->keep) {
			soak->paths[i] = format_text("%s/%zu.core", options->keep, i + 1);
		} else {
			TRY(copies_open(&soak->files[i]));
			soak->paths[i] = format_text("/proc/self/fd/%d", soak->files[i]);
		}
		TRY_MEMORY(soak->paths[i]);
		if (i + 1 == options->snapshots)
			break; /* the gate is run on it */
		options->gate[options->gate_count++] = (char *)"--growing";
		options->gate[options->gate_count++] = soak->paths[i];
	}
	return NULL;
}

/* Begin a file that is kept. */
static struct error *begin_kept(const struct soak *soak, struct output_file *ret)
{
	const char *path = soak->paths[soak->count];

	if (mkdir(soak->options.keep, 0777) < 0 && errno != EEXIST)
		return error_system("%s", soak->options.keep);
	return output_file_begin(path, ret) < 0 ? error_system("%s", path) : NULL;
}

static struct error *take_snapshot(struct soak *soak)
{
	_cleanup_(output_file_deinit) struct output_file file = { .fd = -1 };
	struct core_options options = { .complete = !soak->options.keep,
					.progress = &soak->session.progress.progress };
	struct snapshot snapshot = { 0 };
	int *fd = &soak->files[soak->count];
	struct error *error;

	if (soak->options.keep)
		TRY(begin_kept(soak, &file));
	options.fd = soak->options.keep ? file.fd : *fd;
	progress_line_begin(&soak->session.progress);
	error = snapshot_take(soak->process, &options, CLONE_BY_NEED, &snapshot);
	progress_line_stop(&soak->session.progress);
	if (!error && soak->options.keep && (*fd = output_file_complete(&file)) < 0)
		error = error_system("%s", soak->paths[soak->count]);
	if (error)
		return error_wrap(error, "snapshot %zu", soak->count + 1);
	if (soak->count == 0)
		snap_tell_gaps(&soak->session, &snapshot.sizes);
	if (snapshot.stopped > soak->longest)
		soak->longest = snapshot.stopped;
	soak->count++;
	return NULL;
}

static struct error *watch(struct soak *soak)
{
	const struct soak_options *options = &soak->options;
	double started;

	TRY(begin_process(soak));
	started = clock_now();
	for (uint64_t i = 0; i < options->warm_up; i++)
		TRY(iterate(soak, i == 0 && options->program ? started + STARTING : 0));
	TRY(check_alive(soak));
	TRY(take_snapshot(soak));
	while (soak->count < options->snapshots) {
		TRY(iterate(soak, 0));
		TRY(take_snapshot(soak));
	}
	session_note(&soak->session,
		     "%zu snapshots of process %d, which was stopped for %.3f s at most",
		     soak->count, soak->process, soak->longest);
	return NULL;
}

/* Open the newest, with which the gate compares the others. */
static struct error *analyse(struct soak *soak)
{
	struct soak_options *options = &soak->options;
	struct session *session = &soak->session;

	session->debug = &options->debug;
	session->no_content = options->no_content;
	session->subject = options->program ? options->program[0] : options->process;
	TRY(session_open(session, soak->paths[soak->count - 1]));
	session_show_findings(session);
	execute_words(session, options->gate, options->gate_count);
	if (!session_interrupted(session))
		session_doubt(session);
	return report_files_close(session);
}

static struct error *soak_all(struct soak *soak, int count, char **arguments)
{
	struct soak_options *options = &soak->options;
	struct error *error = parse(count, arguments, options);

	session_init(&soak->session, options->quiet);
	interrupt_catch(&soak->session.progress.progress, true);
	if (error)
		return error;
	TRY(name_snapshots(soak));
	TRY(check_gate(options));
	if (options->format)
		TRY(report_format_find(options->format, &soak->session.format));
	TRY(report_files_open(&soak->session, &options->files, ""));
	error = watch(soak);
	end_process(soak);
	return error ? error : analyse(soak);
}

static void soak_deinit(struct soak *soak)
{
	end_process(soak);
	if (soak->preload)
		unlink(soak->preload);
	free(soak->preload);
	session_deinit(&soak->session);
	for (size_t i = 0; i < MOST_CORES; i++) {
		if (soak->files[i] > 0)
			close(soak->files[i]);
		free(soak->paths[i]);
	}
	if (soak->end >= 0)
		close(soak->end);
	if (soak->root >= 0)
		close(soak->root);
	free(soak->options.gate);
}
DEFINE_DEINIT(soak_deinit, struct soak)

int soak_main(int count, char **arguments)
{
	_cleanup_(soak_deinit) struct soak soak = { .end = -1, .root = -1 };
	struct error *error;

	vanished_catch();
	error = soak_all(&soak, count, arguments);
	fflush(stdout);
	return session_end(&soak.session, error);
}
