/*
 * Text for people: the sentence of a table for each row, or else aligned columns under their names.
 *
 * Columns are as wide as the widest of the first BUFFERED_ROWS rows; what is wider further down
 * sticks out. So a table takes the same memory however long it is. Numbers stand to the right,
 * addresses and text to the left. On a terminal, all fits its width; see fit.h.
 */

#include "analyzer/report/fit.h"
#include "analyzer/report/sentence.h"
#include "analyzer/report/values.h"

enum { BUFFERED_ROWS = 256, BAR_WIDTH = 16, NARROW_BAR_WIDTH = 8, DEPTH_WIDTH = 2 };

/* A value as text, in the cells' buffer. */
struct cell {
	size_t start, length; /* bytes */
	size_t width;	      /* characters */
	const char *colour;   /* or NULL */
};

struct text_state {
	/*
	 * The table of the sentence below. Compare its text, too: tables on the stack may have the
	 * address of an earlier one.
	 */
	const struct table *compiled;
	const char *compiled_sentence;
	struct sentence sentence;

	struct writer text; /* of all cells that are kept, or of a row's sentence */

	/* For a table without a sentence. */
	struct cell cells[BUFFERED_ROWS][MAXIMUM_COLUMNS];
	size_t rows;				       /* that are kept */
	struct fitted_column columns[MAXIMUM_COLUMNS]; /* once their widths are known */
	bool stacked;				       /* their names are */
	bool streaming;				       /* they are known */
};

static void text_begin_table(struct report *report)
{
	struct text_state *state = report->state;

	state->rows = 0;
	state->streaming = false;
	state->text.used = 0;
	if (report->table->sentence && (state->compiled != report->table ||
					state->compiled_sentence != report->table->sentence)) {
		sentence_compile(report->table, &state->sentence);
		state->compiled = report->table;
		state->compiled_sentence = report->table->sentence;
	}
}

/* The share of whole, rounded, and whole at most. */
static unsigned int round_share(double share, unsigned int whole)
{
	double amount = share > 0 ? share * whole + 0.5 : 0;

	return amount < whole ? (unsigned int)amount : whole;
}

/* In eighths of a block, one at least if it is not nothing. */
static void write_blocks(struct writer *writer, double share)
{
	static const char *const parts[] = { "",       "\u258f", "\u258e", "\u258d",
					     "\u258c", "\u258b", "\u258a", "\u2589" };
	unsigned int length = round_share(share, 8 * NARROW_BAR_WIDTH);

	length += length == 0 && share > 0;
	for (unsigned int i = 0; i < length / 8; i++)
		writer_text(writer, "\u2588");
	writer_text(writer, parts[length % 8]);
}

/*
 * A bar as wide as that for the whole: ':' is half a '#'. What is too small for that is a '.', as
 * long as it is not nothing.
 */
static void write_bar(struct writer *writer, double share, unsigned int width)
{
	unsigned int length = round_share(share, 2 * width);

	for (unsigned int i = 0; i < length / 2; i++)
		writer_put(writer, '#');
	if (length % 2)
		writer_put(writer, ':');
	if (length == 0 && share > 0)
		writer_put(writer, '.');
}

static void write_cell(const struct report *report, struct writer *writer, enum value_kind kind,
		       const struct value *value)
{
	if (!value->present || kind == VALUE_MEMORY) {
		writer_put(writer, '-');
		return;
	}
	if (kind == VALUE_SHARE) {
		if (report->block_bars)
			write_blocks(writer, value->real);
		else
			write_bar(writer, value->real,
				  report->width ? NARROW_BAR_WIDTH : BAR_WIDTH);
		return;
	}
	if (kind == VALUE_ADDRESS)
		writer_text(writer, "0x");
	value_write(writer, kind, kind == VALUE_BYTES || kind == VALUE_COUNT, value);
}

