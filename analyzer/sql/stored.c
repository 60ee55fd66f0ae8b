/*
 * The small tables: each is made when it is first asked for, by writing its rows as a report that
 * is kept. Those of memory that is no allocations are what 'list' shows of sets of ranges.
 */

#include "analyzer/account/bill.h"
#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/query/query.h"
#include "analyzer/sql/parts.h"

#include <string.h>

/* A row of the table, written to a report that keeps it. */
struct stored_table {
	struct sql_table table; /* without columns: those of the set */
	const char *set;	/* of ranges, or NULL */
	struct error *(*fill)(struct sql *sql, struct report *report);
	/* The last column, where it takes long: of the row's cells, when it is asked for; or NULL.
	 */
	void (*late)(struct sql *sql, const struct stored_cell *row, sqlite3_context *context);
	bool grows; /* with each stage that is built */
};

static const char *state_word(bool is_incomplete)
{
	return is_incomplete ? "incomplete" : "note";
}

static struct error *fill_kinds(struct sql *sql, struct report *report)
{
	TRY(named_kinds_find(sql->analysis, &sql->facts.kinds));
	array_for_each(kind, &sql->facts.kinds.list)
		report_row(report, kind->name, kind_known_by(kind->key), kind->count, kind->bytes);
	return NULL;
}

static struct error *fill_leak_roots(struct sql *sql, struct report *report)
{
	const struct leaks *leaks;

	TRY(analysis_need(sql->analysis, STAGE_LEAKS));
	leaks = analysis_leaks(sql->analysis);
	list_for_each(root, leaks->roots, leaks->count) {
		uint64_t address = allocation_start(analysis_index(sql->analysis), root->id);

		report_row(report, root->id, address, root->members, root->owned_count,
			   root->owned_bytes);
	}
	return NULL;
}

/* Registers have no address, the kernel's values no thread. */
static bool write_anchor(void *data, const struct anchor *anchor)
{
	const void *const *both = data;
	const struct sql *sql = both[0];
	struct report *report = (struct report *)both[1];

	report_row(report, root_kind_name(anchor->kind), value_nonzero(anchor->address),
		   VALUE_IF(anchor->thread != NO_THREAD,
			    analysis_program(sql->analysis)->threads[anchor->thread].id),
		   anchor->register_name, anchor->target, ABSENT);
	return !atomic_load_explicit(&analysis_progress(sql->analysis)->interrupted,
				     memory_order_relaxed);
}

static void name_anchor(struct sql *sql, const struct stored_cell *row, sqlite3_context *context)
{
	if (row[1].type == CELL_INTEGER)
		sql_result_name(sql, context, (uint64_t)row[1].integer);
}

static struct error *fill_anchors(struct sql *sql, struct report *report)
{
	const struct bitmap *used;
	void *both[] = { sql, report };

	TRY(analysis_need(sql->analysis, STAGE_REACHABILITY));
	used = allocation_used(analysis_index(sql->analysis));
	if (used->count)
		roots_visit(analysis_roots(sql->analysis), used, write_anchor, both);
	return progress_glance(analysis_progress(sql->analysis));
}

static struct error *fill_variables(struct sql *sql, struct report *report)
{
	const struct dominators *tree;
	const struct variables *variables;

	TRY(analysis_need(sql->analysis, STAGE_DOMINATORS));
	TRY(analysis_need(sql->analysis, STAGE_SHARERS));
	tree = analysis_dominators(sql->analysis);
	variables = analysis_variables(sql->analysis);
	for (size_t i = 0; i < variables_count(variables); i++) {
		const struct variable *variable = variables_at(variables, i);
		struct positions held = dominators_root(tree, i);
		struct owned_tops owned = sharers_owned(analysis_sharers(sql->analysis), i);

		report_row(report, variable->name, root_kind_name(variable->kind),
			   variable->module ? variable->module->path : NULL,
			   value_nonzero(variable->address), held.end - held.begin + owned.count,
			   dominators_bytes(tree, held.begin, held.end) + owned.bytes);
	}
	return NULL;
}

static struct error *fill_frames(struct sql *sql, struct report *report)
{
	const struct program *program;
	struct debug *debug;

