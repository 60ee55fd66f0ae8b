/*
 * Variables in the place of addresses: `explain server.db[0].dict`.
 *
 * Where a command takes an address, a word that is no number and names no set may be the path of a
 * variable (analyzer/types/variable_path.h), or that of an object in words of its language, as
 * `app.users['anna']` (analyzer/runtimes/object_paths.h). A pointer stands for what it points to,
 * anything else for where it is. Types are read only if the symbols have a variable of that name: a
 * mistyped word costs nothing more, and gets the message that it always got.
 */
#pragma once

#include "analyzer/types/variable_path.h"
#include "cli/command.h"
#include "cli/prompt/lexer.h"

/* A word that named a variable; shown in front of the answer. */
struct variable_word {
	const char *text;	     /* as it was typed; of the line */
	struct variable_place place; /* without a module: of an object of a language */
	char *address;		     /* the address that replaces the word; owned */
	bool is_subject;	     /* the command is about it, not about a set that it selects */
};

struct variable_words {
	char **words; /* of the line; those of variables are addresses */
	struct variable_word *list;
	size_t count;
};

void variable_words_deinit(struct variable_words *words);
DEFINE_DEINIT(variable_words_deinit, struct variable_words)

/*
 * Find the variables in the words of the command; the analysis may be NULL. The line is borrowed by
 * what is returned.
 */
struct error *variable_words_find(struct analysis *analysis, const struct command *command,
				  const struct line *line, struct variable_words *ret);

/* Say what variables that the command is about stood for. */
void variable_words_report(const struct variable_words *words, struct report *report);

/* Like variable_words_report(), for one word, as a message to be freed. NULL: memory is short. */
char *variable_word_text(const struct variable_word *word);

/* The context in which paths of variables are resolved (STAGE_TYPE_TABLE). */
struct variable_context variable_words_context(struct analysis *analysis);

/* True if an address may stand next, behind these words, which are no switches. */
bool variable_words_fit(const struct command *command, const char *const *words, size_t count);
