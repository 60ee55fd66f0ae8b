#include "cli/prompt/execute.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/query/set.h"
#include "cli/help/manual.h"
#include "cli/prompt/lexer.h"
#include "cli/prompt/output.h"
#include "cli/prompt/reports.h"
#include "cli/prompt/sql_lines.h"
#include "cli/prompt/switches.h"
#include "cli/prompt/variable_words.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* Commands of gdb and other tools, under their names. */
static const struct alias {
	const char *name, *command;
} aliases[] = {
	{ "?", "help" },     { "bt", "backtrace" },    { "find", "findbytes" },
	{ "h", "help" },     { "memory", "bill" },     { "p", "show" },
	{ "print", "show" }, { "where", "backtrace" }, { "x", "dump" },
};

/* Commands whose names begin so; the first in *ret. */
static size_t count_beginning(const char *name, const struct command **ret)
{
	size_t count = 0;

	for (size_t i = 0; commands[i] && *name; i++)
		if (strncmp(commands[i]->name, name, strlen(name)) == 0 && count++ == 0)
			*ret = commands[i];
	return count;
}

const struct command *command_find(const char *name)
{
	const struct command *beginning = NULL;

	for (size_t i = 0; i < COUNT_OF(aliases); i++)
		if (strcmp(aliases[i].name, name) == 0)
			name = aliases[i].command;
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return !set_find(name) && count_beginning(name, &beginning) == 1 ? beginning : NULL;
}

bool command_stands_alone(const char *word)
{
	const struct command *command = command_find(word);

	return command && command->stands_alone && strcmp(command->name, word) == 0;
}

static const char *command_name(const void *data, size_t number)
{
	return commands[number] ? commands[number]->name : NULL;
}

/* Several commands begin so. */
static struct error *ambiguous(const char *name)
{
	_cleanup_(free) char *text = NULL;

	for (size_t i = 0; commands[i]; i++) {
		char *longer;

		if (strncmp(commands[i]->name, name, strlen(name)) != 0)
			continue;
		longer = format_text("%s%s'%s'", text ? text : "", text ? ", " : "",
				     commands[i]->name);
		free(text);
		text = longer;
		TRY_MEMORY(text);
	}
	return error_create(ERROR_USAGE, "'%s' may be %s", name, text);
}

struct error *command_unknown(const char *name)
{
	const char *nearest = nearest_word(name, command_name, NULL);
	const struct command *first;

	if (set_find(name))
		return error_create(ERROR_USAGE,
				    "'%s' is a set, not a command: try 'summarize %s' or 'list %s'",
				    name, name, name);
	if (topic_find(name))
		return error_create(ERROR_USAGE, "'%s' is not a command; 'help %s' explains it",
				    name, name);
	if (count_beginning(name, &first) > 1)
		return ambiguous(name);
	return error_unknown("command", name, nearest);
}

/* Append word to a name, harmless for shells and for file systems. */
static size_t append_to_name(char *name, size_t length, char separator, const char *word)
{
	if (length < NAME_MAX)
		name[length++] = separator;
	for (; *word && length < NAME_MAX; word++) {
		unsigned char letter = (unsigned char)*word;

		name[length++] = isalnum(letter) || strchr("-.+%@", letter) ? (char)letter : '_';
	}
	return length;
}

char *redirect_name(const char *dump, const struct command *command, const struct line *line,
		    const char *suffix)
{
	char name[NAME_MAX + 1];
	const char *slash = strrchr(dump, '/');
	size_t length;
	char separator = '.';

	dump = slash ? slash + 1 : dump;
	length = strnlen(dump, NAME_MAX);
	memcpy(name, dump, length);
	for (size_t i = 0; i < line->count;) {
		size_t places = switch_places(command, line->words[i]);

		if (places) {
			i += places;
			continue;
		}
		length = append_to_name(name, length, separator, line->words[i++]);
		separator = '_';
	}
	if (suffix)
		length = append_to_name(name, length, '.', suffix);
	name[length] = '\0';
	return strdup(name);
}

/* Before output is written: what is on the terminal so far, and what belongs
 * in front of it. */
static void before_output(void *data)
{
	struct session *session = data;

	if (session->output->destination == TO_SHELL || output_is_terminal(session->output))
		progress_line_stop(&session->progress);
	else
		progress_line_clear(&session->progress);
	session_show_findings(session);
}

static bool use_colour(const struct session *session, const struct output *output)
{
	const char *terminal = getenv("TERM"), *refusal = getenv("NO_COLOR");

	if (session->colour != COLOUR_AUTO)
		return session->colour == COLOUR_ALWAYS;
	return output_is_terminal(output) && !(refusal && *refusal) &&
	       !(terminal && strcmp(terminal, "dumb") == 0);
}

enum { LINES_READ_ALONG = 20 };

/* A command to run. */
struct request {
	const struct command *command;
	const struct line *line;
	const void *arguments;
	const struct variable_words *variables;
	struct common_switches common;
	bool shortened;
	bool tells_findings; /* to the same person who would read them beside it */
};