	TRY(analysis_need(sql->analysis, STAGE_DEBUG));
	program = analysis_program(sql->analysis);
	debug = analysis_debug(sql->analysis);
	for (uint32_t i = 0; i < program->thread_count; i++) {
		const struct backtrace *calls = debug_backtrace(debug, i);

		TRY_MEMORY(calls);
		for (size_t j = 0; j < calls->count; j++) {
			const struct frame *frame = &calls->frames[j];

			report_row(report, program->threads[i].id, j,
				   debug_frame_function(debug, frame), frame->source,
				   frame->module ? frame->module->path : NULL, frame->address,
				   frame->stack_pointer, (uint64_t)frame->inlined);
		}
	}
	return NULL;
}

static bool write_symbol(void *data, const struct symbol *symbol)
{
	static const char *const kinds[] = {
		[SYMBOL_FUNCTION] = "function",
		[SYMBOL_DATA] = "data",
		[SYMBOL_OTHER] = "other",
	};

	report_row((struct report *)data, symbol->start, symbol->size, kinds[symbol->kind],
		   symbol->name, symbol->module ? symbol->module->path : NULL);
	return true;
}

static struct error *fill_symbols(struct sql *sql, struct report *report)
{
	const struct program *program;

	TRY(analysis_need(sql->analysis, STAGE_DEBUG));
	program = analysis_program(sql->analysis);
	for (size_t i = 0; i < program->module_count; i++) {
		debug_visit_symbols(analysis_debug(sql->analysis), &program->modules[i],
				    write_symbol, report);
		TRY(progress_glance(analysis_progress(sql->analysis)));
	}
	return NULL;
}

static struct error *fill_bill(struct sql *sql, struct report *report)
{
	_cleanup_(bill_destroy) struct bill *bill = NULL;

	TRY(analysis_need(sql->analysis, STAGE_HEAP));
	TRY(bill_create(sql->analysis, BILL_ARENAS, &bill));
	for (size_t i = 0; i < ledger_row_count(bill->ledger); i++) {
		const struct ledger_row *row = ledger_row(bill->ledger, (row_number)i);

		if (row->amount.mapped || row->amount.count)
			report_row(report, row->group, row->name, value_nonzero(row->amount.count),
				   row->amount.mapped, row->amount.resident);
	}
	return NULL;
}

static struct error *fill_findings(struct sql *sql, struct report *report)
{
	const struct findings *findings = analysis_findings(sql->analysis);

	for (size_t i = 0; i < findings->count; i++)
		report_row(report, state_word(findings->list[i].weight == FINDING_INCOMPLETE),
			   findings->list[i].message);
	return NULL;
}

/* Copies of what another allocation holds, as the set 'duplicates'. */
static struct error *fill_duplicates(struct sql *sql, struct report *report)
{
	_cleanup_(set_query_deinit) struct set_query query = { .any_order = true };
	_cleanup_(members_deinit) struct members members = { 0 };

	TRY(query_take_word(&query, "duplicates"));
	TRY(query_check(&query));
	TRY(query_select(sql->analysis, &query, &members));
	bitmap_for_each(id, &members.set)
		report_row(report, id);
	return NULL;
}

static struct error *fill_lost_counts(struct sql *sql, struct report *report)
{
	TRY(analysis_need(sql->analysis, STAGE_LOST_COUNTS));
	array_for_each(lost, &analysis_lost_counts(sql->analysis)->lost)
		report_row(report, lost->id, lost->count, (uint64_t)lost->found);
	return NULL;
}

static struct error *fill_core(struct sql *sql, struct report *report)
{
	const struct image *image = analysis_image(sql->analysis);

	report_row(report, image->path, value_nonzero(image->origin.process),
		   value_nonzero(image->origin.time / UINT64_C(1000000000)), image->arch->name,
		   image->size);
	return NULL;
}

