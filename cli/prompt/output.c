#include "cli/prompt/output.h"

#include "analyzer/base/text.h"
#include "cli/prompt/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUFFER_SIZE = 1 << 16 };

/* Start the shell with input as its standard input. Returns an errno. */
static int spawn_shell(const char *command, int input, pid_t *ret)
{
	char *arguments[] = { "sh", "-c", (char *)command, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t signals;
	int failure;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGPIPE);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	failure = posix_spawn(ret, "/bin/sh", &actions, &attributes, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return failure;
}

/* Returns an errno. */
static int start_shell(struct output *output)
{
	int ends[2];
	int failure;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
	failure = spawn_shell(output->target, ends[0], &output->shell);
	close(ends[0]);
	if (failure)
		close(ends[1]);
	else
		output->fd = ends[1];
	return failure;
}

/* Exit as `git` does: the reader that closed the pipe wants no message. */
static void die_of_broken_pipe(void)
{
	signal(SIGPIPE, SIG_DFL);
	raise(SIGPIPE);
}

static bool is_interrupted(const struct output *output)
{
	return atomic_load(output->interrupted);
}

/* Write to fd. Returns an errno. */
static int write_all(const struct output *output, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t written = write(output->fd, bytes, size);

		if (written < 0 && errno != EINTR)
			return errno;
		if (written < 0 && is_interrupted(output))
			return EINTR;
		if (written < 0)
			continue;
		bytes += written;
		size -= (size_t)written;
	}
	return 0;
}

static int write_bytes(struct output *output, const char *bytes, size_t size)
{
	int failure = 0;

	if (output->failure)
		return output->failure;
	if (is_interrupted(output))
		return EINTR;
	output->before(output->data);
	if (output->outer)
		return write_bytes(output->outer, bytes, size);
	if (output->into)
		return fwrite(bytes, 1, size, output->into) == size ? 0 : errno;
	if (output->fd < 0)
		failure = start_shell(output);
	if (!failure)
		failure = write_all(output, bytes, size);
	/* Ctrl-C has ended the reader, too. */
	if (failure == EPIPE && is_interrupted(output))
		failure = EINTR;
	output->within_line = failure || bytes[size - 1] != '\n';
	if (failure == EPIPE && output->destination == TO_OUTPUT)
		die_of_broken_pipe();
	if (failure == EPIPE)
		atomic_store(output->interrupted, true);
	output->failure = failure;
	return failure;
}

/* stdio's own word for a failure is 0. */
static ssize_t write_stream(void *cookie, const char *bytes, size_t size)
{
	int failure = write_bytes(cookie, bytes, size);

	if (!failure)
		return (ssize_t)size;
	errno = failure;
	return 0;
}

static struct error *bad_target(const struct output *output, int number)
{
	if (number == ELOOP)
		return error_create(ERROR_USAGE, "%s: a symbolic link is not followed",
				    output->target);
	if (number == EPERM)
		return error_create(ERROR_USAGE,
				    "%s: it is not yours, so somebody else may have put it there",
				    output->target);
	return error_create(ERROR_USAGE, "%s: %s", output->target, strerror(number));
}

static bool is_same_file(const struct stat *status, const char *path)
{
	struct stat other;

	return path && stat(path, &other) == 0 && other.st_dev == status->st_dev &&
	       other.st_ino == status->st_ino;
}

struct error *output_check_target(const char *path, const char *never)
{
	struct stat status;

	return stat(path, &status) == 0 && is_same_file(&status, never)
		       ? error_create(ERROR_USAGE, "%s: that is the dump itself", path)
		       : NULL;
}

static struct error *open_file(struct output *output, const char *never)
{
	int flags = O_NOFOLLOW;
	_cleanup_(close) int fd = -1;
	struct stat status;

	if (output->destination == TO_APPEND)
		flags |= O_APPEND;
	fd = output_file_open(output->target, flags);
	if (fd < 0 || fstat(fd, &status) < 0)
		return bad_target(output, errno);
	if (is_same_file(&status, never))
		return error_create(ERROR_USAGE, "%s: that is the dump itself", output->target);
	if (output->destination == TO_FILE && S_ISREG(status.st_mode) && ftruncate(fd, 0) < 0)
		return bad_target(output, errno);
	output->fd = fd;
	fd = -1;
	return NULL;
}

static void close_fd(struct output *output)
{
	if (output->fd < 0 || output->fd == STDOUT_FILENO)
		return;
	if (close(output->fd) < 0 && !output->failure)
		output->failure = errno;
	output->fd = -1;
}

struct error *output_open(struct output *output, const char *never)
{
	static const cookie_io_functions_t functions = {
		.write = write_stream,
	};

	output->fd = -1;
	output->shell = 0;
	output->failure = 0;
	output->dropped = false;
	if (output->destination == TO_OUTPUT)
		output->fd = STDOUT_FILENO;
	else
		output->outer = NULL;
	if (output->destination == TO_FILE || output->destination == TO_APPEND)
		TRY(open_file(output, never));
	output->stream = fopencookie(output, "w", functions);
	if (!output->stream) {
		close_fd(output);
		return &error_no_memory;
	}
	setvbuf(output->stream, NULL, _IOFBF, BUFFER_SIZE);
	return NULL;
}

static int failure_of(const struct output *output)
{
	while (!output->failure && output->outer)
		output = output->outer;
	return output->failure;
}

bool output_unwanted(const struct output *output)
{
	return failure_of(output) == EPIPE;
}

static void wait_for_shell(const struct output *output)
{
	int status;

	while (waitpid(output->shell, &status, 0) < 0 && errno == EINTR)
		;
}

struct error *output_close(struct output *output)
{
	/* Its failure is known from the writes. */
	fclose(output->stream);
	output->stream = NULL;
	if (output->destination == TO_SHELL && !output->pages && output->fd < 0 &&
	    !output->dropped && !output->failure && !is_interrupted(output)) {
		output->before(output->data);
		output->failure = start_shell(output);
	}
	close_fd(output);
	if (output->shell > 0)
		wait_for_shell(output);
	if (!output->failure || output_unwanted(output) || is_interrupted(output))
		return NULL;
	errno = output->failure;
	return error_system("%s", output->target ? output->target : "the output");
}

bool output_is_terminal(const struct output *output)
{
	while (output->outer)
		output = output->outer;
	return (output->destination == TO_OUTPUT || output->pages) && isatty(STDOUT_FILENO);
}

/* True if a program of that name can be started. */
static bool is_in_path(const char *name)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t length = strcspn(path, ":");
		_cleanup_(free) char *file = format_text("%.*s/%s", (int)length, path, name);

		if (file && access(file, X_OK) == 0)
			return true;
		path += length + (path[length] == ':');
	}
	return false;
}

void output_page(struct output *output)
{
	const char *pager = getenv("PAGER");

	if (output->outer || output->destination != TO_OUTPUT || !isatty(STDIN_FILENO) ||
	    !output_width(output))
		return;
	if (pager ? !*pager || strcmp(pager, "cat") == 0 : !is_in_path("less"))
		return;
	output->destination = TO_SHELL;
	output->target = "LESS=\"${LESS-FRX}\" LV=\"${LV--c}\" exec ${PAGER:-less}";
	output->pages = true;
}

size_t output_width(const struct output *output)
{
	struct winsize size;

	if (!output_is_terminal(output) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col;
}
