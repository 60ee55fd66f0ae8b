#include "cli/prompt/side_file.h"

#include <string.h>

static struct error *name(const char *core, char **ret)
{
	return asprintf(ret, "%s.hcx", core) < 0 ? &error_no_memory : NULL;
}

/* Make it; that it cannot be written ends nothing. */
static struct error *make(struct session *session, const char *path)
{
	struct error *error;

	progress_line_begin(&session->progress);
	error = analysis_write_side_file(session->analysis, path);
	progress_line_stop(&session->progress);
	if (!error || error_code(error) != ERROR_SYSTEM)
		return error;
	session_note(session, "no side file: %s", error_message(error));
	error_destroy(error);
	return NULL;
}

struct error *session_use_side_file(struct session *session, const char *core)
{
	_cleanup_(free) char *path = NULL;
	struct error *error = name(core, &path);

	if (error)
		return error;
	error = analysis_use_side_file(session->analysis, path);
	if (!error)
		return NULL;
	if (error_code(error) != ERROR_BAD_DUMP)
		return error_wrap(error, "%s", path);
	if (access(path, F_OK) == 0)
		session_note(session, "%s is made anew: %s", path, error_message(error));
	error_destroy(error);
	return make(session, path);
}

struct error *session_verify_side_file(struct session *session, const char *core)
{
	_cleanup_(free) char *path = NULL;
	struct error *error = name(core, &path);

	if (error)
		return error;
	progress_line_begin(&session->progress);
	error = analysis_verify_side_file(session->analysis, path);
	progress_line_stop(&session->progress);
	if (error)
		return error_wrap(error, "%s", path);
	puts("The side file says what an analysis anew does.");
	return fflush(stdout) == 0 ? NULL : error_system("the output");
}
