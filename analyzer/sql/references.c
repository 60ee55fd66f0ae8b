/*
 * The table of references: a row for each edge of the graph, made while it is read.
 *
 * Edges of one source are a row of the graph; those to one target are found by the same graph
 * turned. Without either, rows come by source, or by target where that is the order asked for.
 * Where in the source a reference stands is found by reading its words, if it is asked for.
 */

#include "analyzer/base/text.h"
#include "analyzer/sql/parts.h"

enum { COLUMN_SOURCE, COLUMN_TARGET };

enum { BY_TARGET = 1, HAS_SOURCE = 2, HAS_TARGET = 4 };

struct cursor {
	struct sql_cursor base;
	bool by_target;	 /* places are ids of targets, else of sources */
	size_t referrer; /* by target: of the row of referrers */
	size_t edge;	 /* of the source's row */
	size_t wanted;	 /* the only target, or NO_ALLOCATION */
	allocation_id source;
	/* The position up to which located_source was read, for its edge located. */
	allocation_id located_source;
	size_t located;
	struct memory_range words;
	unsigned int stale; /* links among the first words, a bit for each */
	uint64_t place, word;
	size_t target_hint; /* of the index */
};

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	struct sql_constraint taken[MOST_CONSTRAINTS];
	int count = 0, plan = 0;

	for (int i = 0; i < info->nConstraint; i++) {
		int column = info->aConstraint[i].iColumn;
		int bit = column == COLUMN_SOURCE ? HAS_SOURCE : HAS_TARGET;

		if (info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ && column >= 0 &&
		    column <= COLUMN_TARGET && !(plan & bit) &&
		    sql_take_constraint(info, i, &count, taken))
			plan |= bit;
	}
	info->estimatedCost = plan & HAS_SOURCE ? 4 : plan & HAS_TARGET ? 16 : 5e7;
	info->estimatedRows = plan ? 4 : 50000000;
	if (plan == HAS_TARGET)
		plan |= BY_TARGET;
	if (info->nOrderBy == 1 && !info->aOrderBy[0].desc) {
		if (!plan && info->aOrderBy[0].iColumn == COLUMN_TARGET)
			plan |= BY_TARGET;
		info->orderByConsumed = info->aOrderBy[0].iColumn ==
					(plan & BY_TARGET ? COLUMN_TARGET : COLUMN_SOURCE);
	}
	info->idxNum = plan;
	return sql_keep_constraints(info, taken, count);
}

static struct edges outgoing(const struct cursor *cursor, allocation_id id)
{
	return graph_outgoing(analysis_graph(cursor->base.sql->analysis), id);
}

static struct edges referrers(const struct cursor *cursor)
{
	return graph_outgoing(analysis_incoming(cursor->base.sql->analysis),
			      (allocation_id)cursor->base.at);
}

/* The edge at or behind the cursor that leads to the target wanted; false: the row has none. */
static bool find_edge(struct cursor *cursor, allocation_id source, allocation_id target)
{
	struct edges edges = outgoing(cursor, source);

	while (cursor->edge < edges.count && target != NO_ALLOCATION &&
	       edges.targets[cursor->edge] != target)
		cursor->edge++;
	cursor->source = source;
	return cursor->edge < edges.count;
}

/* Within the row of the id at the cursor. */
static bool find_in_row(struct cursor *cursor)
{
	if (!cursor->by_target)
		return find_edge(cursor, (allocation_id)cursor->base.at,
				 (allocation_id)cursor->wanted);
	for (; cursor->referrer < referrers(cursor).count; cursor->referrer++) {
		if (find_edge(cursor, referrers(cursor).targets[cursor->referrer],
			      (allocation_id)cursor->base.at))
			return true;
		cursor->edge = 0;
	}
	return false;
}

static bool find(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	if (find_in_row(cursor))
		return true;
	cursor->edge = cursor->referrer = 0;
	return false;
}

static bool step(struct sql_cursor *base)
{
	((struct cursor *)base)->edge++;
	base->sql->visited++;
	return find(base);
}

/* The id that a value names, or NO_ALLOCATION. */
static allocation_id id_of(const struct cursor *cursor, sqlite3_value *value)
{
	sqlite3_int64 id = sqlite3_value_int64(value);
	size_t count = allocation_count(analysis_index(cursor->base.sql->analysis));

	return sqlite3_value_numeric_type(value) == SQLITE_INTEGER && id >= 0 && (size_t)id < count
		       ? (allocation_id)id
		       : NO_ALLOCATION;
}

static struct error *begin(struct sql_cursor *base, int plan)
{
	struct cursor *cursor = (struct cursor *)base;

	cursor->by_target = plan & BY_TARGET;
	TRY(analysis_need(base->sql->analysis, cursor->by_target ? STAGE_INCOMING : STAGE_GRAPH));
	cursor->referrer = cursor->edge = 0;
	cursor->wanted = cursor->located_source = NO_ALLOCATION;
	return sql_begin_ids(base);
}

static void narrow(struct sql_cursor *base, int count, const char *constraints,
		   sqlite3_value **values)
{
	struct cursor *cursor = (struct cursor *)base;

	for (int i = 0; i < count; i++) {
		allocation_id id;

		/* SQLite compares what is no integer itself. */
		if (sqlite3_value_type(values[i]) != SQLITE_INTEGER)
			continue;
		id = id_of(cursor, values[i]);
		if (id == NO_ALLOCATION) {
			base->end = 0;
		} else if (constraints[2 * i] - '0' ==
			   (cursor->by_target ? COLUMN_TARGET : COLUMN_SOURCE)) {
			base->at = id;
			base->end = base->end ? id + (size_t)1 : 0;
		} else {
			cursor->wanted = id;
		}
	}
}

