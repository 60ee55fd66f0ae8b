#include "analyzer/account/waste.h"
#include "analyzer/account/contents.h"
#include "analyzer/base/list.h"
#include "analyzer/kinds/kind_key.h"
#include "cli/views/rows.h"

#include <inttypes.h>
#include <string.h>

enum {
	SHOWN_CHARACTERS = 28,
	SHOWN_BYTES = 8,
	SEARCHED = 128,
	LONGEST_CHARACTER = 4,
	CONTENTS_TEXT_SIZE = 64,
};

/* Cut where a character begins. */
static int cut_text(const char *text, uint64_t length)
{
	int end = SHOWN_CHARACTERS;

	if (length <= SHOWN_CHARACTERS)
		return (int)length;
	while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	return end;
}

static void format_bytes(const uint8_t *bytes, uint64_t size, char ret[CONTENTS_TEXT_SIZE])
{
	uint64_t shown = size < SHOWN_BYTES ? size : SHOWN_BYTES;
	char *at = ret;

	for (uint64_t i = 0; i < shown; i++)
		at += sprintf(at, i ? " %02x" : "%02x", bytes[i]);
	if (shown < size)
		memcpy(at, " ...", sizeof(" ..."));
}

/*
 * Find a text in the bytes that is followed by a 0; its length goes to ret_length. A text that does
 * not begin at the first byte has to be longer.
 */
static uint64_t find_text(const uint8_t *bytes, uint64_t size, uint64_t *ret_length)
{
	enum { LEAST_TEXT = 6, ALIGNMENT = 4 };

	for (uint64_t at = 0; at < size; at += ALIGNMENT) {
		uint64_t length = contents_text(bytes + at, size + 1 - at);

		if (length < (at ? LEAST_TEXT : 1))
			continue;
		*ret_length = length;
		return at;
	}
	return size;
}

/*
 * The first text in it, in quotes, which may be hostile; behind dots, if there is something else
 * before it. Without one, the first bytes in hexadecimal. Returns ret, which is NULL where nothing
 * is known of it.
 */
static const char *format_contents(const struct image *image, uint64_t address, uint64_t size,
				   char ret[CONTENTS_TEXT_SIZE])
{
	char bytes[SEARCHED + 1];
	uint64_t known = size < SEARCHED ? size : SEARCHED;
	uint64_t length, at;

	if (known == 0 || !image_read(image, address, bytes, known))
		return NULL;
	/* No character is cut. */
	while (size > known && known > SEARCHED - LONGEST_CHARACTER && (bytes[known - 1] & 0x80))
		known--;
	bytes[known] = '\0';
	at = find_text((const uint8_t *)bytes, known, &length);
	if (at >= known) {
		format_bytes((const uint8_t *)bytes, size, ret);
		return ret;
	}
	snprintf(ret, CONTENTS_TEXT_SIZE, "%s\"%.*s\"%s", at ? "... " : "",
		 cut_text(bytes + at, length), bytes + at, length > SHOWN_CHARACTERS ? "..." : "");
	return ret;
}

static const char *kind_word(enum waste_kind kind)
{
	static const char *const names[WASTE_KINDS] = {
		[WASTE_DUPLICATES] = "duplicates",
		[WASTE_ZEROS] = "zeros",
		[WASTE_SPARE] = "spare",
		[WASTE_SLACK] = "slack",
	};

	return names[kind];
}

static bool is_meant(enum waste_kind kind, enum waste_kind only)
{
	return only == WASTE_KINDS || only == kind;
}

static void write_sum(struct report *report, const struct waste *waste, const struct set_total *sum)
{
	report_add(report, sum->count, sum->bytes, rows_share(sum->bytes, waste->looked_at.bytes));
}

static void write_sums(struct report *report, const struct waste *waste, enum waste_kind only)
{
	static const struct table table =
		TABLE("waste", NULL, { "waste", VALUE_TEXT }, { "allocations", VALUE_COUNT },
		      { "bytes", VALUE_BYTES }, { "share", VALUE_SHARE });

	report_begin_table(report, &table);
	for (enum waste_kind kind = 0; kind < WASTE_KINDS; kind++) {
		if (!is_meant(kind, only))
			continue;
		report_add(report, kind_word(kind));
		write_sum(report, waste, &waste->sums[kind]);
		report_end_row(report);
	}
	report_end_table(report);
}

