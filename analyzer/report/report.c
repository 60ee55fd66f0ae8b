#include "analyzer/report/report.h"

#include "analyzer/base/text.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static const char *format_name(const void *data, size_t number)
{
	return report_formats[number] ? report_formats[number]->name : NULL;
}

struct error *report_format_find(const char *name, const struct report_format **ret)
{
	for (size_t i = 0; report_formats[i]; i++) {
		if (strcmp(report_formats[i]->name, name) == 0) {
			*ret = report_formats[i];
			return NULL;
		}
	}
	return error_unknown("format", name, nearest_word(name, format_name, NULL));
}

struct error *report_open(const struct report_format *format, FILE *out, bool colour,
			  struct report *ret)
{
	struct report report = { .format = format, .out = out, .colour = colour };

	TRY(writer_init(&report.writer, out));
	if (format->state_size)
		report.state = calloc(1, format->state_size);
	if (format->state_size && !report.state) {
		writer_deinit(&report.writer);
		return &error_no_memory;
	}
	*ret = report;
	return NULL;
}

/* Write the end of the table, and what the writer still keeps. */
static void end_table(struct report *report)
{
	if (report->format->end_table && !report->skipping)
		report->format->end_table(report);
	writer_flush(&report->writer);
	report->table = NULL;
	report->written |= !report->skipping;
}

struct error *report_close(struct report *report)
{
	struct error *error;

	/* The command was interrupted between two rows, or within one. */
	if (report->table)
		end_table(report);
	if (report->format->close)
		report->format->close(report);
	free(report->state);
	if (report->writer.failed && !report->error)
		report->error = &error_no_memory;
	writer_deinit(&report->writer);
	error = report->error;
	errno = 0;
	if ((fflush(report->out) != 0 || ferror(report->out)) && !error) {
		if (errno == 0)
			errno = EIO;
		error = error_system("output");
	}
	*report = (struct report){ 0 };
	return error;
}

bool report_is_brief(const struct report *report)
{
	return !report->chap && !report->next && strcmp(report->format->name, "text") == 0;
}

bool report_broken(const struct report *report)
{
	return report->error || ferror_unlocked(report->out);
}

bool table_has_name(const char *table, const char *wanted)
{
	while (*table && (*table == *wanted || (*table == ' ' && strchr("_-", *wanted)))) {
		table++;
		wanted++;
	}
	return !*table && !*wanted;
}

static void remember_table(struct table_choice *choice, const char *name)
{
	if (!choice->main && !choice->aside)
		choice->main = name;
	choice->found |= choice->wanted && table_has_name(name, choice->wanted);
	for (size_t i = 0; i < choice->name_count; i++)
		if (strcmp(choice->names[i], name) == 0)
			return;
	if (choice->name_count < MOST_TABLE_NAMES)
		choice->names[choice->name_count++] = name;
}

static bool is_left_out(const struct report *report, const char *name)
{
	const struct table_choice *choice = report->choice;

	if (!choice)
		return false;
	if (choice->wanted)
		return !table_has_name(name, choice->wanted);
	return report->format->one_table && !(choice->main && strcmp(choice->main, name) == 0);
}

void report_begin_table(struct report *report, const struct table *table)
{
	assert(!report->table);
	if (report->choice)
		remember_table(report->choice, table->name);
	for (; report; report = report->next) {
		report->skipping = is_left_out(report, table->name);
		report->table = table;
		report->column = 0;
		report->row = 0;
		if (report->format->begin_table && !report->skipping)
			report->format->begin_table(report);
	}
}

/* True if the value is of the column's kind, or a zero. */
static bool fits(enum value_kind kind, const struct value *value)
{
	bool real = kind == VALUE_SECONDS || kind == VALUE_SHARE;

	if (kind == VALUE_ANY)
		return !value->memory;
	return (kind == VALUE_TEXT) == (value->text != NULL) && (real || value->real == 0) &&
	       (value->number == 0 || !(real || kind == VALUE_MEMORY));
}

static void keep_value(struct report *report, size_t number, struct value value)
{
	assert(!value.present || fits(report->table->columns[number].kind, &value));
	if (value.memory) {
		report->memory = *value.memory;
		report->memory.blank = report->chap;
		report->memory.room = report->width;
		value.memory = report->no_content && !report->shows_kept ? NULL : &report->memory;
	}
	report->values[number] = value;
}

