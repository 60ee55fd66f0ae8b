#include "analyzer/report/json.h"

#include "analyzer/report/plain.h"

#include <ctype.h>

static void write_unit(struct writer *writer, unsigned int unit)
{
	char buffer[8];

	snprintf(buffer, sizeof(buffer), "\\u%04x", unit & 0xffff);
	writer_bytes(writer, buffer, 6);
}

/* A character of several bytes, which are known to be right; the unsafe ones all fit one unit. */
static void write_unsafe(struct writer *writer, const char *text, size_t size)
{
	const unsigned char *bytes = (const unsigned char *)text;
	uint32_t character = bytes[0] & (0xff >> (size + 1));

	for (size_t i = 1; i < size; i++)
		character = character << 6 | (bytes[i] & 0x3f);
	write_unit(writer, character);
}

/* The escaped form tells what is harmless, and what is no UTF-8 at all. */
static size_t write_character(struct writer *writer, const char *text, size_t size)
{
	char buffer[ESCAPED_SIZE];
	size_t length;
	size_t taken = escape_character(text, size, buffer, &length);

	if (text[0] == '"' || text[0] == '\\') {
		writer_put(writer, '\\');
		writer_put(writer, text[0]);
	} else if (length == taken) {
		writer_bytes(writer, buffer, length);
	} else if (taken > 1) {
		write_unsafe(writer, text, taken);
	} else if ((unsigned char)text[0] < 0x80) {
		write_unit(writer, (unsigned char)text[0]);
	} else {
		writer_put(writer, '\\');
		writer_bytes(writer, buffer, length);
	}
	return taken;
}

void json_text(struct writer *writer, const char *text)
{
	size_t size = strlen(text);

	writer_put(writer, '"');
	while (size) {
		size_t taken = write_character(writer, text, size);

		text += taken;
		size -= taken;
	}
	writer_put(writer, '"');
}

void json_uri(struct writer *writer, const char *path)
{
	writer_put(writer, '"');
	if (path[0] == '/')
		writer_bytes(writer, "file://", 7);
	for (; *path; path++) {
		unsigned char byte = (unsigned char)*path;
		char buffer[4];

		if (isalnum(byte) || strchr("/-._~", byte)) {
			writer_put(writer, *path);
			continue;
		}
		snprintf(buffer, sizeof(buffer), "%%%02X", byte);
		writer_bytes(writer, buffer, 3);
	}
	writer_put(writer, '"');
}

void json_key(struct writer *writer, const char *name)
{
	writer_put(writer, '"');
	for (; *name; name++)
		writer_put(writer, (char)(*name == ' ' ? '_' : *name));
	writer_bytes(writer, "\":", 2);
}

void json_truth(struct writer *writer, bool truth)
{
	writer_bytes(writer, truth ? "true" : "false", truth ? 4 : 5);
}

void json_finding(struct writer *writer, const struct finding *finding)
{
	json_key(writer, "incomplete");
	json_truth(writer, finding->weight == FINDING_INCOMPLETE);
	writer_put(writer, ',');
	json_key(writer, "message");
	json_text(writer, finding->message);
}

void json_value(struct writer *writer, enum value_kind kind, const struct value *value)
{
	bool quoted = kind == VALUE_ADDRESS || kind == VALUE_MEMORY;

	if (!value->present) {
		writer_bytes(writer, "null", 4);
		return;
	}
	if (quoted)
		writer_put(writer, '"');
	plain_value(writer, kind, value, json_text);
	if (quoted)
		writer_put(writer, '"');
}
