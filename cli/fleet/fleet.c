#include "cli/fleet/fleet.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "cli/fleet/workers.h"
#include "cli/live/coredumpctl.h"
#include "cli/options.h"
#include "cli/prompt/machine.h"
#include "cli/prompt/reports.h"
#include "cli/prompt/switches.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
	KEY_TAG = 256,
	KEY_SELECT,
	KEY_BASELINE,
	KEY_MOST_DOUBTFUL,
	KEY_MOST_GROWTH,
	KEY_BUILD,
};

enum { DEFAULT_SECONDS = 3600, DEFAULT_LIMIT = 20 };

static const char DATABASE[] = "fleet.db";

enum fleet_task { TASK_ADD, TASK_REPORT, TASK_GATE, TASK_DIFF, TASK_SHOW, TASK_SQL, TASK_PRUNE };

/* The words that stand in front of the file to ask, and how many follow it. */
static const struct task {
	const char *word, *main_table;
	size_t words;
	struct error *(*answer)(struct store *store, const struct fleet_question *question,
				struct report *report);
} tasks[] = {
	[TASK_REPORT] = { "report", "fleet leak", 0, fleet_report },
	[TASK_GATE] = { "gate", "new leak", 0, fleet_gate },
	[TASK_DIFF] = { "diff", "growth", 2, fleet_diff },
	[TASK_SHOW] = { "show", "fleet leak", 1, fleet_show },
	[TASK_SQL] = { "sql", NULL, 1, fleet_sql },
	[TASK_PRUNE] = { "prune" },
};

struct fleet_options {
	enum fleet_task task;
	bool coredumpctl, retry, again, quiet;
	const char *database, *path_tags, *format, *table, *fetch, *log;
	struct word_list paths, tags;
	char *build; /* of --build; owned */
	struct report_file_names files;
	uint64_t jobs;
	struct worker_limits limits;
	struct fleet_question question;
};

static const char DOCUMENTATION[] =
	"Analyse many cores, each in a process of its own, and keep the results in one SQLite file, fleet.db. CORE is a file, a folder, a file of ndjson rows of 'facts', or '-' for a list on standard input: a path a line, with NAME=VALUE tags after tabs.\v"
	"Cores that are in the file already are skipped, so a run that was stopped resumes where it was. A core that cannot be analysed is a row with its error. Tags distinguish cores: the report uses 'host' and 'build', and the build-id of the program where there is no tag 'build'.\n"
	"\n"
	"'fleet report' shows leaks across hosts and builds, what each build brought, cores that use far more than others of their build, and what they have in common. 'fleet gate' fails if there is a leak that the baseline does not have. 'fleet diff' compares two builds, 'fleet show' names a core for a leak, 'fleet sql' answers a question about the tables of the file and of the report, 'fleet prune' removes cores.\n"
	"\n"
	"Exit status: 0 if all is well; 1 if the gate failed; 2 for wrong usage; 3 if no core could be analysed, or if the gate found nothing but some cores could not be; 130 after Ctrl-C.";

