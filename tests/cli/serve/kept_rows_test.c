#include "cli/serve/kept_rows.h"

#include "tests/assertions.h"

#include <inttypes.h>
#include <string.h>

enum { MANY = 20000 };

static const char HEAD[] = "{\n \"heapcore\": 2,\n \"tables\": [\n";
static const char TAIL[] = "\n ],\n \"findings\": [\n  {\"name\": \"no table\"}\n ]\n}\n";

/* A table as the format writes it; its rows have texts of some length. */
static void write_table(FILE *out, const char *name, size_t rows, int length, const char *end)
{
	fprintf(out, "  {\"name\": \"%s\", \"rows\": [", name);
	for (size_t i = 0; i < rows; i++)
		fprintf(out, "%s\n   {\"n\":%zu,\"text\":\"%0*d\"}", i ? "," : "", i, length, 0);
	fprintf(out, "%s]}%s", rows ? "\n  " : "", end);
}

static struct kept_rows *make(size_t rows, int length)
{
	struct kept_rows *kept;
	FILE *out;

	assert_no_error(kept_rows_create(NULL, &kept));
	out = kept_rows_stream(kept);
	fputs(HEAD, out);
	write_table(out, "none", 0, 1, ",\n");
	write_table(out, "rows", rows, length, ",\n");
	write_table(out, "last", 1, 1, "");
	fputs(TAIL, out);
	assert_no_error(kept_rows_end(kept));
	assert_true(kept_rows_has_tables(kept));
	return kept;
}

static char *text_of(const struct kept_rows *kept, struct page page)
{
	struct writer writer = { 0 };

	assert_no_error(kept_rows_write(kept, &page, &writer));
	writer_put(&writer, '\0');
	return writer.buffer;
}

TEST(all_rows_are_the_document)
{
	_cleanup_(kept_rows_release) struct kept_rows *kept = make(3, 1);
	_cleanup_(free) char *text = text_of(kept, (struct page){ .rows = 10 });

	assert_string_equal(text, "{\n \"heapcore\": 2,\n \"tables\": [\n"
				  "  {\"name\": \"none\", \"rows\": []},\n"
				  "  {\"name\": \"rows\", \"rows\": [\n"
				  "   {\"n\":0,\"text\":\"0\"},\n"
				  "   {\"n\":1,\"text\":\"0\"},\n"
				  "   {\"n\":2,\"text\":\"0\"}\n"
				  "  ]},\n"
				  "  {\"name\": \"last\", \"rows\": [\n"
				  "   {\"n\":0,\"text\":\"0\"}\n"
				  "  ]}\n"
				  " ],\n \"findings\": [\n  {\"name\": \"no table\"}\n ]\n}\n");
}

TEST(a_part_says_of_what)
{
	_cleanup_(kept_rows_release) struct kept_rows *kept = make(MANY, 1);
	struct page page = { .from = 300, .rows = 1, .table = 1, .one_table = true };
	_cleanup_(free) char *text = text_of(kept, page);

	assert_non_null(strstr(text, "[\n   {\"n\":300,\"text\":\"0\"}\n"
				     "  ], \"total\":20000, \"from\":300}\n ],\n"));
	assert_null(strstr(text, "last"));
}

/* Blocks end anywhere within lines. */
TEST(each_row_is_found_in_a_long_document)
{
	static const uint64_t rows[] = { 0, 1, 255, 256, 257, 9999, MANY - 2, MANY - 1 };
	_cleanup_(kept_rows_release) struct kept_rows *kept = make(MANY, 100);

	assert_true(kept_rows_size(kept) > 2 << 20);
	assert_true(kept_rows_cost(kept) < kept_rows_size(kept) / 2);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		_cleanup_(free) char *text =
			text_of(kept, (struct page){ .from = rows[i], .rows = 1 });
		char row[40];

		snprintf(row, sizeof(row), "[\n   {\"n\":%" PRIu64 ",\"text\":\"0", rows[i]);
		assert_non_null(strstr(text, row));
	}
}

TEST(one_row_may_be_longer_than_a_block)
{
	_cleanup_(kept_rows_release) struct kept_rows *kept = make(2, 1 << 20);
	_cleanup_(free) char *text = text_of(kept, (struct page){ .from = 1, .rows = 1 });

	assert_non_null(strstr(text, "[\n   {\"n\":1,\"text\":\"0"));
	assert_true(strlen(text) > 1 << 20);
}

TEST(an_answer_ends_behind_some_megabytes)
{
	_cleanup_(kept_rows_release) struct kept_rows *kept = make(20, 1 << 20);
	_cleanup_(free) char *text = text_of(kept, (struct page){ .rows = 20 });

	assert_true(strlen(text) < 6 << 20);
	assert_non_null(strstr(text, "], \"total\":20, \"from\":0}"));
	assert_non_null(strstr(text, "\"rows\": [], \"total\":1, \"from\":0}\n ],\n"));
}

TEST(what_is_no_document_is_text)
{
	_cleanup_(kept_rows_release) struct kept_rows *kept = NULL;
	struct writer writer = { 0 };

	assert_no_error(kept_rows_create(NULL, &kept));
	fputs("a;b 1\n  {\"name\": \"x\", \"rows\": [\n", kept_rows_stream(kept));
	assert_no_error(kept_rows_end(kept));
	assert_false(kept_rows_has_tables(kept));
	assert_no_error(kept_rows_text(kept, 5, &writer));
	assert_int_equal(writer.used, 5);
	assert_memory_equal(writer.buffer, "a;b 1", 5);
	writer_deinit(&writer);
}
