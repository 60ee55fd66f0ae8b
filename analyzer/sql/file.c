/*
 * A core as an ordinary database in a file: the same tables and views, filled once.
 *
 * SQLite itself copies the rows from its virtual tables, in the order of their keys. Rows are as
 * small as they can be, since there are many:
 *
 *	used_allocation	id | distance from a base | shape | parent less id
 *	free_allocation	id | distance from a base | shape
 *	base		id >> 6 | lowest address of these
 *	shape		number | all else of an allocation, which others have, too
 *	edge		source << edge_bits + number | spot: both offsets in one number | target
 *
 * A number that is 0 or absent takes no byte. `allocation`, `free`, `dominator`, `reference`,
 * `object` and `symbol` are views. There is no index beside the keys: one for targets, and one for
 * addresses, would take as much as half of the rest.
 */
#include "analyzer/base/text.h"
#include "analyzer/sql/parts.h"

#include <string.h>

#define DESCRIBED \
	"kind, known_by, class, pattern, type, sureness, signature, state, anchor, allocator, arena"

/* Nobody else reads the file yet, and it is removed if it does not become complete. */
static const char *const SET_UP =
	"PRAGMA temp_store = FILE; PRAGMA file.page_size = 16384;"
	"PRAGMA file.journal_mode = OFF; PRAGMA file.synchronous = OFF;"
	"PRAGMA file.locking_mode = EXCLUSIVE; PRAGMA file.user_version = 2; BEGIN";

static const char *const BASES =
	"CREATE TABLE file.base (number INTEGER PRIMARY KEY, address ADDRESS_INTEGER);"
	"INSERT INTO file.base SELECT id >> 6, min(address) FROM"
	" (SELECT id, address FROM main.dominator UNION ALL SELECT id, address FROM main.free)"
	" GROUP BY 1";

static const char *const OBJECTS =
	"CREATE TABLE file.object_description (number INTEGER PRIMARY KEY, class TEXT,"
	" runtime TEXT, kept TEXT, with_blocks BYTES_INTEGER);"
	"INSERT INTO file.object_description (class, runtime, kept, with_blocks)"
	" SELECT DISTINCT class, runtime, kept, with_blocks FROM main.object;"
	"CREATE TEMP TABLE description_of_object (number INTEGER PRIMARY KEY, class, runtime, kept,"
	" with_blocks, UNIQUE (class, runtime, kept, with_blocks));"
	"INSERT INTO description_of_object SELECT * FROM file.object_description;"
	"CREATE TEMP TABLE described_object (id INTEGER PRIMARY KEY, description);"
	"INSERT INTO described_object SELECT o.id, (SELECT number FROM description_of_object AS d"
	" WHERE d.class IS o.class AND d.runtime IS o.runtime AND d.kept IS o.kept"
	" AND d.with_blocks IS o.with_blocks) FROM main.object AS o";

static const char *const ALLOCATIONS =
	"CREATE TABLE file.used_allocation (id INTEGER PRIMARY KEY, distance INTEGER,"
	" shape INTEGER, parent INTEGER);"
	"INSERT INTO file.used_allocation SELECT d.id, d.address - (SELECT base.address"
	" FROM file.base WHERE number = d.id >> 6), shape_of(d.id, d.size, owner_of(d.id) - d.id,"
	" d.parent - d.id, d.retained, d.retained_count, o.description),"
	" d.parent - d.id FROM main.dominator AS d LEFT JOIN described_object AS o ON o.id = d.id;"
	"CREATE TABLE file.description (number INTEGER PRIMARY KEY, kind TEXT, known_by TEXT,"
	" class TEXT, pattern TEXT, type TEXT, sureness TEXT, signature ADDRESS_INTEGER, state TEXT,"
	" anchor TEXT, allocator TEXT, arena INTEGER, is_leak_root INTEGER);"
	"CREATE TABLE file.shape (number INTEGER PRIMARY KEY, description INTEGER,"
	" size BYTES_INTEGER, owner INTEGER, retained INTEGER, retained_count INTEGER,"
	" object INTEGER)";

static const char *const DESCRIPTION = "INSERT INTO file.description SELECT ?1, " DESCRIBED
				       ", is_leak_root FROM main.allocation WHERE id = ?2";