static const struct argp_option OPTIONS[] = {
	{ NULL, 0, NULL, 0, "Adding cores:", 1 },
	{ "output", 'o', "FILE", 0,
	  "Keep the results in FILE (fleet.db); a report or gate writes FILE as other commands do",
	  1 },
	{ "jobs", 'j', "N", BY_LETTER(KEEP(COUNT, struct fleet_options, jobs)),
	  "Analyse N cores at once (default: one per CPU)", 1 },
	{ "time-limit", KEEP(COUNT, struct fleet_options, limits.seconds), "SECONDS", 0,
	  "Give up a core after SECONDS (3600)", 1 },
	{ "max-memory", KEEP(SIZE, struct fleet_options, limits.memory), "SIZE", 0,
	  "Use at most SIZE of memory for a core, in addition to the core itself (default: its share of the machine's)",
	  1 },
	{ "tag", KEY_TAG, "NAME=VALUE", 0, "Tag all cores (may be repeated)", 1 },
	{ "path-tags", KEEP(TEXT, struct fleet_options, path_tags), "PATTERN", 0,
	  "Take tags from the ends of paths, as in '{host}/{build}/core.*'", 1 },
	{ "coredumpctl", KEEP(FLAG, struct fleet_options, coredumpctl), NULL, 0,
	  "Add the cores that systemd-coredump keeps", 1 },
	{ "retry", KEEP(FLAG, struct fleet_options, retry), NULL, 0,
	  "Analyse cores that failed once more", 1 },
	{ "again", KEEP(FLAG, struct fleet_options, again), NULL, 0,
	  "Analyse cores of other versions of heapcore once more", 1 },
	{ "fetch", KEEP(TEXT, struct fleet_options, fetch), "COMMAND", 0,
	  "Read each core from COMMAND, where {} is its name, as in 'aws s3 cp {} -'", 1 },
	{ "holders", KEEP(FLAG, struct fleet_options, limits.holders), NULL, 0,
	  "Also find which variables and classes hold memory, and their growth; takes longer", 1 },
	{ "log", KEEP(TEXT, struct fleet_options, log), "FILE", 0,
	  "Append a JSON object to FILE for each core", 1 },
	{ "sysroot", KEEP(TEXT, struct fleet_options, limits.sysroot), "DIR", 0,
	  "Search DIR for the files of the machine that cores are from", 1 },
	{ "debug-dir", KEEP(TEXT, struct fleet_options, limits.debug_directory), "DIR", 0,
	  "Also search DIR for separate debug files", 1 },
	{ "quiet", 'q', NULL, BY_LETTER(KEEP(FLAG, struct fleet_options, quiet)),
	  "Show no progress and no notes", 1 },
	{ NULL, 0, NULL, 0, "Report, gate, diff, show, sql and prune:", 2 },
	{ "select", KEY_SELECT, "NAME=PATTERN", 0,
	  "Only cores whose host, build, program or tag matches, as in 'build=3f2a*' (may be repeated)",
	  2 },
	{ "format", KEEP(TEXT, struct fleet_options, format), "FORMAT", 0,
	  "Write text, html, csv, tsv, markdown, json or ndjson; for the gate also junit or sarif, for the report openmetrics",
	  2 },
	{ "table", KEEP(TEXT, struct fleet_options, table), "NAME", 0,
	  "Write only the table of that name", 2 },
	{ "limit", KEEP(COUNT, struct fleet_options, question.limit), "N", 0,
	  "Show at most N rows of a table (20), also in files of -o", 2 },
	{ "with-doubtful", KEEP(FLAG, struct fleet_options, question.with_doubtful), NULL, 0,
	  "Also count cores that were analysed only in part", 2 },
	{ NULL, 0, NULL, 0, "Gate:", 3 },
	{ "baseline", KEY_BASELINE, "NAME=PATTERN", 0,
	  "Accept what these cores leaked (if repeated, those that match all)", 3 },
	{ "min-cores", KEEP(COUNT, struct fleet_options, question.least_cores), "N", 0,
	  "Fail only for leaks in at least N cores (1)", 3 },
	{ "max-leaked-bytes",
	  KEEP_GIVEN(SIZE, struct fleet_options, question.most_leaked, question.has_most_leaked),
	  "SIZE", 0, "Also fail if a core leaked more than SIZE", 3 },
	{ "max-growth", KEY_MOST_GROWTH, "PERCENT", 0,
	  "Fail if cores use PERCENT more of a kind than the baseline's, beyond the spread between cores (100% with a baseline)",
	  3 },
	{ "max-doubtful", KEY_MOST_DOUBTFUL, "PERCENT", 0,
	  "Pass although up to PERCENT of the cores could not be analysed, or only in part (0%)",
	  3 },
	{ NULL, 0, NULL, 0, "Prune, which removes cores that fit all that is given:", 4 },
	{ "older", KEEP(TIME, struct fleet_options, question.older), "AGE", 0,
	  "Cores older than AGE, as in '30d' or '12h'", 4 },
	{ "missing", KEEP(FLAG, struct fleet_options, question.missing), NULL, 0,
	  "Cores whose file is no more", 4 },
	{ "build", KEY_BUILD, "PATTERN", 0, "As --select build=PATTERN", 4 },
	{ 0 },
};

