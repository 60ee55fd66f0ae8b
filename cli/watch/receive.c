#include "cli/watch/receive.h"

#include "analyzer/base/text.h"
#include "cli/live/process_root.h"
#include "cli/live/snap.h"
#include "cli/prompt/switches.h"
#include "cli/watch/keeping.h"
#include "cli/watch/target.h"
#include "cli/watch/triggers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static const char DOCUMENTATION[] =
	"Take the core of a process that ended from standard input, and keep it with who held its memory, as `heapcore watch' does. The kernel starts it by /proc/sys/kernel/core_pattern:\n\n  |/usr/bin/heapcore receive -o /var/lib/heapcore %P %e %s\v"
	"Zeros take no room. A core that would be larger than --largest or --room, or fill the disk, is cut and analysed as far as it goes. If there were too many within an hour, it is not kept. Started by the kernel, it writes messages to DIR/receive.log.\n"
	"\n"
	"Files of a process in a container are found through its root; with kernel.core_pipe_limit above 0, the kernel keeps that until the analysis ends.\n"
	"\n"
	"Exit status: 0 if the core was kept, or was one too many; 2 for wrong usage; 3 if it could not be kept or analysed.";

struct receive_options {
	struct keeping keeping; /* first: its options are among these */
	const char *process, *name, *signal;
	uint64_t largest; /* bytes; 0: no limit */
};

static const struct argp_option OPTIONS[] = {
	{ "largest", KEEP(SIZE, struct receive_options, largest), "SIZE", 0,
	  "Keep at most SIZE of one core", 0 },
	KEEPING_OPTIONS,
	{ 0 },
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct receive_options *options = state->input;
	const char **words[] = { &options->process, &options->name, &options->signal };

	if (key != ARGP_KEY_ARG)
		return switch_take(OPTIONS, key, argument, state);
	if (state->arg_num >= COUNT_OF(words))
		argp_error(state, "there are more words than PID, NAME and SIGNAL");
	else
		*words[state->arg_num] = argument;
	return 0;
}

const struct argp receive_parser = {
	.options = OPTIONS,
	.parser = parse_option,
	.args_doc = "-o DIR PID [NAME [SIGNAL]]",
	.doc = DOCUMENTATION,
};

static struct error *check(struct receive_options *options)
{
	if (!options->process)
		return error_create(ERROR_USAGE, "give the number of the process");
	if (isatty(STDIN_FILENO))
		return error_create(ERROR_USAGE, "standard input is a terminal, not a core");
	return keeping_check(&options->keeping);
}

/* A core that is being received. */
struct receipt {
	const struct receive_options *options;
	int fd;
	uint64_t size, held; /* bytes received; of these, in the file */
	bool cut;
};

enum { BLOCK = 4096, BUFFER = 1 << 20, CHECKED = 1 << 26 };

/* Bytes that one core may hold. */
static uint64_t most_held(const struct receive_options *options)
{
	uint64_t most = options->largest ? options->largest : UINT64_MAX;

	return options->keeping.shelf.room && options->keeping.shelf.room < most
		       ? options->keeping.shelf.room
		       : most;
}

static bool is_zero(const char *bytes, size_t size)
{
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static struct error *write_block(struct receipt *receipt, const char *bytes, size_t size)
{
	uint64_t place = receipt->size;

	receipt->size += size;
	if (is_zero(bytes, size))
		return NULL;
	receipt->held += size;
	while (size > 0) {
		ssize_t written = pwrite(receipt->fd, bytes, size, (off_t)place);

		if (written < 0 && errno != EINTR)
			return error_system("the core");
		if (written > 0) {
			bytes += written;
			place += (uint64_t)written;
			size -= (size_t)written;
		}
	}
	return NULL;
}

/* Returns how many bytes were read, to the end of the buffer unless the core ends. */
static size_t read_full(char *buffer, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t taken = read(STDIN_FILENO, buffer + done, size - done);

		if (taken == 0 || (taken < 0 && errno != EINTR))
			break;
		if (taken > 0)
			done += (size_t)taken;
	}
	return done;
}

static struct error *receive_core(struct receipt *receipt)
{
	_cleanup_(free) char *buffer = malloc(BUFFER);
	uint64_t most = most_held(receipt->options), checked = 0;
	size_t size;

