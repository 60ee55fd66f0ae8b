#include "cli/prompt/reports.h"

#include "analyzer/base/text.h"
#include "cli/prompt/output.h"

#include <errno.h>
#include <langinfo.h>
#include <string.h>

/* The format that the ending of a file's name selects. */
static const struct ending {
	const char *ending, *format;
} endings[] = {
	{ ".txt", "text" },  { ".log", "text" },     { ".md", "markdown" },
	{ ".json", "json" }, { ".jsonl", "ndjson" }, { ".xml", "junit" },
};

static struct error *find_by_ending(const char *path, const struct report_format **ret)
{
	const char *dot = strrchr(path, '.');

	if (!dot || strchr(dot, '/'))
		return report_format_find("text", ret);
	for (size_t i = 0; i < COUNT_OF(endings); i++)
		if (strcmp(dot, endings[i].ending) == 0)
			return report_format_find(endings[i].format, ret);
	return report_format_find(dot + 1, ret);
}

/* "FORMAT:" in front of the file's name, or else its ending. */
static struct error *find_format(const char *value, const char **ret_path,
				 const struct report_format **ret)
{
	const char *colon = strchr(value, ':');
	_cleanup_(free) char *name = NULL;
	struct error *error;

	*ret_path = value;
	if (colon && !memchr(value, '/', (size_t)(colon - value))) {
		name = strndup(value, (size_t)(colon - value));
		TRY_MEMORY(name);
		*ret_path = colon + 1;
		return report_format_find(name, ret);
	}
	error = find_by_ending(value, ret);
	if (!error || error_code(error) != ERROR_USAGE)
		return error;
	return error_wrap(error, "%s (FORMAT:FILE names one)", value);
}

static void do_nothing(void *data)
{
}

error_t report_file_names_add(struct report_file_names *names, struct argp_state *state,
			      const char *value)
{
	if (names->count == MOST_REPORT_FILES) {
		argp_error(state, "there are more than %d files of -o", MOST_REPORT_FILES);
		return EINVAL;
	}
	names->list[names->count++] = value;
	return 0;
}

static struct error *open_file(struct session *session, const char *value, const char *dump)
{
	struct report_file *file = calloc(1, sizeof(*file));
	struct error *error;

	TRY_MEMORY(file);
	error = find_format(value, &file->output.target, &file->format);
	file->output.before = do_nothing;
	file->output.destination = TO_FILE;
	file->output.interrupted = &session->progress.progress.interrupted;
	if (!error)
		error = output_open(&file->output, dump);
	if (error) {
		free(file);
		return error;
	}
	session->files[session->file_count++] = file;
	return NULL;
}

struct error *report_files_open(struct session *session, const struct report_file_names *names,
				const char *dump)
{
	for (size_t i = 0; i < names->count; i++)
		TRY(open_file(session, names->list[i], dump));
	return NULL;
}

struct error *report_files_close(struct session *session)
{
	struct error *error = NULL;

	for (size_t i = 0; i < session->file_count; i++) {
		error = error_first(error, output_close(&session->files[i]->output));
		free(session->files[i]);
	}
	session->file_count = 0;
	return error;
}

/* The command nearly as typed: with single blanks, and quotes where needed. */
static char *join_words(const struct line *line)
{
	size_t size = 1, length = 0;
	char *text;

	for (size_t i = 0; i < line->count; i++)
		size += strlen(line->words[i]) + 3;
	text = malloc(size);
	if (!text)
		return NULL;
	text[0] = '\0';
	for (size_t i = 0; i < line->count; i++) {
		const char *word = line->words[i];
		const char *quote = strpbrk(word, " \t") ? "\"" : "";

		length += (size_t)snprintf(text + length, size - length, "%s%s%s%s", i ? " " : "",
					   quote, word, quote);
	}
	return text;
}

/* A format that is for another command has nothing to say. */
static bool is_for(const struct report_format *format, const char *command)
{
	return !format->command || strcmp(format->command, command) == 0;
}