/* The stale links among the first words, a bit for each. */
static unsigned int stale_links(const struct cursor *cursor, uint64_t start)
{
	const struct image *image = analysis_image(cursor->base.sql->analysis);
	uint64_t words[4] = { 0 };

	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (!image_read_word(image, start + image_word_size(image) * i, &words[i]))
			words[i] = 0;
	return allocation_stale_links(analysis_index(cursor->base.sql->analysis), start, words);
}

/* Targets are all over the index: have those of a later row fetched meanwhile. */
static void fetch_targets(const struct cursor *cursor, const struct allocation_index *index)
{
	enum { ROWS_AHEAD = 8, MOST_FETCHED = 8 };
	allocation_id later = cursor->source + ROWS_AHEAD;
	struct edges edges;

	if (later >= cursor->base.end)
		return;
	edges = outgoing(cursor, later);
	for (size_t i = 0; i < edges.count && i < MOST_FETCHED; i++)
		allocation_fetch_size(index, edges.targets[i]);
}

static void begin_words(struct cursor *cursor)
{
	const struct allocation_index *index = analysis_index(cursor->base.sql->analysis);

	fetch_targets(cursor, index);
	cursor->words = allocation_range_near(index, cursor->source, &cursor->base.hint);
	cursor->stale = stale_links(cursor, cursor->words.start);
	cursor->place =
		cursor->words.start - image_word_size(analysis_image(cursor->base.sql->analysis));
	cursor->located_source = cursor->source;
	cursor->located = 0;
}

/* Go on to the next word that is in the allocation and no stale link. */
static bool find_word(struct cursor *cursor, allocation_id target)
{
	const struct analysis *analysis = cursor->base.sql->analysis;
	struct memory_range range =
		allocation_range_near(analysis_index(analysis), target, &cursor->target_hint);

	const uint64_t word = image_word_size(analysis_image(analysis));

	for (uint64_t at = cursor->place + word; at + word <= cursor->words.end; at += word) {
		uint64_t offset = at - cursor->words.start;

		cursor->place = at;
		if (image_read_word(analysis_image(analysis), at, &cursor->word) &&
		    cursor->word - range.start < range.end - range.start &&
		    !(offset < 4 * word && cursor->stale >> offset / word & 1))
			return true;
	}
	return false;
}

/*
 * Find the word of the edge at the cursor: edges stand in the order of their words, without repeats
 * in a row.
 */
static bool locate(struct cursor *cursor)
{
	struct edges edges = outgoing(cursor, cursor->source);

	if (cursor->located_source != cursor->source || cursor->located > cursor->edge + 1)
		begin_words(cursor);
	while (cursor->located <= cursor->edge) {
		if (!find_word(cursor, edges.targets[cursor->located]))
			return false;
		cursor->located++;
	}
	return true;
}

static allocation_id target_of(const struct cursor *cursor)
{
	return outgoing(cursor, cursor->source).targets[cursor->edge];
}

static void get_source(struct sql_cursor *cursor, sqlite3_context *context)
{
	sql_result_number(context, ((struct cursor *)cursor)->source);
}

static void get_target(struct sql_cursor *cursor, sqlite3_context *context)
{
	sql_result_number(context, target_of((struct cursor *)cursor));
}

static void get_address(struct sql_cursor *cursor, sqlite3_context *context)
{
	if (locate((struct cursor *)cursor))
		sql_result_number(context, ((struct cursor *)cursor)->place);
}

/* The distance of an address from the start of an allocation. */
static void result_distance(const struct cursor *cursor, sqlite3_context *context, uint64_t address,
			    allocation_id id)
{
	sql_result_number(context,
			  address -
				  allocation_start(analysis_index(cursor->base.sql->analysis), id));
}

static void get_offset(struct sql_cursor *base, sqlite3_context *context)
{
	struct cursor *cursor = (struct cursor *)base;

	if (locate(cursor))
		result_distance(cursor, context, cursor->place, cursor->source);
}

static void get_target_offset(struct sql_cursor *base, sqlite3_context *context)
{
	struct cursor *cursor = (struct cursor *)base;

	if (locate(cursor))
		result_distance(cursor, context, cursor->word, target_of(cursor));
}

static sqlite3_int64 row_id(const struct sql_cursor *base)
{
	const struct cursor *cursor = (const struct cursor *)base;

	return (sqlite3_int64)((uint64_t)cursor->source << 32 | cursor->edge);
}

#define COLUMNS(X)                               \
	X("source", VALUE_NUMBER, get_source)    \
	X("target", VALUE_NUMBER, get_target)    \
	X("offset", VALUE_BYTES, get_offset)     \
	X("address", VALUE_ADDRESS, get_address) \
	X("target_offset", VALUE_BYTES, get_target_offset)

static const struct sql_rows rows = {
	.cursor_size = sizeof(struct cursor),
	.getters = (sql_getter *const[]){ COLUMNS(AS_GETTER) },
	.best = best_index,
	.begin = begin,
	.narrow = narrow,
	.find = find,
	.step = step,
	.row_id = row_id,
};

const struct sql_table sql_reference_table = {
	"which allocation refers to which, a row for each reference; ids are those of allocation and free",
	TABLE("reference", NULL, COLUMNS(AS_COLUMN)),
	.rows = &rows,
};
