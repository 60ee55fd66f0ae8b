#include "cli/options.h"

#include "analyzer/base/list.h"
#include "cli/prompt/execute.h"
#include "cli/prompt/switches.h"

#include "analyzer/base/text.h"

#include <argp.h>
#include <string.h>
#include <sys/stat.h>

enum { KEY_THREADS = 256, KEY_MAXIMUM_MEMORY, KEY_TAG };

static const char VERSION_TEXT[] = "heapcore " VERSION "\n"
				   "License GPL-3.0-or-later; there is no warranty.";

static const char DOCUMENTATION[] =
	"Show what is in the memory of a process, who holds it and what leaked, from its core (see gcore(1)).\vTo begin with:\n"
	"  heapcore CORE                      who holds the memory and what leaked\n"
	"  heapcore CORE explain ADDRESS      what holds it, or how it was lost\n"
	"  heapcore CORE summarize leakroots  what leaked, by kind\n"
	"\n"
	"CORE may be packed (zstd, gzip, lz4, xz, bzip2); `-' is standard input. Without a command there is a prompt, or commands are read from "
	"standard input. `heapcore help' lists them, and `heapcore help summarize' explains one.\n"
	"\n"
	"Exit status: 0 if all is well; 1 if a gate found something; 2 for wrong usage (an unknown option or command, a missing file); 3 if CORE is not a core, or could not be analysed well enough to rely on the answers; 130 after Ctrl-C.";

const char program_usages[] = "CORE [COMMAND WORDS...]\n"
			      "{-p PID | --coredumpctl MATCH} "
			      "[COMMAND WORDS...]\n"
			      "diff OLD [OLD...] CORE\n"
			      "report [OLD...] CORE [-o FILE.html]\n"
			      "gate CORE [SWITCH...]\n"
			      "run [OPTIONS] -- PROGRAM [ARGUMENTS...]\n"
			      "snap [OPTIONS] PID\n"
			      "slim [OPTIONS] CORE\n"
			      "soak [OPTIONS] --every COMMAND -- PROGRAM [ARGUMENTS...]\n"
			      "watch [OPTIONS] -o DIR PROCESS\n"
			      "receive [OPTIONS] -o DIR PID\n"
			      "fleet [OPTIONS] CORE...\n"
			      "serve [OPTIONS] CORE [OLD...]\n"
			      "mcp [OPTIONS] [CORE] [DIR...]";

