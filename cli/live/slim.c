#include "cli/live/slim.h"

#include "analyzer/base/text.h"
#include "analyzer/query/query.h"
#include "analyzer/slim/slim.h"
#include "cli/prompt/machine.h"
#include "cli/prompt/output_file.h"
#include "cli/prompt/session.h"
#include "cli/prompt/switches.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

static const char DOCUMENTATION[] =
	"Write a core without contents: who holds what, what leaked and what memory is for can be asked of it, but no text or number of the program's is in it.\vAddresses stay, and what allocators, the loader and the C library write; any other word becomes a placeholder, also in environment, arguments, stacks and registers. heapcore, gdb and readelf read it.\n"
	"\n"
	"It takes cores of programs in C, C++, Rust, Crystal, Guile, Python, Ruby, Perl, PHP, Node.js, LuaJIT or Lua 5.1 to 5.4 that use malloc of glibc, jemalloc, tcmalloc or AddressSanitizer, and slices of GLib. Of scripts, names in code stay, of Python also dicts' keys that are interned, as those of attributes are.\n"
	"\n"
	"Exit status: 0 if the core was written; 2 for wrong usage; 3 if CORE could not be read, has what a slim core cannot have yet, or the new one could not be written.";

struct slim_arguments {
	const char *core;
	const char *output;
	const char *format;
	bool zstd, audit, quiet, strings, hash_names;
	struct set_query query; /* of what stays whole */
	struct debug_options debug;
};

static void arguments_deinit(struct slim_arguments *arguments)
{
	set_query_deinit(&arguments->query);
}
DEFINE_DEINIT(arguments_deinit, struct slim_arguments)

enum { KEY_KEEP = 256 };

static const struct argp_option OPTIONS[] = {
	{ "output", 'o', "FILE", BY_LETTER(KEEP(TEXT, struct slim_arguments, output)),
	  "Write to FILE, packed with zstd if its name ends with .zst", 0 },
	{ "zstd", KEEP(FLAG, struct slim_arguments, zstd), NULL, 0,
	  "Pack it with zstd, whatever its name is", 0 },
	{ "keep", KEY_KEEP, "WHAT", 0,
	  "Keep contents, too: 'strings', the texts of allocations that are strings; 'types TYPE', allocations in use of that class, type or pattern; 'all-of SET', those of a set, as 'all-of leaked' or 'all-of \"used %LongString\"'; may be repeated",
	  0 },
	{ "hash-names", KEEP(FLAG, struct slim_arguments, hash_names), NULL, 0,
	  "Replace names that no binary has, such as those of a script's functions and attributes, by hashes as long; of one file, equal ones are the same",
	  0 },
	{ "audit", KEEP(FLAG, struct slim_arguments, audit), NULL, 0,
	  "List how many bytes of what origin were kept or left out; without -o, write nothing",
	  0 },
	{ "format", KEEP(TEXT, struct slim_arguments, format), "FORMAT", 0,
	  "Write the list as text, csv, tsv, markdown, json or ndjson", 0 },
	{ "sysroot", KEEP(TEXT, struct slim_arguments, debug.sysroot), "DIR", 0,
	  "Look for the program's files in DIR", 0 },
	{ "quiet", 'q', NULL, BY_LETTER(KEEP(FLAG, struct slim_arguments, quiet)),
	  "Report only errors", 0 },
	{ 0 },
};

/* Another set, beside those before. */
static struct error *join_sets(struct slim_arguments *arguments)
{
	return arguments->query.term_count > 0 ? query_take_word(&arguments->query, "or") : NULL;
}

/* Take a type, which may have spaces. */
static struct error *take_type(struct slim_arguments *arguments, const char *name)
{
	TRY(join_sets(arguments));
	TRY(query_take_word(&arguments->query, "used"));
	TRY(query_take_word(&arguments->query, name));
	return query_check(&arguments->query);
}

/* Take the words of a set. */
static struct error *take_set(struct slim_arguments *arguments, char *words)
{
	char *rest;

	TRY(join_sets(arguments));
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		TRY(query_take_word(&arguments->query, word));
	TRY(query_check(&arguments->query));
	if (arguments->query.set->ranges)
		return error_create(ERROR_USAGE, "'%s' is no set of allocations",
				    arguments->query.set->name);
	return NULL;
}

/* The set or type is the word behind, whatever it looks like. */
static struct error *take_keep(struct slim_arguments *arguments, const char *what,
			       struct argp_state *state)
{
	if (strcmp(what, "strings") == 0) {
		arguments->strings = true;
		return NULL;
	}
	if (strcmp(what, "all-of") != 0 && strcmp(what, "types") != 0)
		return error_create(ERROR_USAGE,
				    "--keep takes 'strings', 'types TYPE' or 'all-of SET'");
	if (state->next >= state->argc)
		return error_create(ERROR_USAGE, "--keep %s needs a %s", what,
				    *what == 'a' ? "set" : "type");
	return *what == 'a' ? take_set(arguments, state->argv[state->next++])
			    : take_type(arguments, state->argv[state->next++]);
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct slim_arguments *arguments = state->input;

	switch (key) {
	case KEY_KEEP:
		return switch_refuse(state, take_keep(arguments, argument, state));
	case ARGP_KEY_ARG:
		if (arguments->core)
			argp_error(state, "only one core can be given");
		arguments->core = argument;
		return 0;
	case ARGP_KEY_END:
		if (!arguments->core)
			argp_error(state, "no core is given");
		if (!arguments->output && !arguments->audit)
			argp_error(state, "neither -o nor --audit is given");
		return 0;
	default:
		return switch_take(OPTIONS, key, argument, state);
	}
}

