#include "cli/views/allocation_summary.h"

#include "analyzer/heap/release.h"
#include "analyzer/kinds/likeness.h"
#include "analyzer/kinds/retained.h"
#include "analyzer/kinds/signatures.h"
#include "analyzer/kinds/tally.h"
#include "cli/views/comment_row.h"
#include "cli/views/heap_rows.h"
#include "cli/views/rows.h"

#include <string.h>

/* A line, which belongs to a group of them. */
struct line {
	const char *name; /* of the signature's class, or NULL */
	struct tally tally;
};

enum group_kind {
	GROUP_SIGNATURES,
	GROUP_PATTERN,
	GROUP_IDENTITY,
	GROUP_UNRECOGNIZED,
};

/* What is added up under one line. The lines below it follow each other. */
struct group {
	enum group_kind kind;
	const char *name;   /* borrowed; NULL: none */
	uint64_t offset;    /* of an identity word */
	struct tally total; /* its key: its place by address */
	size_t first, count;
};

/* A comparison of tallies. */
typedef int (*tally_order)(const void *a, const void *b);

struct summary {
	struct analysis *analysis;
	const struct set_query *query;
	const struct patterns *patterns;
	struct report *report;
	tally_order order;
	struct tally_table signatures, identities, sizes; /* of likenesses */
	struct memory tallies;	     /* uint32_t by id: its tally; only if needed */
	struct memory lines, groups; /* of those structs */
	size_t line_count, group_count;
	uint64_t written;
};

static void summary_deinit(struct summary *summary)
{
	tally_table_deinit(&summary->signatures);
	tally_table_deinit(&summary->sizes);
	tally_table_deinit(&summary->identities);
	memory_release(&summary->tallies);
	memory_release(&summary->lines);
	memory_release(&summary->groups);
}
DEFINE_DEINIT(summary_deinit, struct summary)

static tally_order find_order(const struct set_query *query)
{
	switch (query->sort) {
	case SORT_BYTES:
		return tally_compare_bytes;
	case SORT_ADDRESS:
		return tally_compare_keys;
	case SORT_RETAINED:
		return tally_compare_owned;
	default:
		return tally_compare_counts;
	}
}

static void summary_init(struct summary *summary, struct analysis *analysis,
			 const struct set_query *query, const struct patterns *patterns,
			 struct report *report)
{
	struct memory_account *account = analysis_account(analysis);

	*summary = (struct summary){
		.analysis = analysis,
		.query = query,
		.patterns = patterns,
		.report = report,
		.order = find_order(query),
		.tallies.account = account,
		.lines.account = account,
		.groups.account = account,
	};
	tally_table_init(&summary->signatures, account);
	tally_table_init(&summary->sizes, account);
	tally_table_init(&summary->identities, account);
}

static bool sorts_by_retained(const struct summary *summary)
{
	return summary->query->sort == SORT_RETAINED;
}

static struct tally_table *table_of(struct summary *summary, enum likeness_kind kind)
{
	struct tally_table *const tables[LIKENESS_KINDS] = {
		[LIKE_SIGNATURE] = &summary->signatures,
		[LIKE_IDENTITY] = &summary->identities,
		[LIKE_SIZE] = &summary->sizes,
	};

	return tables[kind];
}

/* The number of a tally among those of all tables. */
static uint32_t tally_number(enum likeness_kind kind, const struct tally *tally)
{
	return tally->number * LIKENESS_KINDS + kind;
}

static struct error *add_member(struct summary *summary, allocation_id id)
{
	uint64_t size = allocation_size(analysis_index(summary->analysis), id);
	struct likeness likeness = likeness_of(summary->analysis, summary->patterns, id, size);
	struct tally tally = { .key = likeness.key, .count = 1, .bytes = size };
	struct tally_table *tallies = table_of(summary, likeness.kind);
	struct error *error = tally_add(tallies, tally);

	if (!error && sorts_by_retained(summary))
		((uint32_t *)summary->tallies.bytes)[id] =
			tally_number(likeness.kind, tally_find(tallies, tally.key));
	return error;
}

