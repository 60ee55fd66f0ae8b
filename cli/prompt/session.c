#include "cli/prompt/session.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/report/fit.h"
#include "cli/prompt/machine.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

/* The default, for people. */
extern const struct report_format report_format_text;

void session_init(struct session *session, bool quiet)
{
	*session = (struct session){
		.quiet = quiet,
		.format = &report_format_text,
	};
	progress_line_init(&session->progress, quiet ? NULL : stderr);
}

void session_close(struct session *session)
{
	if (session->analysis)
		analysis_destroy(take(session->analysis));
	session->told_vanished = session->doubted = false;
	session->findings_shown = 0;
	memset(session->findings_left_out, 0, sizeof(session->findings_left_out));
}

void session_deinit(struct session *session)
{
	free(session->sql.text);
	session_close(session);
}

struct error *session_open(struct session *session, const char *path)
{
	const struct image *image;
	struct error *error;

	progress_line_begin(&session->progress);
	error = analysis_create(path, session->debug, &session->progress.progress,
				&session->analysis);
	progress_line_stop(&session->progress);
	if (error)
		return error;
	analysis_limit_memory(session->analysis, session->maximum_memory);
	/* Placeholders are no text. */
	image = analysis_image(session->analysis);
	session->shows_kept =
		image_keeps_content(image) && (!session->no_content || session->shows_kept);
	session->no_content |= image_is_slim(image);
	return NULL;
}

/* Messages escape what they quote, so a backslash is left as it is. */
static void write_escaped(FILE *out, const char *text)
{
	size_t size = strlen(text);

	while (size) {
		char buffer[ESCAPED_SIZE];
		size_t length;
		size_t taken = escape_character(text, size, buffer, &length);

		fwrite(buffer, 1, *text == '\\' ? 1 : length, out);
		text += taken;
		size -= taken;
	}
}

/* Into out, which may be in memory. */
static void write_message(FILE *out, const char *kind, const char *text)
{
	fputs("heapcore: ", out);
	fputs(kind, out);
	write_escaped(out, text);
	fputc('\n', out);
}

/* On a terminal, lines end between words; false if memory is short. */
static bool say_fitted(const char *kind, const char *text, size_t width)
{
	_cleanup_(free) char *message = NULL;
	struct writer writer = { 0 };
	size_t size = 0;
	FILE *out = open_memstream(&message, &size);
	bool failed;

	if (!out)
		return false;
	write_message(out, kind, text);
	failed = fclose(out) != 0;
	if (!failed)
		fit_lines(&writer, message, size, width);
	failed |= writer.failed;
	if (!failed)
		fwrite(writer.buffer, 1, writer.used, stderr);
	writer_deinit(&writer);
	return !failed;
}

/* One message, a line of its own. */
static void say(struct session *session, const char *kind, const char *text)
{
	struct winsize size = { .ws_col = 0 };

	progress_line_clear(&session->progress);
	if (session->messages)
		write_message(session->messages, kind, text);
	else if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col ||
		 !say_fitted(kind, text, size.ws_col))
		write_message(stderr, kind, text);
}

void session_complain(struct session *session, struct error *error)
{
	_cleanup_(error_destroy) struct error *owned = error;
	enum error_code code = error_code(error);

	if (code == ERROR_USAGE)
		session->wrong_usage = true;
	else if (code == ERROR_FOUND)
		session->found = true;
	else if (code != ERROR_INTERRUPTED)
		session->failed = true;
	/* An interruption is no error of the script, so do not name its line. */
	if (session->script && code != ERROR_INTERRUPTED)
		owned = error_wrap(take(owned), "%s:%zu", session->script->name,
				   session->script->line);
	say(session, "", error_message(owned));
}

void session_note(struct session *session, const char *format, ...)
{
	_cleanup_(free) char *text = session->quiet ? NULL : FORMATTED(format);

	if (text)
		say(session, "", text);
}

void session_caveat(struct session *session, const char *format, ...)
{
	_cleanup_(free) char *text = FORMATTED(format);

	if (text)
		say(session, "", text);
}

/* More are counted than kept. */
static size_t count_left_out(const struct findings *findings, enum finding_weight weight)
{
	size_t left_out = findings->weighed[weight];

	for (size_t i = 0; i < findings->count; i++)
		left_out -= findings->list[i].weight == weight;
	return left_out;
}

/* Say how many are left out, when that changed. */
static void show_left_out(struct session *session, const struct findings *findings,
			  enum finding_weight weight, const char *kind)
{
	size_t left_out = count_left_out(findings, weight);
	char text[80];

	if (left_out == session->findings_left_out[weight])
		return;
	session->findings_left_out[weight] = left_out;
	snprintf(text, sizeof(text), "and %zu more that are not shown", left_out);
	say(session, kind, text);
}

void session_check_files(struct session *session)
{
	if (session->told_vanished || !session->analysis || !vanished_any())
		return;
	session->told_vanished = true;
	analysis_doubt(
		session->analysis,
		"the core, or a file of the process, was truncated while it was read: the missing part was read as zeros");
}

void session_show_findings(struct session *session)
{
	static const char *const kinds[] = {
		[FINDING_NOTE] = "note: ",
		[FINDING_INCOMPLETE] = "warning: ",
		[FINDING_CAVEAT] = "note: ",
	};
	const struct findings *findings;

	if (!session->analysis)
		return;
	session_check_files(session);
	findings = analysis_findings(session->analysis);
	while (session->findings_shown < findings->count) {
		const struct finding *finding = &findings->list[session->findings_shown++];

		if (finding->weight != FINDING_NOTE || !session->quiet)
			say(session, kinds[finding->weight], finding->message);
	}
	for (enum finding_weight weight = 0; weight < FINDING_WEIGHTS; weight++)
		if (weight != FINDING_NOTE || !session->quiet)
			show_left_out(session, findings, weight, kinds[weight]);
}