const struct argp_option program_options[] = {
	{ "command", 'c', "COMMAND", 0, "Run COMMAND (may be repeated)", 0 },
	{ "file", 'f', "SCRIPT", 0, "Run the commands in the file SCRIPT", 0 },
	{ "format", KEEP(TEXT, struct options, format), "FORMAT", 0,
	  "Write text, csv, tsv, markdown, json or ndjson", 0 },
	{ "table", KEEP(TEXT, struct options, table), "NAME", 0,
	  "Write only the table of that name", 0 },
	{ "tag", KEY_TAG, "NAME=VALUE", 0, "Add a column to rows of data", 0 },
	{ "output", 'o', "FILE", 0,
	  "Also write all output to FILE, in the format of its ending, or to FORMAT:FILE (may be repeated)",
	  0 },
	{ "pid", 'p', "PID", BY_LETTER(KEEP(TEXT, struct options, process)),
	  "Analyse process PID instead of CORE: it is stopped for a moment while its memory is copied",
	  0 },
	{ "coredumpctl", KEEP(TEXT, struct options, kept), "MATCH", 0,
	  "Analyse the newest core that coredumpctl(1) has", 0 },
	{ "compare", KEEP(LIST, struct options, compared), "OLD", 0,
	  "First make the sets 'new' and 'survived', as 'diff OLD' does (may be repeated)", 0 },
	{ "truncation-check", 't', NULL, BY_LETTER(KEEP(FLAG, struct options, truncation_check)),
	  "Only check whether CORE is complete (status 0) or truncated (status 3)", 0 },
	{ "side-file", KEEP(FLAG, struct options, side_file), NULL, 0,
	  "Keep results in CORE.hcx for the next start", 0 },
	{ "verify-side-file", KEEP(FLAG, struct options, verify_side_file), NULL, 0,
	  "Only check CORE.hcx against a new analysis", 0 },
	{ "threads", KEY_THREADS, "N", 0, "Use N threads (default: one per CPU)", 0 },
	{ "verbose", 'v', NULL, BY_LETTER(KEEP(FLAG, struct options, verbose)),
	  "Report the time of each stage at the end", 0 },
	{ "quiet", 'q', NULL, BY_LETTER(KEEP(FLAG, struct options, quiet)),
	  "Show no progress, and only those notes that change what an answer means", 0 },
	{ "color", KEEP(CHOICE, struct options, colour), "auto|always|never", 0, "Use colours", 0 },
	{ "chap", KEEP(FLAG, struct options, chap), NULL, 0,
	  "Write lines as chap does, to the letter, and read all sizes as hexadecimal", 0 },
	{ "no-pager", KEEP(FLAG, struct options, no_pager), NULL, 0,
	  "Do not page output on a terminal ($PAGER or less)", 0 },
	{ "no-content", KEEP(FLAG, struct options, no_content), NULL, 0,
	  "Leave the contents of memory out of all output", 0 },
	{ "no-cache", KEEP(FLAG, struct options, no_cache), NULL, 0,
	  "Keep nothing for other cores of the build", 0 },
	{ "debug-dir", KEEP(TEXT, struct options, debug.debug_directory), "DIR", 0,
	  "Also search DIR for separate debug files", 0 },
	{ "sysroot", KEEP(TEXT, struct options, debug.sysroot), "DIR", 0,
	  "Search DIR for the files of the machine that CORE is from", 0 },
	{ "debuginfod", KEEP(FLAG, struct options, debug.debuginfod), NULL, 0,
	  "Fetch missing debug files from $DEBUGINFOD_URLS", 0 },
	{ "max-memory", KEY_MAXIMUM_MEMORY, "SIZE", 0,
	  "Use at most SIZE of memory, such as 2G, in addition to CORE itself (default: the machine's)",
	  0 },
	{ "manual", KEEP(TEXT, struct options, manual), "man|markdown", OPTION_HIDDEN,
	  "Write the manual", 0 },
	{ 0 },
};

static error_t add_given(struct options *options, const char *text, bool is_file)
{
	return LIST_APPEND(options->given, options->given_count, (struct given){ text, is_file })
		       ? ENOMEM
		       : 0;
}

static struct error *check_folder(const char *path)
{
	struct stat status;

	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
		return NULL;
	return error_not(path, "a folder");
}

static error_t set_maximum_memory(struct argp_state *state, const char *word)
{
	struct options *options = state->input;
	struct error *error = parse_size(word, &options->maximum_memory);

	if (!error && options->maximum_memory == 0)
		error = error_create(ERROR_USAGE, "0 bytes are no memory");
	return switch_refuse(state, error ? error_wrap(error, "--max-memory") : NULL);
}

/* True if the command may stand in front of CORE. */
static bool takes_cores(const char *word)
{
	return strcmp(word, "diff") == 0 || strcmp(word, "report") == 0 ||
	       strcmp(word, "gate") == 0;
}

/*
 * `heapcore diff OLD NEW` is `heapcore NEW diff OLD`, and `heapcore report CORE` and `heapcore gate
 * CORE` likewise: of the files among the words from options->words on, take the last out as the
 * core.
 */