static bool ends_with(const char *text, const char *ending)
{
	size_t length = strlen(text), size = strlen(ending);

	return length >= size && strcmp(text + length - size, ending) == 0;
}

struct error *slim_core(struct session *session, struct slim_options options,
			struct slim_sizes *ret)
{
	struct error *error;

	options.progress = &session->progress.progress;
	progress_line_begin(&session->progress);
	error = slim_write(session->analysis, &options, ret);
	progress_line_stop(&session->progress);
	if (error && error_code(error) == ERROR_BAD_DUMP)
		return error_wrap(error, "%s", analysis_image(session->analysis)->path);
	return error;
}

static struct error *write_output(struct session *session, const struct slim_arguments *arguments,
				  struct slim_options options, struct slim_sizes *ret)
{
	_cleanup_(output_file_deinit) struct output_file file = { .fd = -1 };
	_cleanup_(close) int fd = -1;
	const char *path = arguments->output;
	char size[NUMBER_SIZE], core[NUMBER_SIZE];
	struct error *error;

	/* The core may be the file of that name: it stays until the new one is complete. */
	if (output_file_begin_named(path, &file) < 0)
		return errno == EEXIST ? error_create(ERROR_USAGE, "%s is not a regular file", path)
				       : error_system("%s", path);
	options.fd = file.fd;
	options.packed = arguments->zstd || ends_with(path, ".zst");
	error = slim_core(session, options, ret);
	if (!error && (fd = output_file_complete(&file)) < 0)
		error = error_system("the core cannot get its name");
	if (error)
		return error_code(error) == ERROR_SYSTEM ? error_wrap(error, "%s", path) : error;
	session_note(session, "%s: %s bytes, of a core of %s%s", path,
		     grouped(ret->packed ? ret->packed : ret->file, size), grouped(ret->core, core),
		     ret->packed ? "; packed" : "; a name that ends in .zst packs it");
	return NULL;
}

static void report_sizes(struct report *report, const struct slim_sizes *sizes)
{
	static const struct table table =
		TABLE("origin", NULL, { "addresses", VALUE_BYTES }, { "structure", VALUE_BYTES },
		      { "contents", VALUE_BYTES }, { "zeros", VALUE_BYTES },
		      { "left out", VALUE_BYTES }, { "origin", VALUE_TEXT });
	struct slim_tally total = { 0 };

	report_begin_table(report, &table);
	for (unsigned int i = 0; i < SLIM_ORIGINS; i++) {
		const struct slim_tally *tally = &sizes->tallies[i];

		total.addresses += tally->addresses;
		total.structure += tally->structure;
		total.contents += tally->contents;
		total.zeros += tally->zeros;
		total.placeholders += tally->placeholders;
		report_row(report, tally->addresses, tally->structure, tally->contents,
			   tally->zeros, tally->placeholders, slim_origin_name(i));
	}
	report_row(report, total.addresses, total.structure, total.contents, total.zeros,
		   total.placeholders, "total");
	report_end_table(report);
}

static struct error *write_audit(const struct session *session, const struct slim_sizes *sizes)
{
	struct report report;

	TRY(report_open(session->format, stdout, false, &report));
	report_sizes(&report, sizes);
	return report_close(&report);
}

static struct error *slim(struct session *session, const struct slim_arguments *arguments)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	struct slim_options options = { .fd = -1,
					.strings = arguments->strings,
					.hash_names = arguments->hash_names };
	struct slim_sizes sizes = { 0 };

	if (arguments->format)
		TRY(report_format_find(arguments->format, &session->format));
	if (strcmp(arguments->core, "-") != 0 && access(arguments->core, R_OK) < 0)
		return error_create(ERROR_USAGE, "%s: %s", arguments->core, strerror(errno));
	TRY(session_open(session, arguments->core));
	if (arguments->query.set) {
		TRY(query_select(session->analysis, &arguments->query, &members));
		options.whole = &members.set;
	}
	if (arguments->output)
		TRY(write_output(session, arguments, options, &sizes));
	else
		TRY(slim_core(session, options, &sizes));
	return arguments->audit ? write_audit(session, &sizes) : NULL;
}

const struct argp slim_parser = {
	.options = OPTIONS,
	.parser = parse_option,
	.args_doc = "CORE",
	.doc = DOCUMENTATION,
};

int slim_main(int count, char **arguments)
{
	_cleanup_(session_deinit) struct session session;
	_cleanup_(arguments_deinit) struct slim_arguments given = { 0 };
	struct error *error;

	if (argp_parse(&slim_parser, count, arguments, 0, NULL, &given))
		return EXIT_NOT_ANALYSED;
	/* The reader of --audit wants no message once it is gone. */
	signal(SIGPIPE, SIG_DFL);
	session_init(&session, given.quiet);
	given.debug.give_up = give_up;
	given.debug.memory = machine_memory();
	session.debug = &given.debug;
	interrupt_catch(&session.progress.progress, true);
	vanished_catch();
	error = slim(&session, &given);
	if (error)
		session_complain(&session, error);
	if (session_interrupted(&session))
		return EXIT_INTERRUPTED;
	/* Doubts about the core's answers concern who asks for these. */
	return session.wrong_usage ? EXIT_WRONG_USAGE : error ? EXIT_NOT_ANALYSED : EXIT_FINE;
}