static const char *const FREE =
	"CREATE TABLE file.free_shape (number INTEGER PRIMARY KEY, size BYTES_INTEGER, state TEXT,"
	" kind TEXT, allocator TEXT, arena INTEGER, UNIQUE (size, state, kind, allocator, arena));"
	"INSERT INTO file.free_shape (size, state, kind, allocator, arena)"
	" SELECT DISTINCT size, state, kind, allocator, arena FROM main.free;"
	"CREATE TABLE file.free_allocation (id INTEGER PRIMARY KEY, distance INTEGER,"
	" shape INTEGER);"
	"INSERT INTO file.free_allocation SELECT f.id, f.address - (SELECT base.address FROM"
	" file.base WHERE number = f.id >> 6), (SELECT number FROM file.free_shape AS s"
	" WHERE s.size = f.size AND s.state IS f.state AND s.kind IS f.kind"
	" AND s.allocator IS f.allocator AND s.arena IS f.arena) FROM main.free AS f";

/* A row of the graph has up to 2^32 edges; the key has as many bits for their numbers as needed. */
static const char *const REFERENCES =
	"CREATE TABLE file.edge (id INTEGER PRIMARY KEY, spot INTEGER, target INTEGER);"
	"CREATE TABLE file.spot (number INTEGER PRIMARY KEY, place BYTES_INTEGER,"
	" inside BYTES_INTEGER);"
	"INSERT INTO file.edge SELECT (source << %u) + (rowid & 0xffffffff),"
	" spot_of(offset, target_offset), target FROM main.reference";

static const char *const SYMBOLS =
	"CREATE TABLE file.symbol_row (address INTEGER, size INTEGER, kind TEXT, name TEXT,"
	" module INTEGER);"
	"CREATE TABLE file.symbol_module (number INTEGER PRIMARY KEY, path TEXT UNIQUE);"
	"INSERT INTO file.symbol_module (path) SELECT DISTINCT module FROM main.symbol;"
	"INSERT INTO file.symbol_row SELECT address, size, kind, name, (SELECT number FROM"
	" file.symbol_module WHERE path IS module) FROM main.symbol";

#define ADDRESS_OF_USED "(SELECT base.address FROM base WHERE base.number = u.id >> 6) + u.distance"
#define OF_USED		" FROM used_allocation AS u JOIN shape AS s ON s.number = u.shape"
#define DESCRIBED_SO	" JOIN description AS d ON d.number = s.description"

#define PLACE                                                                      \
	"CASE WHEN e.spot < 0 THEN (SELECT place FROM spot WHERE number = e.spot)" \
	" ELSE (e.spot >> 4) * 8 END"

static const char *const VIEWS =
	"CREATE VIEW file.allocation AS SELECT u.id, " ADDRESS_OF_USED " AS address, s.size,"
	" " DESCRIBED ", coalesce(s.retained, s.size) AS retained, is_leak_root,"
	" u.id + CASE s.owner WHEN 0 THEN u.parent ELSE s.owner END AS owner" OF_USED DESCRIBED_SO
	";"
	"CREATE VIEW file.free AS SELECT f.id, (SELECT base.address FROM base WHERE base.number ="
	" f.id >> 6) + f.distance AS address, s.size, s.state, s.kind, s.allocator, s.arena"
	" FROM free_allocation AS f JOIN free_shape AS s ON s.number = f.shape;"
	"CREATE VIEW file.dominator AS SELECT u.id, " ADDRESS_OF_USED " AS address, s.size,"
	" u.id + u.parent AS parent, coalesce(s.retained, s.size) AS retained,"
	" coalesce(s.retained_count, 1) AS retained_count" OF_USED ";"
	"CREATE VIEW file.object AS SELECT u.id, " ADDRESS_OF_USED
	" AS address, o.class, o.runtime,"
	" s.size AS bytes, o.with_blocks, d.state, o.kept" OF_USED
	" JOIN object_description AS o ON o.number = s.object" DESCRIBED_SO ";"
	"CREATE VIEW file.symbol AS SELECT address, size, kind, name, path AS module FROM symbol_row"
	" JOIN symbol_module ON symbol_module.number = symbol_row.module;"
	"CREATE VIEW file.reference AS SELECT u.id AS source, e.target,"
	" " PLACE " AS offset, " ADDRESS_OF_USED " + " PLACE " AS address, CASE WHEN e.spot < 0"
	" THEN (SELECT inside FROM spot WHERE number = e.spot) ELSE (e.spot & 15) * 8 END"
	" AS target_offset"
	" FROM edge AS e JOIN used_allocation AS u ON u.id = e.id >> %u AND e.id >= u.id << %u"
	" AND e.id < u.id + 1 << %u";

