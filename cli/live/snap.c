#include "cli/live/snap.h"

#include "analyzer/base/text.h"
#include "cli/live/copies.h"
#include "cli/live/pack.h"
#include "cli/live/slim.h"
#include "cli/prompt/machine.h"
#include "cli/prompt/output_file.h"
#include "cli/prompt/switches.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { KEY_FORK = 256, KEY_NO_FORK };

static const char DOCUMENTATION[] =
	"Write a core of a running process, which is stopped only while its memory is copied or cloned.\vThe core has what an analysis needs, like one from the kernel; heapcore, gdb and others can read it. Memory that the program keeps out of cores (MADV_DONTDUMP) is left out.\n"
	"\n"
	"Exit status: 0 if the core was written; 2 if there is no such process; 3 if it may not be traced, or the core could not be written.";

struct snap_options {
	const char *process;
	const char *output;
	bool zstd;
	bool portable;
	bool slim;
	enum clone_choice clone;
	bool quiet;
};

static const struct argp_option OPTIONS[] = {
	{ "output", 'o', "FILE", BY_LETTER(KEEP(TEXT, struct snap_options, output)),
	  "Write to FILE instead of core.PID", 0 },
	{ "zstd", KEEP(FLAG, struct snap_options, zstd), NULL, 0, "Pack it with zstd: core.PID.zst",
	  0 },
	{ "portable", KEEP(FLAG, struct snap_options, portable), NULL, 0,
	  "Include the parts of the binaries that names need, so that the core can be read on another machine",
	  0 },
	{ "slim", KEEP(FLAG, struct snap_options, slim), NULL, 0,
	  "Leave out the contents of memory, as heapcore slim does; all of them are in a temporary file meanwhile",
	  0 },
	{ "fork", KEY_FORK, NULL, 0,
	  "Clone the process and write the core from the clone: the process stops for about 20 ms for each GiB. This is the default where it would otherwise stop for more than a second",
	  0 },
	{ "no-fork", KEY_NO_FORK, NULL, 0, "Never clone it, however long it is stopped", 0 },
	{ "quiet", 'q', NULL, BY_LETTER(KEEP(FLAG, struct snap_options, quiet)),
	  "Report only errors", 0 },
	{ 0 },
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct snap_options *options = state->input;

	switch (key) {
	case KEY_FORK:
		options->clone = CLONE_ALWAYS;
		return 0;
	case KEY_NO_FORK:
		options->clone = CLONE_NEVER;
		return 0;
	case ARGP_KEY_ARG:
		if (options->process)
			argp_error(state, "only one PID can be given");
		options->process = argument;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no PID is given");
		return 0;
	default:
		return switch_take(OPTIONS, key, argument, state);
	}
}

struct error *parse_process(const char *word, pid_t *ret)
{
	uint64_t number;
	struct error *error = parse_count(word, &number);

	if (error)
		error_destroy(error);
	if (error || number == 0 || number > INT32_MAX)
		return error_not(word, "the number of a process");
	*ret = (pid_t)number;
	return NULL;
}

static struct error *take_snapshot(struct session *session, pid_t process,
				   struct core_options options, enum clone_choice clone,
				   struct snapshot *ret)
{
	struct error *error;

	options.progress = &session->progress.progress;
	progress_line_begin(&session->progress);
	error = snapshot_take(process, &options, clone, ret);
	progress_line_stop(&session->progress);
	return error;
}

/* Tell the user what is missing from the core. */
void snap_tell_gaps(struct session *session, const struct core_sizes *sizes)
{
	char size[NUMBER_SIZE];

	if (sizes->unstoppable > 0)
		session_note(
			session,
			"note: %zu of %zu threads could not be stopped: of their registers only the stack pointer is known",
			sizes->unstoppable, sizes->threads);
	if (sizes->unreadable > 0) {
		format_grouped(sizes->unreadable, size);
		session_note(session, "note: %s bytes could not be read and are taken for zeros",
			     size);
	}
	if (sizes->excluded > 0) {
		format_grouped(sizes->excluded, size);
		session_note(
			session,
			"note: %s bytes are left out that the program keeps out of cores (MADV_DONTDUMP)",
			size);
	}
	if (sizes->not_resident > 0) {
		format_grouped(sizes->not_resident, size);
		session_note(
			session,
			"note: up to %s bytes of writable shared files are left out because they are not in memory: what only they refer to looks leaked",
			size);
	}
}

static void tell_not_cloned(struct session *session, const struct snapshot *snapshot)
{
	if (*snapshot->not_cloned)
		session_note(
			session,
			"note: the process was stopped while its memory was copied, because it cannot be cloned: %s",
			snapshot->not_cloned);
}

struct error *snap_to_analyse(struct session *session, pid_t process, char **ret)
{
	struct snapshot snapshot = { 0 };
	int fd = -1;
	struct error *error = copies_open(&fd);

