/*
 * Text for people: the sentence of a table for each row, or else aligned columns under their names.
 *
 * Columns are as wide as the widest of the first BUFFERED_ROWS rows; what is wider further down
 * sticks out. So a table takes the same memory however long it is. Numbers stand to the right,
 * addresses and text to the left.
 */

#include "analyzer/report/sentence.h"
#include "analyzer/report/values.h"

enum { BUFFERED_ROWS = 256, BAR_WIDTH = 16 };

/* A value as text, in the cells' buffer. */
struct cell {
	size_t start, length; /* bytes */
	size_t width;	      /* characters */
};

struct text_state {
	/* Whose sentence is that below. Tables on the stack may be made where one was before. */
	const struct table *compiled;
	const char *compiled_sentence;
	struct sentence sentence;

	/* Of a table without a sentence. */
	struct writer text; /* of all cells that are kept */
	struct cell cells[BUFFERED_ROWS][MAXIMUM_COLUMNS];
	size_t rows;			/* that are kept */
	size_t widths[MAXIMUM_COLUMNS]; /* once they are known */
	bool streaming;			/* they are */
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

static size_t count_characters(const char *text, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}

/*
 * A bar of BAR_WIDTH for the whole: ':' is half a '#'. What is too small for that is a '.', as long
 * as it is not nothing.
 */
static void write_bar(struct writer *writer, double share)
{
	double halves = share > 0 ? share * 2 * BAR_WIDTH + 0.5 : 0;
	unsigned int length = halves < 2 * BAR_WIDTH ? (unsigned int)halves : 2 * BAR_WIDTH;

	for (unsigned int i = 0; i < length / 2; i++)
		writer_put(writer, '#');
	if (length % 2)
		writer_put(writer, ':');
	if (length == 0 && share > 0)
		writer_put(writer, '.');
}

static void write_cell(struct writer *writer, enum value_kind kind, const struct value *value)
{
	if (!value->present || kind == VALUE_MEMORY) {
		writer_put(writer, '-');
		return;
	}
	if (kind == VALUE_SHARE) {
		write_bar(writer, value->real);
		return;
	}
	if (kind == VALUE_ADDRESS)
		writer_text(writer, "0x");
	value_write(writer, kind, kind == VALUE_BYTES || kind == VALUE_COUNT, value);
}

static void keep_row(struct text_state *state, const struct table *table,
		     const struct value *values)
{
	for (size_t i = 0; i < table->column_count; i++) {
		struct cell *cell = &state->cells[state->rows][i];

		cell->start = state->text.used;
		write_cell(&state->text, table->columns[i].kind, &values[i]);
		cell->length = state->text.used - cell->start;
		cell->width = count_characters(state->text.buffer + cell->start, cell->length);
	}
	state->rows++;
}

static bool stands_left(enum value_kind kind)
{
	return kind == VALUE_TEXT || kind == VALUE_ADDRESS || kind == VALUE_SHARE;
}

static void write_aligned(struct report *report, size_t column, const char *text, size_t length,
			  size_t width)
{
	const struct text_state *state = report->state;
	struct writer *writer = &report->writer;
	size_t wanted = state->widths[column];
	size_t blanks = width < wanted ? wanted - width : 0;
	bool left = stands_left(report->table->columns[column].kind);
	bool last = column + 1 == report->table->column_count;

	if (last && length == 0)
		return;

	if (column > 0)
		writer_pad(writer, 2);
	if (!left)
		writer_pad(writer, blanks);
	writer_bytes(writer, text, length);
	/* Nothing is padded at the end of a line. */
	if (left && !last)
		writer_pad(writer, blanks);
}

static void write_header(struct report *report)
{
	writer_text(&report->writer, report->colour ? "\033[1m" : "");
	for (size_t i = 0; i < report->table->column_count; i++) {
		const char *name = report->table->columns[i].name;

		write_aligned(report, i, name, strlen(name), strlen(name));
	}
	writer_text(&report->writer, report->colour ? "\033[0m\n" : "\n");
}

static void find_widths(struct text_state *state, const struct table *table)
{
	for (size_t i = 0; i < table->column_count; i++) {
		state->widths[i] = strlen(table->columns[i].name);
		for (size_t row = 0; row < state->rows; row++)
			if (state->cells[row][i].width > state->widths[i])
				state->widths[i] = state->cells[row][i].width;
	}
}

/* Write the rows that are kept, the header before the first of all. */
static void write_rows(struct report *report)
{
	struct text_state *state = report->state;

	if (!state->streaming && state->rows) {
		find_widths(state, report->table);
		write_header(report);
		state->streaming = true;
	}
	for (size_t row = 0; row < state->rows; row++) {
		for (size_t i = 0; i < report->table->column_count; i++) {
			const struct cell *cell = &state->cells[row][i];

			write_aligned(report, i, state->text.buffer + cell->start, cell->length,
				      cell->width);
		}
		writer_put(&report->writer, '\n');
	}
	state->rows = 0;
	state->text.used = 0;
}

static void text_row(struct report *report, const struct value *values)
{
	struct text_state *state = report->state;

	if (report->table->sentence) {
		sentence_write(&state->sentence, &report->writer, values, report->chap);
		return;
	}
	keep_row(state, report->table, values);
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
	.end_table = write_rows,
	.close = text_close,
};
