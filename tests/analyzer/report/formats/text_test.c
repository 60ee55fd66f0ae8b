#include "tests/analyzer/report/reported.h"

#define COUNT_TABLE(name, sentence)                                             \
	TABLE(name, sentence, { "what", VALUE_TEXT }, { "count", VALUE_COUNT }, \
	      { "bytes", VALUE_BYTES })

static const struct table count_table =
	COUNT_TABLE("total", "{count} {what|count} {count|uses|use} 0x{bytes} ({bytes,}) bytes.");

TEST(sentence_is_filled_in_for_each_row)
{
	struct reported reported;

	reported_open(&reported, "text", false);
	report_begin_table(&reported.report, &count_table);
	for (uint64_t i = 0; i < 2; i++)
		report_row(&reported.report, "allocations", 1000 * i, 1640 * i);
	report_row(&reported.report, "matches", 1, 1);
	report_row(&reported.report, "kinds of leak roots, at least,", 1, 2);
	report_end_table(&reported.report);
	reported_close(&reported, "0 allocations use 0 bytes.\n"
				  "1,000 allocations use 1,640 bytes.\n"
				  "1 match uses 1 byte.\n"
				  "1 kind of leak roots, at least, uses 2 bytes.\n");
}

static const struct table number_table = TABLE(
	"numbers",
	"At 0x{address}, {address}: {size}, 0x{size}; {count} {count|has 1 instance|have many}",
	{ "address", VALUE_ADDRESS }, { "size", VALUE_BYTES }, { "count", VALUE_COUNT });

TEST(numbers_say_what_base_they_have)
{
	struct reported reported;

	reported_open(&reported, "text", false);
	report_single(&reported.report, &number_table, 0x7f0010, 1032, 1);
	reported_close(&reported,
		       "At 0x7f0010, 0x7f0010: 1,032 (0x408), 1,032 (0x408); 1 has 1 instance\n");
}

TEST(numbers_of_chap_stand_as_they_are_spelled)
{
	struct reported reported;

	reported_open(&reported, "text", false);
	reported.report.chap = true;
	report_single(&reported.report, &number_table, 0x7f0010, 1032, 1000);
	report_single(&reported.report, &count_table, "allocations", 1, 1640);
	reported_close(&reported, "At 0x7f0010, 7f0010: 408, 0x408; 1000 have many\n"
				  "1 allocations use 0x668 (1,640) bytes.\n");
}

TEST(table_made_where_another_was_has_its_own_sentence)
{
	static const char *const sentences[] = { "r8 {value}", "rip {value}" };
	struct reported reported;

	reported_open(&reported, "text", false);
	for (size_t i = 0; i < COUNT_OF(sentences); i++) {
		const struct table table =
			TABLE("registers", sentences[i], { "value", VALUE_ADDRESS });

		report_single(&reported.report, &table, 0x7f0010);
	}
	reported_close(&reported, "r8 0x7f0010\n"
				  "rip 0x7f0010\n");
}

TEST(share_is_a_bar)
{
	struct reported reported;

	reported_open(&reported, "text", false);
	report_shares(&reported.report);
	reported_close(&reported, "share     count\n"
				  "########      0\n"
				  ":             1\n"
				  ".             2\n"
				  "              3\n");
}

TEST(share_in_a_sentence_is_a_percentage)
{
	static const struct table table =
		TABLE("part", "That is {share} of it.", { "share", VALUE_SHARE });
	struct reported reported;

	reported_open(&reported, "text", false);
	report_single(&reported.report, &table, 0.125);
	reported_close(&reported, "That is 12.5 % of it.\n");
}

TEST(part_with_an_absent_value_is_left_out)
{
	static const struct table table =
		TABLE("allocation", "At {address}[\n... with signature {signature}][ ({note})]\n",
		      { "address", VALUE_ADDRESS }, { "signature", VALUE_ADDRESS },
		      { "note", VALUE_TEXT });
	struct reported reported;

	reported_open(&reported, "text", false);
	report_begin_table(&reported.report, &table);
	report_row(&reported.report, 0x7f0010, 0x55d0, ABSENT);
	report_row(&reported.report, 0x7f0020, ABSENT, "odd");
	report_end_table(&reported.report);
	reported_close(&reported, "At 0x7f0010\n... with signature 0x55d0\n\n"
				  "At 0x7f0020 (odd)\n\n");
}

TEST(part_within_a_part_counts_for_itself)
{
	static const struct table table = TABLE(
		"thing", "[Signature {signature}[ ({name})] has][ just[ {name}]] {count} things.",
		{ "signature", VALUE_ADDRESS }, { "name", VALUE_TEXT }, { "count", VALUE_COUNT });
	struct reported reported;

	reported_open(&reported, "text", false);
	report_begin_table(&reported.report, &table);
	report_row(&reported.report, 0x1000, "Foo", 1);
	report_row(&reported.report, 0x2000, ABSENT, 2);
	report_row(&reported.report, ABSENT, "Foo", 3);
	report_end_table(&reported.report);
	reported_close(&reported, "Signature 0x1000 (Foo) has just Foo 1 things.\n"
				  "Signature 0x2000 has just 2 things.\n"
				  " just Foo 3 things.\n");
}