static void keep_row(const struct report *report, const struct value *values)
{
	struct text_state *state = report->state;
	const struct table *table = report->table;
	size_t indent = 0;

	for (size_t i = 0; i < table->column_count; i++) {
		struct cell *cell = &state->cells[state->rows][i];

		cell->start = state->text.used;
		if (table->columns[i].kind == VALUE_DEPTH)
			indent = DEPTH_WIDTH * (size_t)values[i].number;
		else if (i + 1 == table->column_count)
			writer_pad(&state->text, indent);
		write_cell(report, &state->text, table->columns[i].kind, &values[i]);
		cell->length = state->text.used - cell->start;
		cell->colour = report->colour ? value_colour(&table->columns[i], &values[i]) : NULL;
		cell->width = text_width(state->text.buffer + cell->start, cell->length);
	}
	state->rows++;
}

static bool stands_left(enum value_kind kind)
{
	return kind == VALUE_TEXT || kind == VALUE_ADDRESS || kind == VALUE_SHARE ||
	       kind == VALUE_ANY;
}

static bool is_last(const struct report *report, size_t column)
{
	return column + 1 == report->table->column_count;
}

/* Text in the last column may take several lines. */
static void write_last(struct report *report, const char *text, size_t length, size_t column)
{
	const struct text_state *state = report->state;
	struct fitting fitting = { .shortened = true };

	fitting.first = fitting.width = state->columns[column].width;
	for (size_t i = 0; i < column; i++)
		if (!state->columns[i].hidden)
			fitting.indent += state->columns[i].width + COLUMN_GAP;
	fit_line(&report->writer, text, length, &fitting);
}

static void write_aligned(struct report *report, size_t column, const char *text, size_t length,
			  const char *colour)
{
	const struct text_state *state = report->state;
	const struct fitted_column *shape = &state->columns[column];
	struct writer *writer = &report->writer;
	size_t width = text_width(text, length);
	size_t blanks = width < shape->width ? shape->width - width : 0;
	bool left = stands_left(shape->kind), last = is_last(report, column);

	if ((last && length == 0) || shape->hidden)
		return;
	if (column > 0)
		writer_pad(writer, COLUMN_GAP);
	if (!left)
		writer_pad(writer, blanks);
	writer_text(writer, colour ? colour : "");
	if (report->width && last && width > shape->width)
		write_last(report, text, length, column);
	else
		writer_bytes(writer, text, length);
	writer_text(writer, colour ? COLOUR_END : "");
	/* Nothing is padded at the end of a line. */
	if (left && !last)
		writer_pad(writer, blanks);
}

/* Without the blanks in front of columns that are hidden, or have no name in this line. */
static void end_line(struct report *report, const char *end)
{
	struct writer *writer = &report->writer;

	while (report->width && writer->used && writer->buffer[writer->used - 1] == ' ')
		writer->used--;
	writer_text(writer, end);
	writer_put(writer, '\n');
}

/* How many lines the names take: one, or one for each word. */
static size_t count_header_lines(const struct report *report)
{
	const struct text_state *state = report->state;
	size_t most = 1;

	for (size_t i = 0; state->stacked && i < report->table->column_count; i++) {
		size_t words = 1;

		for (const char *at = state->columns[i].name; *at; at++)
			words += *at == ' ';
		if (!state->columns[i].hidden && words > most)
			most = words;
	}
	return most;
}

/* The part of a column's name that stands in that line of count, the last word in the last one. */
static const char *name_part(const char *name, size_t line, size_t count, size_t *ret_length)
{
	size_t words = 1;

	for (const char *at = name; *at; at++)
		words += *at == ' ';
	for (size_t skipped = count - words; line > skipped; skipped++)
		name += strcspn(name, " ") + 1;
	*ret_length = line < count - words ? 0 : strcspn(name, " ");
	return name;
}