/* Note which tally each is counted in; none yet. */
static struct error *init_tallies(struct summary *summary, size_t count)
{
	struct error *error = memory_resize(&summary->tallies, count * sizeof(uint32_t));

	if (!error && count > 0)
		memset(summary->tallies.bytes, 0xff, count * sizeof(uint32_t));
	return error;
}

static struct error *add_members(struct summary *summary, const struct bitmap *members)
{
	struct progress *progress = analysis_progress(summary->analysis);
	struct error *error = NULL;
	uint64_t passed = 0;

	progress_begin(progress, "summarizing", members->count);
	if (sorts_by_retained(summary))
		error = init_tallies(summary, members->count);
	bitmap_for_each(id, members) {
		uint64_t before = passed;

		if (!error)
			error = add_member(summary, (allocation_id)id);
		if (!error && !progress_pass(progress, id, &passed))
			error = error_create(ERROR_INTERRUPTED, "interrupted");
		if (error)
			return error;
		allocations_release(analysis_image(summary->analysis),
				    analysis_index(summary->analysis), before, passed);
	}
	return error;
}

/* One more than the highest number of a tally. */
static size_t tally_numbers(struct summary *summary)
{
	size_t most = 0;

	for (enum likeness_kind kind = 0; kind < LIKENESS_KINDS; kind++)
		if (table_of(summary, kind)->count > most)
			most = table_of(summary, kind)->count;
	return most * LIKENESS_KINDS;
}

/* What each tally's members retain, into owned. */
static struct error *add_retained(struct summary *summary)
{
	size_t count = tally_numbers(summary);
	_cleanup_(free) uint64_t *bytes = calloc(count + 1, sizeof(*bytes));
	struct error *error;

	if (!bytes)
		return &error_no_memory;
	error = retained_by_group(analysis_dominators(summary->analysis), summary->tallies.bytes,
				  NULL, count, bytes);
	if (error)
		return error;
	for (enum likeness_kind kind = 0; kind < LIKENESS_KINDS; kind++) {
		struct tally_table *tallies = table_of(summary, kind);

		for (size_t i = 0; i < tallies->capacity; i++)
			tallies->slots[i].owned = bytes[tally_number(kind, &tallies->slots[i])];
	}
	return NULL;
}

static struct line *summary_line(const struct summary *summary, size_t number)
{
	return (struct line *)summary->lines.bytes + number;
}

static struct group *summary_group(const struct summary *summary, size_t number)
{
	return (struct group *)summary->groups.bytes + number;
}

static struct error *add_line(struct summary *summary, const char *name, struct tally tally)
{
	struct error *error =
		memory_reserve(&summary->lines, (summary->line_count + 1) * sizeof(struct line));

	if (!error)
		*summary_line(summary, summary->line_count++) = (struct line){ name, tally };
	return error;
}

static struct error *add_group(struct summary *summary, struct group group)
{
	struct error *error =
		memory_reserve(&summary->groups, (summary->group_count + 1) * sizeof(group));

	if (!error)
		*summary_group(summary, summary->group_count++) = group;
	return error;
}

static void add_to_total(struct tally *total, const struct tally *tally)
{
	total->count += tally->count;
	total->bytes += tally->bytes;
	if (tally->key < total->key)
		total->key = tally->key;
}

/* Those with a name by name, and by order where they have the same. */
static int compare_lines(const void *a, const void *b, void *data)
{
	const struct summary *summary = data;
	const struct line *left = a, *right = b;
	int names = left->name && right->name ? strcmp(left->name, right->name)
					      : !left->name - !right->name;

	return names ? names : summary->order(&left->tally, &right->tally);
}

static bool same_name(const struct line *line, const struct line *other)
{
	return line->name && other->name && strcmp(line->name, other->name) == 0;
}

static struct error *group_signatures(struct summary *summary)
{
	struct error *error = NULL;