TEST(brackets_may_be_meant_to_be_seen)
{
	static const struct table table =
		TABLE("node", "{[}{address}[ {[}{note}{]}]{]}", { "address", VALUE_ADDRESS },
		      { "note", VALUE_TEXT });
	struct reported reported;

	reported_open(&reported, "text", false);
	report_begin_table(&reported.report, &table);
	report_row(&reported.report, 0x1000, "Foo");
	report_row(&reported.report, 0x2000, ABSENT);
	report_end_table(&reported.report);
	reported_close(&reported, "[0x1000 [Foo]]\n[0x2000]\n");
}

static void write_columns(struct report *report)
{
	static const struct table table = COUNT_TABLE("thing", NULL);

	report_begin_table(report, &table);
	report_row(report, "stacks", 7, 1234567);
	report_row(report, "caf\u00e9", 12345, ABSENT);
	report_end_table(report);
}

TEST(columns_are_as_wide_as_what_is_in_them)
{
	struct reported reported;

	reported_open(&reported, "text", false);
	write_columns(&reported.report);
	reported_close(&reported, "what     count      bytes\n"
				  "stacks       7  1,234,567\n"
				  "caf\u00e9    12,345          -\n");
}

TEST(header_is_bold_only_in_colour)
{
	struct reported reported;

	reported_open(&reported, "text", true);
	write_columns(&reported.report);
	reported_close(&reported, "\033[1mwhat     count      bytes\033[0m\n"
				  "stacks       7  1,234,567\n"
				  "caf\u00e9    12,345          -\n");
}

TEST(kinds_and_outcomes_have_colours)
{
	static const struct table rows = TABLE("check", NULL, { "kind", VALUE_TEXT },
					       { "outcome", VALUE_TEXT }, { "count", VALUE_COUNT });
	static const struct table sentence = TABLE(
		"check", "{kind}: {outcome}", { "kind", VALUE_TEXT }, { "outcome", VALUE_TEXT });
	struct reported reported;

	reported_open(&reported, "text", true);
	report_begin_table(&reported.report, &rows);
	report_row(&reported.report, "a", "passed", 1);
	report_row(&reported.report, "bcdef", "failed", 2);
	report_end_table(&reported.report);
	report_single(&reported.report, &sentence, "Foo", "passed");
	reported_close(&reported, "\033[1mkind   outcome  count\033[0m\n"
				  "\033[36ma\033[0m      \033[32mpassed\033[0m       1\n"
				  "\033[36mbcdef\033[0m  \033[31mfailed\033[0m       2\n"
				  "\033[36mFoo\033[0m: \033[32mpassed\033[0m\n");
}

TEST(bars_on_a_terminal_are_narrow_and_of_blocks_where_it_has_them)
{
	static const char *const expected[] = { "share  count\n"
						"####       0\n"
						".          1\n"
						".          2\n"
						"           3\n",
						"share  count\n"
						"\u2588\u2588\u2588\u2588       0\n"
						"\u258e          1\n"
						"\u258f          2\n"
						"           3\n" };

	for (size_t i = 0; i < COUNT_OF(expected); i++) {
		struct reported reported;

		reported_open(&reported, "text", false);
		reported.report.width = 80;
		reported.report.block_bars = i == 1;
		report_shares(&reported.report);
		reported_close(&reported, expected[i]);
	}
}

TEST(text_far_down_stays_whole_without_a_terminal)
{
	static const struct table table =
		TABLE("name", NULL, { "count", VALUE_COUNT }, { "name", VALUE_TEXT });
	struct reported reported;
	const char *end = "300  a name of several words\n";

	reported_open(&reported, "text", false);
	report_begin_table(&reported.report, &table);
	for (uint64_t i = 0; i < 300; i++)
		report_row(&reported.report, i, "short");
	report_row(&reported.report, 300, "a name of several words");
	report_end_table(&reported.report);
	assert_no_error(report_close(&reported.report));
	fclose(reported.file);
	assert_true(reported.size > strlen(end));
	assert_string_equal(reported.text + reported.size - strlen(end), end);
	free(reported.text);
}

TEST(last_column_is_not_padded)
{
	static const struct table table =
		TABLE("module", NULL, { "at", VALUE_ADDRESS }, { "path", VALUE_TEXT });
	struct reported reported;

	reported_open(&reported, "text", false);
	report_begin_table(&reported.report, &table);
	report_row(&reported.report, 0x400000, "/bin/ls");
	report_row(&reported.report, 0x7f0000000000, "x");
	report_end_table(&reported.report);
	reported_close(&reported, "at              path\n"
				  "0x400000        /bin/ls\n"
				  "0x7f0000000000  x\n");
}