static const struct stored_table tables[] = {
	{ { "kinds of allocations in use",
	    TABLE("kind", NULL, { "kind", VALUE_TEXT }, { "known_by", VALUE_TEXT },
		  { "count", VALUE_COUNT }, { "bytes", VALUE_BYTES }) },
	  NULL,
	  fill_kinds },
	{ { "where leaks began, with all that each alone lost",
	    TABLE("leak_root", NULL, { "id", VALUE_NUMBER }, { "address", VALUE_ADDRESS },
		  { "members", VALUE_COUNT }, { "allocations", VALUE_COUNT },
		  { "bytes", VALUE_BYTES }) },
	  NULL,
	  fill_leak_roots },
	{ { "words outside of the heaps that refer to allocations",
	    TABLE("anchor", NULL, { "kind", VALUE_TEXT }, { "address", VALUE_ADDRESS },
		  { "thread", VALUE_NUMBER }, { "register", VALUE_TEXT },
		  { "target", VALUE_NUMBER }, { "name", VALUE_TEXT }) },
	  NULL,
	  fill_anchors,
	  name_anchor },
	{ { "variables that refer to allocations, and what each alone holds",
	    TABLE("variable", NULL, { "name", VALUE_TEXT }, { "kind", VALUE_TEXT },
		  { "module", VALUE_TEXT }, { "address", VALUE_ADDRESS },
		  { "retained_count", VALUE_COUNT }, { "retained", VALUE_BYTES }) },
	  NULL,
	  fill_variables },
	{ { "memory outside of the heaps that may refer to allocations" }, "roots" },
	{ { "used allocations with the same contents as one before",
	    TABLE("duplicate", NULL, { "id", VALUE_NUMBER }) },
	  NULL,
	  fill_duplicates },
	{ { "allocations whose count of references is more than the holders that were found",
	    TABLE("lost_count", NULL, { "id", VALUE_NUMBER }, { "count", VALUE_COUNT },
		  { "found", VALUE_COUNT }) },
	  NULL,
	  fill_lost_counts },
	{ { "where allocators allocate" }, "arenas" },
	{ { "mapped memory" }, "maps" },
	{ { "the program and its libraries" }, "modules" },
	{ { "threads" }, "threads" },
	{ { "stacks" }, "stacks" },
	{ { "calls of each thread, the innermost is number 0",
	    TABLE("frame", NULL, { "thread", VALUE_NUMBER }, { "number", VALUE_NUMBER },
		  { "function", VALUE_TEXT }, { "source", VALUE_TEXT }, { "module", VALUE_TEXT },
		  { "address", VALUE_ADDRESS }, { "stack_pointer", VALUE_ADDRESS },
		  { "inlined", VALUE_NUMBER }) },
	  NULL,
	  fill_frames },
	{ { "symbols of all modules, as their files have them",
	    TABLE("symbol", NULL, { "address", VALUE_ADDRESS }, { "size", VALUE_BYTES },
		  { "kind", VALUE_TEXT }, { "name", VALUE_TEXT }, { "module", VALUE_TEXT }) },
	  NULL,
	  fill_symbols },
	{ { "what each mapped byte is used for, each counted once",
	    TABLE("bill", NULL, { "memory", VALUE_TEXT }, { "use", VALUE_TEXT },
		  { "count", VALUE_COUNT }, { "mapped", VALUE_BYTES },
		  { "resident", VALUE_BYTES }) },
	  NULL,
	  fill_bill },
	{ { "problems that may make answers wrong, so far",
	    TABLE("finding", NULL, { "weight", VALUE_TEXT }, { "message", VALUE_TEXT }) },
	  NULL,
	  fill_findings,
	  .grows = true },
	{ { "the core; time in seconds since 1970",
	    TABLE("core", NULL, { "path", VALUE_TEXT }, { "process", VALUE_NUMBER },
		  { "time", VALUE_NUMBER }, { "processor", VALUE_TEXT },
		  { "bytes", VALUE_BYTES }) },
	  NULL,
	  fill_core },
};
_Static_assert(COUNT_OF(tables) <= MOST_STORED, "there is no room for so many tables");

/* The set of ranges that the table is, or NULL. */
static const struct set *set_of(size_t number)
{
	return tables[number].set ? set_find(tables[number].set) : NULL;
}

const struct sql_table *sql_stored_table(size_t number)
{
	return number < COUNT_OF(tables) ? &tables[number].table : NULL;
}

const struct table *sql_columns(const struct sql_table *table)
{
	for (size_t i = 0; i < COUNT_OF(tables); i++)
		if (table == &tables[i].table && tables[i].set)
			return &set_of(i)->ranges->table;
	return table->rows && table->rows->shared ? &table->rows->shared->table : &table->columns;
}

static struct error *fill_ranges(struct sql *sql, const struct set *set, struct report *report)
{
	_cleanup_(set_query_deinit) struct set_query query = { 0 };
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };

	TRY(query_take_word(&query, set->name));
	TRY(query_check(&query));
	TRY(query_collect(sql->analysis, &query, &ranges));
	TRY(analysis_need(sql->analysis, set->ranges->needs));
	for (size_t i = 0; i < ranges.count; i++) {
		struct range range = ranges_at(&ranges, i);

		set->ranges->write(sql->analysis, &ranges, &range, report);
		report_end_row(report);
	}
	return NULL;
}

