#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "analyzer/kinds/allocated_by.h"
#include "analyzer/kinds/summary.h"
#include "analyzer/query/query.h"
#include "cli/views/code_rows.h"
#include "cli/views/root_rows.h"
#include "cli/views/rows.h"

#include <inttypes.h>
#include <string.h>

/* However many ranges there are, their groups are few. */
struct range_group {
	const char *name;
	struct tally tally; /* the key is 0 in all */
};

DEFINE_COMPARE(compare_group_counts, struct range_group, DESCENDING(tally.count),
	       ALPHABETICAL(name))

DEFINE_COMPARE(compare_group_bytes, struct range_group, DESCENDING(tally.bytes), ALPHABETICAL(name))

struct range_groups {
	struct range_group *list;
	size_t count;
};

static void range_groups_deinit(struct range_groups *groups)
{
	free(groups->list);
}
DEFINE_DEINIT(range_groups_deinit, struct range_groups)

static struct error *add_to_group(struct range_groups *groups, const char *name, uint64_t size)
{
	size_t i;

	for (i = 0; i < groups->count; i++)
		if (strcmp(groups->list[i].name, name) == 0)
			break;
	if (i == groups->count) {
		TRY_MEMORY(LIST_GROW(groups->list, groups->count));
		groups->list[groups->count++] = (struct range_group){ .name = name };
	}
	groups->list[i].tally.count++;
	groups->list[i].tally.bytes += size;
	return NULL;
}

static struct error *find_groups(struct analysis *analysis, const struct range_kind *kind,
				 const struct ranges *ranges, struct range_groups *groups)
{
	enum { BETWEEN_LOOKS = 1 << 16 };
	struct progress *progress = analysis_progress(analysis);

	progress_begin(progress, "grouping members", ranges->count);
	for (size_t i = 0; i < ranges->count; i++) {
		struct range range = ranges_at(ranges, i);

		if (i % BETWEEN_LOOKS == BETWEEN_LOOKS - 1)
			TRY(progress_check(progress, BETWEEN_LOOKS));
		if (!range.group)
			range.group = kind->group(analysis, &range);
		TRY(add_to_group(groups, range.group, range.size));
	}
	return NULL;
}

static void write_groups(const struct range_group *groups, size_t count, struct report *report)
{
	static const struct table table = TABLE(
		"group",
		"{group} have {count} {count|instance|instances} taking 0x{bytes}({bytes,}) bytes.",
		{ "group", VALUE_TEXT }, { "count", VALUE_COUNT }, { "bytes", VALUE_BYTES });

	report_begin_table(report, &table);
	for (size_t i = 0; i < count; i++)
		report_row(report, groups[i].name, groups[i].tally.count, groups[i].tally.bytes);
	report_end_table(report);
}

static struct error *summarize_ranges(struct analysis *analysis, const struct set_query *query,
				      struct report *report)
{
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };
	_cleanup_(range_groups_deinit) struct range_groups groups = { 0 };

	TRY(query_collect(analysis, query, &ranges));
	TRY(find_groups(analysis, query->set->ranges, &ranges, &groups));
	if (query->sort != SORT_ADDRESS)
		SORT(groups.list, groups.count,
		     query->sort == SORT_BYTES ? compare_group_bytes : compare_group_counts);
	write_groups(groups.list,
		     query->limit && query->limit < groups.count ? query->limit : groups.count,
		     report);
	rows_left_out(report, "lines", groups.count, query->limit);
	rows_not_looked_at(report, rows_noun(query), &ranges);
	rows_total(report, rows_noun(query), ranges_total(&ranges));
	return NULL;
}

enum { MOST_ALLOCATORS = 16 };

struct heap_total {
	const struct allocator *allocator;
	uint64_t count, bytes;
};

/* In the order in which the allocators' arenas come. */
struct heap_totals {
	struct heap_total list[MOST_ALLOCATORS];
	size_t count;
};

static struct heap_total *find_total(struct heap_totals *totals, const struct allocator *allocator)
{
	for (size_t i = 0; i < totals->count; i++)
		if (totals->list[i].allocator == allocator)
			return &totals->list[i];
	return NULL;
}