static void take_comparison(struct argp_state *state)
{
	struct options *options = state->input;
	const struct command *command = command_find(options->words[0]);
	size_t files = 0, last = 0, least = strcmp(command->name, "diff") == 0 ? 2 : 1;

	for (size_t i = 1; i < options->word_count;) {
		size_t places = switch_places(command, options->words[i]);

		if (!places) {
			files++;
			last = i;
		}
		i += places ? places : 1;
	}
	if (files < least) {
		argp_error(state,
			   least > 1 ? "'%s' needs an older core and a newer one"
				     : "'%s' needs a core",
			   command->name);
		return;
	}
	options->core = options->words[last];
	options->word_count--;
	memmove(&options->words[last], &options->words[last + 1],
		(options->word_count - last) * sizeof(*options->words));
}

/* No core is given, and nothing has that name. */
static bool is_comparison(const struct options *options, const char *word)
{
	return !options->process && !options->kept && takes_cores(word) && access(word, F_OK) < 0;
}

/* The first argument is CORE, and all behind it the command. */
static void take_arguments(struct argp_state *state, const char *core)
{
	struct options *options = state->input;
	bool compares = is_comparison(options, core);

	/* With a process there is no CORE, and the command begins here. */
	if (options->process || options->kept || compares)
		state->next--;
	else
		options->core = core;
	options->words = state->argv + state->next;
	options->word_count = (size_t)(state->argc - state->next);
	state->next = state->argc;
	if (compares)
		take_comparison(state);
}

static void refuse_unknown_option(struct argp_state *state, const char *option)
{
	_cleanup_(free) char *escaped = escape_text(option);

	if (escaped)
		argp_error(state, "there is no option '%s'", escaped);
}

static void check(struct argp_state *state)
{
	const struct options *options = state->input;

	if (options->manual)
		return;
	if (options->kept && options->process)
		argp_error(state, "give a process or a core, not both");
	if (!options->core && !options->process && !options->kept)
		argp_error(state, "no core is given");
	if (options->core && strcmp(options->core, "-") == 0 && !options->truncation_check &&
	    options->word_count + options->given_count == 0)
		argp_error(state,
			   "if the core comes from standard input, give commands as arguments");
	if (options->core && options->word_count > 0 && options->words[0][0] == '-' &&
	    !command_stands_alone(options->core))
		refuse_unknown_option(state, options->words[0]);
	if (options->truncation_check && options->word_count + options->given_count > 0)
		argp_error(state, "-t takes no commands");
	if (options->verify_side_file && options->word_count + options->given_count > 0)
		argp_error(state, "--verify-side-file takes no commands");
	if ((!options->core || strcmp(options->core, "-") == 0) &&
	    (options->side_file || options->verify_side_file))
		argp_error(state, "'%s' cannot use a side file",
			   options->process ? "-p"
			   : options->kept  ? "--coredumpctl"
					    : "-");
}

static error_t set_threads(struct argp_state *state, const char *word)
{
	struct options *options = state->input;
	uint64_t number = 0;
	struct error *error = parse_count(word, &number);

	if (!error && (number == 0 || number > MOST_LOOP_THREADS))
		error = error_create(ERROR_USAGE, "%s is not in 1 to %d", word, MOST_LOOP_THREADS);
	options->threads = (unsigned int)number;
	return switch_refuse(state, error ? error_wrap(error, "--threads") : NULL);
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;
	struct error *error = NULL;

	switch (key) {
	case 'c':
	case 'f':
		return add_given(options, argument, key == 'f');
	case 'o':
		return report_file_names_add(&options->files, state, argument);
	case KEY_TAG:
		return tag_words_add(&options->tags, state, argument);
	case KEEP(TEXT, struct options, debug.debug_directory):
	case KEEP(TEXT, struct options, debug.sysroot):
		error = check_folder(argument);
		break;
	case KEY_MAXIMUM_MEMORY:
		return set_maximum_memory(state, argument);
	case KEY_THREADS:
		return set_threads(state, argument);
	case ARGP_KEY_ARG:
		take_arguments(state, argument);
		return 0;
	case ARGP_KEY_END:
		check(state);
		return 0;
	default:
		break;
	}
	return error ? switch_refuse(state, error)
		     : switch_take(program_options, key, argument, state);
}