static struct error *add_tag(struct word_list *tags, const char *text)
{
	TRY(tag_check(text));
	return LIST_APPEND(tags->list, tags->count, text);
}

static struct error *add_build(struct fleet_options *options, const char *pattern)
{
	options->build = format_text("build=%s", pattern);
	TRY_MEMORY(options->build);
	return add_tag(&options->question.select, options->build);
}

/* "5%" as 0.05; the sign may be left out. */
static struct error *parse_percent(const char *word, double *ret)
{
	char *end;
	double percent = strtod(word, &end);

	if (end == word || percent < 0 || (*end && strcmp(end, "%") != 0))
		return error_not(word, "a percentage");
	*ret = percent / 100;
	return NULL;
}

/* FILE.db may be left out. */
static struct error *take_words(struct fleet_options *options)
{
	size_t wanted = tasks[options->task].words, given = options->paths.count;

	if (given != wanted && given != wanted + 1)
		return error_create(ERROR_USAGE, "'%s' takes FILE.db%s", tasks[options->task].word,
				    wanted == 0			? ", and no more"
				    : wanted == 2		? " and two builds, OLD and NEW"
				    : options->task == TASK_SQL ? " and a QUERY"
								: " and a FINGERPRINT");
	options->database = given > wanted ? options->paths.list[0] : DATABASE;
	for (size_t i = 0; i < wanted; i++)
		options->question.words[i] = options->paths.list[given - wanted + i];
	if (options->task == TASK_PRUNE && !options->question.select.count &&
	    !options->question.missing && !options->question.older)
		return error_create(ERROR_USAGE, "'prune' needs --older, --missing or --select");
	return NULL;
}

/* With 'add', -o names the database itself. */
static error_t add_output(struct fleet_options *options, struct argp_state *state,
			  const char *value)
{
	if (options->task != TASK_ADD)
		return report_file_names_add(&options->files, state, value);
	options->database = value;
	return 0;
}

static struct error *check(struct fleet_options *options)
{
	if (options->task != TASK_ADD)
		return take_words(options);
	if (options->paths.count == 0 && !options->coredumpctl)
		return error_create(ERROR_USAGE, "no core is given");
	if (options->jobs == 0 || options->jobs > 1024)
		return error_create(ERROR_USAGE, "--jobs is a number from 1 to 1024");
	if (options->limits.seconds == 0 || options->limits.seconds > INT32_MAX)
		return error_create(ERROR_USAGE, "--time-limit is a number of seconds from 1");
	return NULL;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct fleet_options *options = state->input;
	struct fleet_question *question = &options->question;
	struct error *error = NULL;

	switch (key) {
	case 'o':
		return add_output(options, state, argument);
	case KEY_TAG:
		error = add_tag(&options->tags, argument);
		break;
	case KEY_SELECT:
		error = add_tag(&question->select, argument);
		break;
	case KEY_BASELINE:
		error = add_tag(&question->baseline, argument);
		break;
	case KEY_BUILD:
		error = add_build(options, argument);
		break;
	case KEY_MOST_DOUBTFUL:
		error = parse_percent(argument, &question->most_doubtful);
		break;
	case KEY_MOST_GROWTH:
		question->has_most_growth = true;
		error = parse_percent(argument, &question->most_growth);
		break;
	case ARGP_KEY_ARG:
		error = LIST_APPEND(options->paths.list, options->paths.count, argument);
		break;
	case ARGP_KEY_END:
		error = check(options);
		break;
	default:
		return switch_take(OPTIONS, key, argument, state);
	}
	return switch_refuse(state, error);
}