	TRY_MEMORY(buffer);
	while ((size = read_full(buffer, BUFFER)) > 0) {
		receipt->cut = receipt->held + size > most;
		if (receipt->held - checked >= CHECKED) {
			checked = receipt->held;
			receipt->cut |= shelf_free_space(&receipt->options->keeping.shelf) == 0;
		}
		if (receipt->cut)
			break;
		for (size_t i = 0; i < size; i += BLOCK)
			TRY(write_block(receipt, buffer + i, size - i < BLOCK ? size - i : BLOCK));
	}
	if (receipt->size == 0)
		return error_create(ERROR_NOT_SUPPORTED, "no core came");
	return ftruncate(receipt->fd, (off_t)receipt->size) < 0 ? error_system("the core") : NULL;
}

static struct error *keep_core(struct session *session, const struct receive_options *options,
			       const struct stored_process *process, struct stored *stored)
{
	_cleanup_(free) char *path = stored_path(stored, "core");
	_cleanup_(close) int fd =
		path ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
	struct receipt receipt = { .options = options, .fd = fd };
	char size[NUMBER_SIZE];

	TRY_MEMORY(path);
	if (fd < 0)
		return error_system("%s", path);
	TRY(receive_core(&receipt));
	TRY(stored_write_reason(stored,
				json_pack("{s:s, s:i, s:s, s:I, s:I, s:b}", "cause", process->cause,
					  "process", process->id, "name", process->name, "size",
					  (json_int_t)receipt.size, "held",
					  (json_int_t)receipt.held, "cut", receipt.cut)));
	TRY(stored_complete(stored));
	session_note(session, "%s: %s, %s%s", stored->folder, process->cause,
		     in_largest_unit(receipt.size, size),
		     receipt.cut ? "; cut there, as more may not be kept" : "");
	return NULL;
}

static struct error *receive(struct session *session, const struct receive_options *options)
{
	_cleanup_(stored_deinit) struct stored stored = NOT_STORED;
	_cleanup_(free) char *cause =
		format_text("signal %s", options->signal ? options->signal : "unknown");
	char name[64], root[PROCESS_ROOT_SIZE];
	struct stored_process process = { .cause = cause };
	struct answers_options answers = options->keeping.answers;
	_cleanup_(close) int root_file = -1;
	uint64_t expected;

	TRY_MEMORY(cause);
	TRY(parse_process(options->process, &process.id));
	root_file = process_root_open(process.id, root);
	if (root_file >= 0)
		answers.debug.sysroot = root;
	target_name(process.id, name);
	if (options->name)
		snprintf(name, sizeof(name), "%s", options->name);
	make_printable(name);
	make_printable(cause);
	process.name = name;
	if (shelf_is_full(&options->keeping.shelf)) {
		session_note(
			session,
			"no core of process %d (%s): as many as may be were kept within an hour (--max)",
			process.id, process.name);
		return NULL;
	}
	expected = anonymous_memory(process.id);
	if (expected > most_held(options))
		expected = most_held(options);
	TRY(shelf_make_room(&options->keeping.shelf, expected));
	TRY(shelf_begin(&options->keeping.shelf, process.name, process.id, &stored));
	TRY(keep_core(session, options, &process, &stored));
	/* It may be more than was expected. */
	TRY(shelf_make_room(&options->keeping.shelf, 0));
	return answers_write(session, &answers, &stored, &process);
}

/* Messages that nobody would read go to a file in the folder; NULL: somebody does. */
static FILE *open_log(const struct receive_options *options)
{
	enum { LARGEST = 1 << 20, NOTHING = 3 };
	_cleanup_(free) char *path = format_text("%s/receive.log", options->keeping.shelf.folder);
	struct stat status;
	int fd;

	if (!path || fstat(STDERR_FILENO, &status) < 0 ||
	    !(S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, NOTHING)))
		return NULL;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > LARGEST && ftruncate(fd, 0) < 0)
		return NULL;
	return fd < 0 ? NULL : fdopen(fd, "a");
}

static struct error *run(struct session *session, struct receive_options *options, int count,
			 char **arguments)
{
	struct error *error;

	if (argp_parse(&receive_parser, count, arguments, 0, NULL, options))
		return &error_no_memory;
	error = check(options);
	session_init(session, options->keeping.quiet);
	progress_line_init(&session->progress, NULL);
	TRY(error);
	TRY(shelf_open(&options->keeping.shelf));
	session->messages = open_log(options);
	return receive(session, options);
}

int receive_main(int count, char **arguments)
{
	_cleanup_(session_deinit) struct session session = { 0 };
	struct receive_options options = { 0 };
	int status;

	umask(S_IRWXG | S_IRWXO);
	status = session_end(&session, run(&session, &options, count, arguments));
	if (session.messages)
		fclose(session.messages);
	return status;
}