/* The option that a word is, whose value may be the next word; or NULL. */
static const struct argp_option *find_option(const char *word, bool *ret_separate)
{
	const char *value = strchr(word, '=');
	const struct argp_option *option = program_options;

	for (; option->name; option++) {
		size_t length = strlen(option->name);

		*ret_separate = option->arg && !value;
		if (strncmp(word, "--", 2) == 0 && strncmp(word + 2, option->name, length) == 0 &&
		    (!word[2 + length] || word + 2 + length == value))
			return option;
		*ret_separate = option->arg && word[1] && !word[2];
		if (word[0] == '-' && word[1] == option->key && (option->arg || !word[2]))
			return option;
	}
	return NULL;
}

int options_end(int count, char **arguments)
{
	int end = 1;

	for (bool separate = false; end < count && find_option(arguments[end], &separate);)
		end += separate ? 2 : 1;
	return end < count ? end : count;
}

/* The parts of the command line seen so far, from left to right. */
struct met {
	bool core;		       /* or what stands in its place */
	bool word;		       /* the first of the command */
	const struct command *command; /* NULL: none of that name */
};

static void meet_word(struct met *met, const char *word)
{
	bool stands_alone =
		(takes_cores(word) || command_stands_alone(word)) && access(word, F_OK) < 0;

	if (met->core || stands_alone) {
		met->command = met->word ? met->command : command_find(word);
		met->word = true;
	}
	met->core = true;
}

/*
 * The arguments with the program's options in front, wherever they stood; a command's own switches
 * stay where they are. ret has room for all of them.
 */
static void put_options_first(int count, char **arguments, char **ret)
{
	_cleanup_(free) char **others = calloc((size_t)count, sizeof(*others));
	struct met met = { .core = false };
	size_t first = 0, other = 0;

	ret[first++] = arguments[0];
	for (int i = 1, next; i < count; i = next) {
		size_t taken = met.command ? switch_places(met.command, arguments[i]) : 0;
		bool separate = false, asks = met.command && met.command->word == WORD_COMMAND;
		const struct argp_option *option = NULL;

		if (!others || asks || strcmp(arguments[i], "--") == 0)
			taken = (size_t)(count - i);
		else if (!taken)
			option = find_option(arguments[i], &separate);
		if (option)
			taken = 1 + separate;
		else if (!taken && (arguments[i][0] != '-' || !arguments[i][1]))
			meet_word(&met, arguments[i]);
		met.core |= option &&
			    (option->key == 'p' || option->key == KEEP(TEXT, struct options, kept));
		next = i + (taken ? (int)taken : 1);
		for (int j = i; j < next && j < count; j++)
			*(option || !others ? &ret[first++] : &others[other++]) = arguments[j];
	}
	for (size_t i = 0; i < other; i++)
		ret[first++] = others[i];
}

void options_parse(int count, char **arguments, struct options *ret)
{
	static const struct argp parser = {
		.options = program_options,
		.parser = parse_option,
		.args_doc = program_usages,
		.doc = DOCUMENTATION,
	};
	const char *folder = getenv("TMPDIR");

	*ret = (struct options){ 0 };
	if (folder && *folder)
		ret->debug.temporary_folder = folder;
	ret->arguments = calloc((size_t)count + 1, sizeof(*ret->arguments));
	if (ret->arguments) {
		put_options_first(count, arguments, ret->arguments);
		arguments = ret->arguments;
	}
	argp_program_version = VERSION_TEXT;
	if (argp_parse(&parser, count, arguments, ARGP_IN_ORDER, NULL, ret)) {
		fputs("heapcore: out of memory\n", stderr);
		exit(EXIT_NOT_ANALYSED);
	}
}

void options_deinit(struct options *options)
{
	free(options->arguments);
	free(options->given);
	free(options->compared.list);
}
