#include "analyzer/export/export.h"

#include "tests/analyzer/drawn_process.h"

/* Export all that is used; the text is to be freed. */
static char *export_text(struct drawn *drawn, const char *name)
{
	struct analysis *analysis = drawn_open(drawn, STAGE_HEAP);
	_cleanup_(owners_deinit) struct owners owners = { 0 };
	const struct bitmap *used = allocation_used(analysis_index(analysis));
	const struct export_format *format;
	struct writer writer;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct export export = {
		.analysis = analysis,
		.members = used,
		.owners = &owners,
		.graph = GRAPH_DOMINATORS,
		.title = "core <of> \"the\" test",
	};

	assert_no_error(export_format_find(name, &format));
	export.limit = format->limit;
	assert_no_error(owners_find(analysis, used, true, &owners));
	writer_init(&writer, out);
	assert_no_error(format->write(&export, &writer));
	writer_deinit(&writer);
	fclose(out);
	return text;
}

#define EXPORTED(drawn, text, format, drawing)              \
	_cleanup_(drawn_deinit) struct drawn drawn = { 0 }; \
	_cleanup_(free) char *text = NULL;                  \
	drawn_init(&(drawn), drawing);                      \
	(text) = export_text(&(drawn), format)

TEST(folded_lines_add_up_to_all_that_is_used)
{
	EXPORTED(drawn, text, "folded", "root>a a>b>c d");

	assert_string_equal(text, "mapped memory;%ThreadCache 648\n"
				  "/lib/libc.so.6;unrecognized of size 104 (0x68) 312\n"
				  "what leaked;unrecognized of size 104 (0x68) 104\n");
}

TEST(graph_has_who_dominates_whom)
{
	static const char *const parts[] = {
		"n0 [label=\"the heap\\n1,064 bytes\"",
		"n3 [label=\"/lib/libc.so.6\\n312 bytes\"",
		"n4 [label=\"unrecognized of size 104 (0x68)\\n"
		"0x5555000002a0: 104 bytes, retains 312\"",
		"n0 -> n3;\n\tn3 -> n4;\n\tn4 -> n5;\n\tn5 -> n6;\n\tn0 -> n7;\n\tn7 -> n8;\n}\n",
	};
	EXPORTED(drawn, text, "dot", "root>a a>b>c d");

	for (size_t i = 0; i < COUNT_OF(parts); i++)
		if (!strstr(text, parts[i]))
			fail_msg("'%s' is not in %s", parts[i], text);
}

TEST(unknown_format_says_which_may_be_meant)
{
	const struct export_format *format;
	struct error *error = export_format_find("foldet", &format);

	assert_non_null(error);
	assert_string_equal(error_message(error),
			    "unknown export format 'foldet'; did you mean 'folded'?");
	error_destroy(error);
}
