#include "cli/views/rows.h"

#include "analyzer/account/likely_held.h"
#include "analyzer/base/sort.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The length of a member's name with its indices, at the start of the text. */
static size_t member_length(const char *text)
{
	size_t length = 0;
	int depth = 0;

	for (; text[length] &&
	       (depth > 0 || isalnum((unsigned char)text[length]) || strchr("_[", text[length]));
	     length++)
		depth += (text[length] == '[') - (text[length] == ']');
	return length;
}

/* True for "_M_left" and "__tree_", as only a library may call its own, but not for "__dict__". */
static bool is_of_library(const char *name, size_t length)
{
	const char *index = memchr(name, '[', length);
	size_t bare = index ? (size_t)(index - name) : length;

	return strncmp(name, "_M_", 3) == 0 ||
	       (bare > 2 && strncmp(name, "__", 2) == 0 && strncmp(name + bare - 2, "__", 2) != 0);
}

/* The place of the index of a vector's elements in the member's name; or its length. */
static size_t index_of_elements(const char *name, size_t length)
{
	static const char *const elements[] = { "_M_start[", "__begin_[" };

	for (size_t i = 0; i < COUNT_OF(elements); i++)
		if (strncmp(name, elements[i], strlen(elements[i])) == 0)
			return strlen(elements[i]) - 1;
	return length;
}

char *rows_own_words(const char *name, bool is_member)
{
	char *ret = malloc(strlen(name) + 1), *end = ret;

	/* A program may call its variables as a library does its members. */
	if (ret && !is_member) {
		size_t length = strcspn(name, ".[- ");

		end = mempcpy(end, name, length);
		name += length;
	}
	while (ret && *name) {
		size_t separator = *name == '.' ? 1 : strncmp(name, "->", 2) == 0 ? 2 : 0;
		size_t length = member_length(name + separator);

		if (is_of_library(name + separator, length)) {
			size_t index = index_of_elements(name + separator, length);

			memcpy(end, name + separator + index, length - index);
			end += length - index;
			name += separator + length;
			continue;
		}
		/* The first member that stays begins the name. */
		if (end == ret)
			name += separator;
		else
			length += separator;
		length = length ? length : 1;
		memcpy(end, name, length);
		end += length;
		name += length;
	}
	if (ret)
		*end = '\0';
	return ret;
}

void rows_total(struct report *report, const char *noun, struct set_total total)
{
	static const struct table table =
		TABLE("total", "{count} {what|count} {count|uses|use} 0x{bytes} ({bytes,}) bytes.",
		      { "what", VALUE_TEXT }, { "count", VALUE_COUNT }, { "bytes", VALUE_BYTES });

	report_single(report, &table, noun, total.count, total.bytes);
}

double rows_share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

struct error *rows_count_likely_held(struct analysis *analysis, const struct bitmap *members,
				     struct set_total *ret_leaked, struct set_total *ret_held)
{
	const struct allocation_index *index = analysis_index(analysis);
	_cleanup_(bitmap_deinit) struct bitmap part = { 0 };

	*ret_held = (struct set_total){ 0 };
	TRY(analysis_need(analysis, STAGE_REACHABILITY));
	TRY(bitmap_init(&part, members->count, analysis_account(analysis)));
	bitmap_copy(&part, members);
	bitmap_and(&part, analysis_leaked(analysis));
	*ret_leaked = allocations_total(index, &part);
	if (ret_leaked->count == 0)
		return NULL;
	TRY(analysis_need(analysis, STAGE_DISGUISED));
	bitmap_and(&part, likely_held(analysis));
	*ret_held = allocations_total(index, &part);
	return NULL;
}

