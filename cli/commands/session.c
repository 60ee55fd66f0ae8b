/*
 * The commands that are about the session, not about the core.
 */
#include "cli/command.h"
#include "cli/prompt/execute.h"
#include "cli/prompt/prompt.h"

static struct error *quit_control(struct session *session, const void *arguments,
				  struct report *report)
{
	session->leaving = true;
	return NULL;
}

const struct command command_quit = {
	.name = "quit",
	.summary = "Leave",
	.example = "quit",
	.control = quit_control,
};

const struct command command_exit = {
	.name = "exit",
	.summary = "Leave, as quit",
	.example = "exit",
	.control = quit_control,
};

static struct error *history_control(struct session *session, const void *arguments,
				     struct report *report)
{
	static const struct table table = TABLE("line", "{number}  {line}",
						{ "number", VALUE_COUNT }, { "line", VALUE_TEXT });
	const char *line;

	report_begin_table(report, &table);
	for (size_t i = 0; (line = history_line(i)); i++)
		report_row(report, i + 1, line);
	report_end_table(report);
	return NULL;
}

const struct command command_history = {
	.name = "history",
	.summary = "List the lines typed at the prompt, the oldest first",
	.example = "history | tail",
	.description = "The last thousand lines are kept across runs.",
	.control = history_control,
};

struct redirect_arguments {
	enum { REDIRECT_ON, REDIRECT_OFF } choice;
};

static const int redirect_words[] = { KEEP(CHOICE, struct redirect_arguments, choice), 0 };

static struct error *redirect_control(struct session *session, const void *arguments,
				      struct report *report)
{
	session->redirected = ((const struct redirect_arguments *)arguments)->choice == REDIRECT_ON;
	return NULL;
}

const struct command command_redirect = {
	.name = "redirect",
	.summary = "Write the output of each command to a file of its own",
	.words = "on|off",
	.example = "redirect on",
	.description =
		"The file is in the current directory. Its name is made of the core's name, the command without its switches, and the suffix of --redirect-suffix, such as core.123.count_used; an existing file is overwritten. To redirect one command only, end its line with '> FILE', '>> FILE' to append, or '| SHELL COMMAND'.",
	.word = WORD_SWITCH,
	.keep_words = redirect_words,
	.arguments_size = sizeof(struct redirect_arguments),
	.control = redirect_control,
};

struct source_arguments {
	const char *path;
};

static const int source_words[] = { KEEP(TEXT, struct source_arguments, path), 0 };

static struct error *source_control(struct session *session, const void *arguments,
				    struct report *report)
{
	return script_run_path(session, ((const struct source_arguments *)arguments)->path);
}

const struct command command_source = {
	.name = "source",
	.summary = "Run the commands in a file",
	.words = "FILE",
	.example = "source leaks.heapcore > report",
	.description =
		"Each line is a command, as at the prompt. '#' begins a comment, and a backslash at the end continues a line. A command that fails does not end the file. A file may source others, up to 16 deep. Names are relative to the current directory.",
	.word = WORD_FILE,
	.keep_words = source_words,
	.arguments_size = sizeof(struct source_arguments),
	.control = source_control,
};