static void write_row(struct report *report, const struct waste *waste, const struct waste_row *row)
{
	report_add(report, kind_word(row->kind));
	write_sum(report, waste, &row->sum);
	report_row(report, value_nonzero(row->size), row->name ? row->name : "unrecognized");
}

static void write_rows(struct report *report, const struct waste *waste, enum waste_kind only,
		       uint64_t limit)
{
	static const struct table table =
		TABLE("waste by type", NULL, { "waste", VALUE_TEXT },
		      { "allocations", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		      { "share", VALUE_SHARE }, { "size", VALUE_BYTES }, { "kind", VALUE_TEXT });
	uint64_t count = 0;

	report_begin_table(report, &table);
	list_for_each(row, waste->rows, waste->row_count) {
		if (is_meant(row->kind, only) && count++ < limit)
			write_row(report, waste, row);
	}
	report_end_table(report);
	rows_left_out(report, "lines", count, limit);
}

static struct error *write_group(struct report *report, const struct analysis *analysis,
				 const struct extent *extent, const struct duplicate_group *group)
{
	_cleanup_(free) char *name = NULL;
	char text[CONTENTS_TEXT_SIZE];
	kind_key key = kind_type(analysis, analysis_patterns(analysis), group->first);

	if (key != KIND_UNKNOWN && !pattern_is_text(kind_pattern(key))) {
		name = kind_text(analysis, key);
		TRY_MEMORY(name);
	}
	report_row(report, group->copies, group->size, duplicate_bytes(group), extent->start,
		   report_content(report, format_contents(analysis_image(analysis), extent->start,
							  group->size, text)),
		   name		     ? name
		   : extent->is_text ? "text"
				     : "unrecognized");
	return NULL;
}

static struct error *write_contents(struct report *report, const struct analysis *analysis,
				    const struct waste *waste)
{
	static const struct table table =
		TABLE("content", NULL, { "copies", VALUE_COUNT }, { "of size", VALUE_BYTES },
		      { "waste", VALUE_BYTES }, { "first", VALUE_ADDRESS },
		      { "contents", VALUE_TEXT }, { "kind", VALUE_TEXT });
	const struct duplicates *duplicates = &waste->duplicates;
	struct extents extents;

	extents_init(&extents, analysis);
	report_begin_table(report, &table);
	for (size_t i = 0; i < duplicates->largest_count; i++) {
		const struct duplicate_group *group = &duplicates->largest[i];
		struct extent extent = extent_of(&extents, group->first);

		TRY(write_group(report, analysis, &extent, group));
	}
	report_end_table(report);
	rows_left_out(report, "contents", duplicates->group_count, duplicates->largest_count);
	return NULL;
}

/* Absent unless it is of that kind of waste. */
static void write_known(struct report *report, const struct set_total *sum, bool is_asked)
{
	report_add(report, VALUE_IF(is_asked, sum->bytes));
}

static void write_total(struct report *report, const struct waste *waste, enum waste_kind only)
{
	static const struct table table = TABLE(
		"total waste",
		"{bytes,} bytes are wasted: {share} of the {of bytes,} bytes of {allocations,} allocations.[\nSpare capacity is known for {capacity known,} bytes of these.][\nThe requested size is known for {request known,} bytes of these.][\nThe contents of {absent,} bytes of these are not in the core.]",
		{ "bytes", VALUE_BYTES }, { "share", VALUE_SHARE }, { "allocations", VALUE_COUNT },
		{ "of bytes", VALUE_BYTES }, { "capacity known", VALUE_BYTES },
		{ "request known", VALUE_BYTES }, { "absent", VALUE_BYTES });
	uint64_t bytes = 0;

	for (enum waste_kind kind = 0; kind < WASTE_KINDS; kind++)
		if (is_meant(kind, only))
			bytes += waste->sums[kind].bytes;
	report_begin_table(report, &table);
	report_add(report, bytes, rows_share(bytes, waste->looked_at.bytes), waste->looked_at.count,
		   waste->looked_at.bytes);
	write_known(report, &waste->known_spare, is_meant(WASTE_SPARE, only));
	write_known(report, &waste->known_slack, is_meant(WASTE_SLACK, only));
	write_known(report, &waste->absent, waste->absent.count > 0);
	report_end_row(report);
	report_end_table(report);
}

/* Rows that fit a screen. */
enum { USUAL_ROWS = 12, USUAL_CONTENTS = 6, ROWS_OF_ONE = 20 };

struct waste_arguments {
	struct selection selection; /* first: it is released as one */
	bool has_kind;
	enum waste_kind kind;
};

/* The first word may be a kind; it is a set as well, or not. */
static bool take_kind(struct waste_arguments *arguments, const char *word)
{
	if (arguments->has_kind || arguments->selection.query.set)
		return false;
	for (enum waste_kind kind = 0; kind < WASTE_KINDS; kind++) {
		if (strcmp(kind_word(kind), word) != 0)
			continue;
		arguments->has_kind = true;
		arguments->kind = kind;
		return true;
	}
	return false;
}

static struct error *check(struct waste_arguments *arguments)
{
	const struct set_query *query = &arguments->selection.query;

	TRY(selection_end_of_allocations(&arguments->selection));
	if (query->sort != SORT_DEFAULT && query->sort != SORT_BYTES)
		return error_create(ERROR_USAGE, "'waste' can only be sorted by bytes");
	return NULL;
}

static struct error *waste_parse(int key, const char *value, void *output)
{
	struct waste_arguments *arguments = output;

	if (key == ARGP_KEY_END)
		return check(arguments);
	if (key == ARGP_KEY_ARG && take_kind(arguments, value))
		return NULL;
	return selection_parse(key, value, &arguments->selection);
}

static struct error *write_waste(struct analysis *analysis, const struct waste_arguments *arguments,
				 const struct waste *waste, uint64_t rows, struct report *report)
{
	enum waste_kind only = arguments->has_kind ? arguments->kind : WASTE_KINDS;

	if (!arguments->has_kind)
		write_sums(report, waste, only);
	write_rows(report, waste, only, rows);
	if (only == WASTE_KINDS || only == WASTE_DUPLICATES)
		TRY(write_contents(report, analysis, waste));
	write_total(report, waste, only);
	return NULL;
}

static struct error *waste_run(struct analysis *analysis, const void *input, struct report *report)
{
	const struct waste_arguments *arguments = input;
	const struct set_query *query = &arguments->selection.query;
	_cleanup_(members_deinit) struct members members = { 0 };
	_cleanup_(waste_deinit) struct waste waste = { 0 };
	struct set_query unordered = *query;
	uint64_t rows = USUAL_ROWS, contents = USUAL_CONTENTS;

	if (arguments->has_kind)
		rows = contents = ROWS_OF_ONE;
	if (query->limit)
		rows = contents = query->limit;
	unordered.any_order = true;
	TRY(query_select(analysis, &unordered, &members));
	TRY(waste_find(analysis, &members.set, WASTE_ROWS, contents, &waste));
	return write_waste(analysis, arguments, &waste, rows, report);
}

const struct command command_waste = {
	.name = "waste",
	.summary = "Find wasted memory",
	.words = "[duplicates|zeros|spare|slack] [SET [KIND]]",
	.choices = "duplicates|zeros|spare|slack",
	.example = "waste\n"
		   "waste duplicates --limit 50\n"
		   "waste slack used %VectorBody\n"
		   "waste leaked",
	.description =
		"Each byte of the set, which is 'used' by default, counts as one kind of waste at most:\n"
		"'slack' is what an allocation has beyond the requested size, 'spare' is unused capacity of containers. Both "
		"are reported only where they are known.\n"
		"'zeros' are contents that are all zero, and whole pages of "
		"zeros at the end of others.\n"
		"'duplicates' are contents that are equal, byte by byte, to "
		"those of an allocation at a lower address. Contents of less than 16 bytes are left out.\n"
		"With one of these words, only that kind is shown, in more lines. The sets 'duplicates' and 'zeros' are the allocations: "
		"'list duplicates', 'explain zeros --limit 1'.",
	.word = WORD_SET,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = waste_parse,
	.arguments_size = sizeof(struct waste_arguments),
	.release = selection_release,
	.needs = STAGE_HEAP,
	.run = waste_run,
};