	tally_table_sort(&summary->signatures, summary->order);
	for (size_t i = 0; !error && i < summary->signatures.count; i++) {
		struct tally tally = summary->signatures.slots[i];

		error = add_line(summary,
				 rows_signature_name(summary->analysis, summary->query, tally.key),
				 tally);
	}
	if (error || summary->line_count == 0)
		return error;
	qsort_r(summary->lines.bytes, summary->line_count, sizeof(struct line), compare_lines,
		summary);
	for (size_t i = 0; !error && i < summary->line_count;) {
		const struct line *line = summary_line(summary, i);
		struct group group = { .kind = GROUP_SIGNATURES,
				       .name = line->name,
				       .total.key = UINT64_MAX,
				       .first = i };

		do
			add_to_total(&group.total, &summary_line(summary, i++)->tally);
		while (i < summary->line_count && same_name(line, summary_line(summary, i)));
		group.count = i - group.first;
		error = add_group(summary, group);
	}
	return error;
}

static struct error *group_identities(struct summary *summary)
{
	struct error *error = NULL;

	tally_table_sort(&summary->identities, tally_compare_keys);
	for (size_t i = 0; !error && i < summary->identities.count; i++) {
		struct tally tally = summary->identities.slots[i];
		uint64_t offset = likeness_offset(tally.key);

		tally.key = likeness_address(tally.key);
		error = add_group(
			summary,
			(struct group){ .kind = GROUP_IDENTITY,
					.name = identity_name(
						analysis_identities(summary->analysis), tally.key),
					.offset = offset,
					.total = tally });
	}
	return error;
}

/* By pattern, then by order. */
static int compare_sizes(const void *a, const void *b, void *data)
{
	const struct summary *summary = data;
	const struct tally *left = a, *right = b;
	pattern_number pattern = likeness_pattern(left->key);
	pattern_number other = likeness_pattern(right->key);

	if (pattern != other)
		return pattern < other ? -1 : 1;
	return summary->order(left, right);
}

/* Sorted by address, patterns stand behind all that has one, by their name. */
static struct error *group_sizes(struct summary *summary)
{
	struct tally_table *sizes = &summary->sizes;
	struct error *error = NULL;

	tally_table_sort(sizes, summary->order);
	if (sizes->count)
		qsort_r(sizes->slots, sizes->count, sizeof(*sizes->slots), compare_sizes, summary);
	for (size_t i = 0; !error && i < sizes->count;) {
		pattern_number number = likeness_pattern(sizes->slots[i].key);
		struct group group = { .kind = GROUP_PATTERN, .first = summary->line_count };

		for (;
		     i < sizes->count && !error && likeness_pattern(sizes->slots[i].key) == number;
		     i++) {
			add_to_total(&group.total, &sizes->slots[i]);
			error = add_line(summary, NULL, sizes->slots[i]);
		}
		group.count = summary->line_count - group.first;
		group.total.key = UINT64_MAX - (uint64_t)(number ? UINT8_MAX - number : 0);
		if (number == NO_PATTERN)
			group.kind = GROUP_UNRECOGNIZED;
		else
			group.name = pattern_name(number);
		if (!error)
			error = add_group(summary, group);
	}
	return error;
}

/* Put the number of the group of each tally into ret, by its number. */
static void find_groups(struct summary *summary, uint32_t *ret)
{
	static const enum likeness_kind kinds[] = {
		[GROUP_SIGNATURES] = LIKE_SIGNATURE,
		[GROUP_PATTERN] = LIKE_SIZE,
		[GROUP_IDENTITY] = LIKE_IDENTITY,
		[GROUP_UNRECOGNIZED] = LIKE_SIZE,
	};

	for (size_t i = 0; i < summary->group_count; i++) {
		const struct group *group = summary_group(summary, i);
		enum likeness_kind kind = kinds[group->kind];

		if (group->kind == GROUP_IDENTITY)
			ret[tally_number(kind, &group->total)] = (uint32_t)i;
		for (size_t j = 0; j < group->count; j++)
			ret[tally_number(kind, &summary_line(summary, group->first + j)->tally)] =
				(uint32_t)i;
	}
}