const struct argp fleet_parser = {
	.options = OPTIONS,
	.parser = parse_option,
	.args_doc =
		"CORE...\nreport [FILE.db]\ngate [FILE.db]\ndiff [FILE.db] OLD NEW\nshow [FILE.db] FINGERPRINT\nsql [FILE.db] QUERY\nprune [FILE.db]",
	.doc = DOCUMENTATION,
};

static void options_release(struct fleet_options *options)
{
	free(options->paths.list);
	free(options->tags.list);
	free(options->question.select.list);
	free(options->question.baseline.list);
	free(options->build);
}
DEFINE_DEINIT(options_release, struct fleet_options)

static struct error *find_cores(const struct fleet_options *options, struct fleet_cores *cores)
{
	if (options->path_tags)
		TRY(fleet_cores_use_pattern(cores, options->path_tags));
	if (options->coredumpctl)
		TRY(fleet_cores_add(cores, kept_cores_folder));
	for (size_t i = 0; i < options->paths.count; i++) {
		if (strcmp(options->paths.list[i], "-") == 0)
			TRY(fleet_cores_add_listed(cores, stdin));
		else
			TRY(fleet_cores_add(cores, options->paths.list[i]));
	}
	fleet_cores_order(cores);
	if (cores->has_pattern && !cores->pattern_fits)
		return error_create(ERROR_USAGE, "no path ends as --path-tags '%s' says",
				    options->path_tags);
	return NULL;
}

/* {} becomes the first argument of the shell, so that no name is taken for its language. */
static struct error *prepare_fetch(const char *command, char **ret)
{
	_cleanup_(free) char *text = strdup("");

	TRY_MEMORY(text);
	if (!strstr(command, "{}"))
		return error_create(ERROR_USAGE, "--fetch has no {} for the name of a core");
	for (const char *place; (place = strstr(command, "{}")); command = place + 2) {
		_cleanup_(free) char *former = take(text);

		text = format_text("%s%.*s\"$1\"", former, (int)(place - command), command);
		TRY_MEMORY(text);
	}
	*ret = format_text("%s%s", text, command);
	TRY_MEMORY(*ret);
	return NULL;
}

static void tell(struct session *session, const struct fleet_tally *tally, const char *database)
{
	session_note(session, "%zu core%s: %zu analysed, %zu failed, %zu already in %s%s%s%s",
		     tally->cores, tally->cores == 1 ? "" : "s", tally->analysed, tally->failed,
		     tally->kept, database, tally->failures ? "; failed: " : "",
		     tally->failures ? tally->failures : "",
		     tally->failed > FAILURES_NAMED ? ", ..." : "");
}

static struct error *add_cores(struct session *session, const struct fleet_options *options)
{
	const char *database = options->database ? options->database : DATABASE;
	_cleanup_(fleet_cores_deinit) struct fleet_cores cores = {
		.tags = options->tags,
		.are_fetched = options->fetch,
	};
	_cleanup_(store_close) struct store *store = NULL;
	_cleanup_(free) char *fetch = NULL;
	_cleanup_(fclose) FILE *log = NULL;
	struct worker_limits limits = options->limits;
	const struct fleet_anew anew = { options->retry, options->again ? VERSION : NULL };
	struct fleet_tally tally = { 0 };
	struct error *error;

	if (options->fetch)
		TRY(prepare_fetch(options->fetch, &fetch));
	if (options->log && !(log = fopen(options->log, "ae")))
		return error_create(ERROR_USAGE, "%s: %s", options->log, strerror(errno));
	limits.fetch = fetch;
	limits.log = log;
	limits.jobs = options->jobs;
	if (!limits.memory)
		limits.memory = machine_memory() / limits.jobs;
	TRY(find_cores(options, &cores));
	TRY(store_open(database, STORE_WRITE, &store));
	error = workers_run(session, store, &cores, &limits, &anew, &tally);
	tell(session, &tally, database);
	free(tally.failures);
	if (!error && tally.failed > 0 && tally.analysed + tally.kept == 0)
		error = error_create(ERROR_NOT_SUPPORTED, "no core could be analysed");
	return error;
}

