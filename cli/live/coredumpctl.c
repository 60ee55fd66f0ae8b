#include "cli/live/coredumpctl.h"

#include "analyzer/base/text.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

const char kept_cores_folder[] = "/var/lib/systemd/coredump";

enum { LONGEST_COMMAND = 15 }; /* the kernel keeps no more of a name */

/* The best matching core so far. */
struct candidate {
	uint64_t microseconds; /* since 1970; 0: there is no candidate */
	uint64_t process;
	char *program; /* its path, or else only its name; owned */
	char *file;    /* its name in the folder, or NULL; owned */
};

static void candidate_deinit(struct candidate *candidate)
{
	free(candidate->program);
	free(candidate->file);
}
DEFINE_DEINIT(candidate_deinit, struct candidate)

/* Run it with its output in a pipe. Returns an errno. */
static int spawn(char *const *arguments, bool quiet, int *ret_fd, pid_t *ret_child)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t signals;
	int ends[2], failure;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
	sigemptyset(&signals);
	sigaddset(&signals, SIGPIPE);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	if (quiet)
		posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	failure = posix_spawnp(ret_child, arguments[0], &actions, &attributes, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	close(ends[1]);
	if (failure)
		close(ends[0]);
	else
		*ret_fd = ends[0];
	return failure;
}

/* Returns what waitpid() says. */
static int wait_for(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static struct error *no_match(const char *match, const char *where)
{
	_cleanup_(free) char *escaped = escape_text(match);

	return error_create(ERROR_USAGE, "no core of '%s' is %s", escaped ? escaped : "", where);
}

/* Make it the candidate if it is the newest that is there. */
static struct error *consider(const json_t *entry, struct candidate *candidate)
{
	const char *state = json_string_value(json_object_get(entry, "corefile"));
	const char *program = json_string_value(json_object_get(entry, "exe"));
	json_int_t when = json_integer_value(json_object_get(entry, "time"));
	json_int_t process = json_integer_value(json_object_get(entry, "pid"));
	char *copy;

	if (!state || !program || when <= 0 || process <= 0 ||
	    (uint64_t)when < candidate->microseconds ||
	    (strcmp(state, "present") != 0 && strcmp(state, "journal") != 0 &&
	     strcmp(state, "truncated") != 0))
		return NULL;
	copy = strdup(program);
	TRY_MEMORY(copy);
	free(candidate->program);
	candidate->program = copy;
	candidate->microseconds = (uint64_t)when;
	candidate->process = (uint64_t)process;
	return NULL;
}

/* *ret_installed tells whether there is a coredumpctl to ask. */
static struct error *ask_journal(const char *match, struct candidate *ret, bool *ret_installed)
{
	char *arguments[] = { "coredumpctl", "--json=short", "--no-pager",  "--quiet",
			      "list",	     "--",	     (char *)match, NULL };
	struct error *error = NULL;
	json_t *list;
	pid_t child = 0;
	size_t i;
	int fd = -1, failure = spawn(arguments, true, &fd, &child);

	*ret_installed = failure != ENOENT;
	if (failure == ENOENT)
		return NULL;
	if (failure) {
		errno = failure;
		return error_system("coredumpctl");
	}
	list = json_loadfd(fd, 0, NULL);
	close(fd);
	wait_for(child);
	for (i = 0; !error && i < json_array_size(list); i++)
		error = consider(json_array_get(list, i), ret);
	json_decref(list);
	if (!error && ret->microseconds == 0)
		error = no_match(match, "known to coredumpctl, or it was deleted");
	return error;
}

/* The value of the part of a name that ends at the next dot; moves behind it.
 */
static bool take_number(const char **name, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)**name))
		return false;
	errno = 0;
	*ret = strtoull(*name, &end, 10);
	*name = *end == '.' ? end + 1 : end;
	return errno == 0 && (*end == '.' || *end == '\0');
}

/* A part of a name, in which systemd writes dots and the like as \x2e. */
static char *take_command(const char **name)
{
	size_t length = strcspn(*name, "."), size = 0;
	const char *from = *name, *end = from + length;
	char *command = malloc(length + 1);

	while (command && from < end) {
		unsigned int byte;

		if (end - from >= 4 && sscanf(from, "\\x%2x", &byte) == 1) {
			command[size++] = (char)byte;
			from += 4;
		} else {
			command[size++] = *from++;
		}
	}
	if (command)
		command[size] = '\0';
	*name = *end == '.' ? end + 1 : end;
	return command;
}