static void write_header(struct report *report)
{
	const struct text_state *state = report->state;
	size_t count = count_header_lines(report);

	for (size_t line = 0; line < count; line++) {
		writer_text(&report->writer, report->colour ? "\033[1m" : "");
		for (size_t i = 0; i < report->table->column_count; i++) {
			const char *name = column_heading(&report->table->columns[i]);
			size_t length = strlen(name);

			if (state->stacked && !state->columns[i].hidden)
				name = name_part(name, line, count, &length);
			write_aligned(report, i, name, length, NULL);
		}
		end_line(report, report->colour ? "\033[0m" : "");
	}
}

static void find_widths(struct report *report)
{
	struct text_state *state = report->state;
	const struct table *table = report->table;

	for (size_t i = 0; i < table->column_count; i++) {
		struct fitted_column column = {
			.name = column_heading(&table->columns[i]),
			.kind = table->columns[i].kind,
			.minor = table->columns[i].minor,
			.hidden = table->columns[i].kind == VALUE_DEPTH ||
				  table->columns[i].reader == FOR_PROGRAMS,
		};

		for (size_t row = 0; row < state->rows; row++) {
			const struct cell *cell = &state->cells[row][i];
			size_t word = widest_word(state->text.buffer + cell->start, cell->length);

			column.content = MAX(cell->width, column.content);
			column.word = word > column.word ? word : column.word;
		}
		state->columns[i] = column;
	}
	state->stacked = fit_columns(state->columns, table->column_count, report->width);
}

/* Write the rows that are kept, the header before the first of all. */
static void write_rows(struct report *report)
{
	struct text_state *state = report->state;

	if (!state->streaming && state->rows) {
		find_widths(report);
		write_header(report);
		state->streaming = true;
	}
	for (size_t row = 0; row < state->rows; row++) {
		for (size_t i = 0; i < report->table->column_count; i++) {
			const struct cell *cell = &state->cells[row][i];

			write_aligned(report, i, state->text.buffer + cell->start, cell->length,
				      cell->colour);
		}
		end_line(report, "");
	}
	state->rows = 0;
	state->text.used = 0;
}

/* Name the columns that a terminal has no room for. */
static void text_end_table(struct report *report)
{
	const struct text_state *state = report->state;
	struct writer line = { 0 };

	write_rows(report);
	for (size_t i = 0; state->streaming && i < report->table->column_count; i++)
		if (state->columns[i].hidden && state->columns[i].kind != VALUE_DEPTH &&
		    report->table->columns[i].reader != FOR_PROGRAMS)
			writer_format(&line, writer_text, "%s %s",
				      line.used ? "," : "(left out here:", state->columns[i].name);
	if (line.used) {
		writer_text(&line, "; a wider terminal, or a pipe, has all columns)");
		fit_lines(&report->writer, line.buffer, line.used, report->width);
	}
	report->writer.failed |= line.failed;
	writer_deinit(&line);
}

static void text_row(struct report *report, const struct value *values)
{
	struct text_state *state = report->state;
	const struct sentence_style style = { report->chap, report->width > 0, report->colour };

	if (report->table->sentence && !report->width) {
		sentence_write(&state->sentence, &report->writer, values, style);
		return;
	}
	if (report->table->sentence) {
		sentence_write(&state->sentence, &state->text, values, style);
		fit_lines(&report->writer, state->text.buffer, state->text.used, report->width);
		state->text.used = 0;
		return;
	}
	keep_row(report, values);
	if (state->streaming || state->rows == BUFFERED_ROWS)
		write_rows(report);
}

static void text_close(struct report *report)
{
	struct text_state *state = report->state;

	if (state->text.failed && !report->error)
		report->error = &error_no_memory;
	writer_deinit(&state->text);
}

const struct report_format report_format_text = {
	.name = "text",
	.summary = "sentences and aligned columns, for people",
	.state_size = sizeof(struct text_state),
	.begin_table = text_begin_table,
	.row = text_row,
	.end_table = text_end_table,
	.close = text_close,
};