/* A text equal to the one in the row before is stored once. */
static void keep_text(struct stored_rows *rows, const char *text, struct stored_cell *ret)
{
	size_t count = rows->cells.count;
	_cleanup_(free) char *escaped = escape_text(text);

	*ret = (struct stored_cell){ CELL_NULL };
	if (!escaped) {
		rows->error = rows->error ? rows->error : &error_no_memory;
		return;
	}
	if (count >= rows->columns) {
		const struct stored_cell *above = &rows->cells.items[count - rows->columns];

		if (above->type >= CELL_TEXT && strcmp(above->text, escaped) == 0) {
			ret->type = CELL_SHARED_TEXT;
			ret->text = above->text;
			return;
		}
	}
	ret->type = CELL_TEXT;
	ret->text = take(escaped);
}

static void keep_row(struct report *report, const struct value *values)
{
	struct stored_rows *rows = report->state;

	for (size_t i = 0; i < rows->columns && !rows->error; i++) {
		enum value_kind kind = report->table->columns[i].kind;
		struct stored_cell cell = { CELL_NULL };

		if (values[i].present && kind == VALUE_TEXT)
			keep_text(rows, values[i].text, &cell);
		else if (values[i].present && (kind == VALUE_SECONDS || kind == VALUE_SHARE))
			cell = (struct stored_cell){ CELL_REAL, { .real = values[i].real } };
		else if (values[i].present)
			cell = (struct stored_cell){ CELL_INTEGER,
						     { .integer = (int64_t)values[i].number } };
		rows->error = rows->error ? rows->error : array_append(&rows->cells, cell);
	}
	rows->count++;
}

void stored_rows_deinit(struct stored_rows *rows)
{
	array_for_each(cell, &rows->cells)
		if (cell->type == CELL_TEXT)
			free(cell->text);
	array_release(&rows->cells);
	if (rows->error)
		error_destroy(rows->error);
	*rows = (struct stored_rows){ .count = 0 };
}

static struct error *fill(struct sql *sql, size_t number)
{
	static const struct report_format keeping = { .name = "rows", .row = keep_row };
	const struct set *set = set_of(number);
	struct stored_rows *rows = &sql->stored[number];
	struct report report = { .format = &keeping, .state = rows, .no_content = sql->no_content };
	const struct table *columns = sql_columns(&tables[number].table);
	struct error *error;

	rows->cells.memory.account = analysis_account(sql->analysis);
	rows->columns = columns->column_count;
	report_begin_table(&report, columns);
	error = set ? fill_ranges(sql, set, &report) : tables[number].fill(sql, &report);
	error = error_first(error, take(rows->error));
	if (error)
		stored_rows_deinit(rows);
	rows->known = !error;
	return error;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	info->estimatedCost = 1e4;
	info->estimatedRows = 10000;
	return SQLITE_OK;
}

static size_t number_of(const struct sql_cursor *cursor)
{
	return (size_t)((const struct stored_table *)cursor->table - tables);
}

static struct error *begin(struct sql_cursor *cursor, int plan)
{
	size_t number = number_of(cursor);
	struct stored_rows *rows = &cursor->sql->stored[number];

	if (tables[number].grows && rows->count != analysis_findings(cursor->sql->analysis)->count)
		stored_rows_deinit(rows);
	if (!rows->known)
		TRY(fill(cursor->sql, number));
	cursor->end = rows->count;
	return NULL;
}

static void result(struct sql_cursor *cursor, sqlite3_context *context, int column)
{
	const struct stored_rows *rows = &cursor->sql->stored[number_of(cursor)];
	const struct stored_table *table = (const struct stored_table *)cursor->table;
	const struct stored_cell *row = &rows->cells.items[cursor->at * rows->columns];
	const struct stored_cell *cell = &row[column];

	if (table->late && (size_t)column + 1 == rows->columns)
		table->late(cursor->sql, row, context);
	else if (cell->type == CELL_INTEGER)
		sqlite3_result_int64(context, cell->integer);
	else if (cell->type == CELL_REAL)
		sqlite3_result_double(context, cell->real);
	else if (cell->type != CELL_NULL)
		sqlite3_result_text(context, cell->text, -1, SQLITE_TRANSIENT);
}

const struct sql_rows sql_stored_rows = {
	.cursor_size = sizeof(struct sql_cursor),
	.best = best_index,
	.begin = begin,
	.result = result,
};