/* What each group's members retain, which is not the sum of its lines. */
static struct error *add_retained_of_groups(struct summary *summary)
{
	size_t count = tally_numbers(summary);
	_cleanup_(free) uint32_t *groups = calloc(count + 1, sizeof(*groups));
	_cleanup_(free) uint64_t *bytes = calloc(summary->group_count + 1, sizeof(*bytes));
	struct error *error;

	if (!groups || !bytes)
		return &error_no_memory;
	find_groups(summary, groups);
	error = retained_by_group(analysis_dominators(summary->analysis), summary->tallies.bytes,
				  groups, summary->group_count, bytes);
	for (size_t i = 0; !error && i < summary->group_count; i++)
		summary_group(summary, i)->total.owned = bytes[i];
	return error;
}

/* Equal ones by name, those without one last. */
static int compare_groups(const void *a, const void *b, void *data)
{
	const struct summary *summary = data;
	const struct group *left = a, *right = b;
	struct tally left_total = left->total, right_total = right->total;
	int order;

	if (summary->query->sort != SORT_ADDRESS)
		left_total.key = right_total.key = 0;
	order = summary->order(&left_total, &right_total);
	if (!order && left->name && right->name)
		order = strcmp(left->name, right->name);
	else if (!order)
		order = !left->name - !right->name;
	return order ? order : tally_compare_keys(&left->total, &right->total);
}

static const struct table table = TABLE(
	"group",
	"[Signature {signature}[ ({name})] has][Multiple signatures for {several named} have a total of][   Signature {one of several} has][Pattern %{pattern} has][   Matches of size 0x{match} have][Unrecognized allocations with identity {identity} at offset {offset} have][{group} have][   Unrecognized allocations of size 0x{size} have] {count} instances taking 0x{bytes}({bytes,}) bytes[, retaining 0x{retained}({retained,}) bytes].",
	{ "signature", VALUE_ADDRESS }, { "name", VALUE_TEXT }, { "several named", VALUE_TEXT },
	{ "one of several", VALUE_ADDRESS }, { "pattern", VALUE_TEXT }, { "match", VALUE_BYTES },
	{ "identity", VALUE_TEXT }, { "offset", VALUE_ADDRESS }, { "group", VALUE_TEXT },
	{ "size", VALUE_BYTES }, { "count", VALUE_COUNT }, { "bytes", VALUE_BYTES },
	{ "retained", VALUE_BYTES });

/* The columns that differ by the kind of row. */
enum head_column {
	HEAD_SIGNATURE,
	HEAD_NAME,
	HEAD_SEVERAL,
	HEAD_ONE_OF_SEVERAL,
	HEAD_PATTERN,
	HEAD_MATCH,
	HEAD_IDENTITY,
	HEAD_OFFSET,
	HEAD_GROUP,
	HEAD_SIZE,
	HEAD_COLUMNS
};

static void write_row(struct summary *summary, const struct value head[static HEAD_COLUMNS],
		      const struct tally *tally)
{
	uint64_t limit = summary->query->limit;

	if (limit && summary->written++ >= limit)
		return;
	report_values(summary->report, head, HEAD_COLUMNS);
	report_row(summary->report, tally->count, tally->bytes,
		   VALUE_IF(sorts_by_retained(summary), tally->owned));
}

static void write_head(struct summary *summary, const struct group *group)
{
	struct value head[HEAD_COLUMNS] = { 0 };

	switch (group->kind) {
	case GROUP_SIGNATURES:
		if (group->count > 1) {
			head[HEAD_SEVERAL] = VALUE(group->name);
		} else {
			head[HEAD_SIGNATURE] = VALUE(group->total.key);
			head[HEAD_NAME] = VALUE(group->name);
		}
		break;
	case GROUP_PATTERN:
		head[HEAD_PATTERN] = VALUE(group->name);
		break;
	case GROUP_IDENTITY:
		head[HEAD_IDENTITY] = VALUE(group->name);
		head[HEAD_OFFSET] = VALUE(group->offset);
		break;
	case GROUP_UNRECOGNIZED:
		head[HEAD_GROUP] = VALUE("Unrecognized allocations");
	}
	write_row(summary, head, &group->total);
}

