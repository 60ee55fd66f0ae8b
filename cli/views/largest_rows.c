#include "cli/views/largest_rows.h"

#include "analyzer/query/order.h"
#include "analyzer/sql/sql.h"
#include "cli/views/member_rows.h"

#include <inttypes.h>

enum {
	MOST_LARGEST = 1000,
	MOST_FIRST = 500,
	CHUNK = 50, /* so many are written before the room is looked at */
	MOST_FIELDS = 12,
	MOST_FIELD_TEXT = 160,
	/* Bytes of a page, without fields: at most, and mostly */
	ROOM_OF_ALLOCATION = 1600,
	USUAL_ROOM = 1000,
};

struct chosen {
	allocation_id ids[MOST_LARGEST + MOST_FIRST];
	size_t count;
};

static struct error *offer_all(struct analysis *analysis, struct largest *largest)
{
	const struct bitmap *used = allocation_used(analysis_index(analysis));
	const struct dominators *dominators = analysis_dominators(analysis);

	bitmap_for_each(id, used)
		TRY(largest_offer(largest, (allocation_id)id,
				  dominators_retained(dominators, (allocation_id)id)));
	largest_sort(largest);
	return NULL;
}

static bool is_chosen(const struct chosen *chosen, allocation_id id)
{
	for (size_t i = 0; i < chosen->count && i < MOST_FIRST; i++)
		if (chosen->ids[i] == id)
			return true;
	return false;
}

static struct error *choose(struct analysis *analysis, const struct bitmap *first,
			    struct chosen *ret)
{
	_cleanup_(largest_deinit) struct largest largest;

	largest_init(&largest, MOST_LARGEST, analysis_account(analysis));
	TRY(offer_all(analysis, &largest));
	if (first->words)
		bitmap_for_each(id, first)
			if (ret->count < MOST_FIRST)
				ret->ids[ret->count++] = (allocation_id)id;
	for (size_t i = 0; i < largest.entries.count; i++) {
		allocation_id id = largest_at(&largest, i);

		if (!is_chosen(ret, id))
			ret->ids[ret->count++] = id;
	}
	return NULL;
}

/* Run a query about the ids, which are those of the table chosen. */
static struct error *ask(struct analysis *analysis, const allocation_id *ids, size_t count,
			 const char *name, const char *select, struct report *report)
{
	struct writer text = { 0 };
	struct sql *sql;
	struct error *error = sql_of(analysis, report->no_content, &sql);

	writer_text(&text, "WITH chosen(id) AS (VALUES ");
	for (size_t i = 0; i < count; i++) {
		writer_text(&text, i ? ", (" : "(");
		writer_decimal(&text, ids[i]);
		writer_put(&text, ')');
	}
	writer_text(&text, ") ");
	writer_text(&text, select);
	writer_put(&text, '\0');
	if (!error)
		error = text.failed ? &error_no_memory : sql_run_as(sql, text.buffer, name, report);
	writer_deinit(&text);
	return error;
}

static const char ALLOCATIONS[] =
	"SELECT address, substr(kind, 1, 120) AS kind, size, retained, state, substr(path(address), 1, 240)"
	" AS path FROM allocation WHERE id IN (SELECT id FROM chosen)";

/* The references of the chosen ones from one side: six of each, and how many there are. */
#define NEIGHBOURS(near, far)                                                              \
	"SELECT t.address AS \"of\", s.address AS address, substr(s.kind, 1, 80) AS kind," \
	" r.offset AS offset, r.total AS total FROM (SELECT source, target, offset,"       \
	" row_number() OVER (PARTITION BY " near " ORDER BY " far ", offset) AS place,"    \
	" count(*) OVER (PARTITION BY " near ") AS total FROM reference WHERE " near       \
	" IN (SELECT id FROM chosen)) AS r JOIN allocation AS t ON t.id = r." near         \
	" JOIN allocation AS s ON s.id = r." far " WHERE r.place <= 6"

static const char REFERRERS[] = NEIGHBOURS("target", "source");
static const char REFERRED[] = NEIGHBOURS("source", "target");

static uint64_t written(const struct report *report)
{
	return report->writer.flushed + report->writer.used;
}

static struct error *write_fields(struct analysis *analysis, allocation_id id,
				  struct report *report)
{
	static const struct table of =
		TABLE("fields of", "At {address}:", { "address", VALUE_ADDRESS });
	enum members_by by = members_by(analysis, id);
	uint64_t usual_rows = report->most_rows, usual_text = report->most_text;
	struct error *error;

	if (by == MEMBERS_UNKNOWN)
		return NULL;
	report_single(report, &of, allocation_start(analysis_index(analysis), id));
	report->most_rows = MOST_FIELDS;
	report->most_text = MOST_FIELD_TEXT;
	error = member_rows(report, analysis, id, by);
	report->most_rows = usual_rows;
	report->most_text = usual_text;
	return error;
}

/* Fields as long as the report has fewer than most_bytes. */
static struct error *write_chunk(struct analysis *analysis, const allocation_id *ids, size_t count,
				 uint64_t most_bytes, struct report *report)
{
	TRY(ask(analysis, ids, count, "largest", ALLOCATIONS, report));
	TRY(ask(analysis, ids, count, "referrer", REFERRERS, report));
	TRY(ask(analysis, ids, count, "referred", REFERRED, report));
	for (size_t i = 0; i < count && written(report) < most_bytes; i++)
		TRY(write_fields(analysis, ids[i], report));
	return NULL;
}

struct error *largest_rows(struct analysis *analysis, const struct bitmap *first,
			   uint64_t most_bytes, struct report *report)
{
	struct chosen chosen = { .count = 0 };
	size_t done = 0;

	TRY(analysis_need(analysis, STAGE_RETAINED));
	TRY(analysis_need(analysis, STAGE_CLASSES));
	TRY(analysis_need_types(analysis));
	TRY(choose(analysis, first, &chosen));
	while (done < chosen.count && written(report) + CHUNK * ROOM_OF_ALLOCATION < most_bytes) {
		size_t count = chosen.count - done < CHUNK ? chosen.count - done : CHUNK;

		done += count;
		TRY(write_chunk(analysis, chosen.ids + done - count, count,
				most_bytes - (chosen.count - done) * USUAL_ROOM, report));
	}
	if (done < chosen.count)
		report_say_left_out(report, chosen.count - done, "allocations");
	return NULL;
}
