/*
 * The JSON document of one command, kept so that any page of its tables is found at once.
 *
 * The document is cut into blocks, which are compressed. A temporary file without a name holds
 * them; only the last block, for most documents the only one, is in memory. Since the format writes
 * each row as a line of its own, the lines are enough to find the tables, and the place of every
 * MARK_ROWS-th row is kept: a list of ten million rows takes 300 KiB of memory.
 *
 * Once it is ended, any number of threads may read it.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/report/writer.h"

#include <stdint.h>
#include <stdio.h>

struct kept_rows;

/* folder is for the temporary file, or NULL. One reference is the caller's. */
struct error *kept_rows_create(const char *folder, struct kept_rows **ret);
void kept_rows_retain(struct kept_rows *document);
void kept_rows_release(struct kept_rows *document);
DEFINE_CLEANUP(kept_rows_release, struct kept_rows *)

/* The document is written to this, up to kept_rows_end(). */
FILE *kept_rows_stream(struct kept_rows *document);
/* Close the stream, and say why not all of the document was kept. */
struct error *kept_rows_end(struct kept_rows *document);

/* How much of the memory and of the disk it takes. */
uint64_t kept_rows_cost(const struct kept_rows *document);
/* False for the few commands that write text whatever the format. */
bool kept_rows_has_tables(const struct kept_rows *document);
uint64_t kept_rows_size(const struct kept_rows *document);

/* The rows that are wanted. */
struct page {
	uint64_t from, rows;
	size_t table; /* only this one, if one_table */
	bool one_table;
	/* Stands for the brace that opens the document, as "{\"a\": 1,"; or NULL. */
	const char *more;
};

/*
 * Write the document, which has tables, with these rows of each. A table that has others carries
 * "total" and "from". Behind some megabytes, further rows and tables are left out.
 */
struct error *kept_rows_write(const struct kept_rows *document, const struct page *page,
			      struct writer *writer);

/*
 * Write a document with the first rows of the first table, as far as they are there, while the
 * document is written by another thread; false: there are none yet.
 */
bool kept_rows_write_first(struct kept_rows *document, uint64_t rows, struct writer *writer);

/* Write the first bytes as they are. */
struct error *kept_rows_text(const struct kept_rows *document, size_t most, struct writer *writer);
