#include "cli/live/run_options.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "cli/prompt/execute.h"
#include "cli/prompt/switches.h"

#include <argp.h>
#include <string.h>

enum {
	KEY_CORE = 256,
	KEY_LOG,
	KEY_ERROR_STATUS,
	KEY_FOLLOW,
	KEY_TIMEOUT,
	KEY_FORMAT,
	KEY_DEBUG_DIR,
	KEY_SYSROOT,
	KEY_DEBUGINFOD,
	KEY_NO_CONTENT,
	KEY_PORTABLE,
};

enum { HIGHEST_STATUS = 255 };

static const char DOCUMENTATION[] =
	"Run PROGRAM at full speed, hold it when it ends, and say what it leaked.\vAll options of the command `gate' can be given, too: see `heapcore help gate'. The report goes to standard error.\n"
	"\n"
	"Signals from the terminal reach the program as usual. It cannot be traced by others meanwhile, and set-user-id programs run without that right, unless root calls them. What the program leaves behind when it ends goes on, watched by a process of heapcore.\n"
	"\n"
	"Exit status: that of PROGRAM, 128+N if signal N killed it, 124 after --timeout; but 1, or that of --error-exitcode, if the gate found something; 2 for wrong usage; 3 if PROGRAM may not be traced or could not be analysed well enough; 126 if it cannot be executed, and 127 if it is not there.";

static const struct argp_option OPTIONS[] = {
	{ "command", 'c', "COMMAND", 0,
	  "Run COMMAND in the end instead of 'gate' (may be repeated)", 0 },
	{ "core", KEY_CORE, "FILE", 0, "Keep the core in FILE; those of children in FILE.PID", 0 },
	{ "portable", KEY_PORTABLE, NULL, 0,
	  "Include in cores that are kept what names need of the binaries", 0 },
	{ "error-exitcode", KEY_ERROR_STATUS, "N", 0, "Exit with N if the gate finds something (1)",
	  0 },
	{ "follow-forks", KEY_FOLLOW, NULL, 0, "Also look into the program's children, and theirs",
	  0 },
	{ "timeout", KEY_TIMEOUT, "SECONDS", 0,
	  "End the program (SIGTERM, later SIGKILL) if it takes longer", 0 },
	{ "log-file", KEY_LOG, "FILE", 0, "Write the report to FILE, not to standard error", 0 },
	{ "format", KEY_FORMAT, "FORMAT", 0, "Write it in FORMAT, as for cores", 0 },
	{ "output", 'o', "FILE", 0,
	  "Write the report on PROGRAM itself to FILE, too, in the format of its ending, or to FORMAT:FILE (may be repeated)",
	  0 },
	{ "quiet", 'q', NULL, 0, "Show no progress, and only notes on what an answer means", 0 },
	{ "no-content", KEY_NO_CONTENT, NULL, 0, "Leave the contents of memory out of all reports",
	  0 },
	{ "debug-dir", KEY_DEBUG_DIR, "DIR", 0, "Look for separate debug files in DIR, too", 0 },
	{ "debuginfod", KEY_DEBUGINFOD, NULL, 0, "Fetch missing debug files from $DEBUGINFOD_URLS",
	  0 },
	{ 0 },
};

static uint64_t parse_number(struct argp_state *state, const char *option, const char *word,
			     uint64_t highest)
{
	uint64_t number = 0;
	struct error *error = parse_count(word, &number);

	if (error) {
		error_destroy(error);
		number = 0;
	}
	if (number == 0 || number > highest)
		argp_error(state, "%s is a number from 1 to %ju, not '%s'", option,
			   (uintmax_t)highest, word);
	return number;
}