void report_values(struct report *report, const struct value *values, size_t count)
{
	assert(report->table && count <= report->table->column_count - report->column);
	for (size_t i = 0; i < count; i++)
		keep_value(report, report->column++, values[i]);
}

static size_t find_column(const struct table *table, const char *name)
{
	size_t i = 0;

	while (i < table->column_count && strcmp(table->columns[i].name, name) != 0)
		i++;
	return i;
}

void report_set_value(struct report *report, const char *column, struct value value)
{
	size_t count = report->table->column_count, number = find_column(report->table, column);

	assert(number < count);
	while (report->column < count)
		report->values[report->column++] = ABSENT;
	keep_value(report, number, value);
}

const uint8_t *memory_view_run(const struct memory_view *view, uint64_t done, uint64_t *ret_run)
{
	uint64_t left = view->size - done, absent = 0, size;
	const uint8_t *bytes = view->bytes(view->source, view->address + done, &size);

	if (bytes) {
		*ret_run = size < left ? size : left;
		return bytes;
	}
	while (!bytes && size > 0 && absent < left) {
		absent += size < left - absent ? size : left - absent;
		if (absent < left)
			bytes = view->bytes(view->source, view->address + done + absent, &size);
	}
	*ret_run = absent;
	return NULL;
}

const char report_left_out[] = "(content left out)";

const char *report_content(const struct report *report, const char *text)
{
	return text && report->no_content ? report_left_out : text;
}

void report_end_row(struct report *report)
{
	assert(report->table && report->column == report->table->column_count);
	for (size_t i = 0; report->tags && i < report->tags->count; i++)
		report->values[report->column + i] = report->tags->values[i];
	report->column = 0;
	if (report->most_rows && report->row == report->most_rows) {
		report->left_out++;
		return;
	}
	for (struct report *each = report; each; each = each->next) {
		if (each->skipping)
			continue;
		each->format->row(each, report->values);
		each->row++;
	}
}

void report_end_table(struct report *report)
{
	uint64_t left_out = report->left_out;

	assert(report->table && report->column == 0);
	for (struct report *each = report; each; each = each->next)
		end_table(each);
	report->left_out = 0;
	if (left_out)
		report_say_left_out(report, left_out, "rows");
}

void report_cut_table(struct report *report)
{
	report->left_out = 0;
	for (; report; report = report->next)
		if (report->table)
			end_table(report);
}

void report_say_left_out(struct report *report, uint64_t count, const char *noun)
{
	static const struct table table = TABLE(
		"left out", "... and {count} more {what|count}{how}.", { "count", VALUE_COUNT },
		{ "what", VALUE_TEXT }, { "how", VALUE_TEXT, .reader = FOR_PEOPLE });

	report_single(report, &table, count, noun, report->shortened ? " (--all)" : " not shown");
}

size_t report_column_count(const struct report *report)
{
	return report->table->column_count + (report->tags ? report->tags->count : 0);
}

enum value_kind report_kind(const struct report *report, size_t number)
{
	size_t count = report->table->column_count;

	return number < count ? report->table->columns[number].kind
			      : report->tags->columns[number - count].kind;
}

/* Keys have _ for blanks: a column "build id" takes that name, too. */
static bool is_taken(const struct table *table, const char *name)
{
	for (size_t i = 0; i < table->column_count; i++)
		if (strcmp(table->columns[i].name, name) == 0 ||
		    table_has_name(table->columns[i].name, name))
			return true;
	return false;
}

const struct column *report_column(const struct report *report, size_t number,
				   char ret_name[static COLUMN_NAME_SIZE])
{
	size_t count = report->table->column_count;
	const struct column *column = number < count ? &report->table->columns[number]
						     : &report->tags->columns[number - count];
	bool is_second = number >= count && is_taken(report->table, column->name);

	snprintf(ret_name, COLUMN_NAME_SIZE, "%s%s", column->name, is_second ? "_2" : "");
	return column;
}

static struct value find_value(const struct report *report, const struct value *values,
			       const char *column)
{
	size_t number = find_column(report->table, column);

	return number < report->table->column_count ? values[number] : ABSENT;
}

const char *report_text_of(const struct report *report, const struct value *values,
			   const char *column)
{
	const char *text = find_value(report, values, column).text;

	return text ? text : "";
}

uint64_t report_number_of(const struct report *report, const struct value *values,
			  const char *column)
{
	return find_value(report, values, column).number;
}
