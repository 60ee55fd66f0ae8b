/*
 * A recording of heaptrack, version 3 of its format, as heaptrack_interpret writes it: numbers are
 * hexadecimal, strings and others are numbered from 1 on.
 *
 *	s b what leaked     a string of 11 bytes
 *	i 2 0 1             an instruction pointer; module; function
 *	t 1 0               a trace: its instruction pointer, and the trace of its caller
 *	a 68 1              an allocation: its size and trace
 *	+ 0                 another one of these (numbered from 0 on)
 *
 * Each frame is an instruction pointer and a trace, whose caller is what holds it. All that is in
 * use is what heaptrack calls leaked.
 */
#include "analyzer/export/export.h"
#include "analyzer/owners/frames.h"

#include <xxhash.h>

/* An allocation of a size in a frame, as the file has it. */
struct allocated {
	uint32_t frame, number;
	uint64_t size;
};

struct allocated_table {
	HASH_TABLE(struct allocated);
};

static void write_string(struct writer *writer, const char *text)
{
	writer_text(writer, "s ");
	writer_hexadecimal(writer, strlen(text));
	writer_put(writer, ' ');
	writer_text(writer, text);
	writer_put(writer, '\n');
}

static void write_head(const struct export *export, const struct frames *frames,
		       struct writer *writer)
{
	_cleanup_(free) char *title = escape_text(export->title);
	char buffer[FRAME_TEXT_SIZE];

	writer_text(writer, "v 10400 3\nX ");
	writer_text(writer, title ? title : "");
	writer_text(writer, "\nI 1000 0\n");
	write_string(writer, "heap");
	for (size_t i = 1; i < frames->list.count; i++) {
		write_string(writer, frame_text(frames, i, buffer));
		writer_text(writer, "i ");
		writer_hexadecimal(writer, i);
		writer_text(writer, " 1 ");
		writer_hexadecimal(writer, i + 1);
		writer_text(writer, "\nt ");
		writer_hexadecimal(writer, i);
		writer_put(writer, ' ');
		writer_hexadecimal(writer, frames->list.items[i].parent);
		writer_put(writer, '\n');
	}
}

static struct error *write_allocation(struct writer *writer, struct allocated_table *table,
				      uint32_t frame, uint64_t size)
{
	uint64_t part[] = { frame, size };
	uint64_t key = XXH3_64bits(part, sizeof(part));
	const struct allocated *known =
		table_find(table, key, item, item->frame == frame && item->size == size);
	uint32_t number = known ? known->number : (uint32_t)table->count;

	if (!known) {
		TRY(table_append(table, key, (struct allocated){ frame, number, size }));
		writer_text(writer, "a ");
		writer_hexadecimal(writer, size);
		writer_put(writer, ' ');
		writer_hexadecimal(writer, frame);
		writer_put(writer, '\n');
	}
	writer_text(writer, "+ ");
	writer_hexadecimal(writer, number);
	writer_put(writer, '\n');
	return NULL;
}

static struct error *write_allocations(const struct export *export, const struct frames *frames,
				       struct writer *writer, struct allocated_table *table)
{
	const struct allocation_index *index = analysis_index(export->analysis);
	struct progress *progress = analysis_progress(export->analysis);
	uint64_t reported = 0;
	size_t hint = 0;

	progress_begin(progress, "writing allocations", export->members->count);
	bitmap_for_each(id, export->members) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);
		uint32_t node = export->owners->of.items[id];

		TRY(progress_check_at(progress, id, &reported));
		if (export->measure != MEASURE_LEAKED ||
		    bitmap_get(analysis_leaked(export->analysis), id))
			TRY(write_allocation(writer, table, frames->of_node.items[node],
					     range.end - range.start));
	}
	return NULL;
}

static struct error *heaptrack_write(const struct export *export, struct writer *writer)
{
	struct memory_account *account = analysis_account(export->analysis);
	_cleanup_(frames_deinit) struct frames frames = { 0 };
	_cleanup_(table_release) struct allocated_table table = { .memory.account = account };

	if (export->measure == MEASURE_RETAINED)
		return error_create(
			ERROR_USAGE,
			"'heaptrack' lists the set's own allocations: --by own or leaked");
	TRY(frames_make(export->owners, export->measure, export->limit, account, &frames));
	write_head(export, &frames, writer);
	TRY(write_allocations(export, &frames, writer, &table));
	writer_text(writer, "c 1\n");
	return NULL;
}

const struct export_format export_format_heaptrack = {
	.name = "heaptrack",
	.summary = "a recording for heaptrack_gui and heaptrack_print",
	.prefers_stacks = true,
	.limit = 100000,
	.write = heaptrack_write,
};
