#include "analyzer/report/plain.h"

struct error *plain_open(struct report *report)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	struct error *error;

	if (!writer)
		return &error_no_memory;
	error = writer_init(writer, report->out);
	if (error) {
		free(writer);
		return error;
	}
	report->state = writer;
	return NULL;
}

void plain_close(struct report *report)
{
	struct writer *writer = report->state;

	writer_deinit(writer);
	free(writer);
}

void plain_end_table(struct report *report)
{
	writer_flush(report->state);
}

static void write_byte(struct writer *writer, uint8_t byte)
{
	static const char digits[] = "0123456789abcdef";

	writer_put(writer, digits[byte >> 4]);
	writer_put(writer, digits[byte & 15]);
}

void plain_contents(struct writer *writer, const struct memory_view *view)
{
	static const char text[] = " bytes that are not in the dump)";

	for (uint64_t done = 0, run; done < view->size; done += run) {
		const uint8_t *bytes = memory_view_run(view, done, &run);

		if (run == 0 || ferror(writer->out))
			return;
		for (uint64_t i = 0; bytes && i < run; i++)
			write_byte(writer, bytes[i]);
		if (bytes)
			continue;
		/* In a small core, these may be 2^63. */
		writer_put(writer, '(');
		writer_decimal(writer, run);
		writer_bytes(writer, text, sizeof(text) - 1);
	}
}

void plain_value(struct writer *writer, enum value_kind kind, const struct value *value,
		 void (*write_text)(struct writer *writer, const char *text))
{
	char buffer[NUMBER_SIZE];

	switch (kind) {
	case VALUE_COUNT:
	case VALUE_NUMBER:
	case VALUE_BYTES:
		writer_decimal(writer, value->number);
		break;
	case VALUE_CHANGE:
		if ((int64_t)value->number < 0)
			writer_put(writer, '-');
		writer_decimal(writer, (int64_t)value->number < 0 ? -value->number : value->number);
		break;
	case VALUE_ADDRESS:
		writer_bytes(writer, "0x", 2);
		writer_hexadecimal(writer, value->number);
		break;
	case VALUE_SECONDS:
	case VALUE_SHARE:
		snprintf(buffer, sizeof(buffer), "%.6f", value->real);
		writer_bytes(writer, buffer, strlen(buffer));
		break;
	case VALUE_TEXT:
		write_text(writer, value->text);
		break;
	case VALUE_MEMORY:
		if (value->memory)
			plain_contents(writer, value->memory);
		else
			writer_escaped(writer, report_left_out);
	}
}
