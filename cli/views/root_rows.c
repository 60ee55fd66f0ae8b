#include "cli/views/root_rows.h"

#include "analyzer/base/text.h"
#include "analyzer/kinds/allocated_by.h"
#include "analyzer/kinds/leak_root_kinds.h"
#include "cli/views/rows.h"

#include <inttypes.h>

/* Sizes that are one row, behind the largest ones. */
struct folded_sizes {
	uint64_t count, least, most;
};

static const kind_key FOLDED = (uint64_t)BY_SIZE << KIND_TAG_SHIFT;

static char *folded_text(const struct folded_sizes *folded)
{
	char least[NUMBER_SIZE], most[NUMBER_SIZE];

	return format_text("%" PRIu64 " other sizes, %s to %s bytes (--sizes)", folded->count,
			   grouped(folded->least, least), grouped(folded->most, most));
}

/* Name the roots of that key, to be freed; NULL if memory is short. */
static char *root_text(const struct analysis *analysis, kind_key key,
		       const struct folded_sizes *folded, const char *shape, bool full_names)
{
	struct kind_name name = kind_name(analysis, key);
	const char *text = kind_name_in_form(analysis, key, full_names);
	char size[SIZE_SIZE];

	if (key == FOLDED)
		return folded_text(folded);
	if (name.by == BY_SIZE)
		return format_text("size %s%s%s", format_size(name.size, size), *shape ? ", " : "",
				   shape);
	if (name.by == BY_IDENTITY && !name.has_offset)
		return format_text("identity %s", text ? text : "");
	if (name.by == BY_IDENTITY)
		return format_text("identity %s at offset 0x%" PRIx64, text ? text : "",
				   name.offset);
	if (name.by == BY_PATTERN)
		return format_text("pattern %%%s", text);
	if (name.by == BY_TYPE)
		return format_text("type %s", text);
	if (text && runtimes_is_part(analysis_runtimes(analysis), name.signature))
		return strdup(text);
	if (text && rows_is_class_number(name.signature))
		return format_text("class %s", text);
	if (text)
		return format_text("signature 0x%" PRIx64 " (%s)", name.signature, text);
	return format_text("signature 0x%" PRIx64, name.signature);
}

/* Write the kind as columns, one for each way to know it; the size if nothing else is known. */
static void write_root_kind(const struct analysis *analysis, kind_key key, bool full_names,
			    struct report *report)
{
	static const char *const ways[] = {
		[BY_NOTHING] = "nothing",   [BY_SIZE] = "size",	      [BY_SIGNATURE] = "signature",
		[BY_IDENTITY] = "identity", [BY_PATTERN] = "pattern", [BY_TYPE] = "type",
	};
	struct kind_name name = kind_name(analysis, key);
	const char *text = kind_name_in_form(analysis, key, full_names);
	bool has_signature = name.by == BY_SIGNATURE || name.by == BY_NOTHING;

	report_add(report, name.by < COUNT_OF(ways) ? ways[name.by] : NULL,
		   VALUE_IF(has_signature, value_nonzero(name.signature)),
		   has_signature ? text : NULL, name.by == BY_PATTERN ? text : NULL,
		   name.by == BY_TYPE ? text : NULL, name.by == BY_IDENTITY ? text : NULL,
		   VALUE_IF(name.by == BY_IDENTITY && name.has_offset, name.offset),
		   VALUE_IF(name.by == BY_SIZE, name.size));
}

/* Leak roots of the kinds that are shown: what they are, and who allocated them. */
struct root_texts {
	char *kind, *allocated_by; /* owned; the latter NULL where it is not known */
	char shape[SHAPE_TEXT_SIZE];
};

static const char *shape_value(const struct root_texts *texts)
{
	return *texts->shape ? texts->shape : NULL;
}

struct root_texts_list {
	struct root_texts *list;
	size_t count;
};

static void root_texts_list_deinit(struct root_texts_list *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		free(rows->list[i].kind);
		free(rows->list[i].allocated_by);
	}
	free(rows->list);
}
DEFINE_DEINIT(root_texts_list_deinit, struct root_texts_list)

