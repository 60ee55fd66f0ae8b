/*
 * Records of allocations, one JSON object a line, as alys' notebooks read them:
 *
 *	{"id":0,"time":0,"kind":"alloc","addr":93824992,"size":40,"stack":[{"ip":93824772,
 *	 "file":"/src/conn.c","line":5,"name":"conn_new"}]}
 *
 * The stack is the recorder's (gate/callers.h), the innermost call first, or empty. Nothing
 * records times: they are 0.
 */
#include "analyzer/base/list.h"
#include "analyzer/export/export.h"
#include "analyzer/gate/callers.h"
#include "analyzer/report/values.h"

#include <string.h>

/* The JSON of a stack. */
struct written {
	uint64_t stack;
	char *text; /* owned */
};

struct written_table {
	HASH_TABLE(struct written);
};

static void write_call(struct writer *writer, const struct frame *frame)
{
	/* "FILE:LINE" */
	const char *line = frame->source ? strrchr(frame->source, ':') : NULL;
	_cleanup_(free) char *file =
		line ? strndup(frame->source, (size_t)(line - frame->source)) : NULL;

	writer_text(writer, "{\"ip\":");
	writer_decimal(writer, frame->address);
	if (file) {
		writer_text(writer, ",\"file\":");
		json_text(writer, file);
		writer_text(writer, ",\"line\":");
		writer_text(writer, line + 1);
	}
	if (frame->function) {
		writer_text(writer, ",\"name\":");
		json_text(writer, frame->function);
	}
	writer_put(writer, '}');
}

static struct error *write_stack(const struct callers *callers, uint64_t stack, char **ret)
{
	struct writer text = { 0 };
	struct backtrace calls = { 0 };

	TRY(callers_calls(callers, stack, &calls));
	list_for_each(frame, calls.frames, calls.count) {
		if (frame != calls.frames)
			writer_put(&text, ',');
		write_call(&text, frame);
	}
	writer_put(&text, '\0');
	free(calls.frames);
	*ret = text.failed ? NULL : take(text.buffer);
	writer_deinit(&text);
	return *ret ? NULL : &error_no_memory;
}

/* The text stays the table's. */
static struct error *find_text(struct written_table *known, const struct callers *callers,
			       uint64_t stack, const char **ret)
{
	const struct written *one = table_find(known, stack, item, item->stack == stack);
	struct written added = { .stack = stack };

	*ret = one ? one->text : "";
	if (one || stack == 0)
		return NULL;
	TRY(write_stack(callers, stack, &added.text));
	*ret = added.text;
	return table_append(known, stack, added);
}

static void write_record(struct writer *writer, uint64_t id, struct memory_range range,
			 const char *stack)
{
	writer_text(writer, "{\"id\":");
	writer_decimal(writer, id);
	writer_text(writer, ",\"time\":0,\"kind\":\"alloc\",\"addr\":");
	writer_decimal(writer, range.start);
	writer_text(writer, ",\"size\":");
	writer_decimal(writer, range.end - range.start);
	writer_text(writer, ",\"stack\":[");
	writer_text(writer, stack);
	writer_text(writer, "]}\n");
}

static struct error *write_records(const struct export *export, struct callers *callers,
				   struct written_table *known, struct writer *writer)
{
	const struct allocation_index *index = analysis_index(export->analysis);
	struct progress *progress = analysis_progress(export->analysis);
	uint64_t reported = 0;
	size_t hint = 0;

	progress_begin(progress, "writing allocations", export->members->count);
	bitmap_for_each(id, export->members) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);
		const char *text;

		TRY(progress_check_at(progress, id, &reported));
		TRY(find_text(known, callers, callers_of(callers, range.start), &text));
		write_record(writer, id, range, text);
	}
	return NULL;
}

static struct error *alys_write(const struct export *export, struct writer *writer)
{
	struct memory_account *account = analysis_account(export->analysis);
	_cleanup_(table_release) struct written_table known = {
		.memory.account = account,
		.slots.memory.account = account,
	};
	_cleanup_(callers_deinit) struct callers callers = { 0 };
	struct error *error;

	TRY(callers_find(export->analysis, &callers));
	error = write_records(export, &callers, &known, writer);
	array_for_each(one, &known)
		free(one->text);
	return error;
}

const struct export_format export_format_alys = {
	.name = "alys",
	.summary = "a JSON object for each allocation, with the stack that the recorder noted",
	.lists_members = true,
	.write = alys_write,
};