/* Samples are enough to tell large tables from small ones. */
static const char *const END = "COMMIT; PRAGMA analysis_limit = 1000; ANALYZE file; DETACH file";

static void finalize(sqlite3_stmt *statement)
{
	sqlite3_finalize(statement);
}
DEFINE_CLEANUP(finalize, sqlite3_stmt *)

static struct error *prepare(struct sql *sql, const char *text, sqlite3_stmt **ret)
{
	int status = sqlite3_prepare_v2(sql->database, text, -1, ret, NULL);

	return status == SQLITE_OK ? NULL : sql_error(sql, status);
}

static struct error *attach(struct sql *sql, const char *path)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int status;

	sqlite3_set_authorizer(sql->database, NULL, NULL);
	sqlite3_db_config(sql->database, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
	sqlite3_limit(sql->database, SQLITE_LIMIT_ATTACHED, 1);
	TRY(prepare(sql, "ATTACH ?1 AS file", &statement));
	sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC);
	status = sqlite3_step(statement);
	return status == SQLITE_DONE ? NULL : sql_error(sql, status);
}

static struct error *run(struct sql *sql, sqlite3_stmt *statement)
{
	int status = sqlite3_step(statement);

	if (status != SQLITE_DONE)
		return sql_error(sql, status);
	sqlite3_reset(statement);
	return NULL;
}

static struct error *copy_descriptions(struct sql *sql, const struct sql_descriptions *descriptions)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;

	TRY(prepare(sql, DESCRIPTION, &statement));
	for (size_t i = 0; i < descriptions->list.count; i++) {
		sqlite3_bind_int64(statement, 1, (sqlite3_int64)i);
		sqlite3_bind_int64(statement, 2, descriptions->list.items[i].example);
		TRY(run(sql, statement));
	}
	return NULL;
}

static struct error *copy_shapes(struct sql *sql, const struct sql_descriptions *descriptions)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;

	TRY(prepare(sql, "INSERT INTO file.shape VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", &statement));
	for (size_t i = 0; i < descriptions->shapes.count; i++) {
		const struct sql_shape *shape = &descriptions->shapes.items[i];

		sqlite3_bind_int64(statement, 1, (sqlite3_int64)i);
		for (int j = 0; j < SQL_SHAPE_WORDS; j++) {
			if (shape->words[j] == SQL_ABSENT)
				sqlite3_bind_null(statement, j + 2);
			else
				sqlite3_bind_int64(statement, j + 2, shape->words[j]);
		}
		TRY(run(sql, statement));
	}
	return NULL;
}

static struct error *copy_described(struct sql *sql, struct sql_descriptions *descriptions)
{
	TRY(sql_add_descriptions(sql, descriptions));
	TRY(sql_execute(sql, BASES));
	TRY(sql_execute(sql, OBJECTS));
	TRY(sql_execute(sql, ALLOCATIONS));
	TRY(copy_descriptions(sql, descriptions));
	return copy_shapes(sql, descriptions);
}

static struct error *copy_allocations(struct sql *sql)
{
	static const enum stage needs[] = { STAGE_REACHABILITY, STAGE_SIGNATURES, STAGE_TYPES,
					    STAGE_LEAKED_TYPES, STAGE_LEAKS,	  STAGE_OWNERS };
	struct memory_account *account = analysis_account(sql->analysis);
	struct sql_descriptions descriptions = {
		.list = { .memory.account = account, .slots.memory.account = account },
		.shapes = { .memory.account = account, .slots.memory.account = account },
	};
	struct error *error;

	for (size_t i = 0; i < COUNT_OF(needs); i++)
		TRY(analysis_need(sql->analysis, needs[i]));
	TRY(named_kinds_find(sql->analysis, &sql->facts.kinds));
	error = copy_described(sql, &descriptions);
	tables_release(&descriptions.list, &descriptions.shapes);
	return error;
}

/*
 * True for tables that a file copies: not those that become views there, nor those that it lacks.
 */
static bool is_copied(const char *name)
{
	static const char *const others[] = { "allocation", "free", "dominator", "reference",
					      "member",	    "item", "object",	 "symbol" };

	for (size_t i = 0; i < COUNT_OF(others); i++)
		if (strcmp(name, others[i]) == 0)
			return false;
	return true;
}

