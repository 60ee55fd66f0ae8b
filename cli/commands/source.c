#include "cli/command.h"
#include "cli/prompt/script.h"

struct source_arguments {
	const char *path;
};

static struct error *source_parse(int key, const char *value, void *output)
{
	struct source_arguments *arguments = output;

	if (key == ARGP_KEY_ARG && arguments->path)
		return error_create(ERROR_USAGE, "'source' takes one file, not '%s' too", value);
	if (key == ARGP_KEY_ARG)
		arguments->path = value;
	else if (!arguments->path)
		return error_create(ERROR_USAGE, "'source' needs the name of a file");
	return NULL;
}

static struct error *source_control(struct session *session, const void *input,
				    struct report *report)
{
	const struct source_arguments *arguments = input;

	return script_run_path(session, arguments->path);
}

const struct command command_source = {
	.name = "source",
	.summary = "Run the commands in a file",
	.words = "FILE",
	.example = "source leaks.heapcore > report",
	.description =
		"Each line is a command, as at the prompt. '#' begins a comment, and a backslash at the end continues a line. A command that fails does not end the file. A file may source others, up to 16 deep. Names are relative to the current directory.",
	.word = WORD_FILE,
	.parse = source_parse,
	.arguments_size = sizeof(struct source_arguments),
	.control = source_control,
};
