#include "cli/views/rows.h"

#include <inttypes.h>
#include <string.h>

/* Unless it is said otherwise, so much of a string is shown. */
enum { SHOWN = 1 << 16 };

struct string_arguments {
	uint64_t address;
	uint64_t show_up_to;
	bool has_show_up_to;
};

static const struct argp_option options[] = {
	{ "show-up-to", KEEP_GIVEN(SIZE, struct string_arguments, show_up_to, has_show_up_to),
	  "SIZE", 0, "Show at most that much of it; 64K by default", 0 },
	{ 0 },
};

static const int keep_words[] = { KEEP(ADDRESS, struct string_arguments, address), 0 };

/* The characters from an address on up to the first 0. */
struct string_found {
	uint64_t length;
	bool ends; /* else memory does, first */
};

static struct error *find_end(struct analysis *analysis, uint64_t address, struct string_found *ret)
{
	enum { PIECE = 1 << 24 };
	const struct image *image = analysis_image(analysis);
	struct string_found found = { 0 };

	progress_begin(analysis_progress(analysis), "reading a string", 0);
	while (!found.ends) {
		uint64_t size;
		const uint8_t *bytes = image_bytes(image, address + found.length, &size);
		const uint8_t *end;

		if (!bytes)
			break;
		size = MIN(size, PIECE);
		end = memchr(bytes, 0, size);
		found.ends = end != NULL;
		found.length += end ? (uint64_t)(end - bytes) : size;
		TRY(progress_check(analysis_progress(analysis), size));
	}
	*ret = found;
	return NULL;
}

/* A copy of the first size bytes, which are known. */
static struct error *copy_text(const struct image *image, uint64_t address, uint64_t size,
			       char **ret)
{
	char *text = malloc(size + 1);

	TRY_MEMORY(text);
	if (!image_read(image, address, text, size))
		size = 0;
	text[size] = '\0';
	*ret = text;
	return NULL;
}

static void write_string(const struct string_arguments *arguments, const struct string_found *found,
			 uint64_t shown, const char *text, struct report *report)
{
	static const struct table table = TABLE(
		"string",
		"{address}: \"{text}\"\n"
		"... of 0x{length} ({length,}) bytes"
		"[, of which the first 0x{shown} ({shown,}) are shown][\n... without an end: the contents at {end} are not known]",
		{ "address", VALUE_ADDRESS }, { "text", VALUE_TEXT }, { "length", VALUE_BYTES },
		{ "shown", VALUE_BYTES }, { "end", VALUE_ADDRESS });

	report_single(report, &table, arguments->address, text, found->length,
		      VALUE_IF(shown < found->length, shown),
		      VALUE_IF(!found->ends, arguments->address + found->length));
}

static struct error *string_run(struct analysis *analysis, const void *input, struct report *report)
{
	const struct string_arguments *arguments = input;
	const struct image *image = analysis_image(analysis);
	_cleanup_(free) char *text = NULL;
	struct string_found found = { 0 };
	uint64_t size, shown = arguments->has_show_up_to ? arguments->show_up_to : SHOWN;

	if (!image_bytes(image, arguments->address, &size))
		return error_create(ERROR_USAGE,
				    image_find(image, arguments->address)
					    ? "the contents of the memory at 0x%" PRIx64
					      " are not known"
					    : "0x%" PRIx64 " is not mapped",
				    arguments->address);
	TRY(find_end(analysis, arguments->address, &found));
	shown = MIN(shown, found.length);
	TRY(copy_text(image, arguments->address, shown, &text));
	write_string(arguments, &found, shown,
		     rows_show_contents(report, analysis, arguments->address, shown)
			     ? text
			     : report_left_out,
		     report);
	return NULL;
}

const struct command command_string = {
	.name = "string",
	.summary = "Show the string at an address",
	.words = "ADDRESS",
	.example = "string 55d0c0ffee40",
	.description =
		"The characters up to the first zero. Characters that a terminal would not show are written as \\n, \\t or \\x1b.",
	.word = WORD_ADDRESS,
	.options = options,
	.keep_words = keep_words,
	.arguments_size = sizeof(struct string_arguments),
	.run = string_run,
};