/* True if the output is plain text. */
static bool is_text(const struct session *session, const struct request *request)
{
	const char *format =
		request->common.format ? request->common.format : session->format->name;

	return !session->chap && !session->file_count && strcmp(format, "text") == 0;
}

static struct error *open_reports(struct session *session, const struct request *request,
				  const struct output *output, struct reports *ret)
{
	const struct report_format *format = session->format;

	if (request->common.format)
		TRY(report_format_find(request->common.format, &format));
	TRY(reports_open(ret, session, format, request->command->name, request->line,
			 output->stream, use_colour(session, output)));
	ret->list[0].shortened = request->shortened && !session->most_rows;
	ret->choice.main = request->command->table;
	if (request->common.table)
		ret->choice.wanted = request->common.table;
	return NULL;
}

static const char *dump_path(const struct session *session)
{
	return analysis_image(session->analysis)->path;
}

/* Only that there is no answer, and why. */
static struct error *write_failure(struct session *session, const struct request *request,
				   const struct output *output, const char *path,
				   const struct error *why)
{
	struct reports reports;

	TRY(open_reports(session, request, output, &reports));
	request->command->fail(path, why, &reports.list[0]);
	return reports_close(&reports);
}

/* Build what the command needs, and have it write its report. */
static struct error *write_report(struct session *session, const struct request *request,
				  struct output *output)
{
	const struct command *command = request->command;
	struct error *error = NULL, *close_error;
	struct reports reports;
	_cleanup_(free) char *left_out = NULL;
	struct report *report = &reports.list[0];
	char who[80];

	if (session->why_unopened)
		return write_failure(session, request, output, session->unopened,
				     session->why_unopened);
	if (command_needs_core(command))
		error = analysis_need(session->analysis, command->needs);
	if (!error)
		error = open_reports(session, request, output, &reports);
	if (error) {
		if (command->fail && error_code(error) != ERROR_INTERRUPTED)
			error = error_first(error, write_failure(session, request, output,
								 dump_path(session), error));
		output->dropped = true;
		return error;
	}
	reports.choice.aside = true;
	variable_words_report(request->variables, report);
	reports.choice.aside = false;
	error = command->run ? command->run(session->analysis, request->arguments, report)
			     : command->control(session, request->arguments, report);
	if (request->tells_findings && !error)
		session_pass_findings(session);
	if (error && session->analysis) {
		snprintf(who, sizeof(who), "'%s'", command->name);
		error = analysis_explain_shortage(session->analysis, who, error);
	}
	if (command->fail && error && error_code(error) != ERROR_INTERRUPTED) {
		report_cut_table(report);
		command->fail(dump_path(session), error, report);
	}
	output->dropped = error && error_code(error) != ERROR_FOUND;
	session_check_files(session);
	left_out = reports_left_out(&reports);
	if (left_out && !error)
		session_note(session, "tables left out: %s (--table NAME writes one)", left_out);
	close_error = reports_close(&reports);
	/* A gate's report says what it found: not if that is cut off. */
	if (close_error && error && error_code(error) == ERROR_FOUND)
		error_destroy(take(error));
	return error_first(error, close_error);
}

/* The error to show the user: none once the output is closed, "interrupted" after Ctrl-C. */
static struct error *judge(struct session *session, const struct output *output,
			   struct error *error)
{
	if (output_unwanted(output)) {
		error_destroy(error);
		if (!output->outer)
			atomic_store(output->interrupted, false);
		return NULL;
	}
	if (!session_interrupted(session))
		return error;
	error_destroy(error);
	/* The script around it ends so, too, and says so. */
	if (output->outer)
		return NULL;
	if (output->within_line && output_is_terminal(output))
		fputc('\n', stderr);
	return error_create(ERROR_INTERRUPTED, "interrupted");
}

static struct error *run_into(struct session *session, const struct request *request,
			      struct output *output)
{
	const char *dump = session->analysis ? analysis_image(session->analysis)->path : NULL;
	struct error *error;

	output->outer = session->output;
	output->before = before_output;
	output->data = session;
	output->interrupted = &session->progress.progress.interrupted;
	if (session->pages &&
	    (command_needs_core(request->command) || request->command->word == WORD_COMMAND))
		output_page(output);
	TRY(output_open(output, dump));
	session->output = output;
	error = write_report(session, request, output);
	error = error_first(output_close(output), error);
	session->output = output->outer;
	return judge(session, output, error);
}

/* Run a command with its output where the line, or redirect, wants it. */
static struct error *run(struct session *session, const struct request *request)
{
	const struct line *line = request->line;
	struct output output = {
		.destination = line->destination,
		.target = line->target,
	};
	_cleanup_(free) char *name = NULL;
	struct error *error;

	if (session->redirected && command_needs_core(request->command) && !line->target) {
		const char *dump = analysis_image(session->analysis)->path;

		/* Standard input has no name of its own. */
		name = redirect_name(strcmp(dump, "-") == 0 ? "core" : dump, request->command, line,
				     request->common.suffix);
		TRY_MEMORY(name);
		output.destination = TO_FILE;
		output.target = name;
	}
	error = run_into(session, request, &output);
	progress_line_stop(&session->progress);
	if (name && !error)
		session_note(session, "the output is in %s", name);
	return error;
}