static void find_allocators(struct heap_totals *totals, const struct heaps *heaps)
{
	size_t count = heaps_arena_count(heaps);

	for (size_t i = 0; i < count; i++) {
		const struct allocator *allocator = heaps_arena_allocator(heaps, (arena_number)i);

		if (totals->count < MOST_ALLOCATORS && !find_total(totals, allocator))
			totals->list[totals->count++].allocator = allocator;
	}
}

/* Add what the region has of the members. */
static void add_region(struct heap_total *total, const struct allocation_index *index,
		       const struct heap_region *region, const struct bitmap *members)
{
	size_t end = region->first + (size_t)region->count, hint = 0;

	for (size_t id = bitmap_next(members, region->first); id < end;
	     id = bitmap_next(members, id + 1)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		total->count++;
		total->bytes += range.end - range.start;
	}
}

static void write_totals(struct report *report, const struct heap_totals *totals)
{
	static const struct table table = TABLE(
		"heap",
		"Of these, {count} {count|allocation|allocations} taking 0x{bytes} ({bytes,}) bytes are in the heap of {allocator}.",
		{ "count", VALUE_COUNT }, { "bytes", VALUE_BYTES }, { "allocator", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < totals->count; i++) {
		if (totals->list[i].count == 0)
			continue;
		report_row(report, totals->list[i].count, totals->list[i].bytes,
			   totals->list[i].allocator->name);
	}
	report_end_table(report);
}

/* Say how many are in the heap of each allocator, if there are several. */
static void write_heaps(struct report *report, const struct analysis *analysis,
			const struct bitmap *members)
{
	const struct allocation_index *index = analysis_index(analysis);
	const struct heaps *heaps = analysis_heaps(analysis);
	struct heap_totals totals = { .count = 0 };

	find_allocators(&totals, heaps);
	if (totals.count < 2)
		return;
	for (size_t i = 0; i < heap_region_count(index); i++) {
		const struct heap_region *region = heap_region(index, i);
		struct heap_total *total =
			find_total(&totals, heaps_arena_allocator(heaps, region->arena));

		if (total && region->count > 0)
			add_region(total, index, region, members);
	}
	write_totals(report, &totals);
}

/*
 * Allocations by pattern, else by class, type, signature or an identity word; the rest, and each
 * pattern, by size.
 *
 * For people, a kind is one line, which sums up its sizes, and a few lines of the largest parts of
 * what has no name. Elsewhere, all parts are lines:
 *
 *	Strings have 90 instances taking 0x870(2,160) bytes, such as "customer 17".
 *	   Strings of size 0x18 have 90 instances ...
 *	Multiple signatures for Hidden have a total of 35 instances ...
 *	   Signature 55bd4cec3b38 has 18 instances taking 0x1b0(432) bytes.
 *	   Signature 55bd4cec3788 has 17 instances taking 0x198(408) bytes.
 *	Unrecognized allocations have 21 instances taking 0x600(1,536) bytes.
 *	   Unrecognized allocations of size 0x28, [ptr x2, int x3], have 21 instances ...
 *	Signature 55bd4cec3b10 (app::Session) has 5 instances ...
 *	Blocks of Regexp have 2 instances ...
 *	   Blocks of size 0x1c8, [ptr x8, ...], have 2 instances ...
 */
struct summary_writer {
	struct analysis *analysis;
	const struct set_query *query;
	struct report *report;
	bool folds; /* the sizes of a kind into one line */
	bool all_leaked;
	uint64_t written; /* lines; for people, kinds: that is what the limit is of */
	const struct kind_summary *summary;
	char text[SHAPE_TEXT_SIZE]; /* of the row that is being written */
};

static const struct table kind_table = TABLE(
	"group",
	"[Class {class} has][Allocations {part} have][Signature {known by}[ ({known as})] has][Multiple signatures for {several named} have a total of][   Signature {one of several} has][Pattern %{pattern} has][Type {type} has][   Matches of size 0x{match} have][Unrecognized allocations with identity {identity}[ at offset {offset}] have][{group} have][Blocks of {blocks of} have][   Strings of size 0x{string size} have][   Blocks of size 0x{block size}[, {shape},] have][   Unrecognized allocations of size 0x{size}[, {shape},] have][   {others,} others (--sizes) have] {count} {count|instance|instances} taking 0x{bytes}({bytes,}) bytes[ in {sizes,} sizes, {least,} to {most,} bytes][, {each,} bytes each][, retaining 0x{retained}({retained,}) bytes][, such as \"{such as}\"][, held by {held by}][, as {path}][, allocated by {allocated by}].",
	{ "signature", VALUE_ADDRESS, .reader = FOR_PROGRAMS },
	{ "name", VALUE_TEXT, .reader = FOR_PROGRAMS }, { "several named", VALUE_TEXT },
	{ "one of several", VALUE_ADDRESS }, { "pattern", VALUE_TEXT }, { "type", VALUE_TEXT },
	{ "match", VALUE_BYTES }, { "blocks of", VALUE_TEXT }, { "block size", VALUE_BYTES },
	{ "identity", VALUE_TEXT }, { "offset", VALUE_ADDRESS }, { "group", VALUE_TEXT },
	{ "string size", VALUE_BYTES }, { "size", VALUE_BYTES }, { "count", VALUE_COUNT },
	{ "bytes", VALUE_BYTES }, { "retained", VALUE_BYTES }, { "such as", VALUE_TEXT },
	{ "shape", VALUE_TEXT }, { "held by", VALUE_TEXT }, { "path", VALUE_TEXT },
	{ "allocated by", VALUE_TEXT }, { "sizes", VALUE_COUNT, .reader = FOR_PEOPLE },
	{ "least", VALUE_BYTES, .reader = FOR_PEOPLE },
	{ "most", VALUE_BYTES, .reader = FOR_PEOPLE },
	{ "each", VALUE_BYTES, .reader = FOR_PEOPLE },
	{ "class", VALUE_TEXT, .reader = FOR_PEOPLE }, { "part", VALUE_TEXT, .reader = FOR_PEOPLE },
	{ "known by", VALUE_ADDRESS, .reader = FOR_PEOPLE },
	{ "known as", VALUE_TEXT, .reader = FOR_PEOPLE },
	{ "others", VALUE_COUNT, .reader = FOR_PEOPLE });

static bool is_within_limit(struct summary_writer *writer)
{
	uint64_t limit = writer->query->limit;

	return !limit || writer->written++ < limit;
}

static void end_row(struct summary_writer *writer, const struct tally *tally)
{
	struct report *report = writer->report;

	report_set(report, "count", tally->count);
	report_set(report, "bytes", tally->bytes);
	if (writer->query->sort == SORT_RETAINED)
		report_set(report, "retained", tally->owned);
	report_end_row(report);
}

/* The first characters of a string as an example, unless contents are left out. */
static void set_example(struct summary_writer *writer, const struct kind_line *line)
{
	enum { MOST_SHOWN = 32 };
	allocation_id id = kind_samples_last(&line->samples);
	const struct allocation_index *index = analysis_index(writer->analysis);
	uint64_t size = 0, length = allocation_size(index, id);
	const uint8_t *bytes =
		image_bytes(analysis_image(writer->analysis), allocation_start(index, id), &size);

	if (!bytes)
		return;
	length = MIN(length, size);
	length = MIN(length, MOST_SHOWN);
	size = text_run((const char *)bytes, length);
	if (!rows_show_contents(writer->report, writer->analysis, allocation_start(index, id),
				size))
		return;
	snprintf(writer->text, sizeof(writer->text), "%.*s%s", (int)size, (const char *)bytes,
		 size + ESCAPED_SIZE / 4 > MOST_SHOWN ? "..." : "");
	report_set(writer->report, "such as", writer->text);
}

/* Name the code that allocated a leaked kind that has only a likely type or a size. */
static struct error *find_makers(struct summary_writer *writer, const struct kind_line *line,
				 char **ret)
{
	if (kind_tag(line->plain) == BY_SIZE ? !writer->all_leaked
					     : !typed_is_like(kind_type_of(line->plain)))
		return NULL;
	return allocated_by_find_soon(writer->analysis, line->samples.ids,
				      kind_samples_count(&line->samples), ret);
}

static uint64_t size_of_line(const struct summary_writer *writer, const struct kind_line *line)
{
	return line->size ? line->size : kind_name(writer->analysis, line->plain).size;
}

/*
 * True if the parts of the kind differ by size only: parts of patterns do, unless their holders are
 * known.
 */
static bool differs_in_size(const struct kind_group *group, const struct kind_line *lines)
{
	if (group->by != BY_PATTERN)
		return false;
	for (size_t i = 0; i < group->count; i++)
		if (kind_tag(lines[i].tally.key) == BY_HOLDER)
			return false;
	return true;
}

/* The sizes of a kind: how many there are, and from where to where. */
struct kind_sizes {
	uint64_t count, least, most; /* count 0: not known of all lines */
};

static struct error *find_sizes(struct summary_writer *writer, const struct kind_group *group,
				const struct kind_line *lines, struct kind_sizes *ret)
{
	_cleanup_(table_release) struct tally_table sizes = {
		.memory.account = analysis_account(writer->analysis),
	};

	*ret = (struct kind_sizes){ .least = UINT64_MAX };
	for (size_t i = 0; writer->folds && i < group->count; i++) {
		uint64_t size = size_of_line(writer, &lines[i]);

		if (size == 0)
			return NULL;
		TRY(tally_add(&sizes, (struct tally){ .key = size, .count = 1 }));
		ret->least = size < ret->least ? size : ret->least;
		ret->most = size > ret->most ? size : ret->most;
	}
	ret->count = sizes.count;
	return NULL;
}

/* Show a single size only if no line of a part shows it. */
static void set_sizes(struct report *report, const struct kind_group *group,
		      const struct kind_line *lines, const struct kind_sizes *sizes)
{
	if (sizes->count == 1 && differs_in_size(group, lines) && group->total.count > 1)
		report_set(report, "each", sizes->least);
	if (sizes->count < 2)
		return;
	report_set(report, "sizes", sizes->count);
	report_set(report, "least", sizes->least);
	report_set(report, "most", sizes->most);
}

static void set_class(struct summary_writer *writer, const struct kind_group *group,
		      uint64_t signature)
{
	struct report *report = writer->report;
	bool is_class = group->name && rows_is_class_number(signature);
	bool is_part =
		group->name && runtimes_is_part(analysis_runtimes(writer->analysis), signature);
	bool is_other = !is_class && !is_part;

	report_set(report, "class", VALUE_IF(is_class, group->name));
	report_set(report, "part", VALUE_IF(is_part, group->name));
	report_set(report, "known by", VALUE_IF(is_other, signature));
	report_set(report, "known as", VALUE_IF(is_other, group->name));
	report_set(report, "signature", signature);
	report_set(report, "name", group->name);
}

static struct error *write_head(struct summary_writer *writer, const struct kind_group *group,
				const struct kind_line *lines)
{
	struct kind_name name = kind_name(writer->analysis, lines->plain);
	struct report *report = writer->report;
	_cleanup_(free) char *makers = NULL;
	const struct object_group *owner;
	char number[CLASS_NAME_SIZE];
	struct kind_sizes sizes;

	/* A row that was begun must be ended. */
	TRY(find_sizes(writer, group, lines, &sizes));
	if (group->by == BY_TYPE)
		TRY(find_makers(writer, lines, &makers));
	switch ((int)group->by) {
	case BY_SIGNATURE:
		if (group->count == 1)
			set_class(writer, group, name.signature);
		else
			report_set(report, "several named", group->name);
		break;
	case BY_PATTERN:
		if (pattern_is_text(name.pattern)) {
			report_set(report, "group", "Strings");
			set_example(writer, lines);
			break;
		}
		report_set(report, "pattern", group->name);
		break;
	case BY_TYPE:
		report_set(report, "type", group->name);
		report_set(report, "allocated by", makers);
		break;
	case BY_IDENTITY:
		report_set(report, "identity", group->name);
		if (name.has_offset)
			report_set(report, "offset", name.offset);
		break;
	case BY_OWNER:
		owner = kind_summary_owner(writer->summary, lines->plain);
		class_number_name(kind_signature(owner->key), number);
		report_set(report, "blocks of", owner->name ? owner->name : number);
		break;
	default:
		report_set(report, "group", "Unrecognized allocations");
	}
	set_sizes(report, group, lines, &sizes);
	end_row(writer, &group->total);
	return NULL;
}

/* One of many addresses without a name of their own. */
static bool says_nothing(const struct summary_writer *writer, const struct kind_line *line)
{
	uint64_t signature = kind_signature(line->tally.key);

	return signature && line->tally.count == 1 &&
	       classes_kind(analysis_classes(writer->analysis), signature) == SIGNATURE_UNKNOWN;
}

/* Add the contents of strings and of allocations without a name. */
static void set_contents(struct summary_writer *writer, const struct kind_line *line)
{
	struct report *report = writer->report;

	if (kind_tag(line->plain) == BY_PATTERN) {
		report_set(report, "string size", kind_name(writer->analysis, line->plain).size);
		set_example(writer, line);
		return;
	}
	nameless_shape(writer->analysis, line->samples.ids, kind_samples_count(&line->samples),
		       report->no_content, writer->text);
	report_set(report, kind_tag(line->plain) == BY_OWNER ? "block size" : "size", line->size);
	report_set(report, "shape", *writer->text ? writer->text : NULL);
}

/* Write a row, with the holders and an example path if they are known. */
static struct error *write_held(struct summary_writer *writer, const struct kind_line *line)
{
	_cleanup_(free) char *holder = NULL, *path = NULL, *makers = NULL;

	if (kind_tag(line->plain) == BY_SIZE)
		TRY(find_makers(writer, line, &makers));
	if (kind_tag(line->tally.key) == BY_HOLDER) {
		holder = nameless_holder(writer->summary->nameless, line->tally.key);
		path = nameless_path(writer->summary->nameless, kind_samples_last(&line->samples));
		TRY_MEMORY(holder && path);
	}
	set_contents(writer, line);
	report_set(writer->report, "held by", holder);
	report_set(writer->report, "path",
		   path && *path && strcmp(path, holder) != 0 ? path : NULL);
	report_set(writer->report, "allocated by", makers);
	end_row(writer, &line->tally);
	return NULL;
}

static struct error *write_line(struct summary_writer *writer, const struct kind_group *group,
				const struct kind_line *line)
{
	struct kind_name name = kind_name(writer->analysis, line->plain);

	if (group->by == BY_SIGNATURE)
		report_set(writer->report, "one of several", name.signature);
	else if (group->by != BY_PATTERN || pattern_is_text(name.pattern))
		return write_held(writer, line);
	else
		report_set(writer->report, "match", name.size);
	end_row(writer, &line->tally);
	return NULL;
}

static bool has_parts(const struct kind_group *group)
{
	return group->by != BY_IDENTITY && group->by != BY_TYPE &&
	       (group->by != BY_SIGNATURE || group->count > 1);
}

static struct error *write_parts(struct summary_writer *writer, const struct kind_group *group,
				 const struct kind_line *lines)
{
	for (size_t i = 0; i < group->count; i++)
		if (!says_nothing(writer, &lines[i]) &&
		    (report_is_brief(writer->report) || is_within_limit(writer)))
			TRY(write_line(writer, group, &lines[i]));
	return NULL;
}

/* The largest parts, and the sum of the others unless that is one. */
static struct error *write_largest_parts(struct summary_writer *writer,
					 const struct kind_group *group,
					 const struct kind_line *lines)
{
	enum { MOST_PARTS = 3 };
	struct tally others = { 0 };
	size_t parts = 0, written = 0;

	if (differs_in_size(group, lines))
		return NULL;
	for (size_t i = 0; i < group->count; i++)
		parts += !says_nothing(writer, &lines[i]);
	for (size_t i = 0; i < group->count; i++) {
		if (says_nothing(writer, &lines[i]))
			continue;
		if (written++ < MOST_PARTS || parts == MOST_PARTS + 1) {
			TRY(write_line(writer, group, &lines[i]));
			continue;
		}
		others.count += lines[i].tally.count;
		others.bytes += lines[i].tally.bytes;
		others.owned += lines[i].tally.owned;
	}
	if (others.count > 0) {
		report_set(writer->report, "others", parts - MOST_PARTS);
		end_row(writer, &others);
	}
	return NULL;
}

static struct error *write_group(struct summary_writer *writer, const struct kind_group *group,
				 const struct kind_line *lines)
{
	if (!is_within_limit(writer))
		return NULL;
	TRY(write_head(writer, group, lines));
	if (!has_parts(group))
		return NULL;
	return writer->folds ? write_largest_parts(writer, group, lines)
			     : write_parts(writer, group, lines);
}

static struct kind_summary_input make_input(struct analysis *analysis,
					    const struct set_query *query,
					    const struct members *members, bool patterns_alone)
{
	return (struct kind_summary_input){
		.analysis = analysis,
		.members = &members->set,
		.order = query->sort == SORT_BYTES	? tally_compare_bytes
			 : query->sort == SORT_ADDRESS	? tally_compare_keys
			 : query->sort == SORT_RETAINED ? tally_compare_owned
							: tally_compare_counts,
		.by_address = query->sort == SORT_ADDRESS,
		.retained = query->sort == SORT_RETAINED,
		.full_names = query->full_names,
		.patterns_alone = patterns_alone,
	};
}

static struct error *summarize_allocations(struct analysis *analysis, const struct set_query *query,
					   bool sizes, struct report *report)
{
	_cleanup_(kind_summary_deinit) struct kind_summary summary = { 0 };
	_cleanup_(members_deinit) struct members members = { 0 };
	struct summary_writer writer = {
		analysis,
		query,
		report,
		.folds = report_is_brief(report) && !sizes,
		.summary = &summary,
	};
	struct set_query unordered = *query;
	struct kind_summary_input input;

	unordered.any_order = true;
	TRY(query_select(analysis, &unordered, &members));
	input = make_input(analysis, query, &members, report->chap);
	writer.all_leaked = !report->chap && analysis_cost(analysis, STAGE_REACHABILITY).built &&
			    bitmap_within(&members.set, analysis_leaked(analysis));
	TRY(kind_summary_find(&input, &summary));
	report_begin_table(report, &kind_table);
	for (size_t i = 0; i < summary.groups.count; i++)
		TRY(write_group(&writer, &summary.groups.items[i],
				&summary.lines.items[summary.groups.items[i].first]));
	report_end_table(report);
	rows_left_out(report, report_is_brief(report) ? "kinds" : "lines", writer.written,
		      query->limit);
	comment_rows(report, analysis, &members);
	rows_total(report, "allocations",
		   allocations_total(analysis_index(analysis), &members.set));
	write_heaps(report, analysis, &members.set);
	return NULL;
}

static struct error *summarize_run(struct analysis *analysis, const void *arguments,
				   struct report *report)
{
	const struct selection *selection = arguments;
	struct set_query sorted = selection->query;
	const struct set_query *query = &sorted;

	if (sorted.sort == SORT_DEFAULT && !report->chap)
		sorted.sort = SORT_BYTES;
	if (query->term_count == 1 && query->extensions.count == 0 &&
	    query->set->summary_of == SUMMARY_OF_LEAK_ROOTS)
		return root_rows(analysis, query, selection->sizes, report);
	if (query->term_count == 1 && query->set->summary_of == SUMMARY_OF_CODE)
		return code_rows(analysis, query, report);
	if (query->set->ranges)
		return summarize_ranges(analysis, query, report);
	return summarize_allocations(analysis, query, selection->sizes, report);
}

const struct command command_summarize = {
	.name = "summarize",
	.summary = "Group the members of a set by kind, with counts and bytes",
	.words = "SET [KIND]",
	.example = "summarize used\n"
		   "summarize leaked --sort-by count --limit 5\n"
		   "summarize leakroots   # where to start\n"
		   "summarize used app::Session --extend ->   # and what "
		   "belongs to it",
	.description =
		"Each allocation is counted once: by its pattern; else by its class, or its type from debug information; else as a string, if it holds text (%String), with an example; else by its signature; else by an identity ('help signatures'); else by the class of the object whose block it is, see 'objects'; else by its size. Both are by size, with the shape of the words, what holds them, and an example path. Those with the most bytes come first. As text, the 20 largest kinds are shown, each with how many sizes it has, and the three largest parts of what has no name; '--all' shows all kinds, '--sizes' all sizes. Other formats have all of them. 'summarize leakroots' shows how much was lost with each kind of leak root, those of one size apart whose words are unlike, and with debug information which function allocated these: start there.",
	TAKES_SELECTION,
	.shorten = selection_shorten,
	.sums_up = true,
	.own_options = sizes_options,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = selection_parse,
	.run = summarize_run,
};