/* One of many addresses without a name of their own. */
static bool says_nothing(const struct summary *summary, const struct group *group,
			 const struct tally *tally)
{
	return group->kind == GROUP_SIGNATURES && tally->count == 1 &&
	       classes_kind(analysis_classes(summary->analysis), tally->key) == SIGNATURE_UNKNOWN;
}

static void write_group(struct summary *summary, const struct group *group)
{
	write_head(summary, group);
	if (group->kind == GROUP_SIGNATURES && group->count == 1)
		return;
	for (size_t i = 0; i < group->count; i++) {
		const struct tally *tally = &summary_line(summary, group->first + i)->tally;
		uint64_t size = likeness_size(tally->key);
		struct value head[HEAD_COLUMNS] = { 0 };

		if (says_nothing(summary, group, tally))
			continue;
		if (group->kind == GROUP_SIGNATURES)
			head[HEAD_ONE_OF_SEVERAL] = VALUE(tally->key);
		else if (group->kind == GROUP_PATTERN)
			head[HEAD_MATCH] = VALUE(size);
		else
			head[HEAD_SIZE] = VALUE(size);
		write_row(summary, head, tally);
	}
}

static struct error *write_groups(struct summary *summary)
{
	struct error *error = NULL;

	if (sorts_by_retained(summary))
		error = add_retained(summary);
	if (!error)
		error = group_signatures(summary);
	if (!error)
		error = group_identities(summary);
	if (!error)
		error = group_sizes(summary);
	if (!error && sorts_by_retained(summary))
		error = add_retained_of_groups(summary);
	if (error)
		return error;
	if (summary->group_count)
		qsort_r(summary->groups.bytes, summary->group_count, sizeof(struct group),
			compare_groups, summary);
	report_begin_table(summary->report, &table);
	for (size_t i = 0; i < summary->group_count; i++)
		write_group(summary, summary_group(summary, i));
	report_end_table(summary->report);
	rows_left_out(summary->report, "lines", summary->written, summary->query->limit);
	return NULL;
}

/*
 * What is known of the patterns: of free members nothing can be, and of unreachable ones it comes
 * soon.
 */
static struct error *find_patterns(struct analysis *analysis, const struct bitmap *members,
				   const struct patterns **ret)
{
	struct error *error;
	bool leaked;

	if (!bitmap_meets(members, allocation_used(analysis_index(analysis))))
		return NULL;
	leaked = analysis_cost(analysis, STAGE_REACHABILITY).built &&
		 bitmap_within(members, analysis_unreachable(analysis));
	error = analysis_need(analysis, leaked ? STAGE_LEAKED_PATTERNS : STAGE_PATTERNS);
	if (!error)
		*ret = leaked ? analysis_leaked_patterns(analysis) : analysis_patterns(analysis);
	return error;
}

struct error *summarize_allocations(struct analysis *analysis, const struct set_query *query,
				    struct report *report)
{
	_cleanup_(summary_deinit) struct summary summary = { 0 };
	_cleanup_(members_deinit) struct members members = { 0 };
	const struct patterns *patterns = NULL;
	struct set_query unordered = *query;
	struct error *error;

	unordered.any_order = true;
	error = query_select(analysis, &unordered, &members);
	if (!error)
		error = analysis_need(analysis, STAGE_CLASSES);
	if (!error)
		error = signatures_need(analysis, &members.set);
	if (!error)
		error = find_patterns(analysis, &members.set, &patterns);
	if (!error && query->sort == SORT_RETAINED)
		error = analysis_need(analysis, STAGE_RETAINED);
	if (error)
		return error;
	summary_init(&summary, analysis, query, patterns, report);
	error = add_members(&summary, &members.set);
	if (!error)
		error = write_groups(&summary);
	if (error)
		return error;
	comment_rows(report, analysis, &members);
	rows_total(report, "allocations",
		   allocations_total(analysis_index(analysis), &members.set));
	heap_rows_write(report, analysis, &members.set);
	return NULL;
}
