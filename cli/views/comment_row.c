#include "cli/views/comment_row.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

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

/* By kind; those of references have a table of their own. */
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
		NOTE_TABLE("comment", "# The chain ends here: it comes back to the allocation at 0x{address}."),
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
		NOTE_TABLE("comment", "# The rule '{state}' adds nothing: one in front of it takes all that it would."),
	},
	[COMMENT_UNREACHED] = {
		"unreached rule",
		NOTE_TABLE("comment", "# The rule '{state}' adds nothing: no other rule leads to its state."),
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
	if (!out)
		return &error_no_memory;
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
	struct error *error;
	char *sentence;

	if (!comment_is_warning(comment))
		return NULL;
	error = comment_text(analysis, comment, &text);
	if (error)
		return error;
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
