#include "cli/views/string_summary.h"

#include "analyzer/classify/cxx.h"
#include "analyzer/query/string_users.h"
#include "cli/views/rows.h"

/*
 * "length", "capacity" and "bytes" are of texts that are not within their strings: what they have,
 * what there is room for, and what malloc gave.
 */
static const struct table table =
	TABLE("string use", NULL, { "signature", VALUE_ADDRESS }, { "name", VALUE_TEXT },
	      { "at offset", VALUE_ADDRESS }, { "strings", VALUE_COUNT }, { "empty", VALUE_COUNT },
	      { "short", VALUE_COUNT }, { "long", VALUE_COUNT }, { "shared", VALUE_COUNT },
	      { "length", VALUE_BYTES }, { "capacity", VALUE_BYTES }, { "bytes", VALUE_BYTES });

static void report_numbers(struct report *report, const struct string_use *use)
{
	report_row(report, use->count, use->empty_count, use->short_count, use->long_count,
		   use->shared_count, use->length, use->capacity, use->bytes);
}

static void write_use(const struct analysis *analysis, const struct set_query *query,
		      const struct string_use *use, struct report *report)
{
	char pattern[64];

	report_add(report, value_nonzero(use->signature));
	if (use->pattern != NO_PATTERN) {
		snprintf(pattern, sizeof(pattern), "%%%s", pattern_name(use->pattern));
		report_add(report, pattern);
	} else {
		report_add(report, use->signature
					   ? rows_signature_name(analysis, query, use->signature)
					   : "unrecognized");
	}
	report_add(report, VALUE_IF(use->offset != ANY_OFFSET, use->offset));
	report_numbers(report, use);
}

static void write_total(const struct string_uses *uses, struct report *report)
{
	struct string_use total = { 0 };

	for (size_t i = 0; i < uses->count; i++) {
		const struct string_use *use = &uses->items[i];

		total.count += use->count;
		total.empty_count += use->empty_count;
		total.short_count += use->short_count;
		total.long_count += use->long_count;
		total.shared_count += use->shared_count;
		total.length += use->length;
		total.capacity += use->capacity;
		total.bytes += use->bytes;
	}
	report_add(report, ABSENT, "all", ABSENT);
	report_numbers(report, &total);
}

static void write_uses(const struct analysis *analysis, const struct set_query *query,
		       const struct string_uses *uses, struct report *report)
{
	size_t count = uses->count;

	if (count == 0)
		return;
	if (query->limit && query->limit < count)
		count = query->limit;
	report_begin_table(report, &table);
	for (size_t i = 0; i < count; i++)
		write_use(analysis, query, &uses->items[i], report);
	write_total(uses, report);
	report_end_table(report);
	rows_left_out(report, "lines", uses->count, query->limit);
}

/* What the numbers leave out. */
static void write_caveat(const struct analysis *analysis, struct report *report)
{
	static const struct table caveat = TABLE("note", "{text}", { "text", VALUE_TEXT });
	unsigned int cxx = cxx_find(analysis_image(analysis), analysis_program(analysis));

	if (cxx && !(cxx & LIBCXX))
		return;
	report_single(
		report, &caveat,
		cxx ? "Short strings of libc++ look like any other data: they are not counted."
		    : "The program does not use a known library of C++.");
}

struct error *summarize_string_users(struct analysis *analysis, const struct set_query *query,
				     struct report *report)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	_cleanup_(table_release) struct string_uses uses = { 0 };
	struct error *error = query_select(analysis, query, &members);

	if (!error)
		error = string_uses_count(analysis, &members.set, &uses);
	if (error)
		return error;
	string_uses_sort(&uses, query->sort);
	write_uses(analysis, query, &uses, report);
	write_caveat(analysis, report);
	rows_total(report, "allocations",
		   allocations_total(analysis_index(analysis), &members.set));
	return NULL;
}
