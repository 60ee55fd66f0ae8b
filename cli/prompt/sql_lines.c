#include "cli/prompt/sql_lines.h"

#include "analyzer/base/text.h"
#include "analyzer/sql/sql.h"

#include <string.h>

static void run_query(struct session *session, const char *text, run_words *run)
{
	char *words[] = { (char *)"sql", (char *)"--", (char *)text };

	run(session, words, COUNT_OF(words));
}

static bool is_word(const char *line, const char *word)
{
	size_t length = strlen(word);

	line += strspn(line, " \t");
	return strncmp(line, word, length) == 0 && !line[length + strspn(line + length, " \t;")];
}

void sql_lines_end(struct session *session, run_words *run)
{
	_cleanup_(free) char *text = take(session->sql.text);

	if (text && text[strspn(text, " \t\n")])
		run_query(session, text, run);
	session->sql.on = false;
}

static void add_line(struct session *session, const char *line, run_words *run)
{
	struct sql_lines *lines = &session->sql;
	char *text = format_text("%s%s\n", lines->text ? lines->text : "", line);

	if (!text) {
		session_complain(session, &error_no_memory);
		return;
	}
	free(lines->text);
	lines->text = text;
	if (sql_is_complete(text)) {
		text = take(lines->text);
		run_query(session, text, run);
		free(text);
	}
}

bool sql_lines_take(struct session *session, const char *line, run_words *run)
{
	struct sql_lines *lines = &session->sql;

	line += strspn(line, " \t");
	if (!lines->on) {
		lines->on = is_word(line, "sql");
		return lines->on;
	}
	if (is_word(line, ".quit") || is_word(line, ".exit") || is_word(line, "quit")) {
		free(take(lines->text));
		lines->on = false;
	} else if (!lines->text && *line == '.') {
		run_query(session, line, run);
	} else if (lines->text || *line) {
		add_line(session, line, run);
	}
	return true;
}

void sql_lines_give_up(struct sql_lines *lines)
{
	free(take(lines->text));
}

const char *sql_lines_prompt(const struct sql_lines *lines)
{
	return !lines->on ? NULL : lines->text ? "...> " : "sql> ";
}
