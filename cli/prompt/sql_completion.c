#include "cli/prompt/sql_completion.h"

#include "analyzer/sql/sql.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <readline/readline.h>

const char sql_word_breaks[] = " \t\n\"'(),;=<>+-*/|.";

static const char *const COMMANDS[] = { "help", "quit", "schema", "tables", NULL };

static const char *const WORDS[] = {
	"SELECT", "DISTINCT",  "FROM",	 "JOIN",	  "CROSS JOIN",	  "LEFT JOIN",
	"ON",	  "USING",     "WHERE",	 "GROUP BY",	  "HAVING",	  "ORDER BY",
	"DESC",	  "LIMIT",     "OFFSET", "AND",		  "OR",		  "NOT",
	"IN",	  "LIKE",      "GLOB",	 "BETWEEN",	  "IS NULL",	  "IS NOT NULL",
	"EXISTS", "CASE",      "WHEN",	 "THEN",	  "ELSE",	  "END",
	"AS",	  "UNION ALL", "WITH",	 "count(",	  "sum(",	  "total(",
	"min(",	  "max(",      "avg(",	 "group_concat(", "printf(",	  "substr(",
	"text(",  "words(",    "name(",	 "path(",	  "instance_of(", "visited()",
	NULL,
};

/* The words that SQL allows at the cursor. */
enum place { PLACE_COMMAND, PLACE_TABLE, PLACE_COLUMN, PLACE_ANY };

static struct {
	enum place place;
	size_t next;
} search;

/* The word before the one that begins at start, in ret. */
static void find_previous(int start, char *ret, size_t size)
{
	int end = start, first;
	size_t length;

	while (end > 0 && isspace((unsigned char)rl_line_buffer[end - 1]))
		end--;
	first = end;
	while (first > 0 && isalpha((unsigned char)rl_line_buffer[first - 1]))
		first--;
	length = (size_t)(end - first);
	snprintf(ret, size, "%.*s", length < size ? (int)length : 0, rl_line_buffer + first);
}

static enum place place_of(int start)
{
	char previous[16];
	bool is_behind_dot = start > 0 && rl_line_buffer[start - 1] == '.';

	find_previous(start, previous, sizeof(previous));
	if (is_behind_dot)
		return start == 1 ? PLACE_COMMAND : PLACE_COLUMN;
	if (strcmp(previous, "schema") == 0 || strcasecmp(previous, "FROM") == 0 ||
	    strcasecmp(previous, "JOIN") == 0)
		return PLACE_TABLE;
	return PLACE_ANY;
}

/* The candidates one after the other: those of a list, then the next list that fits. */
static const char *candidate_at(size_t number)
{
	size_t i = 0;

	if (search.place == PLACE_COMMAND)
		return number < COUNT_OF(COMMANDS) ? COMMANDS[number] : NULL;
	if (search.place != PLACE_COLUMN) {
		while (sql_table_name(i) && i < number)
			i++;
		if (sql_table_name(i))
			return sql_table_name(i);
		number -= i;
	}
	if (search.place == PLACE_TABLE)
		return NULL;
	for (i = 0; sql_column_name(i); i++)
		if (i == number)
			return sql_column_name(i);
	number -= i;
	return search.place == PLACE_ANY && number < COUNT_OF(WORDS) ? WORDS[number] : NULL;
}

static char *next_match(const char *word, int state)
{
	const char *candidate;

	if (state == 0)
		search.next = 0;
	while ((candidate = candidate_at(search.next))) {
		search.next++;
		if (strncasecmp(candidate, word, strlen(word)) == 0)
			return strdup(candidate);
	}
	return NULL;
}

char **sql_complete_word(const char *word, int start, int end)
{
	char **matches;
	size_t length;

	rl_attempted_completion_over = 1;
	search.place = place_of(start);
	matches = rl_completion_matches(word, next_match);
	length = matches ? strlen(matches[0]) : 0;
	if (length && (matches[0][length - 1] == '(' || search.place == PLACE_COLUMN))
		rl_completion_suppress_append = 1;
	return matches;
}