static void write_columns(struct writer *writer, const struct table *columns)
{
	const char *between = " \"";

	for (size_t i = 0; i < columns->column_count; i++) {
		if (columns->columns[i].kind == VALUE_ANY)
			continue;
		writer_text(writer, between);
		between = ", \"";
		for (const char *name = columns->columns[i].name; *name; name++)
			writer_put(writer, (char)(*name == ' ' ? '_' : *name));
		writer_put(writer, '"');
	}
}

/* All columns, with those that `*` leaves out, but for contents of memory. */
static struct error *copy_table(struct sql *sql, const struct sql_table *table)
{
	const struct table *columns = sql_columns(table);
	_cleanup_(free) char *declaration = sql_declare(table, true), *text = NULL;
	struct writer writer = { 0 };

	TRY_MEMORY(declaration);
	write_columns(&writer, columns);
	writer_put(&writer, '\0');
	if (!writer.failed)
		text = format_text("%s; INSERT INTO file.%s SELECT %s FROM main.%s", declaration,
				   columns->name, (const char *)writer.buffer, columns->name);
	writer_deinit(&writer);
	return text ? sql_execute(sql, text) : &error_no_memory;
}

/* Findings last: the other tables may add some. */
static struct error *copy_tables(struct sql *sql)
{
	const struct sql_table *findings = NULL;

	for (size_t i = 0; sql_table_at(i); i++) {
		const char *name = sql_columns(sql_table_at(i))->name;

		if (strcmp(name, "finding") == 0)
			findings = sql_table_at(i);
		else if (is_copied(name))
			TRY(copy_table(sql, sql_table_at(i)));
	}
	return copy_table(sql, findings);
}

static struct error *copy_spots(struct sql *sql, const struct sql_spots *spots)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;

	TRY(prepare(sql, "INSERT INTO file.spot VALUES (?1, ?2, ?3)", &statement));
	for (size_t i = 0; i < spots->count; i++) {
		sqlite3_bind_int64(statement, 1, -1 - (sqlite3_int64)i);
		sqlite3_bind_int64(statement, 2, (sqlite3_int64)spots->items[i].place);
		sqlite3_bind_int64(statement, 3, (sqlite3_int64)spots->items[i].inside);
		TRY(run(sql, statement));
	}
	return NULL;
}

/* Run a statement that has that number in up to three places. */
static struct error *execute_with(struct sql *sql, const char *format, unsigned int bits)
{
	_cleanup_(free) char *text = NULL;

	if (asprintf(&text, format, bits, bits, bits) < 0)
		return &error_no_memory;
	return sql_execute(sql, text);
}

/* How many bits the numbers of an allocation's edges need. */
static unsigned int count_edge_bits(struct sql *sql)
{
	const struct allocation_index *index = analysis_index(sql->analysis);
	uint64_t most = 1;
	unsigned int bits = 0;

	bitmap_for_each(id, allocation_used(index))
		most = MAX(most,
			   graph_outgoing(analysis_graph(sql->analysis), (allocation_id)id).count);
	while (UINT64_C(1) << bits < most)
		bits++;
	return bits;
}

static struct error *copy_references(struct sql *sql, unsigned int bits)
{
	struct memory_account *account = analysis_account(sql->analysis);
	struct sql_spots spots = { .memory.account = account, .slots.memory.account = account };
	struct error *error = sql_add_spots(sql, &spots);

	if (!error)
		error = execute_with(sql, REFERENCES, bits);
	if (!error)
		error = copy_spots(sql, &spots);
	table_release(&spots);
	return error;
}

struct error *sql_write_file(struct sql *sql, const char *path)
{
	unsigned int bits;

	TRY(attach(sql, path));
	TRY(sql_execute(sql, SET_UP));
	TRY(copy_allocations(sql));
	TRY(sql_execute(sql, FREE));
	TRY(analysis_need(sql->analysis, STAGE_GRAPH));
	bits = count_edge_bits(sql);
	TRY(copy_references(sql, bits));
	TRY(sql_execute(sql, SYMBOLS));
	TRY(copy_tables(sql));
	TRY(execute_with(sql, VIEWS, bits));
	TRY(sql_add_views(sql, "file."));
	return sql_execute(sql, END);
}
