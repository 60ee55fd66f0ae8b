#include "cli/serve/kept_rows.h"

#include "analyzer/base/list.h"
#include "analyzer/base/temporary.h"
#include "analyzer/report/values.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <zstd.h>

enum { BLOCK_SIZE = 256 << 10, MARK_ROWS = 256, HEAD_SIZE = 16 };
static const uint64_t MOST_KEPT = 4UL << 30;			 /* bytes of the temporary file */
static const size_t MOST_WRITTEN = 4 << 20, MOST_TABLES = 10000; /* of an answer */

/* How lines of the format begin; see analyzer/report/formats/json.c. */
static const char FIRST_LINE[] = "{\n";
static const char TABLE_LINE[] = "  {\"name\": ", ROW_LINE[] = "   {", TAIL_LINE[] = " ],";

struct kept_table {
	uint64_t start; /* of its first line */
	uint64_t rows;
	size_t first_mark;
};

/* A block in the file. */
struct kept_block {
	uint64_t offset;
	size_t size;
};

struct kept_rows {
	atomic_size_t references;
	const char *folder; /* borrowed */
	FILE *stream;
	pthread_mutex_t lock; /* of all below, until the document is ended */
	struct error *error;  /* the first failure, which ends all writing */
	int fd;		      /* -1: there is no file yet */
	struct kept_block *blocks;
	size_t block_count;
	uint64_t file_size;
	bool is_text; /* of a command that writes something else whatever the format */
	char *last;   /* the block that is in memory; BLOCK_SIZE bytes */
	size_t last_size;

	struct kept_table *tables;
	size_t table_count;
	uint64_t *marks; /* of every MARK_ROWS-th row of a table: where its line begins */
	size_t mark_count;
	uint64_t tail; /* where the line behind the tables begins; 0: not seen yet */

	/* The line that is being written. */
	uint64_t line_start;
	char head[HEAD_SIZE]; /* its first bytes */
	size_t head_size;
};

static uint64_t size_of(const struct kept_rows *document)
{
	return document->block_count * (uint64_t)BLOCK_SIZE + document->last_size;
}

/* ---- writing */

static bool begins_with(const struct kept_rows *document, const char *text)
{
	size_t length = strlen(text);

	return document->head_size >= length && memcmp(document->head, text, length) == 0;
}

static struct error *take_row(struct kept_rows *document)
{
	struct kept_table *table = &document->tables[document->table_count - 1];

	if (table->rows++ % MARK_ROWS == 0)
		return LIST_APPEND(document->marks, document->mark_count, document->line_start);
	return NULL;
}

/* A line is whole; what follows the tables has none of their lines. */
static struct error *take_line(struct kept_rows *document)
{
	if (document->line_start == 0)
		document->is_text = !begins_with(document, FIRST_LINE);
	if (document->is_text || document->tail)
		return NULL;
	if (begins_with(document, TABLE_LINE))
		return LIST_APPEND(document->tables, document->table_count,
				   (struct kept_table){ .start = document->line_start,
							.first_mark = document->mark_count });
	if (document->table_count && begins_with(document, ROW_LINE))
		return take_row(document);
	if (begins_with(document, TAIL_LINE))
		document->tail = document->line_start;
	return NULL;
}

static struct error *write_block(struct kept_rows *document)
{
	size_t room = ZSTD_compressBound(BLOCK_SIZE), size;
	_cleanup_(free) char *packed = malloc(room);
	struct kept_block block = { .offset = document->file_size };

	TRY_MEMORY(packed);
	if (document->fd < 0)
		TRY(temporary_open(document->folder, &document->fd));
	size = ZSTD_compress(packed, room, document->last, document->last_size, 1);
	if (ZSTD_isError(size))
		return &error_no_memory;
	if (document->file_size + size > MOST_KEPT)
		return error_create(ERROR_USAGE, "the answer is too large: ask for less");
	if (!write_fully(document->fd, packed, size, document->file_size))
		return error_system("a temporary file");
	block.size = size;
	TRY(LIST_APPEND(document->blocks, document->block_count, block));
	document->file_size += size;
	document->last_size = 0;
	return NULL;
}

static struct error *keep_bytes(struct kept_rows *document, const char *bytes, size_t size)
{
	while (size > 0) {
		size_t fits;

		if (document->last_size == BLOCK_SIZE)
			TRY(write_block(document));
		fits = MIN(size, BLOCK_SIZE - document->last_size);
		memcpy(document->last + document->last_size, bytes, fits);
		document->last_size += fits;
		bytes += fits;
		size -= fits;
	}
	return NULL;
}

static struct error *take_bytes(struct kept_rows *document, const char *bytes, size_t size)
{
	while (size > 0) {
		const char *end = memchr(bytes, '\n', size);
		size_t length = end ? (size_t)(end + 1 - bytes) : size;
		size_t more = MIN(length, HEAD_SIZE - document->head_size);

		memcpy(document->head + document->head_size, bytes, more);
		document->head_size += more;
		TRY(keep_bytes(document, bytes, length));
		if (end) {
			TRY(take_line(document));
			document->line_start = size_of(document);
			document->head_size = 0;
		}
		bytes += length;
		size -= length;
	}
	return NULL;
}

