#include "cli/prompt/prompt.h"

#include "cli/prompt/ahead.h"
#include "cli/prompt/completion.h"
#include "cli/prompt/execute.h"
#include "cli/prompt/lexer.h"
#include "cli/prompt/machine.h"
#include "cli/prompt/sql_completion.h"
#include "cli/prompt/sql_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include <readline/history.h>
#include <readline/readline.h>

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

/* Read what was kept. That nothing can be kept is only worth a note. */
static void open_history(struct session *session)
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

static void close_history(void)
{
	if (kept_in)
		history_truncate_file(kept_in, MAXIMUM_HISTORY);
	free(take(kept_in));
	clear_history();
}

/* Keep a line, unless it is blank or the last one again. */
static void remember(const char *line)
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

enum reading {
	READING, /* the line is not complete yet */
	READ_LINE,
	READ_NOTHING, /* the line was given up */
	READ_END,     /* of input */
};

/* readline's callback gets only the line: this is where it leaves it. */
static struct {
	enum reading state;
	char *line;
} answer;

static void take_line(char *line)
{
	rl_callback_handler_remove();
	answer.line = line;
	answer.state = line ? READ_LINE : READ_END;
}

static void give_up_line(struct session *session)
{
	atomic_store(&session->progress.progress.interrupted, false);
	rl_callback_sigcleanup();
	rl_free_line_state();
	rl_callback_handler_remove();
	answer.state = READ_NOTHING;
}

/* readline leaves the line itself when it switches bracketed paste off. */
static bool ends_line_itself(void)
{
	const char *value = rl_variable_value("enable-bracketed-paste");

	return value && strcmp(value, "on") == 0;
}

/* Have the user edit a line, to be freed, until it is complete. */
static enum reading read_line(struct session *session, const char *prompt, char **ret)
{
	answer.state = READING;
	rl_callback_handler_install(prompt, take_line);
	while (answer.state == READING) {
		struct pollfd input = { STDIN_FILENO, POLLIN, 0 };

		if (rl_pending_signal())
			rl_check_signals();
		if (session_interrupted(session))
			give_up_line(session);
		else if (poll(&input, 1, -1) > 0 && !rl_pending_signal())
			rl_callback_read_char();
	}
	if (answer.state == READ_LINE)
		*ret = answer.line;
	else if (answer.state == READ_NOTHING || !ends_line_itself())
		fputc('\n', rl_outstream);
	return answer.state;
}

/* Append the next line in place of the `\` that ends *line. */
static bool append_line(char **line, const char *next)
{
	size_t length = strlen(*line);
	char *longer = realloc(*line, length + strlen(next) + 1);

	if (!longer)
		return false;
	longer[length - 1] = ' ';
	memcpy(longer + length, next, strlen(next) + 1);
	*line = longer;
	return true;
}

/* Read a line with those that it continues in. */
static enum reading read_lines(struct session *session, char **ret)
{
	_cleanup_(free) char *line = NULL;
	const char *sql = sql_lines_prompt(&session->sql);
	enum reading state = read_line(session, sql ? sql : "heapcore> ", &line);

	while (state == READ_LINE && !sql && line_continues(line)) {
		_cleanup_(free) char *next = NULL;

		state = read_line(session, "> ", &next);
		if (state == READ_LINE && !append_line(&line, next))
			state = READ_NOTHING;
	}
	if (state == READ_LINE)
		*ret = take(line);
	return state;
}

bool prompt_greets(const struct session *session)
{
	return !session->quiet && !session->chap && !session->file_count &&
	       strcmp(session->format->name, "text") == 0;
}

static void greet(struct session *session)
{
	bool pages = session->pages;

	if (!prompt_greets(session))
		return;
	/* It fits the screen, and the prompt stands below it. */
	session->pages = false;
	execute_line(session, "info");
	session->pages = pages;
	atomic_store(&session->progress.progress.interrupted, false);
	puts("'info' shows this again, 'help' lists the commands, Tab completes them.");
	fflush(stdout);
}

/* The thread and what completes a word read the same. */
static struct ahead ahead;

static char **complete_alone(const char *word, int start, int end)
{
	struct session *session = ahead.session;
	char **completed;

	/* It asks nothing of the analysis. */
	if (session->sql.on)
		return sql_complete_word(word, start, end);
	ahead_stop(&ahead);
	completed = complete_word(word, start, end);
	ahead_start(&ahead, session);
	return completed;
}

/* NULL: those that are set. */
static char *word_breaks(void)
{
	return ahead.session && ahead.session->sql.on ? (char *)sql_word_breaks : NULL;
}

static void set_up_readline(void)
{
	rl_readline_name = "heapcore";
	rl_attempted_completion_function = complete_alone;
	rl_basic_word_break_characters = completion_word_breaks;
	rl_completer_word_break_characters = completion_word_breaks;
	rl_completer_quote_characters = "\"'";
	rl_completion_word_break_hook = word_breaks;
	/* Signals that come between two keys are readline's, too. */
	rl_persistent_signal_handlers = 1;
	if (!isatty(STDOUT_FILENO))
		rl_outstream = stderr;
}

void prompt_run(struct session *session)
{
	enum reading state = READ_NOTHING;

	session->at_prompt = true;
	interrupt_catch(&session->progress.progress, false);
	set_up_readline();
	/* Debug files may come from afar. */
	completion_use(session->analysis, !session->debug || !session->debug->debuginfod);
	open_history(session);
	greet(session);
	while (state != READ_END && !session->leaving) {
		_cleanup_(free) char *line = NULL;

		ahead_start(&ahead, session);
		state = read_lines(session, &line);
		ahead_stop(&ahead);
		if (state != READ_LINE) {
			sql_lines_give_up(&session->sql);
			continue;
		}
		remember(line);
		/* Ctrl-C was pressed before this line, or not in time. */
		atomic_store(&session->progress.progress.interrupted, false);
		execute_line(session, line);
		atomic_store(&session->progress.progress.interrupted, false);
	}
	completion_use(NULL, false);
	close_history();
}