static struct error *open_next(struct reports *reports, const struct report_format *format,
			       FILE *stream, bool colour)
{
	struct report *report = &reports->list[reports->count];

	TRY(report_open(format, stream, colour, report));
	report->subject = &reports->subject;
	report->choice = &reports->choice;
	report->tags = reports->tags.report.count ? &reports->tags.report : NULL;
	report->no_content = reports->no_content;
	report->shows_kept = reports->shows_kept;
	report->quiet = reports->quiet;
	report->chap = reports->chap;
	report->with_kinds = reports->with_kinds;
	report->most_rows = reports->most_rows;
	report->width = reports->count ? 0 : reports->width;
	report->block_bars = report->width > 0 && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	if (reports->count > 0)
		reports->list[reports->count - 1].next = report;
	reports->count++;
	return NULL;
}

struct error *reports_open(struct reports *reports, struct session *session,
			   const struct report_format *format, const char *command,
			   const struct line *line, FILE *stream, bool colour)
{
	struct error *error;

	*reports = (struct reports){ .command = join_words(line),
				     .no_content = session->no_content,
				     .shows_kept = session->shows_kept,
				     .quiet = session->quiet,
				     .chap = session->chap,
				     .with_kinds = session->with_kinds,
				     .most_rows = session->most_rows,
				     .width = session->chap || !session->output
						      ? 0
						      : output_width(session->output) };
	TRY_MEMORY(reports->command);
	reports->subject.command = reports->command;
	if (session->analysis) {
		reports->subject.core = session->subject ? session->subject
							 : analysis_image(session->analysis)->path;
		reports->subject.findings = analysis_findings(session->analysis);
	}
	reports->choice.wanted = session->table;
	error = session->tags ? tags_find(session->tags, session->analysis, reports->subject.core,
					  &reports->tags)
			      : NULL;
	if (!error && is_for(format, command))
		error = open_next(reports, format, stream, colour);
	else if (!error)
		error = error_create(ERROR_USAGE, "the format '%s' is for '%s' only", format->name,
				     format->command);
	for (size_t i = 0; !error && i < session->file_count; i++)
		if (is_for(session->files[i]->format, command))
			error = open_next(reports, session->files[i]->format,
					  session->files[i]->output.stream, false);
	if (!error)
		return NULL;
	error_destroy(reports_close(reports));
	return error;
}

/* Names of tables with commas between, to be freed. */
static char *list_tables(const struct table_choice *choice, bool only_left_out)
{
	char *text = NULL;

	for (size_t i = 0; i < choice->name_count; i++) {
		const char *name = choice->names[i];
		char *longer;

		if (only_left_out && (strncmp(name, "total", 5) == 0 ||
				      (choice->main && strcmp(name, choice->main) == 0)))
			continue;
		longer = text ? format_text("%s, '%s'", text, name) : format_text("'%s'", name);
		free(text);
		text = longer;
		if (!text)
			return NULL;
	}
	return text;
}

char *reports_left_out(const struct reports *reports)
{
	if (reports->choice.differs)
		return format_text("others that are called '%s', with other columns",
				   reports->choice.wanted);
	for (size_t i = 0; i < reports->count; i++)
		if (reports->list[i].format->one_table && !reports->choice.wanted)
			return list_tables(&reports->choice, true);
	return NULL;
}

static struct error *check_choice(const struct table_choice *choice)
{
	_cleanup_(free) char *text = NULL;

	if (!choice->wanted || choice->found || !choice->name_count)
		return NULL;
	text = list_tables(choice, false);
	TRY_MEMORY(text);
	return error_create(ERROR_USAGE, "there is no table '%s' here, but: %s", choice->wanted,
			    text);
}

struct error *reports_close(struct reports *reports)
{
	struct error *error = reports->count ? check_choice(&reports->choice) : NULL;

	for (size_t i = 0; i < reports->count; i++)
		error = error_first(error, report_close(&reports->list[i]));
	free(reports->command);
	return error;
}