/* 0 is stdio's own word for a failure. */
static ssize_t write_stream(void *cookie, const char *bytes, size_t size)
{
	struct kept_rows *document = cookie;
	bool has_failed;

	pthread_mutex_lock(&document->lock);
	if (!document->error)
		document->error = take_bytes(document, bytes, size);
	has_failed = document->error;
	pthread_mutex_unlock(&document->lock);
	errno = EIO;
	return has_failed ? 0 : (ssize_t)size;
}

struct error *kept_rows_create(const char *folder, struct kept_rows **ret)
{
	static const cookie_io_functions_t functions = { .write = write_stream };
	_cleanup_(kept_rows_release) struct kept_rows *document = calloc(1, sizeof(*document));

	TRY_MEMORY(document);
	document->references = 1;
	pthread_mutex_init(&document->lock, NULL);
	document->folder = folder;
	document->fd = -1;
	document->last = malloc(BLOCK_SIZE);
	document->stream = fopencookie(document, "w", functions);
	TRY_MEMORY(document->last && document->stream);
	*ret = take(document);
	return NULL;
}

void kept_rows_retain(struct kept_rows *document)
{
	atomic_fetch_add(&document->references, 1);
}

void kept_rows_release(struct kept_rows *document)
{
	if (atomic_fetch_sub(&document->references, 1) > 1)
		return;
	if (document->stream)
		fclose(document->stream);
	if (document->fd >= 0)
		close(document->fd);
	error_destroy(document->error);
	free(document->last);
	free(document->blocks);
	free(document->tables);
	free(document->marks);
	pthread_mutex_destroy(&document->lock);
	free(document);
}

FILE *kept_rows_stream(struct kept_rows *document)
{
	return document->stream;
}

struct error *kept_rows_end(struct kept_rows *document)
{
	char *last;

	fclose(take(document->stream));
	if (document->error)
		return take(document->error);
	/* Most documents are much smaller than a block. */
	pthread_mutex_lock(&document->lock);
	last = realloc(document->last, document->last_size + 1);
	document->last = last ? last : document->last;
	pthread_mutex_unlock(&document->lock);
	return NULL;
}

uint64_t kept_rows_cost(const struct kept_rows *document)
{
	return sizeof(*document) + document->file_size + document->last_size +
	       document->mark_count * sizeof(*document->marks) +
	       document->table_count * sizeof(*document->tables) +
	       document->block_count * sizeof(*document->blocks);
}

bool kept_rows_has_tables(const struct kept_rows *document)
{
	return document->table_count > 0;
}

/* ---- reading */

static const size_t NO_BLOCK = SIZE_MAX;

/* A place in the document, with the block that it is in. */
struct reader {
	const struct kept_rows *document;
	uint64_t offset;
	size_t block;
	char *bytes;  /* of that block; owned */
	char *packed; /* owned */
	struct error *error;
};

static void reader_deinit(struct reader *reader)
{
	free(reader->bytes);
	free(reader->packed);
	error_destroy(reader->error);
}
DEFINE_DEINIT(reader_deinit, struct reader)

static struct error *load_block(struct reader *reader, size_t number)
{
	const struct kept_block *block = &reader->document->blocks[number];
	size_t size;

	if (!reader->bytes)
		reader->bytes = malloc(BLOCK_SIZE);
	if (!reader->packed)
		reader->packed = malloc(ZSTD_compressBound(BLOCK_SIZE));
	TRY_MEMORY(reader->bytes && reader->packed);
	if (pread(reader->document->fd, reader->packed, block->size, (off_t)block->offset) !=
	    (ssize_t)block->size)
		return error_system("a temporary file");
	size = ZSTD_decompress(reader->bytes, BLOCK_SIZE, reader->packed, block->size);
	if (ZSTD_isError(size) || size != BLOCK_SIZE)
		return error_create(ERROR_SYSTEM, "a temporary file was damaged");
	reader->block = number;
	return NULL;
}

/* The bytes at the reader's place, up to the end of its block; NULL: the end, or an error. */
static const char *peek(struct reader *reader, size_t *ret_size)
{
	const struct kept_rows *document = reader->document;
	size_t number = (size_t)(reader->offset / BLOCK_SIZE);
	size_t within = (size_t)(reader->offset % BLOCK_SIZE);

	if (reader->error || reader->offset >= size_of(document))
		return NULL;
	if (number == document->block_count) {
		*ret_size = document->last_size - within;
		return document->last + within;
	}
	if (reader->block != number)
		reader->error = load_block(reader, number);
	*ret_size = BLOCK_SIZE - within;
	return reader->error ? NULL : reader->bytes + within;
}

/* Copy what is left of the line without its end, unless writer is NULL, and pass it. */
static void pass_line(struct reader *reader, struct writer *writer)
{
	const char *bytes, *end = NULL;
	size_t size = 0;

	while (!end && (bytes = peek(reader, &size)) != NULL) {
		end = memchr(bytes, '\n', size);
		size = end ? (size_t)(end - bytes) : size;
		if (writer)
			writer_bytes(writer, bytes, size);
		reader->offset += size + (end != NULL);
	}
}

