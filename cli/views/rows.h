/*
 * The rows that several commands write.
 */
#pragma once

#include "analyzer/query/annotate.h"
#include "analyzer/query/order.h"
#include "analyzer/query/place.h"
#include "analyzer/query/query.h"
#include "analyzer/report/report.h"
#include "cli/views/selection.h"

/*
 * The name of a variable or member without what only the C++ library knows: its own members, as in
 * "owners._M_t._M_impl (server)". Nothing may be left of a member. To be freed.
 */
char *rows_own_words(const char *name, bool is_member);

/* "25 allocations use 0x668 (1,640) bytes." */
void rows_total(struct report *report, const char *noun, struct set_total total);

/* "12 of 30 leak roots are likely held ...", if any member is. Builds what it needs. */
struct error *rows_count_likely_held(struct analysis *analysis, const struct bitmap *members,
				     struct set_total *ret_leaked, struct set_total *ret_held);
void rows_write_likely_held(struct report *report, struct set_total leaked, struct set_total held,
			    const char *noun);
struct error *rows_likely_held(struct report *report, struct analysis *analysis,
			       const struct bitmap *members, const char *noun);

/* Note that a limit left some rows out, if it did. */
void rows_left_out(struct report *report, const char *noun, uint64_t total, uint64_t limit);

/* The part's share of the whole, from 0 to 1; 0 if the whole is 0. */
double rows_share(uint64_t part, uint64_t whole);

/* Note that not all hits of a search were kept, if so. */
void rows_not_looked_at(struct report *report, const char *noun, const struct ranges *ranges);

/* The rows of the first ranges, at most limit if it is not 0, what was left out, and the total. */
void rows_ranges(struct report *report, struct analysis *analysis, const struct range_kind *kind,
		 const struct ranges *ranges, uint64_t limit);

/* A sentence that stands alone, or an empty line. */
void rows_text(struct report *report, const char *text);

/* The noun for members of the query's set, in the plural. */
const char *rows_noun(const struct set_query *query);

/*
 * True if it is the number of a class in a table of heapcore's own, which no program knows: no
 * memory is so low. People read its name alone.
 */
static inline bool rows_is_class_number(uint64_t signature)
{
	return signature != 0 && signature < 1 << 16;
}

/*
 * For people the class, or the signature with its name; for programs these two; and the identity
 * word with its offset; absent if there is none.
 */
#define KIND_COLUMNS CLASS_COLUMNS("name")
#define CLASS_COLUMNS(name)                                                                   \
	{ "of class", VALUE_TEXT, .reader = FOR_PEOPLE },                                     \
		{ "held as", VALUE_TEXT, .reader = FOR_PEOPLE },                              \
		{ "known by", VALUE_ADDRESS, .reader = FOR_PEOPLE },                          \
		{ "known as", VALUE_TEXT, .reader = FOR_PEOPLE },                             \
		{ "signature", VALUE_ADDRESS, .reader = FOR_PROGRAMS },                       \
		{ name, VALUE_TEXT, .reader = FOR_PROGRAMS }, COLUMN("identity", VALUE_TEXT), \
		COLUMN("at offset", VALUE_ADDRESS)

#define KIND_SENTENCE(between)                                            \
	"[" between "of class {of class}][" between "{held as}][" between \
	"with signature {known by}][({known as})]"

/* Write the values of KIND_COLUMNS. */
void rows_kind(struct report *report, const struct analysis *analysis,
	       const struct set_query *query, allocation_id id);

/*
 * The first columns of an allocation's row, written by rows_allocation(), and its sentence. The
 * retained size of a used allocation is absent unless the query sorts by it.
 */
#define ALLOCATION_COLUMNS                                             \
	COLUMN("state", VALUE_TEXT), COLUMN("address", VALUE_ADDRESS), \
		COLUMN("size", VALUE_BYTES), KIND_COLUMNS, COLUMN("retained", VALUE_BYTES)

#define ALLOCATION_SENTENCE                                                        \
	"{state} allocation at {address} of size {size}" KIND_SENTENCE(            \
		"\n... ") "[\n... with identity {identity} at offset {at offset}]" \
			  "[\n... retaining 0x{retained} ({retained,}) bytes]"

void rows_allocation(struct report *report, const struct analysis *analysis,
		     const struct set_query *query, allocation_id id, const char *state);

/* A signature's name, as long as the query wants it; NULL if it has none. */
const char *rows_signature_name(const struct analysis *analysis, const struct set_query *query,
				uint64_t signature);

/* True if contents of memory may be shown; of a slim core, those that stayed. */
bool rows_show_contents(const struct report *report, const struct analysis *analysis,
			uint64_t address, uint64_t size);

/* The part of [start, start + size) to show: all unless the selection limits it. */
struct memory_view rows_view(struct analysis *analysis, uint64_t start, uint64_t size,
			     const struct selection *selection);

/* The tables that comments are in begin and end with them. */
void comment_row(struct report *report, const struct analysis *analysis,
		 const struct member_comment *comment);

/* Report the comment as a note to the user if scripts read the rows and would miss it. */
struct error *comment_note(struct analysis *analysis, const struct member_comment *comment);

/* All of the members' comments, in front of what is said of them together. */
void comment_rows(struct report *report, const struct analysis *analysis,
		  const struct members *members);

/* Prepare what the selection says of annotations; builds what is needed. */
struct error *annotation_rows_init(struct annotating *annotating, struct analysis *analysis,
				   const struct selection *selection);

/*
 * Write the annotations of the allocation, and an empty line, which then does not belong to the
 * allocation's own row.
 */
struct error *annotation_rows_write(struct annotating *annotating, allocation_id id,
				    struct report *report);

/*
 * Write how the program reaches an object in its own language (STAGE_OBJECT_PATHS): into buffer,
 * which is returned, or NULL.
 */
enum { ROWS_PATH_SIZE = 512 };
const char *rows_path(const struct report *report, const struct analysis *analysis,
		      allocation_id id, char buffer[static ROWS_PATH_SIZE]);
