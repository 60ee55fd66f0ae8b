#include "cli/command.h"
#include "cli/prompt/session.h"

#include <string.h>

struct redirect_arguments {
	bool given;
	bool on;
};

static struct error *redirect_parse(int key, const char *value, void *output)
{
	struct redirect_arguments *arguments = output;

	if (key == ARGP_KEY_END)
		return arguments->given ? NULL
					: error_create(ERROR_USAGE, "'redirect' is 'on' or 'off'");
	if (arguments->given || (strcmp(value, "on") != 0 && strcmp(value, "off") != 0))
		return error_create(ERROR_USAGE, "'redirect' is 'on' or 'off', not '%s'", value);
	arguments->given = true;
	arguments->on = strcmp(value, "on") == 0;
	return NULL;
}

static struct error *redirect_control(struct session *session, const void *input,
				      struct report *report)
{
	const struct redirect_arguments *arguments = input;

	session->redirected = arguments->on;
	return NULL;
}

const struct command command_redirect = {
	.name = "redirect",
	.summary = "Write the output of each command to a file of its own",
	.words = "on|off",
	.example = "redirect on",
	.description =
		"The file is in the current directory. Its name is that of the core and the command without its switches, like core.123.count_used, and what --redirect-suffix says behind a dot; a file that is there is overwritten. To redirect one command only, end its line with '> FILE', '>> FILE' to append, or '| SHELL COMMAND'.",
	.word = WORD_SWITCH,
	.parse = redirect_parse,
	.arguments_size = sizeof(struct redirect_arguments),
	.control = redirect_control,
};