static bool fits(const char *match, const char *command, uint64_t process)
{
	const char *slash = strrchr(match, '/');
	char number[NUMBER_SIZE];

	number[format_decimal(process, number)] = '\0';
	return strcmp(match, number) == 0 ||
	       strncmp(slash ? slash + 1 : match, command, LONGEST_COMMAND) == 0;
}

/* Make the file the candidate if it matches and is the newest. */
static struct error *consider_file(const char *file, const char *match, struct candidate *candidate)
{
	_cleanup_(free) char *command = NULL;
	uint64_t user, process, when;
	const char *name = file;

	if (strncmp(name, "core.", 5) != 0)
		return NULL;
	name += 5;
	command = take_command(&name);
	TRY_MEMORY(command);
	if (!take_number(&name, &user))
		return NULL;
	name += strcspn(name, ".");
	name += *name == '.';
	if (!take_number(&name, &process) || !take_number(&name, &when) ||
	    when < candidate->microseconds || !fits(match, command, process))
		return NULL;
	candidate_deinit(candidate);
	*candidate = (struct candidate){
		.microseconds = when,
		.process = process,
		.program = take(command),
		.file = strdup(file),
	};
	return candidate->file ? NULL : &error_no_memory;
}

static struct error *look_into(const char *folder, const char *match, struct candidate *ret)
{
	DIR *files = opendir(folder);
	const struct dirent *entry;
	struct error *error = NULL;

	if (!files)
		return error_create(ERROR_USAGE, "%s: %s", folder, strerror(errno));
	while (!error && (entry = readdir(files)) != NULL)
		error = consider_file(entry->d_name, match, ret);
	closedir(files);
	if (!error && ret->microseconds == 0)
		error = error_wrap(no_match(match, "there"), "%s", folder);
	return error;
}

static struct error *describe(struct session *session, const struct candidate *candidate,
			      struct kept_core *core)
{
	time_t seconds = (time_t)(candidate->microseconds / 1000000);
	_cleanup_(free) char *program = escape_text(candidate->program);
	char when[64] = "?";
	struct tm local;

	if (localtime_r(&seconds, &local))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &local);
	if (!program || asprintf(&core->title, "%s, process %" PRIu64 ", of %s", program,
				 candidate->process, when) < 0) {
		core->title = NULL;
		return &error_no_memory;
	}
	session_note(session, "the core is that of %s", core->title);
	return NULL;
}

/* Have coredumpctl write the core, unpacked, to a pipe. */
static struct error *begin_dump(const struct candidate *candidate, struct kept_core *core)
{
	char number[NUMBER_SIZE];
	/* A journal may know of others with that number. */
	char *program = candidate->program[0] == '/' ? candidate->program : NULL;
	char *arguments[] = { "coredumpctl", "--quiet", "dump", "--", number, program, NULL };
	int failure;

	number[format_decimal(candidate->process, number)] = '\0';
	failure = spawn(arguments, false, &core->fd, &core->child);
	if (failure) {
		core->fd = -1;
		core->child = 0;
		errno = failure;
		return error_system("coredumpctl");
	}
	core->path = format_text("/proc/self/fd/%d", core->fd);
	TRY_MEMORY(core->path);
	return NULL;
}

struct error *kept_core_find(struct session *session, const char *match, const char *sysroot,
			     struct kept_core *ret)
{
	_cleanup_(candidate_deinit) struct candidate candidate = { 0 };
	_cleanup_(free) char *folder = NULL;
	bool installed = false;

	*ret = (struct kept_core){ .fd = -1 };
	folder = format_text("%s%s", sysroot ? sysroot : "", kept_cores_folder);
	TRY_MEMORY(folder);
	if (!sysroot)
		TRY(ask_journal(match, &candidate, &installed));
	if (!installed)
		TRY(look_into(folder, match, &candidate));
	TRY(describe(session, &candidate, ret));
	if (installed && candidate.program)
		return begin_dump(&candidate, ret);
	ret->path = format_text("%s/%s", folder, candidate.file);
	TRY_MEMORY(ret->path);
	return NULL;
}

struct error *kept_core_finish(struct kept_core *core)
{
	int status;

	cleanup_close(&core->fd);
	core->fd = -1;
	if (core->child == 0)
		return NULL;
	status = wait_for(core->child);
	core->child = 0;
	/* Part was not read if it holds more than its headers say. */
	if (status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE))
		return NULL;
	return error_create(ERROR_SYSTEM, "coredumpctl could not write all of the core");
}

void kept_core_deinit(struct kept_core *core)
{
	struct error *error = kept_core_finish(core);

	if (error)
		error_destroy(error);
	free(core->path);
	free(core->title);
}