	if (!error)
		error = take_snapshot(session, process,
				      (struct core_options){ .fd = fd, .complete = true },
				      CLONE_BY_NEED, &snapshot);
	if (error && error_code(error) == ERROR_SYSTEM)
		return error_wrap(error, "copying process %d into %s", process, copies_folder());
	if (error)
		return error;
	snap_tell_gaps(session, &snapshot.sizes);
	tell_not_cloned(session, &snapshot);
	session_note(session, "process %d was stopped for %.2f s", process, snapshot.stopped);
	/* The file goes with the last of its handles. */
	*ret = format_text("/proc/self/fd/%d", fd);
	return *ret ? NULL : &error_no_memory;
}

static struct error *begin_output(const char *path, struct output_file *ret)
{
	if (output_file_begin(path, ret) == 0)
		return NULL;
	if (errno == EEXIST)
		return error_create(ERROR_USAGE, "%s is not a regular file", path);
	return error_system("%s", path);
}

static void tell(struct session *session, const char *path, pid_t process,
		 const struct snapshot *snapshot, uint64_t packed)
{
	char copied[NUMBER_SIZE], size[NUMBER_SIZE];

	format_grouped(snapshot->sizes.copied, copied);
	format_grouped(packed, size);
	snap_tell_gaps(session, &snapshot->sizes);
	tell_not_cloned(session, snapshot);
	session_note(
		session,
		"%s: %s bytes of memory and %zu thread%s of process %d, which was stopped for %.3f s%s%s",
		path, copied, snapshot->sizes.threads, snapshot->sizes.threads == 1 ? "" : "s",
		process, snapshot->stopped, packed ? "; packed, bytes: " : "", packed ? size : "");
}

/* Write what answers need of the core in that file, which has no name. */
static struct error *write_slim(struct session *session, int core, int output, bool packed,
				uint64_t *ret_packed)
{
	_cleanup_(free) char *path = format_text("/proc/self/fd/%d", core);
	struct slim_sizes sizes = { 0 };
	struct error *error;

	TRY_MEMORY(path);
	TRY(session_open(session, path));
	error = slim_core(session, (struct slim_options){ .fd = output, .packed = packed }, &sizes);
	*ret_packed = sizes.packed;
	/* Doubts about its answers concern who asks for these. */
	session_close(session);
	return error;
}

/* By way of a file without a name. */
static struct error *snap_changed(struct session *session, pid_t process, int output,
				  const struct snap_options *options, struct core_options core,
				  struct snapshot *ret, uint64_t *ret_packed)
{
	_cleanup_(close) int fd = -1;
	struct error *error = copies_open(&fd);

	core.fd = fd;
	if (!error)
		error = take_snapshot(session, process, core, options->clone, ret);
	if (error)
		return error;
	if (options->slim)
		return write_slim(session, fd, output, options->zstd, ret_packed);
	progress_line_begin(&session->progress);
	error = pack_zstd(fd, output, &session->progress.progress, ret_packed);
	progress_line_stop(&session->progress);
	return error;
}

static struct error *snap(struct session *session, const struct snap_options *options)
{
	_cleanup_(free) char *path = NULL;
	_cleanup_(output_file_deinit) struct output_file file = { .fd = -1 };
	_cleanup_(close) int fd = -1;
	struct core_options core = { .portable = options->portable };
	struct snapshot snapshot = { 0 };
	uint64_t packed = 0;
	pid_t process = 0;
	struct error *error = parse_process(options->process, &process);

	if (error)
		return error;
	if (options->output && strcmp(options->output, "-") == 0)
		return error_create(ERROR_USAGE,
				    "a core is written to a file, not to standard output");
	if (options->output)
		path = strdup(options->output);
	else
		path = format_text("core.%d%s", process, options->zstd ? ".zst" : "");
	TRY_MEMORY(path);
	TRY(begin_output(path, &file));
	core.fd = file.fd;
	if (options->zstd || options->slim)
		error = snap_changed(session, process, file.fd, options, core, &snapshot, &packed);
	else
		error = take_snapshot(session, process, core, options->clone, &snapshot);
	if (!error && (fd = output_file_complete(&file)) < 0)
		error = error_system("the core cannot get its name");
	if (error)
		return error_code(error) == ERROR_SYSTEM ? error_wrap(error, "%s", path) : error;
	tell(session, path, process, &snapshot, packed);
	return NULL;
}

const struct argp snap_parser = {
	.options = OPTIONS,
	.parser = parse_option,
	.args_doc = "PID",
	.doc = DOCUMENTATION,
};

int snap_main(int count, char **arguments)
{
	_cleanup_(session_deinit) struct session session;
	struct snap_options options = { 0 };

	if (argp_parse(&snap_parser, count, arguments, 0, NULL, &options))
		return EXIT_NOT_ANALYSED;
	session_init(&session, options.quiet);
	interrupt_catch(&session.progress.progress, true);
	return session_end(&session, snap(&session, &options));
}
