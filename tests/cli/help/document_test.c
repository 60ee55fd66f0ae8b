#include "cli/help/document.h"

#include "tests/assertions.h"

#include <string.h>

static const char TEXT[] = "A word, 'count used -', and threads' *stars*.\n"
			   "    .picture \\ '->'\n"
			   "    \n"
			   "    ends\n"
			   ".Last 'line'.";

/* The output of the form for TEXT, an entry and examples. */
static char *write_all(const struct document_form *form)
{
	struct document document = { .form = form };
	char *text = NULL;
	size_t size = 0;

	document.out = open_memstream(&text, &size);
	assert_non_null(document.out);
	document_heading(&document, LEVEL_SECTION, "Title");
	document_text(&document, TEXT);
	document_entry(&document, "--min-size SIZE", "Leave 'them' out");
	document_examples(&document, "count used # all\nlist leaked   # lost");
	assert_int_equal(fclose(document.out), 0);
	return text;
}

TEST(man_shows_what_is_typed_as_it_is)
{
	_cleanup_(free) char *text = write_all(&form_man);

	assert_string_equal(text, ".SH TITLE\n"
				  "A word, \\fBcount used \\-\\fR, and "
				  "threads' *stars*.\n"
				  ".PP\n.RS 4\n.nf\n"
				  "\\&.picture \\e \\(aq\\->\\(aq\n"
				  "\n"
				  "ends\n"
				  ".fi\n.RE\n"
				  ".PP\n"
				  "\\&.Last \\fBline\\fR.\n"
				  ".TP\n\\fB\\-\\-min\\-size SIZE\\fR\n"
				  "Leave \\fBthem\\fR out\n"
				  ".PP\n.RS 4\n.nf\n"
				  "count used   # all\n"
				  "list leaked  # lost\n"
				  ".fi\n.RE\n");
}

TEST(markdown_escapes_what_it_would_take_for_its_own)
{
	_cleanup_(free) char *text = write_all(&form_markdown);

	assert_string_equal(text, "## Title\n\n"
				  "A word, `count used -`, and threads' "
				  "\\*stars\\*.\n\n"
				  "    .picture \\ '->'\n"
				  "    \n"
				  "    ends\n\n"
				  ".Last `line`.\n\n"
				  "- `--min-size SIZE`: Leave `them` out\n\n"
				  "    count used   # all\n"
				  "    list leaked  # lost\n");
}

TEST(quotes_begin_at_words_and_end_behind_them)
{
	assert_int_equal(quoted_length("'a b', c", 8, ' '), 5);
	assert_int_equal(quoted_length("'it's so'", 9, '('), 9);
	assert_int_equal(quoted_length("' caches of 'x'", 15, 's'), 0);
	assert_int_equal(quoted_length("'open", 5, ' '), 0);
	assert_int_equal(quoted_length("''", 2, ' '), 0);
	assert_int_equal(quoted_length("x", 1, ' '), 0);
	assert_int_equal(quoted_length("", 0, ' '), 0);
}