static void pass_rows(struct reader *reader, const struct kept_table *table, uint64_t row)
{
	reader->offset = reader->document->marks[table->first_mark + row / MARK_ROWS];
	for (uint64_t i = 0; i < row % MARK_ROWS; i++)
		pass_line(reader, NULL);
}

/* Drop what the writer's end has of the line's last characters. */
static void drop_end(struct writer *writer, const char *end)
{
	size_t length = strlen(end);

	if (writer->used >= length &&
	    memcmp(writer->buffer + writer->used - length, end, length) == 0)
		writer->used -= length;
}

static uint64_t write_rows(struct reader *reader, const struct kept_table *table,
			   const struct page *page, struct writer *writer)
{
	uint64_t count = page->from < table->rows ? MIN(page->rows, table->rows - page->from) : 0;
	uint64_t row = 0;

	if (count)
		pass_rows(reader, table, page->from);
	for (; row < count && writer->used < MOST_WRITTEN; row++) {
		writer_text(writer, row ? ",\n" : "\n");
		pass_line(reader, writer);
		drop_end(writer, ",");
	}
	return row;
}

static void write_number(struct writer *writer, const char *key, uint64_t number)
{
	writer_text(writer, ", ");
	json_key(writer, key);
	writer_decimal(writer, number);
}

static void write_table(struct reader *reader, const struct kept_table *table,
			const struct page *page, struct writer *writer)
{
	uint64_t count;

	reader->offset = table->start;
	pass_line(reader, writer);
	drop_end(writer, ",");
	drop_end(writer, "]}");
	count = write_rows(reader, table, page, writer);
	writer_text(writer, count ? "\n  ]" : "]");
	if (count < table->rows) {
		write_number(writer, "total", table->rows);
		write_number(writer, "from", page->from);
	}
	writer_put(writer, '}');
}

static void write_tables(struct reader *reader, const struct page *page, struct writer *writer)
{
	const struct kept_rows *document = reader->document;
	size_t first = page->one_table ? MIN(page->table, document->table_count) : 0;
	size_t end = page->one_table ? MIN(first + 1, document->table_count)
				     : MIN(document->table_count, MOST_TABLES);

	for (size_t i = first; i < end; i++) {
		if (i > first)
			writer_text(writer, ",\n");
		write_table(reader, &document->tables[i], page, writer);
	}
	writer_text(writer, "\n");
}

/* All up to a place, or to the end. */
static void copy(struct reader *reader, uint64_t end, struct writer *writer)
{
	const char *bytes;
	size_t size;

	while (reader->offset < end && (bytes = peek(reader, &size)) != NULL) {
		size = (size_t)MIN((uint64_t)size, end - reader->offset);
		writer_bytes(writer, bytes, size);
		reader->offset += size;
	}
}

struct error *kept_rows_write(const struct kept_rows *document, const struct page *page,
			      struct writer *writer)
{
	_cleanup_(reader_deinit) struct reader reader = { .document = document, .block = NO_BLOCK };

	if (page->more)
		writer_text(writer, page->more);
	reader.offset = page->more ? 1 : 0;
	copy(&reader, document->tables[0].start, writer);
	write_tables(&reader, page, writer);
	reader.offset = document->tail;
	copy(&reader, size_of(document), writer);
	TRY(take(reader.error));
	TRY_MEMORY(!writer->failed);
	return NULL;
}

/* Under the lock. */
static struct error *write_first(const struct kept_rows *document, const struct page *page,
				 struct writer *writer)
{
	_cleanup_(reader_deinit) struct reader reader = { .document = document, .block = NO_BLOCK };

	copy(&reader, document->tables[0].start, writer);
	write_tables(&reader, page, writer);
	writer_text(writer, " ],\n \"findings\": [],\n \"complete\": false\n}\n");
	TRY(take(reader.error));
	TRY_MEMORY(!writer->failed);
	return NULL;
}

bool kept_rows_write_first(struct kept_rows *document, uint64_t rows, struct writer *writer)
{
	const struct page page = { .rows = rows, .one_table = true };
	struct error *error = NULL;
	bool has_rows;

	pthread_mutex_lock(&document->lock);
	has_rows = !document->is_text && document->table_count && document->tables[0].rows;
	if (has_rows)
		error = write_first(document, &page, writer);
	pthread_mutex_unlock(&document->lock);
	has_rows &= !error;
	error_destroy(error);
	return has_rows;
}

struct error *kept_rows_text(const struct kept_rows *document, size_t most, struct writer *writer)
{
	_cleanup_(reader_deinit) struct reader reader = { .document = document, .block = NO_BLOCK };

	copy(&reader, MIN((uint64_t)most, size_of(document)), writer);
	TRY(take(reader.error));
	TRY_MEMORY(!writer->failed);
	return NULL;
}

uint64_t kept_rows_size(const struct kept_rows *document)
{
	return size_of(document);
}