void session_pass_findings(struct session *session)
{
	const struct findings *findings;

	session_check_files(session);
	findings = analysis_findings(session->analysis);
	session->findings_shown = findings->count;
	for (enum finding_weight weight = 0; weight < FINDING_WEIGHTS; weight++)
		session->findings_left_out[weight] = count_left_out(findings, weight);
}

void session_doubt(struct session *session)
{
	if (session->doubted || !session->analysis ||
	    !findings_incomplete(analysis_findings(session->analysis)))
		return;
	session->doubted = true;
	say(session, "warning: ", "answers may be wrong, for the reasons given above");
}

bool session_interrupted(const struct session *session)
{
	return atomic_load(&session->progress.progress.interrupted);
}

static void report_cost(struct report *report, const char *name, const struct stage_cost *cost)
{
	/* The total is from nowhere. */
	const char *from = cost->is_loaded ? "side file" : "core";

	report_row(report, name, cost->built ? from : NULL, cost->wall, cost->processor,
		   cost->memory, cost->peak, VALUE_IF(cost->unit, cost->count), cost->unit);
}

static void report_costs(struct report *report, const struct analysis *analysis)
{
	static const struct table table =
		TABLE("stage", NULL, { "stage", VALUE_TEXT }, { "from", VALUE_TEXT },
		      { "wall s", VALUE_SECONDS }, { "processor s", VALUE_SECONDS },
		      { "memory", VALUE_BYTES }, { "peak memory", VALUE_BYTES },
		      { "count", VALUE_COUNT }, { "of", VALUE_TEXT });
	struct stage_cost total = { 0 };

	report_begin_table(report, &table);
	for (enum stage stage = 0; stage < STAGES; stage++) {
		struct stage_cost cost = analysis_cost(analysis, stage);

		if (!cost.built)
			continue;
		report_cost(report, stage_name(stage), &cost);
		total.wall += cost.wall;
		total.processor += cost.processor;
		total.memory += cost.memory;
	}
	total.peak = atomic_load(&analysis_account((struct analysis *)analysis)->peak);
	report_cost(report, "total", &total);
	report_end_table(report);
}

/* Report how loops were split among threads. */
static void report_splits(struct report *report, const struct progress *progress)
{
	static const struct table table =
		TABLE("split", NULL, { "task", VALUE_TEXT }, { "threads", VALUE_COUNT },
		      { "work", VALUE_COUNT }, { "of one at most", VALUE_COUNT },
		      { "if even", VALUE_COUNT }, { "at once", VALUE_COUNT });

	if (progress->split_count == 0)
		return;
	report_begin_table(report, &table);
	list_for_each(split, progress->splits, progress->split_count) {
		report_row(report, split->task, split->threads, split->total, split->most,
			   value_nonzero(split->even), split->largest);
	}
	report_end_table(report);
}

void session_show_costs(struct session *session)
{
	struct report report;
	struct error *error;

	if (!session->analysis)
		return;
	error = report_open(session->format, stderr, false, &report);
	if (!error) {
		report_costs(&report, session->analysis);
		report_splits(&report, &session->progress.progress);
		error = report_close(&report);
	}
	if (error)
		session_complain(session, error);
}

int session_status(const struct session *session)
{
	if (session->wrong_usage)
		return EXIT_WRONG_USAGE;
	if (session->failed || vanished_any())
		return EXIT_NOT_ANALYSED;
	if (session->analysis && findings_incomplete(analysis_findings(session->analysis)))
		return EXIT_NOT_ANALYSED;
	return session->found ? EXIT_FOUND : EXIT_FINE;
}

int session_end(struct session *session, struct error *error)
{
	if (error)
		session_complain(session, error);
	return session_interrupted(session) ? EXIT_INTERRUPTED : session_status(session);
}

static struct error *name(const char *core, char **ret)
{
	return asprintf(ret, "%s.hcx", core) < 0 ? &error_no_memory : NULL;
}

/* Make it; that it cannot be written ends nothing. */
static struct error *make(struct session *session, const char *path)
{
	struct error *error;

	progress_line_begin(&session->progress);
	error = analysis_write_side_file(session->analysis, path);
	progress_line_stop(&session->progress);
	if (!error || error_code(error) != ERROR_SYSTEM)
		return error;
	session_note(session, "no side file: %s", error_message(error));
	error_destroy(error);
	return NULL;
}

struct error *session_use_side_file(struct session *session, const char *core)
{
	_cleanup_(free) char *path = NULL;
	struct error *error = name(core, &path);

	if (error)
		return error;
	error = analysis_use_side_file(session->analysis, path);
	if (!error)
		return NULL;
	if (error_code(error) != ERROR_BAD_DUMP)
		return error_wrap(error, "%s", path);
	if (access(path, F_OK) == 0)
		session_note(session, "%s is made anew: %s", path, error_message(error));
	error_destroy(error);
	return make(session, path);
}

struct error *session_verify_side_file(struct session *session, const char *core)
{
	_cleanup_(free) char *path = NULL;
	struct error *error = name(core, &path);

	if (error)
		return error;
	progress_line_begin(&session->progress);
	error = analysis_verify_side_file(session->analysis, path);
	progress_line_stop(&session->progress);
	if (error)
		return error_wrap(error, "%s", path);
	puts("The side file agrees with a new analysis.");
	return fflush(stdout) == 0 ? NULL : error_system("the output");
}