TEST(empty_table_has_no_header)
{
	static const struct table table = COUNT_TABLE("thing", NULL);
	struct reported reported;

	reported_open(&reported, "text", false);
	report_begin_table(&reported.report, &table);
	report_end_table(&reported.report);
	reported_close(&reported, "");
}

TEST(widths_are_those_of_the_first_rows)
{
	enum { ROWS = 1000 };
	static const struct table table =
		TABLE("row", NULL, { "n", VALUE_COUNT }, { "t", VALUE_TEXT });
	_cleanup_(free) char *expected = NULL;
	struct reported reported;
	size_t size;
	FILE *file = open_memstream(&expected, &size);

	assert_non_null(file);
	fprintf(file, "  n  t\n");
	reported_open(&reported, "text", false);
	report_begin_table(&reported.report, &table);
	for (unsigned int i = 1; i <= ROWS; i++) {
		fprintf(file, i < 1000 ? "%3u  x\n" : "1,000  x\n", i);
		report_row(&reported.report, i, "x");
	}
	report_end_table(&reported.report);
	fclose(file);
	reported_close(&reported, expected);
}

TEST(text_of_the_dump_is_escaped)
{
	static const struct table columns = TABLE("thing", NULL, { "what", VALUE_TEXT });
	static const struct table sentence =
		TABLE("thing", "It is {what}.", { "what", VALUE_TEXT });
	struct reported reported;

	reported_open(&reported, "text", false);
	report_single(&reported.report, &columns, "\033]0;x\a");
	report_single(&reported.report, &sentence, "a\nb");
	reported_close(&reported, "what\n\\x1b]0;x\\x07\nIt is a\\nb.\n");
}

/* Memory from 0x1000 on, in which 0x1040 to 0x1060 is absent. */
static const uint8_t *bytes_with_gap(const void *source, uint64_t address, uint64_t *ret_size)
{
	const uint8_t *memory = source;

	*ret_size = address < 0x1040   ? 0x1040 - address
		    : address < 0x1060 ? 0x1060 - address
				       : 0x1080 - address;
	return address >= 0x1040 && address < 0x1060 ? NULL : memory + (address - 0x1000);
}

static void check_memory(struct memory_view view, const char *expected)
{
	static const struct table table = TABLE("memory", "{m}", { "m", VALUE_MEMORY });
	uint8_t memory[0x80] = "\x10\x32\x54\x76\x98\xba\xdc\xfeHello, world!";
	struct reported reported;

	memory[0x28] = 7;
	view.bytes = bytes_with_gap;
	view.source = memory;
	reported_open(&reported, "text", false);
	report_single(&reported.report, &table, &view);
	reported_close(&reported, expected);
}

TEST(one_line_of_memory_has_no_offset)
{
	check_memory((struct memory_view){ 0x1000, 0x18, 0x1000, false },
		     "fedcba9876543210 77202c6f6c6c6548       21646c726f\n");
	check_memory((struct memory_view){ 0x1000, 0x4, 0x1000, false }, "        76543210\n");
}

TEST(lines_of_memory_begin_with_their_offset)
{
	check_memory((struct memory_view){ 0x1000, 0x30, 0x1000, false },
		     " 0: fedcba9876543210 77202c6f6c6c6548       21646c726f                0\n"
		     "20:                0                7\n");
}

TEST(words_of_memory_are_as_long_as_those_of_the_process)
{
	check_memory((struct memory_view){ 0x1000, 0x18, 0x1000, .word = 4 },
		     "76543210 fedcba98 6c6c6548 77202c6f 646c726f       21\n");
}

TEST(memory_by_address_always_begins_with_it)
{
	check_memory((struct memory_view){ 0x1028, 0x8, 0, false }, "1028:                7\n");
}

TEST(memory_is_shown_as_characters_on_demand)
{
	check_memory(
		(struct memory_view){ 0x1000, 0x28, 0x1000, true },
		" 0: fedcba9876543210 77202c6f6c6c6548       21646c726f                0   .2Tv....Hello, world!...........\n"
		"20:                0                                                      ........\n");
}

TEST(absent_memory_is_said)
{
	check_memory((struct memory_view){ 0x1038, 0x30, 0x1038, false },
		     " 0:                0\n"
		     " 8: 0x20 bytes that are not in the dump\n"
		     "28:                0\n");
}

TEST(failure_to_write_is_told_in_the_end)
{
	FILE *full = fopen("/dev/full", "w");
	struct report report;

	assert_non_null(full);
	assert_no_error(report_open(format_of("text"), full, false, &report));
	assert_false(report_broken(&report));
	write_columns(&report);
	assert_error(report_close(&report), ERROR_SYSTEM, "output: No space left on device");
	fclose(full);
}