static error_t add_command(struct run_options *options, const char *text)
{
	if (!LIST_GROW(options->commands, options->command_count))
		return ENOMEM;
	options->commands[options->command_count++] = text;
	return 0;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct run_options *options = state->input;

	switch (key) {
	case 'c':
		return add_command(options, argument);
	case 'o':
		return report_file_names_add(&options->files, state, argument);
	case 'q':
		options->quiet = true;
		return 0;
	case KEY_NO_CONTENT:
		options->no_content = true;
		return 0;
	case KEY_CORE:
		options->core_path = argument;
		return 0;
	case KEY_PORTABLE:
		options->portable = true;
		return 0;
	case KEY_LOG:
		options->log_path = argument;
		return 0;
	case KEY_FORMAT:
		options->format = argument;
		return 0;
	case KEY_FOLLOW:
		options->follow = true;
		return 0;
	case KEY_DEBUGINFOD:
		options->debug.debuginfod = true;
		return 0;
	case KEY_DEBUG_DIR:
		options->debug.debug_directory = argument;
		return 0;
	case KEY_TIMEOUT:
		options->timeout = parse_number(state, "--timeout", argument, INT32_MAX / 1000);
		return 0;
	case KEY_ERROR_STATUS:
		options->error_status =
			(int)parse_number(state, "--error-exitcode", argument, HIGHEST_STATUS);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp run_parser = {
	.options = OPTIONS,
	.parser = parse_option,
	.args_doc = "-- PROGRAM [ARGUMENTS...]",
	.doc = DOCUMENTATION,
};

/* How many words an option of ours takes up that begins with word, or 0. */
static size_t own_places(const char *word)
{
	size_t length = strcspn(word + 2, "=");

	for (const struct argp_option *option = OPTIONS; option->name; option++) {
		bool short_one = option->key < 256 && word[1] == option->key;

		if (short_one)
			return option->arg && !word[2] ? 2 : 1;
		if (word[1] == '-' && strlen(option->name) == length &&
		    strncmp(option->name, word + 2, length) == 0)
			return option->arg && !word[2 + length] ? 2 : 1;
	}
	return 0;
}

/* Both lists together have room for all arguments. */
struct division {
	char **own;
	size_t own_count;
	struct run_options *options;
};

/*
 * Put each option to the list it belongs to; returns where the program's name is. What belongs to
 * nobody is ours to complain of.
 */
static int divide(int count, char **arguments, struct division *division)
{
	const struct command *gate = command_find("gate");
	struct run_options *options = division->options;
	int i = 1;

	while (i < count && arguments[i][0] == '-') {
		size_t places = own_places(arguments[i]), other = 0;

		if (strcmp(arguments[i], "--") == 0)
			return i + 1;
		if (!places && gate)
			other = switch_places(gate, arguments[i]);
		for (size_t n = places + other ? places + other : 1; n > 0 && i < count; n--, i++) {
			if (other)
				options->gate[options->gate_count++] = arguments[i];
			else
				division->own[division->own_count++] = arguments[i];
		}
	}
	return i;
}

void run_options_parse(int count, char **arguments, struct run_options *ret)
{
	size_t room = (size_t)count + 1;
	_cleanup_(free) char **own = calloc(room, sizeof(*own));
	struct division division = { .own = own, .own_count = 1 };
	int program;

	*ret = (struct run_options){ .gate = calloc(room, sizeof(char *)) };
	if (!own || !ret->gate)
		exit(EXIT_NOT_ANALYSED);
	own[0] = arguments[0];
	ret->gate[ret->gate_count++] = (char *)"gate";
	division.options = ret;
	program = divide(count, arguments, &division);
	argp_err_exit_status = EXIT_WRONG_USAGE;
	if (argp_parse(&run_parser, (int)division.own_count, own, 0, NULL, ret)) {
		fputs("heapcore: out of memory\n", stderr);
		exit(EXIT_NOT_ANALYSED);
	}
	ret->program = arguments + program;
	if (program < count)
		return;
	fprintf(stderr, "%s: no program is given\n", arguments[0]);
	argp_help(&run_parser, stderr, ARGP_HELP_SEE, arguments[0]);
	exit(EXIT_WRONG_USAGE);
}

void run_options_deinit(struct run_options *options)
{
	free(options->commands);
	free(options->gate);
}
