#include "cli/assistants/server.h"

#include "analyzer/base/text.h"
#include "cli/prompt/execute.h"

#include <string.h>

/* ---- what a command writes */

struct error *answer_init(struct answer *answer, size_t most_text)
{
	TRY(capture_init(&answer->text, most_text));
	TRY(capture_init(&answer->rows, MOST_DATA));
	return capture_init(&answer->messages, MOST_MESSAGES);
}

void answer_deinit(struct answer *answer)
{
	capture_deinit(&answer->text);
	capture_deinit(&answer->rows);
	capture_deinit(&answer->messages);
}

static void begin(struct server *server, struct captured *captured, struct answer *answer)
{
	captured_begin(captured, &server->session, answer->text.stream, answer->rows.stream,
		       answer->messages.stream);
}

static void end(struct server *server, struct answer *answer)
{
	answer->failed |= !captured_end(&server->session);
}

/* Reasons were given when they were found, which may be long ago. */
static void tell_doubt(struct server *server, const struct line *line)
{
	struct session *session = &server->session;
	const struct command *command = command_find(line->words[0]);

	if (!session->analysis || !command_needs_core(command))
		return;
	if (strcmp(line->words[0], "info") == 0)
		session->findings_shown = 0;
	else if (findings_incomplete(analysis_findings(session->analysis)))
		session_note(session, "warning: answers may be wrong: 'overview' says why");
}

void server_run(struct server *server, const struct line *line, uint64_t most_rows,
		struct answer *answer)
{
	struct captured captured;

	begin(server, &captured, answer);
	server->session.most_rows = most_rows;
	tell_doubt(server, line);
	execute_words(&server->session, line->words, line->count);
	end(server, answer);
}

void server_list_cores(struct server *server, uint64_t most_rows, struct answer *answer)
{
	char *words[] = { (char *)"open" };
	const struct line line = { .words = words, .count = 1 };
	struct session *session = &server->session;
	struct reports reports;
	struct captured captured;
	struct error *error;

	begin(server, &captured, answer);
	session->most_rows = most_rows;
	error = reports_open(&reports, session, session->format, line.words[0], &line,
			     answer->text.stream, false);
	if (!error) {
		reports.subject.core = NULL; /* it is not about the one that is open */
		reports.subject.findings = NULL;
		error = folders_write(&server->folders, &reports.list[0]);
		error = error_first(error, reports_close(&reports));
	}
	if (error)
		session_complain(session, error);
	end(server, answer);
}

static struct error *ask_fleet(struct server *server, const char *path, const char *word,
			       const struct fleet_question *question, FILE *out)
{
	struct session *session = &server->session;
	_cleanup_(store_close) struct store *store = NULL;

	TRY(store_open(path, STORE_READ_ONLY, &store));
	store_guard(store, &session->progress.progress, session->maximum_memory);
	return fleet_answer(session, word, store, path, question, out);
}

void server_ask_fleet(struct server *server, const char *path, const char *word,
		      const struct fleet_question *question, uint64_t most_rows,
		      struct answer *answer)
{
	struct captured captured;
	struct error *error;

	begin(server, &captured, answer);
	server->session.most_rows = most_rows;
	error = ask_fleet(server, path, word, question, answer->text.stream);
	if (error)
		session_complain(&server->session, error);
	end(server, answer);
}

/* ---- cores */

/* Open another core; the one that is open stays if that fails. */
static struct error *open_instead(struct session *session, const char *path)
{
	struct analysis *before, *opened;
	struct error *error;

	session_check_files(session);
	vanished_forget();
	before = take(session->analysis);
	error = session_open(session, path);
	opened = take(session->analysis);
	session->analysis = before;
	if (error)
		return error;
	session_close(session);
	session->analysis = opened;
	return NULL;
}

bool server_open(struct server *server, const char *path, struct answer *answer)
{
	struct captured captured;
	struct error *error;

	server->unopened = false;
	begin(server, &captured, answer);
	error = open_instead(&server->session, path);
	if (error)
		session_complain(&server->session, error);
	end(server, answer);
	return !error;
}

void server_open_given(struct server *server, struct answer *answer)
{
	if (server->unopened)
		server_open(server, server->folders.core, answer);
}
