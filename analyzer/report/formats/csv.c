/*
 * Comma-separated values as RFC 4180 has them, for spreadsheets and scripts.
 *
 * Each table begins with a record of the names of its columns, the first being
 * "row". A record of a row begins with the name of what it is, so that the
 * tables of one command can be told apart. Addresses are hexadecimal with 0x,
 * all else is decimal; what is absent is empty. Control characters in the
 * dump's text are escaped here as well, so that no record ends within a value.
 */

#include "analyzer/report/report.h"
#include "analyzer/report/writer.h"

struct csv_state {
	struct writer writer;
};

static struct error *csv_open(struct report *report)
{
	struct csv_state *state = calloc(1, sizeof(*state));
	struct error *error;

	if (!state)
		return &error_no_memory;
	error = writer_init(&state->writer, report->out);
	if (error) {
		free(state);
		return error;
	}
	report->state = state;
	return NULL;
}

static void csv_close(struct report *report)
{
	struct csv_state *state = report->state;

	writer_deinit(&state->writer);
	free(state);
}

static void end_record(struct writer *writer)
{
	writer_bytes(writer, "\r\n", 2);
}

static void write_text(struct writer *writer, const char *text)
{
	bool quoted = text[strcspn(text, ",\"")] != '\0';
	size_t size = strlen(text), length;
	char buffer[ESCAPED_SIZE];

	if (quoted)
		writer_put(writer, '"');
	while (size) {
		size_t taken = escape_character(text, size, buffer, &length);

		if (buffer[0] == '"')
			writer_put(writer, '"');
		writer_bytes(writer, buffer, length);
		text += taken;
		size -= taken;
	}
	if (quoted)
		writer_put(writer, '"');
}

static void csv_begin_table(struct report *report)
{
	struct csv_state *state = report->state;

	writer_bytes(&state->writer, "row", 3);
	for (size_t i = 0; i < report->table->column_count; i++) {
		writer_put(&state->writer, ',');
		write_text(&state->writer, report->table->columns[i].name);
	}
	end_record(&state->writer);
}

/* As bytes in hexadecimal, "??" for each that is absent. */
static void write_memory(struct writer *writer, const struct memory_view *view)
{
	for (uint64_t done = 0, run; done < view->size; done += run) {
		const uint8_t *bytes =
			view->bytes(view->source, view->address + done, &run);

		if (run == 0 || ferror(writer->out))
			return;
		if (run > view->size - done)
			run = view->size - done;
		for (uint64_t i = 0; i < run; i++) {
			uint8_t byte = bytes ? bytes[i] : 0;

			writer_put(writer,
				   bytes ? "0123456789abcdef"[byte >> 4] : '?');
			writer_put(writer,
				   bytes ? "0123456789abcdef"[byte & 15] : '?');
		}
	}
}

static void csv_value(struct report *report, const struct value *value)
{
	struct csv_state *state = report->state;
	struct writer *writer = &state->writer;
	char buffer[NUMBER_SIZE];

	if (report->column == 0)
		write_text(writer, report->table->name);
	writer_put(writer, ',');
	if (value->absent)
		return;
	switch (report->table->columns[report->column].kind) {
	case VALUE_COUNT:
	case VALUE_NUMBER:
	case VALUE_BYTES:
		writer_decimal(writer, value->number);
		break;
	case VALUE_ADDRESS:
		writer_bytes(writer, "0x", 2);
		writer_hexadecimal(writer, value->number);
		break;
	case VALUE_SECONDS:
		snprintf(buffer, sizeof(buffer), "%.6f", value->real);
		writer_bytes(writer, buffer, strlen(buffer));
		break;
	case VALUE_TEXT:
		write_text(writer, value->text);
		break;
	case VALUE_MEMORY:
		write_memory(writer, value->memory);
	}
}

static void csv_end_row(struct report *report)
{
	struct csv_state *state = report->state;

	end_record(&state->writer);
}

static void csv_end_table(struct report *report)
{
	struct csv_state *state = report->state;

	writer_flush(&state->writer);
}

const struct report_format report_format_csv = {
	.name = "csv",
	.summary = "comma-separated values, one table after another",
	.open = csv_open,
	.begin_table = csv_begin_table,
	.value = csv_value,
	.end_row = csv_end_row,
	.end_table = csv_end_table,
	.close = csv_close,
};