void rows_write_likely_held(struct report *report, struct set_total leaked, struct set_total held,
			    const char *noun)
{
	static const struct table table = TABLE(
		"held in disguise",
		"{held,} of {leaked,} {noun} ({bytes,} bytes) {held|is|are} likely held by tagged pointers or the like: see 'explain likelyheld'.",
		{ "held", VALUE_COUNT }, { "leaked", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		{ "noun", VALUE_TEXT, .reader = FOR_PEOPLE });

	if (held.count > 0)
		report_single(report, &table, held.count, leaked.count, held.bytes, noun);
}

struct error *rows_likely_held(struct report *report, struct analysis *analysis,
			       const struct bitmap *members, const char *noun)
{
	struct set_total leaked, held;

	TRY(rows_count_likely_held(analysis, members, &leaked, &held));
	rows_write_likely_held(report, leaked, held, noun);
	return NULL;
}

void rows_left_out(struct report *report, const char *noun, uint64_t total, uint64_t limit)
{
	if (limit && total > limit)
		report_say_left_out(report, total - limit, noun);
}

void rows_not_looked_at(struct report *report, const char *noun, const struct ranges *ranges)
{
	static const struct table table =
		TABLE("left out",
		      "... and {count} more {what|count}, whose containers were not searched.",
		      { "count", VALUE_COUNT }, { "what", VALUE_TEXT });

	if (ranges_found(ranges) == ranges->count)
		return;
	report_single(report, &table, ranges_found(ranges) - ranges->count, noun);
}

void rows_ranges(struct report *report, struct analysis *analysis, const struct range_kind *kind,
		 const struct ranges *ranges, uint64_t limit)
{
	size_t count = limit && limit < ranges->count ? limit : ranges->count;

	report_begin_table(report, &kind->table);
	for (size_t i = 0; i < count && !report_broken(report); i++) {
		struct range range = ranges_at(ranges, i);

		kind->write(analysis, ranges, &range, report);
		report_end_row(report);
	}
	report_end_table(report);
	rows_left_out(report, kind->noun, ranges_found(ranges), count);
	rows_total(report, kind->noun, ranges_total(ranges));
}

void rows_text(struct report *report, const char *text)
{
	static const struct table table = TABLE("note", "{text}", { "text", VALUE_TEXT });

	report_single(report, &table, text);
}

const char *rows_noun(const struct set_query *query)
{
	return query->set->ranges ? query->set->ranges->noun : "allocations";
}

const char *rows_signature_name(const struct analysis *analysis, const struct set_query *query,
				uint64_t signature)
{
	struct classes *classes = analysis_classes(analysis);

	return query->full_names ? classes_full_name(classes, signature)
				 : classes_name(classes, signature);
}

void rows_kind(struct report *report, const struct analysis *analysis,
	       const struct set_query *query, allocation_id id)
{
	uint64_t signature = analysis_signature(analysis, id);
	struct identity identity = { .name = NULL };
	const char *name = NULL;
	bool is_class, is_part, is_other;

	if (signature) {
		name = classes_literal_name(analysis_classes(analysis), signature);
		if (!name)
			name = rows_signature_name(analysis, query, signature);
	}
	if (!analysis_identity(analysis, id, &identity))
		identity.name = NULL;
	is_class = name && rows_is_class_number(signature);
	is_part = name && runtimes_is_part(analysis_runtimes(analysis), signature);
	is_other = !is_class && !is_part;
	report_add(report, VALUE_IF(is_class, name), VALUE_IF(is_part, name),
		   VALUE_IF(is_other, value_nonzero(signature)), VALUE_IF(is_other, name),
		   value_nonzero(signature), name, identity.name,
		   VALUE_IF(identity.name, identity.offset));
}

void rows_allocation(struct report *report, const struct analysis *analysis,
		     const struct set_query *query, allocation_id id, const char *state)
{
	const struct allocation_index *index = analysis_index(analysis);
	bool retains = query->sort == SORT_RETAINED && bitmap_get(allocation_used(index), id);

	report_add(report, state, allocation_start(index, id), allocation_size(index, id));
	rows_kind(report, analysis, query, id);
	report_add(report,
		   VALUE_IF(retains, dominators_retained(analysis_dominators(analysis), id)));
}

/* The length of the gap in the dump from address on. */
static uint64_t gap_size(const struct image *image, uint64_t address)
{
	const struct region *regions = image->regions;
	size_t next = BISECT(i, 0, image->region_count, regions[i].end <= address);

	/* The last region is followed by the rest of the address space. */
	if (next == image->region_count)
		return UINT64_MAX - address ? UINT64_MAX - address : 1;
	return (regions[next].start > address ? regions[next].start : regions[next].end) - address;
}

static const uint8_t *shown_bytes(const void *source, uint64_t address, uint64_t *ret_size)
{
	/* The bytes written before the next check for Ctrl-C. */
	enum { PIECE = 1 << 16 };
	struct analysis *analysis = (struct analysis *)source;
	const struct image *image = analysis_image(analysis);
	const uint8_t *bytes;
	bool has_content;
	uint64_t run;

	*ret_size = 0;
	if (atomic_load(&analysis_progress(analysis)->interrupted))
		return NULL;
	bytes = image_bytes(image, address, ret_size);
	if (!bytes)
		*ret_size = gap_size(image, address);
	else if (*ret_size > PIECE)
		*ret_size = PIECE;
	has_content = image_has_content(image, address, &run);
	*ret_size = MIN(*ret_size, run);
	return has_content ? bytes : NULL;
}

bool rows_show_contents(const struct report *report, const struct analysis *analysis,
			uint64_t address, uint64_t size)
{
	return !report->no_content ||
	       (report->shows_kept && image_has_contents(analysis_image(analysis), address, size));
}

struct memory_view rows_view(struct analysis *analysis, uint64_t start, uint64_t size,
			     const struct selection *selection)
{
	if (selection->has_show_up_to && selection->show_up_to < size)
		size = selection->show_up_to;
	return (struct memory_view){
		.address = start,
		.size = size,
		.origin = start,
		.word = image_word_size(analysis_image(analysis)),
		.ascii = selection->ascii,
		.is_slim = image_is_slim(analysis_image(analysis)),
		.bytes = shown_bytes,
		.source = analysis,
	};
}

static void report_allocation(struct report *report, const struct analysis *analysis,
			      allocation_id id)
{
	report_add(report,
		   VALUE_IF(id != NO_ALLOCATION, allocation_start(analysis_index(analysis), id)));
}

/* An empty line stands where the allocation would be, were it new. */
static void write_reference(struct report *report, const struct analysis *analysis,
			    const struct member_comment *comment)
{
	static const struct table table = TABLE(
		"reference comment",
		"# Allocation at 0x{from} {how} allocation at 0x{to}.[\n# Allocation at 0x{to} will be extended in state {state}.][\n# Allocation at 0x{to} was {visited} visited.[\n# Allocation at 0x{to} would have been extended in state {unused state}.]\n]",
		{ "from", VALUE_ADDRESS }, { "how", VALUE_TEXT }, { "to", VALUE_ADDRESS },
		{ "state", VALUE_TEXT }, { "visited", VALUE_TEXT }, { "unused state", VALUE_TEXT });
	bool refers = comment->kind == COMMENT_REFERENCES;
	bool visited = comment->was_visited;

	report_begin_table(report, &table);
	report_allocation(report, analysis, comment->from);
	report_add(report, refers ? "references" : "is referenced by");
	report_allocation(report, analysis, comment->to);
	report_row(report, visited ? NULL : comment->state, visited ? "already" : NULL,
		   visited ? comment->state : NULL);
	report_end_table(report);
}

#define NOTE_TABLE(name, sentence)                                                  \
	TABLE(name, sentence, { "kind", VALUE_TEXT }, { "address", VALUE_ADDRESS }, \
	      { "state", VALUE_TEXT })

/* Notes by kind; those of references have a table of their own. */
static const struct note {
	const char *kind;
	struct table table;
} notes[] = {
	[COMMENT_BASE_VISITED] = {
		"already visited",
		NOTE_TABLE("comment", "# Base set member at 0x{address} was already visited via an extension rule.\n"),
	},
	[COMMENT_CYCLE] = {
		"cycle",
		NOTE_TABLE("comment", "# The chain ends here: it returns to the allocation at 0x{address}."),
	},
	[COMMENT_BRANCHES] = {
		"branches",
		NOTE_TABLE("comment", "# The chain ends here: several allocations lead to the one at 0x{address}."),
	},
	[COMMENT_STATE] = {
		"state and class",
		NOTE_TABLE("comment", "# In the rules '{state}' is the state, not the class of that name."),
	},
	[COMMENT_REPEATED] = {
		"repeated rule",
		NOTE_TABLE("comment", "# The rule '{state}' adds nothing: an earlier rule matches everything that it would."),
	},
	[COMMENT_UNREACHED] = {
		"unreached rule",
		NOTE_TABLE("comment", "# The rule '{state}' adds nothing: no other rule leads to its state."),
	},
	[COMMENT_HEXADECIMAL] = {
		"hexadecimal size",
		NOTE_TABLE("comment", "# Sizes are decimal. None is {state}, but that of the allocation at 0x{address} is in hexadecimal."),
	},
};

static void write_note(struct report *report, const struct analysis *analysis,
		       const struct member_comment *comment)
{
	const struct note *note = &notes[comment->kind];

	report_begin_table(report, &note->table);
	report_add(report, note->kind);
	report_allocation(report, analysis, comment->to);
	report_row(report, comment->state);
	report_end_table(report);
}

void comment_row(struct report *report, const struct analysis *analysis,
		 const struct member_comment *comment)
{
	if (comment->kind == COMMENT_REFERENCES || comment->kind == COMMENT_REFERENCED)
		write_reference(report, analysis, comment);
	else
		write_note(report, analysis, comment);
}

/* The row as text, as "# The chain ends here"; to be freed. */
static struct error *comment_text(const struct analysis *analysis,
				  const struct member_comment *comment, char **ret)
{
	const struct report_format *format = NULL;
	struct error *error = report_format_find("text", &format);
	struct report report = { 0 };
	size_t size;
	FILE *out;

	if (error)
		return error;
	out = open_memstream(ret, &size);
	TRY_MEMORY(out);
	error = report_open(format, out, false, &report);
	if (!error) {
		comment_row(&report, analysis, comment);
		error = report_close(&report);
	}
	if (fclose(out) != 0 && !error)
		error = &error_no_memory;
	return error;
}

struct error *comment_note(struct analysis *analysis, const struct member_comment *comment)
{
	_cleanup_(free) char *text = NULL;
	char *sentence;

	if (!comment_is_warning(comment))
		return NULL;
	TRY(comment_text(analysis, comment, &text));
	text[strcspn(text, "\n")] = '\0';
	sentence = text + strspn(text, "# ");
	*sentence = (char)tolower((unsigned char)*sentence);
	analysis_note(analysis, sentence);
	return NULL;
}

struct commenting {
	struct report *report;
	const struct analysis *analysis;
};

static void write_comment(void *data, const struct member_comment *comment)
{
	const struct commenting *commenting = data;

	comment_row(commenting->report, commenting->analysis, comment);
}

void comment_rows(struct report *report, const struct analysis *analysis,
		  const struct members *members)
{
	struct commenting commenting = { report, analysis };
	const struct member_visitor visitor = { .comment = write_comment, .data = &commenting };

	query_visit_comments(members, &visitor);
}

struct rows {
	struct report *report;
	uint64_t address; /* of the allocation */
};

struct error *annotation_rows_init(struct annotating *annotating, struct analysis *analysis,
				   const struct selection *selection)
{
	return annotating_init(annotating, analysis, &selection->annotations,
			       &selection->query.extensions, selection->query.allow_missing);
}

static bool write_row(void *data, const struct annotation *annotation)
{
	const struct rows *rows = data;
	struct report *report = rows->report;

	report_row(report, rows->address, annotation->start, annotation->end, annotation->annotator,
		   annotation->is_content ? report_content(report, annotation->text)
					  : annotation->text);
	return !report_broken(report);
}

struct error *annotation_rows_write(struct annotating *annotating, allocation_id id,
				    struct report *report)
{
	static const struct table table = TABLE(
		"annotation", "... offsets {start} to {end}: {annotator}, {text}",
		{ "address", VALUE_ADDRESS }, { "start", VALUE_ADDRESS }, { "end", VALUE_ADDRESS },
		{ "annotator", VALUE_TEXT }, { "text", VALUE_TEXT });
	struct rows rows = {
		report,
		allocation_start(analysis_index(annotating->analysis), id),
	};
	struct error *error;

	report_begin_table(report, &table);
	error = annotate(annotating, id, write_row, &rows);
	report_end_table(report);
	rows_text(report, "");
	return error;
}

const char *rows_path(const struct report *report, const struct analysis *analysis,
		      allocation_id id, char buffer[static ROWS_PATH_SIZE])
{
	return object_paths_tell(analysis_object_paths(analysis), id, !report->no_content, buffer,
				 ROWS_PATH_SIZE)
		       ? buffer
		       : NULL;
}
