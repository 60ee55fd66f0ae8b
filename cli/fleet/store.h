/*
 * Many cores in one file of SQLite: of each its facts (cli/commands/facts.c), or why there are
 * none.
 *
 * A core is there with all of its rows or not at all, however a run ends. It is known by its path,
 * size and time of change; one that changed takes the place of the former.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/base/progress.h"
#include "analyzer/report/report.h"

#include <sqlite3.h>

struct tag {
	char *name, *value;
};

/* Facts about a core that come from outside of it; owned. */
struct fleet_core {
	char *path; /* absolute; of the rows, if these were made elsewhere */
	uint64_t size;
	int64_t modified; /* ns since 1970 */
	struct tag
		*tags; /* the last of a name counts; 'host' and 'build' are columns of the core */
	size_t tag_count;
};

void fleet_core_deinit(struct fleet_core *core);
DEFINE_DEINIT(fleet_core_deinit, struct fleet_core)

/* Add a tag, of copies; value is size bytes. */
struct error *fleet_core_tag(struct fleet_core *core, const char *name, const char *value,
			     size_t size);

/* The result of analysing a core. */
struct fleet_result {
	const char *rows; /* of 'facts' as ndjson; may be hostile */
	size_t rows_size;
	const char *error; /* NULL: none that ended it */
	int status;	   /* exit status of heapcore; -1: it was killed */
	double seconds;
};

struct store;

enum store_access {
	STORE_READ,
	STORE_READ_ONLY, /* the file is not even renewed, nor is any made beside it */
	STORE_WRITE,
};

/* Writing makes the file if there is none. */
struct error *store_open(const char *path, enum store_access access, struct store **ret);
/* Discards changes since store_commit(). */
void store_close(struct store *store);
DEFINE_CLEANUP(store_close, struct store *)

/*
 * Have a core to oneself among all processes that use the file, as long as they live; false if
 * another one has it.
 */
bool store_claim(struct store *store, const char *path);
void store_release(struct store *store, const char *path);

/* Cores that are analysed anew although the store has them. */
struct fleet_anew {
	bool failed;	    /* those with an error */
	const char *except; /* those of another version of heapcore than this; NULL: none */
};

/* Set ret if the store has the core in its present state. */
struct error *store_has(struct store *store, const struct fleet_core *core,
			const struct fleet_anew *anew, bool *ret);

/* Between these two, cores are added. Others wait for the end. */
struct error *store_begin(struct store *store);
struct error *store_commit(struct store *store);

/* Rows that are no facts become the core's error. *ret_fine tells whether there is none. */
struct error *store_add(struct store *store, const struct fleet_core *core,
			const struct fleet_result *result, bool *ret_fine);

/* The first column of the only row, to be freed; NULL: there is none, or it is null. */
struct error *store_text(struct store *store, const char *query, const char *const *values,
			 size_t count, char **ret);

/* Run a query with texts for its parameters, and write its rows as those of the table. */
struct error *store_report(struct store *store, const char *query, const char *const *values,
			   size_t count, const struct table *table, struct report *report);

/* Write the first column of each row as a line. */
struct error *store_lines(struct store *store, const char *query, const char *const *values,
			  size_t count, FILE *out);

/*
 * Guard a store that somebody else asks: questions end when progress is interrupted, and SQLite has
 * so many bytes of memory until the store is closed; 0: as many as it wants.
 */
void store_guard(struct store *store, struct progress *progress, size_t memory);

/* Answer questions in SQL, which from now on can only read. */
struct error *store_ask(struct store *store, const char *text, struct report *report);

/* The tables of a store, and those that further makes of them, as "name(column, ...)", a line each,
 * to be freed; NULL: memory is short. */
char *store_signatures(const char *further);

/* True if the file is one of SQLite that says so is ours. */
bool store_is_at(const char *path);

/* The first column of the only row. */
struct error *store_number(struct store *store, const char *query, const char *const *values,
			   size_t count, int64_t *ret);

/* Run a statement that has none; or statements without parameters. */
struct error *store_change(struct store *store, const char *query, const char *const *values,
			   size_t count);
struct error *store_run(struct store *store, const char *text);