static struct error *find_root_texts(struct analysis *analysis, const struct set_query *query,
				     const struct leak_root_kinds *kinds,
				     const struct folded_sizes *folded, bool no_content,
				     struct root_texts_list *ret)
{
	size_t count = kinds->tallies.count;

	if (query->limit && query->limit < count)
		count = query->limit;
	ret->list = calloc(count + 1, sizeof(*ret->list));
	TRY_MEMORY(ret->list);
	for (; ret->count < count; ret->count++) {
		const struct tally *tally = &kinds->tallies.items[ret->count];
		struct root_texts *texts = &ret->list[ret->count];

		if (tally->key != FOLDED) {
			const struct root_samples *samples = &kinds->samples.items[tally->number];

			leak_root_shape(analysis, samples, no_content, texts->shape);
			TRY(allocated_by_find_all(analysis, samples->some.ids,
						  kind_samples_count(&samples->some),
						  &texts->allocated_by));
		}
		texts->kind =
			root_text(analysis, tally->key, folded, texts->shape, query->full_names);
		TRY_MEMORY(texts->kind);
	}
	return NULL;
}

/* A line for each kind, for those who read: there is no room for it in the table. */
static void write_root_makers(const struct analysis *analysis, const struct set_query *query,
			      const struct leak_root_kinds *kinds,
			      const struct root_texts_list *rows, struct report *report)
{
	static const struct table table = TABLE(
		"leak root makers",
		"[{name} was][Allocations of {size,} bytes[, {shape},] were] allocated by {allocated by}.",
		{ "name", VALUE_TEXT }, { "size", VALUE_BYTES }, { "shape", VALUE_TEXT },
		{ "allocated by", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < rows->count; i++) {
		kind_key key = kinds->tallies.items[i].key;
		const char *name = kind_name_in_form(analysis, key, query->full_names);

		if (!rows->list[i].allocated_by)
			continue;
		if (kind_tag(key) == BY_SIZE)
			report_add(report, ABSENT, kind_size(key), shape_value(&rows->list[i]));
		else
			report_add(report, name, ABSENT, ABSENT);
		report_row(report, rows->list[i].allocated_by);
	}
	report_end_table(report);
}

/* Write the rows, in the order of the tallies, and add up what they say. */
static struct tally write_roots(const struct analysis *analysis, const struct set_query *query,
				const struct leak_root_kinds *kinds,
				const struct root_texts_list *rows, struct report *report)
{
	static const struct table table =
		TABLE("leak roots", NULL, { "leak roots", VALUE_COUNT },
		      { "allocations lost", VALUE_COUNT }, { "bytes lost", VALUE_BYTES },
		      { "known by", VALUE_TEXT, .reader = FOR_PROGRAMS },
		      { "signature", VALUE_ADDRESS, .reader = FOR_PROGRAMS },
		      { "name", VALUE_TEXT, .reader = FOR_PROGRAMS },
		      { "pattern", VALUE_TEXT, .reader = FOR_PROGRAMS },
		      { "type", VALUE_TEXT, .reader = FOR_PROGRAMS },
		      { "identity", VALUE_TEXT, .reader = FOR_PROGRAMS },
		      { "at offset", VALUE_ADDRESS, .reader = FOR_PROGRAMS },
		      { "size", VALUE_BYTES, .reader = FOR_PROGRAMS },
		      { "allocated by", VALUE_TEXT, .reader = FOR_PROGRAMS },
		      { "shape", VALUE_TEXT, .reader = FOR_PROGRAMS },
		      { "kind", VALUE_TEXT, .reader = FOR_PEOPLE });
	struct tally sum = { 0 };

	report_begin_table(report, &table);
	for (size_t i = 0; i < kinds->tallies.count; i++) {
		const struct tally *group = &kinds->tallies.items[i];

		sum.count += group->count;
		sum.owned += group->owned;
		sum.bytes += group->bytes;
		if (i >= rows->count)
			continue;
		report_add(report, group->count, group->owned, group->bytes);
		write_root_kind(analysis, group->key, query->full_names, report);
		report_row(report, rows->list[i].allocated_by, shape_value(&rows->list[i]),
			   rows->list[i].kind);
	}
	report_end_table(report);
	rows_left_out(report, "kinds of leak roots", kinds->tallies.count, query->limit);
	write_root_makers(analysis, query, kinds, rows, report);
	return sum;
}

static size_t count_sizes(const struct tally_table *kinds)
{
	size_t count = 0;

	array_for_each(tally, kinds)
		count += kind_tag(tally->key) == BY_SIZE;
	return count;
}

/* Keep the first of the kinds known by size only, and merge the others into one. */
static void fold_sizes(struct tally_table *kinds, struct folded_sizes *ret)
{
	enum { MOST_SIZES = 3 };
	struct tally folded = { .key = FOLDED };
	size_t count = 0, sizes = 0;

	if (count_sizes(kinds) <= MOST_SIZES + 1)
		return;
	for (size_t i = 0; i < kinds->count; i++) {
		const struct tally tally = kinds->items[i];
		uint64_t size = kind_size(tally.key);

		if (kind_tag(tally.key) != BY_SIZE || sizes++ < MOST_SIZES) {
			kinds->items[count++] = tally;
			continue;
		}
		folded.count += tally.count;
		folded.bytes += tally.bytes;
		folded.owned += tally.owned;
		ret->least = ret->count && ret->least < size ? ret->least : size;
		ret->most = ret->most > size ? ret->most : size;
		ret->count++;
	}
	kinds->items[count++] = folded;
	kinds->count = count;
}

struct error *root_rows(struct analysis *analysis, const struct set_query *query, bool sizes,
			struct report *report)
{
	static const struct table shared = TABLE(
		"shared",
		"Several leak roots share {count} {count|allocation|allocations} taking 0x{bytes}({bytes,}) bytes, not counted in the lines above.",
		{ "count", VALUE_COUNT }, { "bytes", VALUE_BYTES });
	static const struct table total = TABLE(
		"total",
		"{count} {count|leak root holds|leak roots hold} {allocations lost} {allocations lost|allocation|allocations}, using 0x{bytes} ({bytes,}) bytes.",
		{ "count", VALUE_COUNT }, { "allocations lost", VALUE_COUNT },
		{ "bytes", VALUE_BYTES });
	_cleanup_(members_deinit) struct members members = { 0 };
	_cleanup_(leak_root_kinds_deinit) struct leak_root_kinds kinds = { 0 };
	_cleanup_(root_texts_list_deinit) struct root_texts_list rows = { 0 };
	const struct leaks *leaks;
	int (*order)(const void *a, const void *b) =
		query->sort == SORT_COUNT     ? tally_compare_counts
		: query->sort == SORT_ADDRESS ? tally_compare_keys
					      : tally_compare_bytes;
	struct folded_sizes folded = { 0 };
	struct tally sum;

	TRY(query_select(analysis, query, &members));
	TRY(leak_root_kinds_count(analysis, &members.set, &kinds));
	array_sort(&kinds.tallies, order);
	if (report_is_brief(report) && !sizes) {
		fold_sizes(&kinds.tallies, &folded);
		array_sort(&kinds.tallies, order);
	}
	TRY(find_root_texts(analysis, query, &kinds, &folded, report->no_content, &rows));
	sum = write_roots(analysis, query, &kinds, &rows, report);
	leaks = analysis_leaks(analysis);
	/* If all leaks are listed, add what several roots share. */
	if (sum.count == leaks->count && leaks->shared_count > 0) {
		report_single(report, &shared, leaks->shared_count, leaks->shared_bytes);
		sum.owned += leaks->shared_count;
		sum.bytes += leaks->shared_bytes;
	}
	report_single(report, &total, sum.count, sum.owned, sum.bytes);
	return rows_likely_held(report, analysis, &members.set, "leak roots");
}