/* Findings come in front of the error that they may explain. */
static struct error *run_and_tell(struct session *session, const struct request *request)
{
	const struct command *command = request->command;
	struct error *error;

	if (command_needs_core(command) && !session->analysis && !session->why_unopened)
		return error_create(ERROR_USAGE, "'%s' needs a core", command->name);
	if (command->tells_content && session->no_content)
		return error_create(ERROR_USAGE,
				    "'%s' shows contents of memory, which --no-content leaves out",
				    command->name);
	progress_line_begin(&session->progress);
	error = run(session, request);
	session_show_findings(session);
	if (session->at_prompt && command_needs_core(command) && !error)
		session_doubt(session);
	return error;
}

/* True if a command's output goes only to a person at a terminal. */
static bool is_read_along(const struct session *session, const struct request *request)
{
	const struct output output = { .outer = session->output };

	return !session->redirected && request->line->destination == TO_OUTPUT &&
	       output_width(&output) > 0;
}

/*
 * The number of rows listed; 0: all. Scripts read lists line by line, so these are whole unless a
 * person reads along; sums are the same wherever they go. Formats of data are always whole.
 */
static uint64_t most_shown(const struct session *session, const struct request *request)
{
	if (session->most_rows)
		return session->most_rows;
	return is_text(session, request) &&
			       (request->command->sums_up || is_read_along(session, request))
		       ? LINES_READ_ALONG
		       : 0;
}

/* A variable that only selects a set is noted beside the output, which may be for a program. */
static struct error *find_variables(struct session *session, const struct command *command,
				    const struct line *line, struct variable_words *ret)
{
	struct error *error;

	progress_line_begin(&session->progress);
	error = variable_words_find(session->analysis, command, line, ret);
	progress_line_stop(&session->progress);
	list_for_each(word, ret->list, ret->count) {
		_cleanup_(free) char *text =
			error || word->is_subject ? NULL : variable_word_text(word);

		if (text)
			session_note(session, "%s", text);
	}
	return error;
}

static struct error *execute(struct session *session, const struct line *line)
{
	const struct command *command = command_find(line->words[0]);
	struct request request = { .command = command, .line = line, .common.chap = session->chap };
	_cleanup_(free) void *arguments = NULL;
	_cleanup_(variable_words_deinit) struct variable_words variables = { 0 };
	struct error *error;
	uint64_t most;

	if (!command)
		return command_unknown(line->words[0]);
	arguments = calloc(1, command->arguments_size + 1);
	TRY_MEMORY(arguments);
	request.arguments = arguments;
	request.variables = &variables;
	error = find_variables(session, command, line, &variables);
	if (!error)
		error = switches_parse(command, variables.words + 1, line->count - 1, arguments,
				       &request.common);
	most = most_shown(session, &request);
	request.tells_findings = command->tells_findings && is_text(session, &request) &&
				 is_read_along(session, &request);
	if (!error && command->shorten && most)
		request.shortened = command->shorten(arguments, most);
	if (!error)
		error = run_and_tell(session, &request);
	if (command->release)
		command->release(arguments);
	return error;
}

void execute_line(struct session *session, const char *text)
{
	_cleanup_(line_deinit) struct line line = { 0 };
	struct error *error;

	session->given_lines = true;
	if (sql_lines_take(session, text, execute_words))
		return;
	error = line_split(text, &line);
	if (!error && line.count)
		error = execute(session, &line);
	if (error)
		session_complain(session, error);
}

void execute_words(struct session *session, char *const *words, size_t count)
{
	struct line line = { .words = (char **)words, .count = count };
	struct error *error = execute(session, &line);

	if (error)
		session_complain(session, error);
}

void execute_unopened(struct session *session, char *const *words, size_t count, const char *path,
		      const struct error *why)
{
	const struct command *command = count ? command_find(words[0]) : NULL;

	if (!command || !command->fail)
		return;
	session->unopened = path;
	session->why_unopened = why;
	execute_words(session, words, count);
	session->why_unopened = NULL;
}

enum { MAXIMUM_NESTING = 16 };

/* The line read last, with those that it continues in. */
struct reader {
	FILE *file;
	struct script *script;
	bool is_sql;	/* a backslash at the end means nothing */
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
	TRY_MEMORY(logical);
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
		more = !error && !reader->is_sql && line_continues(reader->logical);
		if (more)
			reader->logical[reader->length - 1] = ' ';
	}
	return error;
}

static void run_lines(struct session *session, struct reader *reader)
{
	while (!session->leaving && !session_interrupted(session)) {
		bool end = false;
		struct error *error;

		reader->is_sql = session->sql.on;
		error = read_logical(reader, &end);

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
	sql_lines_end(session, execute_words);
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
	struct stat status;

	TRY(check_nesting(session));
	file = fopen(path, "re");
	if (file && fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode))
		errno = EISDIR;
	else if (file)
		return script_run(session, path, file);
	return error_create(ERROR_USAGE, "%s: %s", path, strerror(errno));
}
