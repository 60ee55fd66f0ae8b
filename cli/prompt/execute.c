#include "cli/prompt/execute.h"

#include "analyzer/base/text.h"
#include "analyzer/query/set.h"
#include "cli/help/manual.h"
#include "cli/prompt/output.h"
#include "cli/prompt/reports.h"
#include "cli/prompt/switches.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

const struct command *command_find(const char *name)
{
	const struct command *const *command = commands;

	while (*command && strcmp((*command)->name, name) != 0)
		command++;
	return *command;
}

static const char *command_name(const void *data, size_t number)
{
	return commands[number] ? commands[number]->name : NULL;
}

struct error *command_unknown(const char *name)
{
	const char *nearest = nearest_word(name, command_name, NULL);

	if (set_find(name))
		return error_create(ERROR_USAGE,
				    "'%s' is a set, not a command: try 'summarize %s' or 'list %s'",
				    name, name, name);
	if (topic_find(name))
		return error_create(ERROR_USAGE, "'%s' is no command; 'help %s' explains it", name,
				    name);
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

/* What is to be run. */
struct request {
	const struct command *command;
	const struct line *line;
	const void *arguments;
	struct common_switches common;
};

static struct error *open_reports(struct session *session, const struct request *request,
				  const struct output *output, struct reports *ret)
{
	const struct report_format *format = session->format;
	struct error *error = NULL;

	if (request->common.format)
		error = report_format_find(request->common.format, &format);
	if (error)
		return error;
	return reports_open(ret, session, format, request->line, output->stream,
			    use_colour(session, output));
}

static struct error *explain_shortage(const struct session *session, const struct command *command,
				      struct error *error)
{
	char who[80];

	snprintf(who, sizeof(who), "'%s'", command->name);
	return analysis_explain_shortage(session->analysis, who, error);
}

/* Build what the command needs, and have it write its report. */
static struct error *write_report(struct session *session, const struct request *request,
				  struct output *output)
{
	const struct command *command = request->command;
	struct error *error = NULL, *close_error;
	struct reports reports;
	struct report *report = &reports.list[0];

	if (command->needs_analysis)
		error = analysis_need(session->analysis, command->needs);
	if (!error)
		error = open_reports(session, request, output, &reports);
	if (error) {
		output->dropped = true;
		return error;
	}
	error = command->control ? command->control(session, request->arguments, report)
				 : command->run(session->analysis, request->arguments, report);
	if (error && session->analysis)
		error = explain_shortage(session, command, error);
	output->dropped = error && error_code(error) != ERROR_FOUND;
	session_check_files(session);
	close_error = reports_close(&reports);
	/* A gate's report says what it found: not if that is cut off. */
	if (close_error && error && error_code(error) == ERROR_FOUND)
		error_destroy(take(error));
	if (!error)
		return close_error;
	if (close_error)
		error_destroy(close_error);
	return error;
}

/* What the user is to know: of what was meant so, nothing is an error. */
static struct error *judge(struct session *session, const struct output *output,
			   struct error *error, struct error *output_error)
{
	if (output_error) {
		if (error)
			error_destroy(error);
		error = output_error;
	}
	if (output_unwanted(output)) {
		if (error)
			error_destroy(error);
		if (!output->outer)
			atomic_store(output->interrupted, false);
		return NULL;
	}
	if (session_interrupted(session)) {
		if (error)
			error_destroy(error);
		/* The script around it ends so, too, and says so. */
		if (output->outer)
			return NULL;
		if (output->within_line && output_is_terminal(output))
			fputc('\n', stderr);
		return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return error;
}

static struct error *run_into(struct session *session, const struct request *request,
			      struct output *output)
{
	const char *dump = session->analysis ? image_path(analysis_image(session->analysis)) : NULL;
	struct error *error, *output_error;

	output->outer = session->output;
	output->before = before_output;
	output->data = session;
	output->interrupted = &session->progress.progress.interrupted;
	error = output_open(output, dump);
	if (error)
		return error;
	session->output = output;
	error = write_report(session, request, output);
	output_error = output_close(output);
	session->output = output->outer;
	return judge(session, output, error, output_error);
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

	if (session->redirected && request->command->needs_analysis && !line->target) {
		const char *dump = image_path(analysis_image(session->analysis));

		/* Standard input has no name of its own. */
		name = redirect_name(strcmp(dump, "-") == 0 ? "core" : dump, request->command, line,
				     request->common.suffix);
		if (!name)
			return &error_no_memory;
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

	if (command->needs_analysis && !session->analysis)
		return error_create(ERROR_USAGE, "'%s' needs a core", command->name);
	if (command->tells_content && session->no_content)
		return error_create(ERROR_USAGE,
				    "'%s' tells contents of memory, which --no-content leaves out",
				    command->name);
	progress_line_begin(&session->progress);
	error = run(session, request);
	session_show_findings(session);
	if (session->at_prompt && command->needs_analysis && !error)
		session_doubt(session);
	return error;
}

static struct error *execute(struct session *session, const struct line *line)
{
	const struct command *command = command_find(line->words[0]);
	struct request request = { .command = command, .line = line };
	_cleanup_(free) void *arguments = NULL;
	struct error *error;

	if (!command)
		return command_unknown(line->words[0]);
	arguments = calloc(1, command->arguments_size + 1);
	if (!arguments)
		return &error_no_memory;
	request.arguments = arguments;
	error = switches_parse(command, line->words + 1, line->count - 1, arguments,
			       &request.common);
	if (!error)
		error = run_and_tell(session, &request);
	if (command->release)
		command->release(arguments);
	return error;
}

void execute_line(struct session *session, const char *text)
{
	_cleanup_(line_deinit) struct line line = { 0 };
	struct error *error = line_split(text, &line);

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
