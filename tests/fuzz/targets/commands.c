/*
 * Lines that a user could type, or have in a script.
 */
#include "tests/fuzz/core_target.h"

#include "analyzer/base/cleanup.h"
#include "cli/prompt/completion.h"
#include "cli/prompt/execute.h"

#include <string.h>
#include <strings.h>

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	core_target_settle();
	return 0;
}

/*
 * False for commands that write files, run programs or wait for input, which are not for a fuzzer.
 */
static bool is_harmless(const struct line *line)
{
	static const char *const harmful[] = { "source", "redirect", "history", "diff" };

	if (line->count == 0 || line->destination != TO_OUTPUT)
		return false;
	for (size_t i = 0; i < sizeof(harmful) / sizeof(*harmful); i++)
		if (strcasecmp(line->words[0], harmful[i]) == 0)
			return false;
	/* A switch may begin with a slash, and so may a file's name. */
	for (size_t i = 0; i < line->count; i++)
		if (strstr(line->words[i], "..") ||
		    strchr(line->words[i] + !!*line->words[i], '/') ||
		    strcasestr(line->words[i], "baseline") ||
		    strcasestr(line->words[i], "suppress") || strcasestr(line->words[i], "update"))
			return false;
	return true;
}

static void run_line(struct session *session, const char *text)
{
	_cleanup_(line_deinit) struct line line = { 0 };
	struct error *error = line_split(text, &line);

	if (error)
		session_complain(session, error);
	else if (is_harmless(&line))
		execute_words(session, line.words, line.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct debug_options options = { .sysroot = "/nonexistent" };
	_cleanup_(session_deinit) struct session session;
	_cleanup_(free) char *text = strndup((const char *)bytes, size);
	char *rest = text;
	struct error *error;

	session_init(&session, true);
	session.debug = &options;
	error = session_open(&session, FUZZ_FILES "/classes.core");
	if (error)
		abort();
	for (char *line; (line = strsep(&rest, "\n")) && !session.leaving;)
		run_line(&session, line);
	fflush(stdout);
	return 0;
}
