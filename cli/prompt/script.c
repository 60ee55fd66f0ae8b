#include "cli/prompt/script.h"

#include "cli/prompt/execute.h"
#include "cli/prompt/lexer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { MAXIMUM_NESTING = 16 };

/* The line read last, with those that it continues in. */
struct reader {
	FILE *file;
	struct script *script;
	size_t lines;	/* read so far */
	char *physical; /* buffers of getline() and its own */
	size_t physical_size;
	char *logical;
	size_t length;
};

static void reader_deinit(struct reader *reader)
{
	free(reader->physical);
	free(reader->logical);
}

DEFINE_DEINIT(reader_deinit, struct reader)

/* Cut off what ends the line, also as other systems do. */
static size_t strip_end(char *text, size_t length)
{
	while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
		length--;
	text[length] = '\0';
	return length;
}

static struct error *append_physical(struct reader *reader, size_t length)
{
	char *logical;

	length = strip_end(reader->physical, length);
	if (strlen(reader->physical) != length)
		return error_create(ERROR_USAGE, "the line has a NUL byte");
	logical = realloc(reader->logical, reader->length + length + 1);
	if (!logical)
		return &error_no_memory;
	memcpy(logical + reader->length, reader->physical, length + 1);
	reader->logical = logical;
	reader->length += length;
	return NULL;
}

/*
 * Read one line with those that it continues in. *ret_end is set at the end of the file. A line
 * that is in error has been read nevertheless.
 */
static struct error *read_logical(struct reader *reader, bool *ret_end)
{
	struct error *error = NULL;
	bool more = true;

	reader->length = 0;
	for (size_t count = 0; more; count++) {
		ssize_t length;

		errno = 0;
		length = getline(&reader->physical, &reader->physical_size, reader->file);
		if (length < 0) {
			*ret_end = count == 0;
			return error;
		}
		reader->lines++;
		if (count == 0)
			reader->script->line = reader->lines;
		if (!error)
			error = append_physical(reader, (size_t)length);
		more = !error && line_continues(reader->logical);
		if (more)
			reader->logical[reader->length - 1] = ' ';
	}
	return error;
}

static void run_lines(struct session *session, struct reader *reader)
{
	while (!session->leaving && !session_interrupted(session)) {
		bool end = false;
		struct error *error = read_logical(reader, &end);

		if (error)
			session_complain(session, error);
		else if (end)
			break;
		else
			execute_line(session, reader->logical);
	}
}

struct error *script_run(struct session *session, const char *name, FILE *file)
{
	struct script script = { .name = name, .caller = session->script };
	_cleanup_(reader_deinit) struct reader reader = {
		.file = file,
		.script = &script,
	};

	session->script = &script;
	run_lines(session, &reader);
	session->script = script.caller;
	if (ferror(file) && !session_interrupted(session))
		return error_system("%s", name);
	return NULL;
}

static struct error *check_nesting(const struct session *session)
{
	size_t depth = 0;

	for (struct script *script = session->script; script; script = script->caller)
		depth++;
	if (depth < MAXIMUM_NESTING)
		return NULL;
	return error_create(ERROR_USAGE, "scripts are nested too deep: %zu of them run each other",
			    depth);
}

struct error *script_run_path(struct session *session, const char *path)
{
	_cleanup_(fclose) FILE *file = NULL;
	struct error *error = check_nesting(session);
	struct stat status;

	if (error)
		return error;
	file = fopen(path, "re");
	if (file && fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode))
		errno = EISDIR;
	else if (file)
		return script_run(session, path, file);
	return error_create(ERROR_USAGE, "%s: %s", path, strerror(errno));
}
