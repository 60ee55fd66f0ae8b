#include "cli/prompt/history.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <readline/history.h>

enum { MAXIMUM_HISTORY = 1000 };

/* readline's history is one for the process, and so is its file. */
static char *kept_in;

/* The file's path, or NULL if there is no place for it. */
static char *find_path(void)
{
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	char *path;
	int length;

	if (state && state[0] == '/')
		length = asprintf(&path, "%s/heapcore/history", state);
	else if (home && home[0] == '/')
		length = asprintf(&path, "%s/.local/state/heapcore/history", home);
	else
		return NULL;
	return length < 0 ? NULL : path;
}

/* Make the folders on the way to path. What fails shows when it is opened. */
static void make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
}

void history_open(struct session *session)
{
	_cleanup_(free) char *path = find_path();
	_cleanup_(close) int fd = -1;

	using_history();
	stifle_history(MAXIMUM_HISTORY);
	if (!path)
		return;
	make_folders(path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		session_note(session, "the history is not kept: %s: %s", path, strerror(errno));
		return;
	}
	read_history(path);
	kept_in = take(path);
}

void history_close(void)
{
	if (kept_in)
		history_truncate_file(kept_in, MAXIMUM_HISTORY);
	free(take(kept_in));
	clear_history();
}

void history_remember(const char *line)
{
	HIST_ENTRY *last =
		history_length > 0 ? history_get(history_base + history_length - 1) : NULL;

	if (line[strspn(line, " \t")] == '\0' || (last && strcmp(last->line, line) == 0))
		return;
	add_history(line);
	if (kept_in)
		append_history(1, kept_in);
}

const char *history_line(size_t number)
{
	HIST_ENTRY *entry;

	if (number >= (size_t)history_length)
		return NULL;
	entry = history_get(history_base + (int)number);
	return entry ? entry->line : NULL;
}