static void show_progress_no_more(void *data)
{
	progress_line_stop(&((struct session *)data)->progress);
}

static const struct task *find_task(const char *word)
{
	for (size_t i = TASK_REPORT; i < COUNT_OF(tasks); i++)
		if (strcmp(word, tasks[i].word) == 0)
			return &tasks[i];
	return NULL;
}

/* As the commands 'report' and 'gate' do, for which some formats are made. */
struct error *fleet_answer(struct session *session, const char *word, struct store *store,
			   const char *path, const struct fleet_question *question, FILE *out)
{
	const struct task *task = find_task(word);
	char *words[] = { (char *)task->word };
	const struct line line = { .words = words, .count = 1 };
	struct reports reports;
	struct error *error;

	TRY(reports_open(&reports, session, session->format, line.words[0], &line, out, false));
	reports.subject.core = path;
	reports.subject.findings = NULL; /* those of a core that is open, too */
	reports.choice.main = task->main_table;
	error = task->answer(store, question, &reports.list[0]);
	return error_first(error, reports_close(&reports));
}

static struct error *answer(struct session *session, const struct fleet_options *options)
{
	_cleanup_(store_close) struct store *store = NULL;
	struct output output = {
		.destination = TO_OUTPUT,
		.before = show_progress_no_more,
		.data = session,
		.interrupted = &session->progress.progress.interrupted,
	};
	bool is_metrics;
	struct error *error;

	is_metrics = options->format && strcmp(options->format, "openmetrics") == 0;
	if (is_metrics && options->task != TASK_REPORT)
		return error_create(ERROR_USAGE, "'openmetrics' is for 'fleet report' only");
	if (options->format && !is_metrics)
		TRY(report_format_find(options->format, &session->format));
	session->table = options->table;
	TRY(store_open(options->database, STORE_READ, &store));
	TRY(report_files_open(session, &options->files, options->database));
	TRY(output_open(&output, options->database));
	session->output = &output;
	error = is_metrics ? fleet_metrics(store, &options->question, output.stream)
			   : fleet_answer(session, tasks[options->task].word, store,
					  options->database, &options->question, output.stream);
	session->output = NULL;
	error = error_first(error, output_close(&output));
	return error_first(error, report_files_close(session));
}

static struct error *prune(struct session *session, const struct fleet_options *options)
{
	_cleanup_(store_close) struct store *store = NULL;
	int64_t count = 0;

	/* Writing would make the file. */
	if (access(options->database, F_OK) < 0)
		return error_create(ERROR_USAGE, "%s: %s", options->database, strerror(errno));
	TRY(store_open(options->database, STORE_WRITE, &store));
	TRY(fleet_prune(store, &options->question, &count));
	session_note(session, "%" PRId64 " core%s removed from %s", count, count == 1 ? "" : "s",
		     options->database);
	return NULL;
}

static enum fleet_task task_of(const char *word)
{
	const struct task *task = access(word, F_OK) < 0 ? find_task(word) : NULL;

	return task ? (enum fleet_task)(task - tasks) : TASK_ADD;
}

int fleet_main(int count, char **arguments)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	_cleanup_(options_release) struct fleet_options options = {
		.jobs = processors > 0 ? (uint64_t)processors : 1,
		.limits.seconds = DEFAULT_SECONDS,
		.question = { .limit = DEFAULT_LIMIT, .least_cores = 1 },
	};
	_cleanup_(session_deinit) struct session session;

	if (count > 1)
		options.task = task_of(arguments[1]);
	if (options.task != TASK_ADD) {
		arguments[1] = arguments[0];
		arguments++;
		count--;
	}
	if (argp_parse(&fleet_parser, count, arguments, 0, NULL, &options))
		return EXIT_NOT_ANALYSED;
	session_init(&session, options.quiet);
	interrupt_catch(&session.progress.progress, true);
	return session_end(&session, options.task == TASK_ADD	  ? add_cores(&session, &options)
				     : options.task == TASK_PRUNE ? prune(&session, &options)
								  : answer(&session, &options));
}
